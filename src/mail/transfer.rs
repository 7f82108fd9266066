//! Transfer encodings (RFC 2045 §6) and the encodings older than MIME: bytes as sent → bytes meant.
//!
//! Damage never loses what can be read: bad bytes are stepped over, text after the end of base64 is
//! handed back, text mislabelled as base64 stays text. No text is decoded here.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// 7bit, 8bit, binary, absent, or unknown.
    Identity,
    /// RFC 2045 §6.8.
    Base64,
    /// RFC 2045 §6.7.
    QuotedPrintable,
    /// `x-uuencode` and its spellings.
    Uuencode,
}

/// A decoded body.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    /// The bytes meant.
    pub(super) bytes: Cow<'a, [u8]>,
    /// Plain text that followed the encoded part (mailing-list footers).
    pub(super) tail: &'a [u8],
    /// Something did not fit the encoding.
    pub(super) damaged: bool,
}

/// Reads a Content-Transfer-Encoding value.
pub(super) fn encoding_of(value: Option<&[u8]>) -> Encoding {
    let Some(value) = value else { return Encoding::Identity };
    let token = value.trim_ascii();
    let end = token.iter().position(|b| b.is_ascii_whitespace() || matches!(b, b';' | b'('));
    let token = &token[..end.unwrap_or(token.len())];
    let token = token.trim_ascii();
    let is = |name: &str| token.eq_ignore_ascii_case(name.as_bytes());
    if is("base64") {
        Encoding::Base64
    } else if is("quoted-printable") {
        Encoding::QuotedPrintable
    } else if is("x-uuencode") || is("uuencode") || is("x-uue") {
        Encoding::Uuencode
    } else {
        Encoding::Identity
    }
}

/// Decodes a body.
pub(super) fn decode(body: &[u8], encoding: Encoding) -> Decoded<'_> {
    match encoding {
        Encoding::Identity => Decoded { bytes: Cow::Borrowed(body), tail: &[], damaged: false },
        Encoding::Base64 => base64(body),
        Encoding::QuotedPrintable => quoted_printable(body),
        Encoding::Uuencode => match super::inline_block::first_uuencoded(body) {
            Some(block) => {
                Decoded { bytes: Cow::Owned(block.bytes), tail: &[], damaged: block.damaged }
            }
            None => Decoded { bytes: Cow::Borrowed(body), tail: &[], damaged: true },
        },
    }
}

/// Value of each base64 letter; 64 and above: not a letter.
static SEXTET: [u8; 256] = {
    let mut table = [0xFF; 256];
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut i = 0;
    while i < 64 {
        table[letters[i] as usize] = i as u8;
        i += 1;
    }
    table
};

/// Bits held between letters.
#[derive(Default)]
struct Bits {
    value: u32,
    letters: u32,
}

impl Bits {
    fn push(&mut self, sextet: u8, out: &mut Vec<u8>) {
        self.value = self.value << 6 | u32::from(sextet);
        self.letters += 1;
        if self.letters == 4 {
            out.extend_from_slice(&self.value.to_be_bytes()[1..]);
            *self = Self::default();
        }
    }

    /// At padding or at the end: what is held counts.
    fn flush(&mut self, out: &mut Vec<u8>) {
        match self.letters {
            2 => out.push((self.value >> 4) as u8),
            3 => out.extend_from_slice(&[(self.value >> 10) as u8, (self.value >> 2) as u8]),
            _ => {}
        }
        *self = Self::default();
    }
}

fn base64(body: &[u8]) -> Decoded<'_> {
    let mut out = Vec::with_capacity(body.len() / 4 * 3 + 3);
    let mut bits = Bits::default();
    let (mut at, mut padded, mut damaged) = (0, false, false);
    while at < body.len() {
        let end = memchr(b'\n', &body[at..]).map_or(body.len(), |i| at + i + 1);
        let line = body[at..end].trim_ascii();
        let before = out.len();
        let mut rest = line;
        if bits.letters == 0 {
            while let [a, b, c, d, tail @ ..] = rest {
                let (a, b, c, d) = (
                    SEXTET[*a as usize],
                    SEXTET[*b as usize],
                    SEXTET[*c as usize],
                    SEXTET[*d as usize],
                );
                if a | b | c | d >= 64 {
                    break;
                }
                let word =
                    u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d);
                out.extend_from_slice(&word.to_be_bytes()[1..]);
                rest = tail;
            }
        }
        if !rest.is_empty() {
            let strange = rest
                .iter()
                .any(|&b| SEXTET[b as usize] >= 64 && b != b'=' && !b.is_ascii_whitespace());
            let texty = memchr(b' ', line).is_some() || matches!(line[0], b'-' | b'_');
            if texty && (strange || padded) {
                if before == 0 {
                    // No base64 at all, whatever the label says.
                    return Decoded { bytes: Cow::Borrowed(body), tail: &[], damaged: true };
                }
                // Undo what the words at the start of this line decoded to.
                out.truncate(before);
                bits.flush(&mut out);
                return Decoded { bytes: Cow::Owned(out), tail: &body[at..], damaged: true };
            }
            for &b in rest {
                match SEXTET[b as usize] {
                    sextet @ 0..64 => bits.push(sextet, &mut out),
                    _ if b == b'=' => {
                        padded = true;
                        bits.flush(&mut out);
                    }
                    _ => damaged |= !b.is_ascii_whitespace(),
                }
            }
        }
        at = end;
    }
    damaged |= bits.letters == 1;
    bits.flush(&mut out);
    Decoded { bytes: Cow::Owned(out), tail: &[], damaged }
}

