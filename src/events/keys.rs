//! Layout of every key in the truth stores. All integers are big-endian, so that byte order is
//! numeric order.
//!
//! | store | keyspace | key | value |
//! |---|---|---|---|
//! | fjall | `events` | mailbox u32 ‖ seq u64 | envelope ([`super::codec`]) |
//! | fjall | `content` | mailbox u32 ‖ ordinal u32 | sealed, compressed raw bytes |
//! | fjall | `embeddings` | space u64 ‖ mailbox u32 ‖ ordinal u32 | sealed vectors |
//! | fjall | `registry` | kind u8 ‖ id | record ([`super::registry`]) |
//! | heed | unnamed | mailbox u32 | 32-byte key of the mailbox |
//! | heed | unnamed | mailbox u32 ‖ ordinal u32 | 32-byte key of one message |

use crate::ids::{MailboxNo, Ordinal, Seq};

/// Key of an event.
#[must_use]
pub fn event(mailbox: MailboxNo, seq: Seq) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&mailbox.0.to_be_bytes());
    key[4..].copy_from_slice(&seq.0.to_be_bytes());
    key
}

/// The seq in an event's key; `None` when the key is not one.
#[must_use]
pub fn seq_of(key: &[u8]) -> Option<Seq> {
    key.get(4..12).and_then(|b| b.try_into().ok()).map(|b| Seq(u64::from_be_bytes(b)))
}

/// Key of a message's content, and of its sealing key.
#[must_use]
pub fn message(mailbox: MailboxNo, ordinal: Ordinal) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&mailbox.0.to_be_bytes());
    key[4..].copy_from_slice(&ordinal.0.to_be_bytes());
    key
}

/// Prefix of the vectors of a mailbox in a space.
#[must_use]
pub fn embeddings(space: [u8; 8], mailbox: MailboxNo) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&space);
    key[8..].copy_from_slice(&mailbox.0.to_be_bytes());
    key
}

/// Key of the vectors of a message in a space.
#[must_use]
pub fn embedding(space: [u8; 8], mailbox: MailboxNo, ordinal: Ordinal) -> [u8; 16] {
    let mut key = [0; 16];
    key[..12].copy_from_slice(&embeddings(space, mailbox));
    key[12..].copy_from_slice(&ordinal.0.to_be_bytes());
    key
}

/// Key of a mailbox's sealing key.
#[must_use]
pub fn mailbox(mailbox: MailboxNo) -> [u8; 4] {
    mailbox.0.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_is_stream_order() {
        let first = event(MailboxNo(1), Seq(255));
        let later = event(MailboxNo(1), Seq(256));
        let other = event(MailboxNo(2), Seq(1));
        assert!(first < later && later < other);
        assert_eq!(seq_of(&later), Some(Seq(256)));
        assert_eq!(seq_of(b"short"), None);
    }
}
