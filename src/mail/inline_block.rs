//! Files inside plain text, from before MIME: uuencode and yEnc blocks.
//!
//! Works on bytes, before any charset. A block must look right line by line, so that text *about*
//! uuencoding stays text. Blocks are named and measured; nothing is unpacked.

use std::ops::Range;

use memchr::{memchr, memmem};

/// One file found in the text.
#[derive(Debug)]
pub(super) struct Block {
    /// Where it stands in the text, whole lines.
    pub(super) range: Range<usize>,
    pub(super) filename: Vec<u8>,
    pub(super) bytes: Vec<u8>,
    /// Not closed, or some lines did not fit.
    pub(super) damaged: bool,
}

/// Most blocks taken out of one text.
const BLOCKS_MAX: usize = 64;

/// All blocks of a text, in order.
pub(super) fn find(text: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = 0;
    // Each search starts where the last one of its kind ended: linear in the text.
    let mut uu = next_line_with(text, 0, b"begin ");
    let mut yenc = next_line_with(text, 0, b"=ybegin ");
    while blocks.len() < BLOCKS_MAX {
        if uu.is_some_and(|u| u < at) {
            uu = next_line_with(text, at, b"begin ");
        }
        if yenc.is_some_and(|y| y < at) {
            yenc = next_line_with(text, at, b"=ybegin ");
        }
        let (start, is_yenc) = match (uu, yenc) {
            (Some(u), Some(y)) => (u.min(y), y < u),
            (Some(u), None) => (u, false),
            (None, Some(y)) => (y, true),
            (None, None) => break,
        };
        let block = if is_yenc { yenc_at(text, start) } else { uuencoded_at(text, start) };
        at = start + 1;
        if let Some(block) = block {
            at = block.range.end;
            blocks.push(block);
        }
    }
    blocks
}

/// The first uuencoded block of a body that is declared as one.
pub(super) fn first_uuencoded(body: &[u8]) -> Option<Block> {
    let mut at = 0;
    while let Some(start) = next_line_with(body, at, b"begin ") {
        if let Some(block) = uuencoded_at(body, start) {
            return Some(block);
        }
        at = start + 1;
    }
    None
}

fn next_line_with(text: &[u8], from: usize, start: &[u8]) -> Option<usize> {
    let mut at = from;
    while let Some(i) = memmem::find(text.get(at..)?, start) {
        let place = at + i;
        if place == 0 || text[place - 1] == b'\n' {
            return Some(place);
        }
        at = place + 1;
    }
    None
}

fn line(text: &[u8], at: usize) -> (&[u8], usize) {
    super::header::line_at(text, at)
}

/// `begin <mode> <name>`, lines of `<length><data>`, `end`.
fn uuencoded_at(text: &[u8], start: usize) -> Option<Block> {
    let (head, mut at) = line(text, start);
    let rest = head.strip_prefix(b"begin ")?;
    let space = memchr(b' ', rest)?;
    let (mode, name) = (&rest[..space], rest[space + 1..].trim_ascii());
    let modelike = (3..=4).contains(&mode.len()) && mode.iter().all(|b| (b'0'..=b'7').contains(b));
    if !modelike || name.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut damaged = false;
    let mut lines = 0;
    loop {
        if at >= text.len() {
            damaged = true;
            break;
        }
        let (data, next) = line(text, at);
        if data == b"end" {
            at = next;
            break;
        }
        if uu_line(data, &mut bytes) {
            lines += 1;
        } else if data.trim_ascii().is_empty() || data == b"`" {
            // The empty line before `end`.
        } else {
            // Not a line of data: the block was cut off.
            damaged = true;
            break;
        }
        at = next;
    }
    (lines > 0).then(|| Block { range: start..at, filename: name.to_vec(), bytes, damaged })
}

/// Decodes one data line; `false` when it is none.
fn uu_line(data: &[u8], out: &mut Vec<u8>) -> bool {
    let Some((&first, data)) = data.split_first() else { return false };
    let length = usize::from(first.wrapping_sub(b' ') & 0x3F);
    let needed = length.div_ceil(3) * 4;
    // Blanks at the end of a line get lost on the way; two more characters are a checksum.
    if !(b'!'..=b'`').contains(&first)
        || length == 0
        || data.len() > needed + 2
        || data.len() + 4 < needed
    {
        return false;
    }
    if data.iter().any(|b| !(b' '..=b'`').contains(b)) {
        return false;
    }
    let value =
        |i: usize| u32::from(data.get(i).copied().unwrap_or(b' ').wrapping_sub(b' ') & 0x3F);
    let end = out.len() + length;
    for i in (0..needed).step_by(4) {
        let word = value(i) << 18 | value(i + 1) << 12 | value(i + 2) << 6 | value(i + 3);
        out.extend_from_slice(&word.to_be_bytes()[1..]);
    }
    out.truncate(end);
    true
}

/// `=ybegin … name=<name>`, data, `=yend` (yEnc 1.3).
fn yenc_at(text: &[u8], start: usize) -> Option<Block> {
    let (head, mut at) = line(text, start);
    let name_at = memmem::find(head, b" name=")? + 6;
    memmem::find(head, b" line=").or_else(|| memmem::find(head, b" size="))?;
    let filename = head[name_at..].trim_ascii().to_vec();
    let mut bytes = Vec::new();
    let mut damaged = true;
    while at < text.len() {
        let (data, next) = line(text, at);
        at = next;
        if data.starts_with(b"=yend") {
            damaged = false;
            break;
        }
        if data.starts_with(b"=ypart ") {
            continue;
        }
        let mut escaped = false;
        for &b in data {
            if escaped {
                bytes.push(b.wrapping_sub(64 + 42));
                escaped = false;
            } else if b == b'=' {
                escaped = true;
            } else {
                bytes.push(b.wrapping_sub(42));
            }
        }
    }
    Some(Block { range: start..at, filename, bytes, damaged })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuencoded_file_is_taken_out_and_prose_is_not() {
        let text =
            b"hi\nbegin 644 a b.txt\n#0V%T\n`\nend\nbye\nbegin 644 of a story\nwhich goes on\n";
        let blocks = find(text);
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].bytes, b"Cat");
        assert_eq!(blocks[0].filename, b"a b.txt");
        assert_eq!(&text[blocks[0].range.end..][..3], b"bye");
    }

    #[test]
    fn yenc() {
        let blocks = find(b"=ybegin line=128 size=3 name=c.bin\nm\x8b=\xdei\n=yend size=3\nx");
        assert_eq!(blocks[0].bytes, [b'm' - 42, 0x8b - 42, 0xde - 106, b'i' - 42]);
        assert!(!blocks[0].damaged);
    }
}
