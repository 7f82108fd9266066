//! Text of mail, made harmless for terminals.
//!
//! What people wrote may hold escape sequences, other control characters, or overrides of the
//! writing direction; none of them reaches a terminal. Replacement is character by character, so
//! that places counted in characters stay right.

use std::io::{self, Write};

fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One line: line ends and tabs become blanks, what steers a terminal is replaced.
pub(super) fn line(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c if steers(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// Text of several lines: line ends and tabs stay, carriage returns go.
pub(super) fn text(text: &str) -> String {
    text.chars()
        .filter(|c| *c != '\r')
        .map(|c| if c == '\n' || c == '\t' || !steers(c) { c } else { char::REPLACEMENT_CHARACTER })
        .collect()
}

/// JSON in which what steers a terminal is escaped; `serde_json` escapes only up to U+001F.
pub(super) fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        // Line ends between tokens are not part of strings.
        if c != '\n' && steers(c) {
            safe.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    safe
}

/// A writer to a terminal for bytes of any kind.
pub(super) struct SafeWriter<W>(pub(super) W);

impl<W: Write> Write for SafeWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Whole characters only; the rest comes with the next call, or is no UTF-8 at all.
        let whole = match std::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
                error.valid_up_to()
            }
            Err(_) => bytes.len(),
        };
        self.0.write_all(text(&String::from_utf8_lossy(&bytes[..whole])).as_bytes())?;
        Ok(whole)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_overrides_do_not_pass() {
        assert_eq!(line("a\u{1b}[31mb\nc\u{202e}d\u{9b}"), "a\u{fffd}[31mb c\u{fffd}d\u{fffd}");
        assert_eq!(text("a\r\n\tb\u{7}"), "a\n\tb\u{fffd}");
        assert_eq!(json("\"\u{9b}\u{7f}ü\""), "\"\\u009b\\u007fü\"");
        let mut out = Vec::new();
        SafeWriter(&mut out).write_all("ä\u{1b}\u{202e}é".as_bytes()).expect("memory");
        assert_eq!(out, "ä\u{fffd}\u{fffd}é".as_bytes());
        let mut out = Vec::new();
        SafeWriter(&mut out).write_all(b"\xff\x1b\x9b").expect("memory");
        assert!(!out.contains(&0x1b));
    }
}