/// Base64 of an encoded word: letters count, everything else is stepped over.
pub(super) fn base64_loose(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let mut bits = Bits::default();
    for &b in text {
        match SEXTET[b as usize] {
            sextet @ 0..64 => bits.push(sextet, &mut out),
            _ if b == b'=' => bits.flush(&mut out),
            _ => {}
        }
    }
    bits.flush(&mut out);
    out
}

/// The "Q" encoding of RFC 2047 §4.2.
pub(super) fn q_word(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&b) = text.get(at) {
        at += 1;
        match b {
            b'_' => out.push(b' '),
            b'=' => match hex_pair(&text[at..]) {
                Some(byte) => {
                    out.push(byte);
                    at += 2;
                }
                None => out.push(b'='),
            },
            _ => out.push(b),
        }
    }
    out
}

fn quoted_printable(body: &[u8]) -> Decoded<'_> {
    let mut out = Vec::with_capacity(body.len());
    let mut damaged = false;
    let mut at = 0;
    while at < body.len() {
        let Some(found) = memchr2(b'=', b'\n', &body[at..]) else {
            out.extend_from_slice(body[at..].trim_ascii_end());
            break;
        };
        let stop = at + found;
        out.extend_from_slice(&body[at..stop]);
        at = stop + 1;
        if body[stop] == b'\n' {
            // Blanks at the end of a line were added on the way (RFC 2045 §6.7 rule 3).
            let crlf = out.last() == Some(&b'\r');
            let kept = out.len() - usize::from(crlf);
            let mut end = kept;
            while end > 0 && matches!(out[end - 1], b' ' | b'\t') {
                end -= 1;
            }
            out.truncate(end);
            out.extend_from_slice(if crlf { b"\r\n" } else { b"\n" });
        } else if let Some(byte) = hex_pair(&body[at..]) {
            // An encoded blank or line end is meant: keep it apart from the trimming above.
            out.push(byte);
            at += 2;
            if matches!(byte, b' ' | b'\t') && matches!(body.get(at), Some(b'\n' | b'\r') | None) {
                let end = memchr(b'\n', &body[at..]).map_or(body.len(), |i| at + i + 1);
                out.extend_from_slice(&body[at..end]);
                at = end;
            }
        } else {
            let blanks =
                body[at..].iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
            match body.get(at + blanks) {
                Some(b'\n') => at += blanks + 1,
                None => at = body.len(),
                Some(_) => {
                    out.push(b'=');
                    damaged = true;
                }
            }
        }
    }
    Decoded { bytes: Cow::Owned(out), tail: &[], damaged }
}

/// Two hexadecimal digits at the start.
pub(super) fn hex_pair(bytes: &[u8]) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let (high, low) = (digit(*bytes.first()?)?, digit(*bytes.get(1)?)?);
    u8::try_from(high << 4 | low).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_with_a_list_footer_gives_the_footer_back() {
        let d = decode(b"SGVsbG8gd29ybGQ=\n_______\nlist footer here\n", Encoding::Base64);
        assert_eq!(d.bytes.as_ref(), b"Hello world");
        assert!(d.tail.starts_with(b"____"));
        let d = decode(b"Plain words, no base64.\n", Encoding::Base64);
        assert_eq!(d.bytes.as_ref(), b"Plain words, no base64.\n");
    }

    #[test]
    fn base64_damage_is_stepped_over() {
        assert_eq!(
            decode(b"SGVs\r\nbG8*gd29y\r\nbGQ=SGk=", Encoding::Base64).bytes.as_ref(),
            b"Hello worldHi"
        );
        assert_eq!(decode(b"SGVsbG8", Encoding::Base64).bytes.as_ref(), b"Hello");
    }

    #[test]
    fn quoted_printable_forms() {
        let d = |s: &str| {
            String::from_utf8_lossy(&decode(s.as_bytes(), Encoding::QuotedPrintable).bytes)
                .into_owned()
        };
        assert_eq!(d("a=3D=\r\nb \t\r\nc=zz=20\nd="), "a=b\r\nc=zz \nd");
        assert_eq!(d("a= \n b"), "a b");
    }
}
