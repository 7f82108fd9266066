//! Undoing the quoting of `From ` lines in a body.
//!
//! ```text
//! mboxrd:  ^>+From   loses one ">"          mboxo:  ^>From   loses its ">"
//! ```
//! Both are undone alike: an mboxo body that really began a line with `>From ` cannot be told
//! from a quoted one, by anyone. The header block is left alone: a `>From ` line there is an older
//! separator line, not a quoted one. Lines end in LF, CRLF or, in old Macintosh files, CR.

use memchr::memmem;

/// A line of the body begins with an unquoted `From `: the entry was taken by its length and never
/// quoted (mboxcl2).
pub(super) fn has_bare_from(body: &[u8], eol: u8) -> bool {
    let needle = [eol, b'F', b'r', b'o', b'm', b' '];
    body.starts_with(&needle[1..]) || memmem::find(body, &needle).is_some()
}

/// `raw` with one level of quoting removed from the body, which begins at `body_at`.
pub(super) fn undo(raw: &[u8], body_at: usize, eol: u8) -> Vec<u8> {
    let mut plain = Vec::with_capacity(raw.len());
    let mut kept = 0;
    let body_at = body_at.min(raw.len());
    for found in memmem::find_iter(&raw[body_at..], b">From ") {
        // The run of ">" that this one ends must begin a line.
        let mut at = body_at + found;
        while at > body_at && raw[at - 1] == b'>' {
            at -= 1;
        }
        if at == 0 || at == body_at || raw[at - 1] == eol {
            plain.extend_from_slice(&raw[kept..at]);
            kept = at + 1;
        }
    }
    plain.extend_from_slice(&raw[kept..]);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_level_goes_and_only_at_line_starts() {
        let raw = b"X: y\n>From h\n\n>From a\n>>>From b\ntext >From c\n> >From d\nFrom e\n";
        let body = 14;
        assert_eq!(
            String::from_utf8_lossy(&undo(raw, body, b'\n')),
            "X: y\n>From h\n\nFrom a\n>>From b\ntext >From c\n> >From d\nFrom e\n"
        );
        assert_eq!(undo(b"a\r>From b", 0, b'\r'), b"a\rFrom b");
        assert_eq!(undo(b"", 0, b'\n'), b"");
    }

    #[test]
    fn bare_from() {
        assert!(has_bare_from(b"From x", b'\n'));
        assert!(has_bare_from(b"a\r\nFrom x", b'\n'));
        assert!(!has_bare_from(b">From x\nfrom x\nFromage", b'\n'));
    }
}
