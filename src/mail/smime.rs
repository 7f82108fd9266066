//! S/MIME containers (RFC 8551, RFC 5652): signed or encrypted, and the content of a signed one.
//!
//! A bounded walk over BER tags to one place, nothing more: no signature is checked and nothing is
//! decrypted. What is not understood yields `None`.

/// What a `pkcs7-mime` body is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// Opaque-signed; the signed entity when it is inside.
    Signed(Option<Vec<u8>>),
    /// Enveloped or authenticated-enveloped.
    Encrypted,
    /// Certificates, compressed data, or not understood.
    Other,
}

/// Most pieces of a content string sent in pieces.
const PIECES_MAX: usize = 65_536;
const OID_SIGNED: &[u8] = b"\x2A\x86\x48\x86\xF7\x0D\x01\x07\x02";
const OID_ENVELOPED: &[u8] = b"\x2A\x86\x48\x86\xF7\x0D\x01\x07\x03";
const OID_AUTH_ENVELOPED: &[u8] = b"\x2A\x86\x48\x86\xF7\x0D\x01\x09\x10\x01\x17";

/// Reads a DER or BER ContentInfo.
pub(super) fn read(bytes: &[u8], smime_type: Option<&str>) -> Container {
    let declared = smime_type.map(str::to_ascii_lowercase).unwrap_or_default();
    let mut info = bytes;
    let oid = element(&mut info, 0x30).and_then(|mut inside| {
        let oid = element(&mut inside, 0x06)?;
        Some((oid, inside))
    });
    match oid {
        Some((OID_SIGNED, rest)) => {
            Container::Signed(signed_content(rest).filter(|c| !c.is_empty()))
        }
        Some((OID_ENVELOPED | OID_AUTH_ENVELOPED, _)) => Container::Encrypted,
        _ if declared.contains("enveloped") => Container::Encrypted,
        _ if declared.contains("signed") => Container::Signed(None),
        _ => Container::Other,
    }
}

/// `[0] { SEQUENCE { version, SET, SEQUENCE { oid, [0] { OCTET STRING … } } … } }`.
fn signed_content(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut outer = element(&mut rest, 0xA0)?;
    let mut data = element(&mut outer, 0x30)?;
    element(&mut data, 0x02)?;
    element(&mut data, 0x31)?;
    let mut content = element(&mut data, 0x30)?;
    element(&mut content, 0x06)?;
    let mut inner = element(&mut content, 0xA0)?;
    if let [0x04, ..] = inner {
        return element(&mut inner, 0x04).map(<[u8]>::to_vec);
    }
    let mut pieces = element(&mut inner, 0x24)?;
    let mut out = Vec::new();
    for _ in 0..PIECES_MAX {
        match element(&mut pieces, 0x04) {
            Some(piece) => out.extend_from_slice(piece),
            None => break,
        }
    }
    Some(out)
}

/// Takes one element of that tag off the front; of indefinite length: everything that follows.
fn element<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&found, rest) = bytes.split_first()?;
    if found != tag {
        return None;
    }
    let (&first, rest) = rest.split_first()?;
    if first == 0x80 {
        // The end is marked inside; what we look for comes first, so the rest will do. Elements
        // that must be stepped over are never sent this way by real mailers.
        let inside = rest;
        *bytes = &[];
        return Some(inside);
    }
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7F);
        if count == 0 || count > 4 || rest.len() < count {
            return None;
        }
        let length = rest[..count].iter().fold(0usize, |n, &b| n << 8 | usize::from(b));
        (length, &rest[count..])
    };
    // A body cut short keeps what there is.
    let length = length.min(rest.len());
    *bytes = &rest[length..];
    Some(&rest[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(tag: u8, inside: &[u8]) -> Vec<u8> {
        [&[tag, u8::try_from(inside.len()).unwrap_or(0)], inside].concat()
    }

    #[test]
    fn the_content_of_an_opaque_signature_is_found() {
        let data = tlv(
            0x30,
            &[tlv(0x06, b"\x01"), tlv(0xA0, &tlv(0x04, b"Content-Type: text/plain\n\nhi"))]
                .concat(),
        );
        let signed = tlv(0x30, &[tlv(0x02, b"\x01"), tlv(0x31, b""), data].concat());
        let info = tlv(0x30, &[tlv(0x06, OID_SIGNED), tlv(0xA0, &signed)].concat());
        assert_eq!(
            read(&info, None),
            Container::Signed(Some(b"Content-Type: text/plain\n\nhi".to_vec()))
        );
        assert_eq!(read(&tlv(0x30, &tlv(0x06, OID_ENVELOPED)), None), Container::Encrypted);
        assert_eq!(read(b"junk", Some("signed-data")), Container::Signed(None));
        assert_eq!(read(b"", None), Container::Other);
    }
}
