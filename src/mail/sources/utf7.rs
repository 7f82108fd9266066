//! Modified UTF-7 of IMAP folder names, as Maildir++ servers keep them on disk.
//!
//! ```text
//! name = *(printable | "&-" | "&" base64 of UTF-16BE, "," for "/" "-")     RFC 3501 §5.1.3
//! ```
//! A name that breaks the rules is no modified UTF-7 and is kept as it stands by the caller.

use base64::Engine;
use base64::alphabet::IMAP_MUTF7;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &IMAP_MUTF7,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// The decoded name; `None` when it is no valid modified UTF-7.
pub(super) fn decode(name: &str) -> Option<String> {
    if !name.bytes().all(|b| matches!(b, 0x20..=0x7e)) {
        return None;
    }
    let mut pieces = name.split('&');
    let mut text = pieces.next()?.to_owned();
    for piece in pieces {
        let (packed, plain) = piece.split_once('-')?;
        if packed.is_empty() {
            text.push('&');
        } else {
            let bytes = ENGINE.decode(packed).ok()?;
            if bytes.len() % 2 != 0 {
                return None;
            }
            let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            for character in char::decode_utf16(units) {
                text.push(character.ok()?);
            }
        }
        text.push_str(plain);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(decode("Entw&APw-rfe").as_deref(), Some("Entwürfe"));
        assert_eq!(decode("R&-D").as_deref(), Some("R&D"));
        assert_eq!(decode("&U,BTFw-").as_deref(), Some("台北"));
        assert_eq!(decode("plain").as_deref(), Some("plain"));
        for bad in ["R&D", "&AP-", "&2D8-", "Entwürfe"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
