//! What a file is, by its first bytes.
//!
//! Looked for in this order: archives by magic number; a separator line (mbox); a byte count and
//! a header (emlx); a header (message); a separator line further down (mbox with a preamble). A
//! header is a block of fields with at least one that every mail has, so that other files of
//! `key: value` lines are not taken for mail. Never decides by name; reads 64 KiB, and the first
//! message of an mbox to learn whether there is a second.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::failure::SkipReason;
use super::input::Input;
use super::mbox::{Found, Scanner};
use super::separator::{self, Before};
use super::{emlx, header, single};

/// Bytes of a file that are looked at.
const HEAD_BYTES: usize = 64 << 10;

/// Magic numbers of files that hold other files (or are packed otherwise than by gzip).
const ARCHIVES: [(usize, &[u8], &str); 8] = [
    (0, b"PK\x03\x04", "zip"),
    (0, b"PK\x05\x06", "zip"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z"),
    (0, b"Rar!\x1a\x07", "rar"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ\x00", "xz"),
    (0, b"\x28\xb5\x2f\xfd", "zstd"),
    (257, b"ustar", "tar"),
];

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sniffed {
    /// More than one entry, or a preamble.
    Mbox,
    /// The first entry carries Gmail's fields.
    Takeout,
    /// One message behind a separator line.
    MboxOfOne,
    /// One message, bare or emlx.
    Message,
    Skip(SkipReason),
}

pub(super) fn sniff(path: &Path) -> io::Result<Sniffed> {
    let mut head = Vec::new();
    let mut input = Input::open(path, Arc::new(AtomicU64::new(0)))?;
    (&mut input).take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    let archive = ARCHIVES
        .iter()
        .find(|(at, magic, _)| head.get(*at..).is_some_and(|bytes| bytes.starts_with(magic)));
    if let Some((_, _, format)) = archive {
        return Ok(Sniffed::Skip(SkipReason::Archive(format)));
    }
    let content = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    if content.trim_ascii().is_empty() {
        // A long run of NUL or blanks is as empty as none.
        return Ok(Sniffed::Skip(SkipReason::Empty));
    }
    let eol = single::eol_of(content);
    if let Some(first) = separator::read(content, eol, Before::Start, None) {
        let mut from = 0;
        let entry = &content[first.bytes..];
        let block = &entry[..header::end(entry, eol, &mut from).unwrap_or(entry.len())];
        // An archived message may have no label at all, the thread number is always there.
        let thread = memchr::memmem::find(block, b"X-GM-THRID:").is_some();
        if thread || header::scan(block, eol).gmail_labels.is_some() {
            return Ok(Sniffed::Takeout);
        }
        return Ok(if has_one_entry(path)? { Sniffed::MboxOfOne } else { Sniffed::Mbox });
    }
    let message = match emlx::extent(content) {
        Some((at, _)) => &content[at..],
        None => content,
    };
    if is_message(message, eol) {
        return Ok(Sniffed::Message);
    }
    let mut scanner = Scanner::new(content, HEAD_BYTES, HEAD_BYTES);
    while let Some(found) = scanner.next() {
        if matches!(found, Found::Entry { .. }) {
            return Ok(Sniffed::Mbox);
        }
    }
    Ok(Sniffed::Skip(SkipReason::NotMail))
}

/// Reads on to the second entry, if there is one.
fn has_one_entry(path: &Path) -> io::Result<bool> {
    let input = Input::open(path, Arc::new(AtomicU64::new(0)))?;
    // A cap of nothing: entries are counted, not kept.
    let mut scanner = Scanner::new(input, HEAD_BYTES, 0);
    scanner.next();
    Ok(scanner.next().is_none())
}

/// Does it begin with the header of a mail?
fn is_message(content: &[u8], eol: u8) -> bool {
    let content = content.trim_ascii_start();
    let mut fields: usize = 0;
    let mut core: usize = 0;
    let mut mime: usize = 0;
    let mut strange: usize = 0;
    let mut first = true;
    let mut begins = false;
    for line in content.split(|b| *b == eol).take(400) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        if let Some(name) = header::field_name(line) {
            fields += 1;
            core += usize::from(header::is_core(name));
            begins |= first && core == 1;
            let mime_name = name.len() > 8 && name[..8].eq_ignore_ascii_case(b"content-");
            mime += usize::from(mime_name);
        } else if first || !matches!(line[0], b' ' | b'\t') {
            strange += 1;
        }
        first = false;
    }
    // One field of mail or MIME is enough in a clean block; a damaged one must show more, and a
    // long text with lines that happen to look like fields is no header.
    let damaged = (begins || core >= 2) && fields > strange;
    if strange == 0 { core + mime >= 1 } else { damaged && (strange <= 3 || fields >= 4 * strange) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(bytes: &[u8]) -> Sniffed {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, bytes).unwrap();
        sniff(&path).unwrap()
    }

    #[test]
    fn by_content() {
        let one = b"From jk Tue Apr  1 12:00:00 2003\nSubject: x\n\nbody\n";
        assert_eq!(kind(one), Sniffed::MboxOfOne);
        assert_eq!(kind(&[&one[..], b"\n", one].concat()), Sniffed::Mbox);
        assert_eq!(kind(&[b"some words\n\n", &one[..]].concat()), Sniffed::Mbox);
        assert_eq!(kind(b"From 1@xxx\nX-Gmail-Labels: Inbox\n\n"), Sniffed::Takeout);
        assert_eq!(kind(b"\xef\xbb\xbfSubject: x\r\n\r\nbody"), Sniffed::Message);
        assert_eq!(kind(b"21    \nSubject: x\n\nbody body<?xml"), Sniffed::Message);
        let listing = "a list\nfrom:x y\nto:z w\nsubject:v\nplain words\n".repeat(9);
        assert_ne!(kind(listing.as_bytes()), Sniffed::Message);
        assert_eq!(kind(b"odd line\nFrom: a\nTo: b\nDate: c\n\nbody"), Sniffed::Message);
        assert_eq!(kind(b"Subject: mac\rFrom: x\r\rbody"), Sniffed::Message);
    }

    #[test]
    fn what_is_no_mail() {
        for (bytes, reason) in [
            (&b""[..], SkipReason::Empty),
            (b" \n\n", SkipReason::Empty),
            (b"PK\x03\x04rest", SkipReason::Archive("zip")),
            (b"name: x\nversion: 2\nlist: y\n", SkipReason::NotMail),
            (b"# Read me\nFrom: here\n", SkipReason::NotMail),
            (b"\x00\x01\x02", SkipReason::NotMail),
            (b"From here on, all is text\nto: be\n", SkipReason::NotMail),
        ] {
            assert_eq!(kind(bytes), Sniffed::Skip(reason), "{bytes:?}");
        }
    }
}
