//! Characters nobody sees: removed from text, and counted as a sign of hidden content.
//!
//! Zero-width and joiner characters, soft hyphens, fillers, bidi controls, tag characters. U+200D
//! stays between emoji, where it forms one picture. Nothing visible is ever removed.

use std::borrow::Cow;

/// What was removed.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Seen {
    zero_width: u32,
    deceiving: bool,
}

impl Seen {
    /// Enough was hidden to mark the message: a tag character, a bidi override, or more than two
    /// zero-width characters.
    pub(super) fn is_hiding(self) -> bool {
        self.deceiving || self.zero_width > 2
    }
}

/// Removes invisible characters; borrows when there is none.
pub(super) fn strip<'a>(text: &'a str, seen: &mut Seen) -> Cow<'a, str> {
    if text.is_ascii() || !text.chars().any(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut in_flag = false;
    let mut chars = text.chars().peekable();
    let mut first = true;
    while let Some(c) = chars.next() {
        match c {
            '\u{200D}' => {
                if before.is_some_and(is_emoji) && chars.peek().copied().is_some_and(is_emoji) {
                    out.push(c);
                } else {
                    seen.zero_width += 1;
                }
            }
            // A byte order mark at the start hides nothing.
            '\u{FEFF}' if first => {}
            '\u{200B}' | '\u{200C}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' => seen.zero_width += 1,
            '\u{202D}' | '\u{202E}' => seen.deceiving = true,
            // The flags of England, Scotland and Wales are a black flag and tag characters.
            '\u{E0000}'..='\u{E007F}' => seen.deceiving |= !in_flag,
            _ if is_invisible(c) => {}
            _ => {
                in_flag = c == '\u{1F3F4}';
                before = Some(c);
                out.push(c);
            }
        }
        first = false;
    }
    Cow::Owned(out)
}

/// The removable characters; U+200D is decided by its neighbours.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{200B}'..='\u{200D}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{00AD}' | '\u{034F}' | '\u{180E}'
        | '\u{115F}' | '\u{1160}' | '\u{3164}' | '\u{FFA0}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
        | '\u{E0000}'..='\u{E007F}')
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{1F000}'..='\u{1FAFF}' | '\u{2190}'..='\u{2BFF}' | '\u{FE0F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joiner_stays_between_emoji_only() {
        let mut seen = Seen::default();
        assert_eq!(strip("👩\u{200D}💻 a\u{200D}b\u{AD}c", &mut seen), "👩\u{200D}💻 abc");
        assert!(!seen.is_hiding());
        strip("a\u{202E}b", &mut seen);
        assert!(seen.is_hiding());
    }

    #[test]
    fn a_flag_is_no_deception() {
        let mut seen = Seen::default();
        strip("🏴\u{E0067}\u{E0062}\u{E007F} ok", &mut seen);
        assert!(!seen.is_hiding());
        strip("x\u{E0061}", &mut seen);
        assert!(seen.is_hiding());
    }
}
