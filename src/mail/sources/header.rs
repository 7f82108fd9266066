//! The header block of an entry, looked at only for the fields that carry labels and lengths.
//!
//! ```text
//! header = *(name *WSP ":" value EOL *(WSP value EOL)) EOL      RFC 5322 §2.2, §4.5.8
//! ```
//! One pass, a test of the first byte per line, no allocation for fields that are not wanted.
//! Never validates: a line that is no field is stepped over, a `From ` line ends the block.

use memchr::memchr;

/// Longest field name accepted, bytes.
const NAME_BYTES_MAX: usize = 76;

/// Values of one field kept, bytes; more is cut.
const VALUE_BYTES_MAX: usize = 16 << 10;

/// Name of the field that `line` begins with.
pub(super) fn field_name(line: &[u8]) -> Option<&[u8]> {
    let head = &line[..line.len().min(NAME_BYTES_MAX + 2)];
    let end = head.iter().position(|b| *b == b':' || !b.is_ascii_graphic())?;
    let name = &head[..end];
    let colon = head[end..].iter().find(|b| !matches!(**b, b' ' | b'\t'))?;
    let holds = *colon == b':' && name.first().is_some_and(u8::is_ascii_alphanumeric);
    holds.then_some(name)
}

/// Is it a field that tells mail from other files of `key: value` lines?
pub(super) fn is_core(name: &[u8]) -> bool {
    const CORE: [&[u8]; 19] = [
        b"from",
        b"to",
        b"cc",
        b"bcc",
        b"subject",
        b"date",
        b"received",
        b"return-path",
        b"message-id",
        b"in-reply-to",
        b"reply-to",
        b"sender",
        b"delivered-to",
        b"x-original-to",
        b"envelope-to",
        b"mime-version",
        b"resent-from",
        b"x-gm-thrid",
        b"x-gmail-labels",
    ];
    CORE.iter().any(|core| name.eq_ignore_ascii_case(core))
}

/// End of the header block, its blank line included; `None` while none is in view. `from` is where
/// an earlier, shorter view was left; it is moved on.
pub(super) fn end(view: &[u8], eol: u8, from: &mut usize) -> Option<usize> {
    if *from == 0 {
        match view {
            [first, ..] if *first == eol => return Some(1),
            [b'\r', b'\n', ..] => return Some(2),
            _ => {}
        }
    }
    let mut at = *from;
    while let Some(found) = memchr(eol, &view[at..]) {
        let next = at + found + 1;
        match &view[next..] {
            [first, ..] if *first == eol => return Some(next + 1),
            [b'\r', b'\n', ..] => return Some(next + 2),
            [] | [b'\r'] => {
                *from = at + found;
                return None;
            }
            _ => at = next,
        }
    }
    *from = at;
    None
}

/// Fields of an entry that are read here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) content_length: Option<usize>,
    pub(super) status: Option<Vec<u8>>,
    pub(super) x_status: Option<Vec<u8>>,
    pub(super) mozilla_status: Option<Vec<u8>>,
    /// `X-Keywords` and `X-Mozilla-Keys`, joined by a blank.
    pub(super) keywords: Option<Vec<u8>>,
    /// `X-Gmail-Labels`, unfolded, several joined by a comma.
    pub(super) gmail_labels: Option<Vec<u8>>,
}

/// Reads the wanted fields of a header block.
pub(super) fn scan(block: &[u8], eol: u8) -> Facts {
    let mut facts = Facts::default();
    let mut at = 0;
    while at < block.len() {
        let line = &block[at..];
        let end = memchr(eol, line).map_or(line.len(), |end| end + 1);
        if line.starts_with(b"From ") {
            break;
        }
        if matches!(line[0], b'C' | b'c' | b'S' | b's' | b'X' | b'x')
            && let Some(name) = field_name(line)
        {
            facts.take(name, line, end, eol);
        }
        at += end;
    }
    facts
}

