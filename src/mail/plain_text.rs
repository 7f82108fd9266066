//! Decoded text → clean text: line ends `\n`, no controls, no invisible characters.
//!
//! One copy at most; nothing visible is lost. A lone CR is a line end, `\r\r\n` is one.

use std::borrow::Cow;

use memchr::memmem;

use super::invisible::{self, Seen};

/// What cleaning found.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Found {
    /// NUL, a lone CR or another control was there.
    pub(super) controls: bool,
    /// Invisible characters.
    pub(super) seen: Seen,
}

/// Cleans a text.
pub(super) fn clean(text: Cow<'_, str>, found: &mut Found) -> String {
    let stripped = match &text {
        Cow::Borrowed(t) => match invisible::strip(t, &mut found.seen) {
            Cow::Borrowed(_) => None,
            Cow::Owned(o) => Some(o),
        },
        Cow::Owned(t) => match invisible::strip(t, &mut found.seen) {
            Cow::Borrowed(_) => None,
            Cow::Owned(o) => Some(o),
        },
    };
    let text = stripped.map_or(text, Cow::Owned);
    let is_odd = |b: u8| (b < 0x20 && b != b'\n' && b != b'\t') || b == 0x7F;
    if !text.bytes().any(is_odd) {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let b = bytes[at];
        if !is_odd(b) {
            at += 1;
            continue;
        }
        out.push_str(&text[copied..at]);
        at += 1;
        match b {
            b'\r' => {
                while bytes.get(at) == Some(&b'\r') {
                    at += 1;
                }
                if bytes.get(at) != Some(&b'\n') {
                    out.push('\n');
                    found.controls = true;
                }
            }
            // A form feed parts pages.
            0x0C => out.push('\n'),
            _ => found.controls = true,
        }
        copied = at;
    }
    out.push_str(&text[copied..]);
    out
}

/// Holds a link a person could follow.
pub(super) fn has_link(text: &str) -> bool {
    let bytes = text.as_bytes();
    memmem::find_iter(bytes, b"://").any(|i| {
        let before = &bytes[i.saturating_sub(5)..i];
        [&b"http"[..], b"https", b"ftp"].iter().any(|s| {
            before.len() >= s.len() && before[before.len() - s.len()..].eq_ignore_ascii_case(s)
        })
    }) || memmem::find(bytes, b"mailto:").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_controls() {
        let mut found = Found::default();
        assert_eq!(clean("a\r\nb\r\r\nc\rd\0e\x07".into(), &mut found), "a\nb\nc\nde");
        assert!(found.controls);
        let mut found = Found::default();
        assert_eq!(clean("a\r\nb".into(), &mut found), "a\nb");
        assert!(!found.controls);
    }

    #[test]
    fn links() {
        assert!(has_link("see HTTPS://x.org") && has_link("mailto:a@b") && !has_link("a://b"));
    }
}
