//! One part → [`Attachment`]: name, types, size, digest and the two attachment facts.
//!
//! The facts are independent (contract §2): disposition says what the sender's program wrote, the
//! MIME class says what a person would call an attachment. Contents are hashed, never opened.

use sha2::{Digest as _, Sha256};

use super::encoded_word::one_line;
use super::message::{Attachment, Digest};
use super::sniff;
use super::structure::{Part, Tree};

/// Longest file name, bytes.
const FILENAME_BYTES_MAX: usize = 255;
/// Longest Content-ID or type, bytes.
const TOKEN_BYTES_MAX: usize = 255;

/// Describes part `index` whose decoded bytes are `bytes`.
pub(super) fn describe(tree: &Tree<'_>, index: usize, bytes: &[u8]) -> Attachment {
    let part = &tree.parts[index];
    let content_id = part.headers.get("Content-ID").map(|raw| {
        let text = String::from_utf8_lossy(raw);
        clipped(text.trim().trim_start_matches('<').trim_end_matches('>').trim(), TOKEN_BYTES_MAX)
    });
    Attachment {
        filename: filename(part),
        content_type: clipped(&part.content_type.value, TOKEN_BYTES_MAX),
        sniffed_type: sniff::sniff(bytes),
        bytes: bytes.len() as u64,
        digest: Sha256::digest(bytes).into(),
        by_disposition: part.disposition.value != "inline",
        by_mime_class: counts_for_a_person(tree, index),
        content_id: content_id.unwrap_or_default(),
        text: String::new(),
    }
}

/// A file that stood inside a text (uuencode, yEnc).
pub(super) fn inline_file(raw_name: &[u8], bytes: &[u8]) -> Attachment {
    let name = super::charset::decode(raw_name, None, None).text;
    Attachment {
        filename: clean_name(&name),
        content_type: "application/octet-stream".to_owned(),
        sniffed_type: sniff::sniff(bytes),
        bytes: bytes.len() as u64,
        digest: Sha256::digest(bytes).into(),
        by_disposition: true,
        by_mime_class: true,
        ..Attachment::default()
    }
}

/// An HTML body that shows no text (pictures only): kept, and by neither fact an attachment.
pub(super) fn silent_html(source: &str) -> Attachment {
    Attachment {
        content_type: "text/html".to_owned(),
        bytes: source.len() as u64,
        digest: Sha256::digest(source).into(),
        ..Attachment::default()
    }
}

/// The file name of a part, cleaned; empty without one.
pub(super) fn filename(part: &Part<'_>) -> String {
    let name = part.disposition.param("filename").or_else(|| part.content_type.param("name"));
    name.map(clean_name).unwrap_or_default()
}

/// Path parts and controls out, at most 255 bytes with the extension kept.
fn clean_name(name: &str) -> String {
    let line = one_line(name);
    let base =
        line.rsplit(['/', '\\']).find(|piece| !piece.trim().is_empty()).unwrap_or_default().trim();
    if base.len() <= FILENAME_BYTES_MAX {
        return base.to_owned();
    }
    let extension =
        base.rfind('.').map(|dot| &base[dot..]).filter(|e| e.len() <= 16).unwrap_or_default();
    clipped(base, FILENAME_BYTES_MAX - extension.len()) + extension
}

fn clipped(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// No inline resource of multipart/related, no signature, no body alternative, no resource fork.
fn counts_for_a_person(tree: &Tree<'_>, index: usize) -> bool {
    let part = &tree.parts[index];
    let machinery = matches!(
        part.content_type.value.as_str(),
        "application/pgp-signature"
            | "application/pkcs7-signature"
            | "application/x-pkcs7-signature"
            | "application/pkcs7-mime"
            | "application/x-pkcs7-mime"
            | "application/pgp-encrypted"
            | "application/applefile"
            | "message/external-body"
    );
    if machinery {
        return false;
    }
    let Some(parent) = part.parent else { return true };
    match tree.parts[parent].content_type.value.as_str() {
        "multipart/alternative" => false,
        "multipart/related" => {
            let is_named = part
                .headers
                .get("Content-ID")
                .or_else(|| part.headers.get("Content-Location"))
                .is_some();
            let is_resource = is_named || part.content_type.value.starts_with("image/");
            !(is_resource && part.nth > 1)
        }
        _ => true,
    }
}

/// Digest of decoded bytes that does not see line ends, blanks at line ends and at the end: equal
/// however the text travelled.
pub(super) fn transport_digest(bytes: &[u8]) -> Digest {
    let bytes = bytes.trim_ascii_end();
    let rough = memchr::memchr(b'\r', bytes).is_some()
        || memchr::memmem::find(bytes, b" \n").is_some()
        || memchr::memmem::find(bytes, b"\t\n").is_some();
    if !rough {
        return Sha256::digest(bytes).into();
    }
    let mut hash = Sha256::new();
    for (i, line) in bytes.split(|&b| b == b'\n').enumerate() {
        if i > 0 {
            hash.update(b"\n");
        }
        hash.update(line.trim_ascii_end());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_paths_and_keep_extensions() {
        assert_eq!(clean_name("C:\\docs\\a b.txt"), "a b.txt");
        assert_eq!(clean_name("../../etc/passwd"), "passwd");
        assert_eq!(clean_name("a\0\n.pdf"), "a .pdf");
        let long = clean_name(&format!("{}.pdf", "ż".repeat(300)));
        assert!(long.len() <= 255 && long.ends_with("ż.pdf"));
        assert_eq!(clean_name("///"), "");
    }

    #[test]
    fn digests_do_not_see_the_transport() {
        assert_eq!(transport_digest(b"a \r\nb\r\n\r\n"), transport_digest(b"a\nb"));
        assert_ne!(transport_digest(b"a\nb"), transport_digest(b"a\n b"));
    }
}
