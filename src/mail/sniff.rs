//! First bytes of an attachment → its real type, when they tell one.
//!
//! A short list of well-known signatures (digest row B10: the sniffed type beats the declared one).
//! Never opens or unpacks anything; OOXML is told by the names in the first zip entries.

use memchr::memmem;

/// How far into a zip the names of entries are looked for, bytes.
const ZIP_LOOK_BYTES: usize = 4096;

/// The type told by the first bytes.
pub(super) fn sniff(bytes: &[u8]) -> Option<&'static str> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    match bytes.first()? {
        b'%' if starts(b"%PDF-") => Some("application/pdf"),
        0x89 if starts(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        0xFF if starts(b"\xFF\xD8\xFF") => Some("image/jpeg"),
        b'G' if starts(b"GIF87a") || starts(b"GIF89a") => Some("image/gif"),
        b'P' if starts(b"PK\x03\x04") => Some(zip_kind(bytes)),
        0x1F if starts(b"\x1F\x8B\x08") => Some("application/gzip"),
        0xD0 if starts(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1") => Some(ole_kind(bytes)),
        b'{' if starts(b"{\\rtf") => Some("application/rtf"),
        0x78 if starts(b"\x78\x9F\x3E\x22") => Some("application/ms-tnef"),
        b'R' if starts(b"Rar!\x1A\x07") => Some("application/x-rar-compressed"),
        b'R' if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") => Some("image/webp"),
        b'7' if starts(b"7z\xBC\xAF\x27\x1C") => Some("application/x-7z-compressed"),
        b'M' if starts(b"MZ")
            && bytes.len() > 64
            && bytes.get(2..64).is_some_and(|b| b.contains(&0)) =>
        {
            Some("application/x-msdownload")
        }
        0 if bytes.get(4..8) == Some(b"ftyp") => match bytes.get(8..12) {
            Some(b"heic" | b"heix" | b"mif1") => Some("image/heic"),
            _ => Some("video/mp4"),
        },
        _ => is_html(bytes).then_some("text/html"),
    }
}

fn is_html(bytes: &[u8]) -> bool {
    let head = bytes[..bytes.len().min(256)].trim_ascii_start();
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    [&b"<!doctype html"[..], b"<html", b"<head>", b"<body"]
        .iter()
        .any(|magic| head.len() >= magic.len() && head[..magic.len()].eq_ignore_ascii_case(magic))
}

/// Office documents are zips whose first entries have telling names.
fn zip_kind(bytes: &[u8]) -> &'static str {
    let look = &bytes[..bytes.len().min(ZIP_LOOK_BYTES)];
    let has = |name: &[u8]| memmem::find(look, name).is_some();
    // ODF: an uncompressed first entry `mimetype` (ODF 1.3 part 2 §3.3).
    if bytes.get(30..38) == Some(b"mimetype") {
        for kind in ["text", "spreadsheet", "presentation"] {
            if has(format!("opendocument.{kind}").as_bytes()) {
                return match kind {
                    "text" => "application/vnd.oasis.opendocument.text",
                    "spreadsheet" => "application/vnd.oasis.opendocument.spreadsheet",
                    _ => "application/vnd.oasis.opendocument.presentation",
                };
            }
        }
    }
    if has(b"[Content_Types].xml") || has(b"_rels/.rels") {
        // The directory at the end names every entry, wherever its data lies.
        let end = &bytes[bytes.len().saturating_sub(64 * 1024)..];
        let has = |name: &[u8]| has(name) || memmem::find(end, name).is_some();
        if has(b"word/document.xml") {
            return "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        }
        if has(b"xl/workbook.") {
            return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
        }
        if has(b"ppt/presentation.xml") {
            return "application/vnd.openxmlformats-officedocument.presentationml.presentation";
        }
    }
    "application/zip"
}

/// OLE containers: Word, Excel or PowerPoint by the UTF-16 names of their streams.
fn ole_kind(bytes: &[u8]) -> &'static str {
    let wide = |name: &str| name.bytes().flat_map(|b| [b, 0]).collect::<Vec<u8>>();
    let look = &bytes[..bytes.len().min(1 << 20)];
    let has = |name: &str| memmem::find(look, &wide(name)).is_some();
    if has("WordDocument") {
        "application/msword"
    } else if has("Workbook") {
        "application/vnd.ms-excel"
    } else if has("PowerPoint Document") {
        "application/vnd.ms-powerpoint"
    } else {
        "application/x-ole-storage"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures() {
        assert_eq!(sniff(b"%PDF-1.4"), Some("application/pdf"));
        assert_eq!(sniff(b"  <HTML><body>"), Some("text/html"));
        assert_eq!(
            sniff(b"PK\x03\x04 [Content_Types].xml .. word/document.xml"),
            Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document")
        );
        assert_eq!(sniff(b"PK\x03\x04 a.txt"), Some("application/zip"));
        assert_eq!(sniff(b"plain"), None);
        assert_eq!(sniff(b""), None);
    }
}
