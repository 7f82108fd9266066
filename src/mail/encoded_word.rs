//! Header text: unfolding, encoded words (RFC 2047), charsets → one clean string.
//!
//! `=?charset?B|Q?text?=`; words next to each other with one charset are joined as bytes before
//! decoding, because real mailers cut them inside a character. Never fails.

use std::borrow::Cow;

use memchr::memmem;

use super::charset;
use super::header::unfold;
use super::invisible::{self, Seen};
use super::transfer;

/// Longest header value that is looked at, bytes; the rest is ignored.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Decodes a raw header value into one line of text: folds and runs of white space become one
/// space, controls and invisible characters vanish.
pub(super) fn text(value: &[u8], hint: Option<&[u8]>) -> String {
    let value = &value[..value.len().min(VALUE_BYTES_MAX)];
    one_line(&decode(&unfold(value), hint))
}

/// Decodes encoded words in bytes that are unfolded already; white space is left alone.
pub(super) fn decode<'a>(bytes: &'a [u8], hint: Option<&[u8]>) -> Cow<'a, str> {
    if memmem::find(bytes, b"=?").is_none() {
        return charset::decode(bytes, None, hint).text;
    }
    let mut out = String::with_capacity(bytes.len());
    let mut plain_from = 0;
    let mut at = 0;
    // Bytes of the words read so far and not yet decoded, with their charset.
    let mut pending: Option<(&[u8], Vec<u8>)> = None;
    // Nothing after the last `?=` can be a word: keeps a value full of `=?` linear.
    let last_close = memmem::rfind(bytes, b"?=").unwrap_or(0);
    while let Some(found) = memmem::find(&bytes[at..], b"=?") {
        let start = at + found;
        let Some((word, end)) = word_at(bytes, start, last_close) else {
            at = start + 2;
            continue;
        };
        let between = &bytes[plain_from..start];
        let joins = pending.is_some() && between.iter().all(u8::is_ascii_whitespace);
        if !joins {
            flush(&mut out, pending.take());
            out.push_str(&charset::decode(between, None, hint).text);
        }
        match &mut pending {
            Some((label, held)) if label.eq_ignore_ascii_case(word.label) => {
                held.extend_from_slice(&word.bytes);
            }
            _ => {
                flush(&mut out, pending.take());
                pending = Some((word.label, word.bytes));
            }
        }
        at = end;
        plain_from = end;
    }
    flush(&mut out, pending);
    out.push_str(&charset::decode(&bytes[plain_from..], None, hint).text);
    Cow::Owned(out)
}

fn flush(out: &mut String, pending: Option<(&[u8], Vec<u8>)>) {
    if let Some((label, bytes)) = pending {
        out.push_str(&charset::decode(&bytes, Some(label), None).text);
    }
}

struct Word<'a> {
    label: &'a [u8],
    bytes: Vec<u8>,
}

/// The encoded word at `start` (which holds `=?`) and where it ends.
fn word_at(bytes: &[u8], start: usize, last_close: usize) -> Option<(Word<'_>, usize)> {
    let label_from = start + 2;
    let label_len = bytes[label_from..].iter().take(64).position(|&b| b == b'?')?;
    let label = &bytes[label_from..label_from + label_len];
    if label.is_empty() || label.iter().any(|b| b.is_ascii_whitespace() || *b == b'=') {
        return None;
    }
    let mode_at = label_from + label_len + 1;
    let mode = bytes.get(mode_at)?.to_ascii_uppercase();
    if bytes.get(mode_at + 1) != Some(&b'?') || !matches!(mode, b'B' | b'Q') {
        return None;
    }
    let text_from = mode_at + 2;
    if text_from > last_close {
        return None;
    }
    let text_len = memmem::find(&bytes[text_from..], b"?=")?;
    let text = &bytes[text_from..text_from + text_len];
    let decoded = if mode == b'B' { transfer::base64_loose(text) } else { transfer::q_word(text) };
    // RFC 2231 §5: a language may follow the charset after a star.
    let label = label.split(|&b| b == b'*').next().unwrap_or(label);
    Some((Word { label, bytes: decoded }, text_from + text_len + 2))
}

/// White space runs to one space, controls and invisible characters out, ends trimmed.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let cleaned = invisible::strip(text, &mut Seen::default());
    for c in cleaned.chars() {
        if c.is_whitespace() || c.is_control() {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            out.push(c);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Cuts to `chars_max` characters; tells whether anything went.
pub(super) fn cut_chars(text: &mut String, chars_max: usize) -> bool {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => {
            text.truncate(at);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cut_inside_a_character_are_joined_first() {
        assert_eq!(text(b"=?utf-8?B?xbw=?= =?UTF-8?Q?=C3?=\r\n =?utf-8?q?=B3_x?=", None), "żó x");
        assert_eq!(text(b"a =?iso-8859-1?q?=E9t=E9?= =?utf-8?q?=C5=BC?= b", None), "a étéż b");
    }

    #[test]
    fn broken_words_stay_text() {
        assert_eq!(text(b"=?utf-8?X?abc?= =?utf-8?Q?a", None), "=?utf-8?X?abc?= =?utf-8?Q?a");
        assert_eq!(text(b"=?utf-8?Q?=41 b?=c=?utf-8?Q??=", None), "A bc");
        assert_eq!(text(b"=?utf-8*en?Q?x?=", None), "x");
    }

    #[test]
    fn raw_bytes_use_the_neighbouring_charset() {
        assert_eq!(text(b"\xf0\xd2\xc9", Some(b"koi8-r")), "При");
        assert_eq!(text("zoë".as_bytes(), Some(b"koi8-r")), "zoë");
    }
}
