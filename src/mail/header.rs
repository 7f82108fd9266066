//! Bytes at the head of an entity → header fields, as raw slices.
//!
//! Grammar (RFC 5322 §2.2): `field = name ":" value *( fold value ) line-end`. Nothing is decoded
//! or copied here; fields point into the message. Junk before and between fields (mbox separator,
//! byte order mark, blank lines, lines without a colon) is stepped over, never fatal.

use std::borrow::Cow;

use memchr::memchr;

/// Most fields kept for one entity; the rest is dropped and reported.
const FIELDS_MAX: usize = 4096;
/// Longest field name that is taken for one, bytes.
const NAME_BYTES_MAX: usize = 128;

/// One field: the name as written, the value with its folds still in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    /// Name without the colon.
    pub(super) name: &'a [u8],
    /// Everything after the colon up to the last line end, folds included.
    pub(super) value: &'a [u8],
}

/// The fields of one entity in order.
#[derive(Debug, Default)]
pub(super) struct Headers<'a> {
    fields: Vec<Field<'a>>,
    /// An mbox separator line that stood before the fields, without its line end.
    pub(super) separator: Option<&'a [u8]>,
    /// More fields than the cap stood there.
    pub(super) truncated: bool,
}

impl<'a> Headers<'a> {
    /// First non-empty field of that name, raw; else the first empty one.
    pub(super) fn get(&self, name: &str) -> Option<&'a [u8]> {
        let mut empty = None;
        for value in self.all(name) {
            if !value.trim_ascii().is_empty() {
                return Some(value);
            }
            empty.get_or_insert(value);
        }
        empty
    }

    /// All fields of that name in order, raw.
    pub(super) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a [u8]> + 's {
        self.fields
            .iter()
            .filter(move |f| {
                f.name.len() == name.len() && f.name.eq_ignore_ascii_case(name.as_bytes())
            })
            .map(|f| f.value)
    }

    /// No field at all.
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

/// One line starting at `at`: its bytes without line end, and where the next line starts.
pub(super) fn line_at(bytes: &[u8], at: usize) -> (&[u8], usize) {
    let rest = bytes.get(at..).unwrap_or_default();
    let (line, next) = match memchr(b'\n', rest) {
        Some(i) => (&rest[..i], at + i + 1),
        None => (rest, bytes.len()),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), next)
}

/// Splits the header block that starts at `from`; returns it and where the body starts.
///
/// `top` tells that this is the start of a message, where separators and blank lines may come
/// first. `is_stop` says whether a line is a delimiter of an enclosing multipart.
pub(super) fn split<'a>(
    bytes: &'a [u8],
    from: usize,
    top: bool,
    is_stop: impl Fn(&[u8]) -> bool,
) -> (Headers<'a>, usize) {
    let mut headers = Headers::default();
    let mut at = from;
    if top {
        at = skip_preface(bytes, at, &mut headers);
    }
    let body_if_none = at;
    let mut open: Option<(&'a [u8], usize, usize)> = None;
    loop {
        if at >= bytes.len() {
            break;
        }
        let (line, next) = line_at(bytes, at);
        if line.is_empty() {
            at = next;
            break;
        }
        if line.starts_with(b"--") && is_stop(line) {
            break;
        }
        let folded = matches!(line[0], b' ' | b'\t');
        if folded {
            if line.trim_ascii().is_empty() && !continues(bytes, next) {
                at = next;
                break;
            }
            if let Some(field) = &mut open {
                field.2 = at + line.len();
            }
        } else if let Some(colon) = name_end(line) {
            keep(&mut headers, open.take(), bytes);
            open = Some((line[..colon].trim_ascii_end(), at + colon + 1, at + line.len()));
        } else if !is_known_field(line_at(bytes, next).0) {
            // A line that is no field, and no field after it: the blank line is missing.
            break;
        } else {
            keep(&mut headers, open.take(), bytes);
        }
        at = next;
    }
    keep(&mut headers, open, bytes);
    if headers.is_empty() && top {
        at = body_if_none;
    }
    (headers, at)
}

fn keep<'a>(headers: &mut Headers<'a>, open: Option<(&'a [u8], usize, usize)>, bytes: &'a [u8]) {
    if let Some((name, start, end)) = open {
        if headers.fields.len() < FIELDS_MAX {
            headers.fields.push(Field { name, value: &bytes[start..end.max(start)] });
        } else {
            headers.truncated = true;
        }
    }
}

/// Steps over a byte order mark, blank lines and separator lines, if fields follow them.
fn skip_preface<'a>(bytes: &'a [u8], from: usize, headers: &mut Headers<'a>) -> usize {
    let mut at = from;
    if bytes[at..].starts_with(b"\xEF\xBB\xBF") {
        at += 3;
    }
    let start = at;
    while at < bytes.len() {
        let (line, next) = line_at(bytes, at);
        if line.starts_with(b"From ") || line.starts_with(b">From ") {
            headers.separator.get_or_insert(line);
        } else if !line.trim_ascii().is_empty() {
            let fieldish = name_end(line).is_some() || is_known_field(line_at(bytes, next).0);
            return if fieldish || headers.separator.is_some() { at } else { start };
        }
        at = next;
    }
    at
}