impl Facts {
    fn take(&mut self, name: &[u8], field: &[u8], line_end: usize, eol: u8) {
        let is = |wanted: &[u8]| name.eq_ignore_ascii_case(wanted);
        let value = || value_of(&field[name.len()..], line_end - name.len(), eol);
        if is(b"content-length") {
            let value = value();
            self.content_length = std::str::from_utf8(&value).ok().and_then(|v| v.parse().ok());
        } else if is(b"status") {
            self.status = Some(value());
        } else if is(b"x-status") {
            self.x_status = Some(value());
        } else if is(b"x-mozilla-status") {
            self.mozilla_status = Some(value());
        } else if is(b"x-keywords") || is(b"x-mozilla-keys") {
            append(&mut self.keywords, b' ', &value());
        } else if is(b"x-gmail-labels") {
            append(&mut self.gmail_labels, b',', &value());
        }
    }
}

fn append(field: &mut Option<Vec<u8>>, glue: u8, value: &[u8]) {
    if value.is_empty() {
        return;
    }
    match field {
        Some(known) => {
            known.push(glue);
            known.extend_from_slice(value);
        }
        None => *field = Some(value.to_vec()),
    }
}

/// Unfolded value of a field whose name was cut off, without white space around it.
fn value_of(field: &[u8], line_end: usize, eol: u8) -> Vec<u8> {
    let colon = memchr(b':', &field[..line_end]).map_or(0, |at| at + 1);
    let mut value = field[colon..line_end].trim_ascii_end().to_vec();
    let mut rest = &field[line_end..];
    while matches!(rest.first(), Some(b' ' | b'\t')) && value.len() < VALUE_BYTES_MAX {
        let end = memchr(eol, rest).map_or(rest.len(), |end| end + 1);
        // Unfolding removes the line end alone (RFC 5322 §2.2.3): a label may be cut at a blank.
        value.extend_from_slice(rest[..end].trim_ascii_end());
        rest = &rest[end..];
    }
    value.truncate(VALUE_BYTES_MAX);
    value.trim_ascii().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(field_name(b"Subject: x"), Some(&b"Subject"[..]));
        assert_eq!(field_name(b"Subject \t: x"), Some(&b"Subject"[..]));
        for none in ["", ":", "two words: x", " folded: x", "no colon", "--x: y", "=?: y"] {
            assert_eq!(field_name(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn the_end_is_found_however_the_view_grows() {
        for (text, want) in [
            ("A: b\nC: d\n\nbody", Some(11)),
            ("A: b\r\nC: d\r\n\r\nbody", Some(14)),
            ("\nbody", Some(1)),
            ("\r\nbody", Some(2)),
            ("A: b\nC: d\n", None),
        ] {
            let (mut from, mut found) = (0, None);
            for cut in 1..=text.len() {
                found = found.or(end(&text.as_bytes()[..cut], b'\n', &mut from));
            }
            assert_eq!(found, want, "{text:?}");
        }
    }

    #[test]
    fn wanted_fields_are_unfolded_and_joined() {
        let block =
            b"Subject: s\r\nx-gmail-labels: Inbox,\"a,\r\n b\",\r\n\tUnread\r\nStatus: RO\r\n\
            X-Keywords:  NonJunk  \r\nX-Mozilla-Keys: $label1\r\nX-Gmail-Labels: Sent\r\n\
            Content-Length: 42\r\nX-Status: F\r\nX-Mozilla-Status: 0001\r\n\r\n";
        let facts = scan(block, b'\n');
        assert_eq!(facts.gmail_labels.unwrap(), b"Inbox,\"a, b\",\tUnread,Sent");
        assert_eq!(facts.keywords.unwrap(), b"NonJunk $label1");
        assert_eq!(facts.content_length, Some(42));
        assert_eq!(facts.status.unwrap(), b"RO");
        assert_eq!(facts.x_status.unwrap(), b"F");
        assert_eq!(facts.mozilla_status.unwrap(), b"0001");
        assert_eq!(scan(b"From x\nStatus: R\n", b'\n'), Facts::default());
    }
}
