//! Reading that survives a fault in reading: a message whose reading panics is kept whole as
//! plain text, with a defect, instead of stopping an import or a projection.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sha2::{Digest as _, Sha256};

use super::message::{Defect, DefectKind, Message, ReadHints};
use super::read;

/// Text kept of a message that could not be read, bytes.
const KEPT_TEXT_BYTES: usize = 64 << 10;

/// [`read`], or the bytes as text when that panics.
#[must_use]
pub fn read_guarded(raw: &[u8], hints: &ReadHints) -> Message {
    catch_unwind(AssertUnwindSafe(|| read(raw, hints))).unwrap_or_else(|_| unread(raw, hints))
}

fn unread(raw: &[u8], hints: &ReadHints) -> Message {
    let digest = Sha256::digest(raw).into();
    let text = String::from_utf8_lossy(&raw[..raw.len().min(KEPT_TEXT_BYTES)]).into_owned();
    let known = hints.arrived_ms.or(hints.separator_ms).or(hints.file_ms).unwrap_or(0);
    let hex: String = raw_hex(&digest);
    let mut message = Message {
        raw_bytes: raw.len() as u64,
        raw_digest: digest,
        content_digest: digest,
        message_id: format!("{hex}@synthetic.invalid"),
        message_id_synthetic: true,
        received_ms: known,
        date_ms: known,
        new_ranges: std::iter::once(0..u32::try_from(text.len()).unwrap_or(0)).collect(),
        text,
        ..Message::default()
    };
    message.flags.parse_degraded = true;
    message.flags.body_truncated = raw.len() > KEPT_TEXT_BYTES;
    message.defects.push(Defect { kind: DefectKind::Unreadable, place: String::new() });
    message
}

fn raw_hex(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_that_cannot_be_read_is_kept_as_text() {
        let hints = ReadHints { separator_ms: Some(7), ..ReadHints::default() };
        let kept = unread(b"Subject: x\n\nwords \xff here", &hints);
        assert!(kept.new_text().contains("words") && kept.flags.parse_degraded);
        assert_eq!((kept.date_ms, kept.raw_bytes), (7, 24));
        assert_eq!(kept.defects[0].kind, DefectKind::Unreadable);
    }
}
