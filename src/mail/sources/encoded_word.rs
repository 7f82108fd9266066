//! Encoded words of one header value.
//!
//! ```text
//! encoded-word = "=?" charset ["*" language] "?" ("B" / "Q") "?" text "?="
//! ```
//! Sources: RFC 2047, RFC 2231 §5. White space between two encoded words goes (RFC 2047 §6.2);
//! words of one charset that follow each other are joined before decoding, because writers cut
//! characters in two. What is no valid encoded word stays as it is; bytes outside are UTF-8, else
//! windows-1252.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Base64 that accepts missing padding and stray last bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The value as text.
pub(super) fn decode(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len());
    let mut run: Option<(&'static Encoding, Vec<u8>)> = None;
    let mut plain_from = 0;
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(&value[at..], b"=?") {
        let start = at + found;
        let Some((encoding, bytes, length)) = word(&value[start..]) else {
            at = start + 2;
            continue;
        };
        let between = &value[plain_from..start];
        if run.is_none() || !between.trim_ascii().is_empty() {
            flush(&mut run, &mut text);
            text.push_str(&plain(between));
        }
        match &mut run {
            Some((known, joined)) if *known == encoding => joined.extend(bytes),
            _ => {
                flush(&mut run, &mut text);
                run = Some((encoding, bytes));
            }
        }
        at = start + length;
        plain_from = at;
    }
    flush(&mut run, &mut text);
    text.push_str(&plain(&value[plain_from..]));
    text
}

fn flush(run: &mut Option<(&'static Encoding, Vec<u8>)>, text: &mut String) {
    if let Some((encoding, bytes)) = run.take() {
        text.push_str(&encoding.decode_without_bom_handling(&bytes).0);
    }
}

fn plain(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0,
    }
}

/// Charset, bytes and length of the encoded word that `text` begins with.
fn word(text: &[u8]) -> Option<(&'static Encoding, Vec<u8>, usize)> {
    let mut parts = text[2..].splitn(4, |b| *b == b'?');
    let charset = parts.next()?;
    let method = parts.next()?;
    let body = parts.next()?;
    if !parts.next()?.starts_with(b"=") {
        return None;
    }
    let label = charset.split(|b| *b == b'*').next()?;
    let encoding = Encoding::for_label(label).or_else(|| {
        // Unknown, yet bytes beyond ASCII are nearly always UTF-8 by now.
        (!label.is_empty() && label.iter().all(u8::is_ascii_graphic)).then_some(UTF_8)
    })?;
    let bytes = match method {
        b"B" | b"b" => {
            let packed: Vec<u8> =
                body.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
            LENIENT.decode(packed).ok()?
        }
        b"Q" | b"q" => quoted(body),
        _ => return None,
    };
    let length = 2 + charset.len() + 1 + method.len() + 1 + body.len() + 2;
    Some((encoding, bytes, length))
}

/// Q encoding; a broken `=XY` stays as it is.
fn quoted(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len());
    let mut at = 0;
    while let Some(&byte) = body.get(at) {
        let pair = body.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        let code = pair.filter(|_| byte == b'=').and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                at += 3;
            }
            None => {
                bytes.push(if byte == b'_' { b' ' } else { byte });
                at += 1;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_join_across_white_space_and_cut_characters() {
        for (value, want) in [
            ("plain", "plain"),
            (
                "=?UTF-8?Q?Bo=C3=AEte_de?= =?utf-8?Q?_r=C3=A9ception,Ouvert?=",
                "Boîte de réception,Ouvert",
            ),
            ("=?UTF-8?Q?=C3?=\t=?UTF-8?Q?=BC?=", "ü"),
            ("=?utf-8?B?w7zDvA?=", "üü"),
            ("a =?iso-8859-1*de?q?=FC?= b", "a ü b"),
            ("=?utf-8?Q?a?= =?iso-8859-1?Q?b?=", "ab"),
            ("=?utf-8?Q?open", "=?utf-8?Q?open"),
            ("=?utf-8?X?x?=", "=?utf-8?X?x?="),
            ("=?utf-8?Q?=ZZ?=", "=ZZ"),
        ] {
            assert_eq!(decode(value.as_bytes()), want, "{value}");
        }
        assert_eq!(decode(b"caf\xe9"), "café");
    }
}