/// After a line of white space only: does the header block go on?
fn continues(bytes: &[u8], at: usize) -> bool {
    let line = line_at(bytes, at).0;
    is_known_field(line)
}

/// Position of the colon when the line begins with a field name (RFC 5322 §3.6.8, blanks before
/// the colon allowed as in §4.5).
fn name_end(line: &[u8]) -> Option<usize> {
    let colon = memchr(b':', &line[..line.len().min(NAME_BYTES_MAX)])?;
    let name = line[..colon].trim_ascii_end();
    (!name.is_empty() && name.iter().all(|b| (33..=126).contains(b))).then_some(colon)
}

/// A field that mail really has: decides whether junk stands inside the header block or the body
/// began without a blank line.
fn is_known_field(line: &[u8]) -> bool {
    let Some(colon) = name_end(line) else { return false };
    let name = line[..colon].trim_ascii_end();
    let starts =
        |p: &str| name.len() >= p.len() && name[..p.len()].eq_ignore_ascii_case(p.as_bytes());
    const WHOLE: [&str; 16] = [
        "From",
        "To",
        "Cc",
        "Bcc",
        "Subject",
        "Date",
        "Sender",
        "Received",
        "Return-Path",
        "Message-ID",
        "Reply-To",
        "In-Reply-To",
        "References",
        "MIME-Version",
        "Delivered-To",
        "Precedence",
    ];
    WHOLE.iter().any(|w| name.eq_ignore_ascii_case(w.as_bytes()))
        || ["X-", "Content-", "List-", "Resent-", "DKIM-", "ARC-"].iter().any(|p| starts(p))
}

/// A value with its folds taken out and outer blanks trimmed (RFC 5322 §2.2.3).
pub(super) fn unfold(value: &[u8]) -> Cow<'_, [u8]> {
    let value = value.trim_ascii();
    if memchr::memchr2(b'\n', b'\r', value).is_none() {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.iter().copied().filter(|b| !matches!(b, b'\n' | b'\r')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(raw: &str) -> (Vec<(String, String)>, String) {
        let (h, at) = split(raw.as_bytes(), 0, true, |_| false);
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        (
            h.fields.iter().map(|f| (text(f.name), text(&unfold(f.value)))).collect(),
            text(&raw.as_bytes()[at..]),
        )
    }

    #[test]
    fn separator_and_blank_lines_before_fields_are_stepped_over() {
        let (f, body) = fields("\nFrom a@b Thu Aug 22 2002\n>From c\nSubject: x\n y\n\nbody\n");
        assert_eq!(f, [("Subject".to_owned(), "x y".to_owned())]);
        assert_eq!(body, "body\n");
    }

    #[test]
    fn junk_between_fields_is_skipped_and_a_missing_blank_line_starts_the_body() {
        let (f, body) = fields("To: a\nwhat is this\nSubject : b\nHello you\nthere\n");
        assert_eq!(f.len(), 2);
        assert_eq!(f[1], ("Subject".to_owned(), "b".to_owned()));
        assert_eq!(body, "Hello you\nthere\n");
    }

    #[test]
    fn a_body_without_fields_is_not_eaten() {
        let (f, body) = fields("Hello there,\n\nno header: at all\n");
        assert!(f.is_empty());
        assert!(body.starts_with("Hello"));
    }
}
