//! Apple Mail's message files.
//!
//! ```text
//! emlx = count *" " LF  message (count bytes)  property list (XML)
//! ```
//! The property list holds `flags`, an integer whose low bits are the states below, and
//! `date-received`, unix seconds. Only these two are read; a damaged list tells nothing. Layout and
//! bits are known from use, Apple has published neither.

use memchr::memmem;

use super::labels::Labels;

const READ: u64 = 1;
const DELETED: u64 = 1 << 1;
const ANSWERED: u64 = 1 << 2;
const FLAGGED: u64 = 1 << 4;
const DRAFT: u64 = 1 << 6;
const FORWARDED: u64 = 1 << 8;

/// Where the message lies in an emlx file: start and length as declared.
pub(super) fn extent(file: &[u8]) -> Option<(usize, usize)> {
    let head = &file[..file.len().min(32)];
    let end = memchr::memchr(b'\n', head)?;
    let count = std::str::from_utf8(head[..end].trim_ascii()).ok()?;
    let digits = !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit());
    Some((end + 1, count.parse().ok().filter(|_| digits)?))
}

/// Adds the labels of the property list; gives the time of receipt, unix ms.
pub(super) fn properties(list: &[u8], labels: &mut Labels) -> Option<i64> {
    if let Some(flags) = integer(list, b"<key>flags</key>").and_then(|n| u64::try_from(n).ok()) {
        for (bit, set, label) in [
            (READ, false, "unread"),
            (FLAGGED, true, "starred"),
            (ANSWERED, true, "replied"),
            (FORWARDED, true, "forwarded"),
            (DRAFT, true, "draft"),
            (DELETED, true, "trashed"),
        ] {
            if (flags & bit != 0) == set {
                labels.add(label);
            }
        }
    }
    integer(list, b"<key>date-received</key>").and_then(|seconds| seconds.checked_mul(1_000))
}

/// The number in the element behind a key, `<integer>` or `<real>`.
fn integer(list: &[u8], key: &[u8]) -> Option<i64> {
    let at = memmem::find(list, key)? + key.len();
    let element = list[at..].trim_ascii_start();
    let number = element.strip_prefix(b"<integer>").or_else(|| element.strip_prefix(b"<real>"))?;
    let end = number.iter().position(|b| !b.is_ascii_digit())?;
    std::str::from_utf8(&number[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extent_and_properties() {
        assert_eq!(extent(b"12        \nSubject: x\n"), Some((11, 12)));
        assert_eq!(extent(b"+12\nSubject: x\n"), None);
        assert_eq!(extent(b"Subject: x\n"), None);
        let list = b"<plist><dict><key>date-received</key>\n<integer>1049198400</integer>\
            <key>flags</key><integer>8590195988</integer></dict></plist>";
        let mut labels = Labels::default();
        assert_eq!(properties(list, &mut labels), Some(1_049_198_400_000));
        assert_eq!(labels.into_vec(), ["unread", "starred", "replied", "forwarded"]);
    }
}
