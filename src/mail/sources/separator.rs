//! The `From ` line between the entries of an mbox.
//!
//! ```text
//! separator = "From " sender date EOL     followed by a header field, ">From " or nothing at all
//! ```
//! What must hold depends on what stands before the line:
//! * start of file: one word is enough in place of sender and date, and then its shape
//!   ([`Dateless`]) is the one that later lines of the file may have too;
//! * a blank line: a date of any style (or the file's dateless shape);
//! * text: a date with weekday and seconds (or the file's shape, unless that is a mere word), and a
//!   header field of mail. Pipermail writes no blank line behind a scrubbed attachment, Netscape
//!   none behind a body that lacks its last line end.
//!
//! RFC 4155 asks for the blank line and an asctime date; the rest is what programs really write.
//! Decides on bytes in view; reads nothing.

use super::{header, when};

/// Longest separator line, bytes.
const LINE_BYTES_MAX: usize = 1_000;

/// Bytes needed in view from the start of the line on for a verdict.
pub(super) const VIEW_BYTES: usize = LINE_BYTES_MAX + 1_048;

/// What stands before a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing: start of file.
    Start,
    /// A blank line.
    Blank,
    /// Anything else.
    Text,
}

/// Shapes of separator lines without a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dateless {
    /// `From -` (Netscape).
    Dash,
    /// `From 1844…@xxx` (Takeout).
    Number,
    /// `From jk@host`.
    Word,
}

/// A separator line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Separator {
    /// Length of the line with its end.
    pub(super) bytes: usize,
    /// Its date, unix ms.
    pub(super) ms: Option<i64>,
    /// Shape when it has no date.
    pub(super) dateless: Option<Dateless>,
}

/// Judges the line that `view` begins with; `view` holds [`VIEW_BYTES`] or all that is left.
pub(super) fn read(
    view: &[u8],
    eol: u8,
    before: Before,
    dateless: Option<Dateless>,
) -> Option<Separator> {
    let rest = view.strip_prefix(b"From ")?;
    let searched = &rest[..rest.len().min(LINE_BYTES_MAX)];
    let end = match memchr::memchr(eol, searched) {
        Some(end) => end,
        // The last line of a file may lack its end.
        None if rest.len() < LINE_BYTES_MAX => rest.len(),
        None => return None,
    };
    let bytes = (5 + end + 1).min(view.len());
    let next = follow(&view[bytes..], eol);
    let line = rest[..end].trim_ascii();
    let date = when::at_end(line);
    let shape = if date.is_some() { None } else { shape_of(line) };
    let holds = match before {
        Before::Start if shape.is_some() => matches!(next, Follow::Field | Follow::CoreField),
        Before::Start => date.is_some() && next != Follow::Other,
        Before::Blank if date.is_some() => next != Follow::Other,
        Before::Blank => {
            shape.is_some()
                && matches!(next, Follow::Field | Follow::CoreField)
                && (shape == dateless || shape == Some(Dateless::Number))
        }
        Before::Text => {
            // `From -` and Takeout's numbers are as unmistakable as a full date.
            let marked = matches!(shape, Some(Dateless::Dash | Dateless::Number));
            let full = date.is_some_and(|date| date.full);
            (full || (marked && shape == dateless)) && next == Follow::CoreField
        }
    };
    holds.then_some(Separator { bytes, ms: date.and_then(|date| date.ms), dateless: shape })
}

fn shape_of(line: &[u8]) -> Option<Dateless> {
    if line == b"-" {
        return Some(Dateless::Dash);
    }
    if line.is_empty() || line.iter().any(u8::is_ascii_whitespace) {
        return None;
    }
    let number = line
        .strip_suffix(b"@xxx")
        .is_some_and(|digits| digits.len() >= 6 && digits.iter().all(u8::is_ascii_digit));
    Some(if number { Dateless::Number } else { Dateless::Word })
}

/// What the line behind a separator line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    /// A field that every mail has one of, or an older separator line kept as `>From `.
    CoreField,
    /// Any other field.
    Field,
    /// Nothing: end of file or the next separator line.
    Nothing,
    /// Text.
    Other,
}

fn follow(view: &[u8], eol: u8) -> Follow {
    if view.starts_with(b">From ") {
        return Follow::CoreField;
    }
    if let Some(name) = header::field_name(view) {
        return if header::is_core(name) { Follow::CoreField } else { Follow::Field };
    }
    let blank = view.iter().take_while(|b| matches!(**b, b'\n' | b'\r')).count();
    let next = &view[blank..];
    if next.is_empty() {
        return Follow::Nothing;
    }
    let Some(rest) = next.strip_prefix(b"From ") else {
        return Follow::Other;
    };
    let end = memchr::memchr(eol, rest).unwrap_or(rest.len());
    if when::at_end(&rest[..end]).is_some() { Follow::Nothing } else { Follow::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(view: &str, before: Before) -> bool {
        read(view.as_bytes(), b'\n', before, None).is_some()
    }

    #[test]
    fn what_stands_before_decides() {
        let full = "From jk at host  Tue Apr  1 12:00:00 2003\nFrom: jk\n";
        let loose = "From jk at host  Apr  1 12:00 2003\nFrom: jk\n";
        let bare = "From jk@host\nSubject: x\n";
        for (text, start, blank, text_before) in
            [(full, true, true, true), (loose, true, true, false), (bare, true, false, false)]
        {
            assert_eq!(holds(text, Before::Start), start, "{text}");
            assert_eq!(holds(text, Before::Blank), blank, "{text}");
            assert_eq!(holds(text, Before::Text), text_before, "{text}");
        }
    }

    #[test]
    fn dateless_lines_count_only_in_files_that_begin_with_one() {
        let line = b"From -\nSubject: x\n";
        let first = read(line, b'\n', Before::Start, None).unwrap();
        assert_eq!((first.bytes, first.dateless), (7, Some(Dateless::Dash)));
        assert!(read(line, b'\n', Before::Blank, first.dateless).is_some());
        assert!(read(line, b'\n', Before::Blank, Some(Dateless::Word)).is_none());
        assert!(holds("From 1844347792267117879@xxx\nSubject: x\n", Before::Blank));
    }

    #[test]
    fn prose_and_missing_fields_are_refused() {
        let dated = "From jk Tue Apr  1 12:00:00 2003\n";
        assert!(!holds(&format!("{dated}and so it was\n"), Before::Blank));
        assert!(!holds(&format!("{dated}\nand so it was\n"), Before::Blank));
        assert!(!holds("From here on:\nkey: value\n", Before::Blank));
        assert!(holds(dated, Before::Blank), "at the end of the file");
        assert!(holds(&format!("{dated}\n{dated}"), Before::Blank), "an empty entry");
        assert!(holds(&format!("{dated}>From older Tue\nX: y\n"), Before::Blank));
    }
}
