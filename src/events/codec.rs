//! Envelopes: how one event lies in the log. The only place that knows bincode.
//!
//! ```text
//! envelope = version u8 ‖ time i64 LE (unix ms) ‖ digest of the previous envelope [32]
//!          ‖ nonce [24] ‖ sealed(bincode(event)) ‖ tag [16]
//! ```
//!
//! The seal binds everything in front of it and the place (mailbox, seq) as associated data. The
//! digest chain starts at 32 zero bytes; the digest of an envelope covers its key and all its
//! bytes, so that no event can be taken out, moved or changed without `verify` naming it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::seal::SealingKey;
use super::{Event, LogError, keys};
use crate::ids::{MailboxNo, Seq};

/// Version of the envelope and of the event shapes in it.
const VERSION: u8 = 1;
const HEAD_BYTES: usize = 1 + 8 + 32;

/// SHA-256 of an envelope and its key; zeros before the first.
pub type ChainDigest = [u8; 32];

/// An event with what its envelope says.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Position.
    pub seq: Seq,
    /// When it was appended, unix ms.
    pub time_ms: i64,
    /// The fact.
    pub event: Event,
    /// Digest of the envelope before this one.
    pub previous: ChainDigest,
    /// Digest of this envelope.
    pub digest: ChainDigest,
}

fn config() -> impl bincode::config::Config {
    bincode::config::standard()
}

/// Encodes a stored payload.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Serialising our own plain structs into memory has no failing case.
    bincode::serde::encode_to_vec(value, config()).unwrap_or_default()
}

/// Decodes a stored payload; `None` when the bytes are not exactly one.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (value, used) = bincode::serde::decode_from_slice(bytes, config()).ok()?;
    (used == bytes.len()).then_some(value)
}

fn place(head: &[u8], mailbox: MailboxNo, seq: Seq) -> Vec<u8> {
    [head, &keys::event(mailbox, seq)].concat()
}

/// Digest of an envelope at its place.
#[must_use]
pub fn chain_digest(mailbox: MailboxNo, seq: Seq, envelope: &[u8]) -> ChainDigest {
    let mut hasher = Sha256::new();
    hasher.update(keys::event(mailbox, seq));
    hasher.update(envelope);
    hasher.finalize().into()
}

/// Seals an event into the envelope for its place.
///
/// # Errors
/// [`LogError::NoRandomness`].
pub fn to_envelope(
    key: &SealingKey,
    mailbox: MailboxNo,
    seq: Seq,
    time_ms: i64,
    previous: &ChainDigest,
    event: &Event,
) -> Result<Vec<u8>, LogError> {
    let mut envelope = Vec::with_capacity(256);
    envelope.push(VERSION);
    envelope.extend_from_slice(&time_ms.to_le_bytes());
    envelope.extend_from_slice(previous);
    let sealed = key.seal(&encode(event), &place(&envelope, mailbox, seq))?;
    envelope.extend_from_slice(&sealed);
    Ok(envelope)
}

/// Opens an envelope.
///
/// # Errors
/// [`LogError::DamagedEvent`] when anything about it does not hold.
pub fn from_envelope(
    key: &SealingKey,
    mailbox: MailboxNo,
    seq: Seq,
    envelope: &[u8],
) -> Result<Recorded, LogError> {
    let damaged = |what| LogError::DamagedEvent { mailbox, seq, what };
    let (head, sealed) =
        envelope.split_at_checked(HEAD_BYTES).ok_or_else(|| damaged("too short"))?;
    let time_ms = head[1..9].try_into().map(i64::from_le_bytes).map_err(|_| damaged("no time"))?;
    let previous = head[9..].try_into().map_err(|_| damaged("no digest"))?;
    if head[0] != VERSION {
        return Err(damaged("written by a newer version of the program"));
    }
    let plain =
        key.open(sealed, &place(head, mailbox, seq)).ok_or_else(|| damaged("seal broken"))?;
    let event = decode(&plain).ok_or_else(|| damaged("not an event of version 1"))?;
    Ok(Recorded { seq, time_ms, event, previous, digest: chain_digest(mailbox, seq, envelope) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event::{LabelsChanged, MailboxConfigured};

    fn event() -> Event {
        Event::LabelsChanged(LabelsChanged {
            ordinals: [1, 5, 70_000].into_iter().collect(),
            added: vec!["garden".into()],
            removed: vec![],
        })
    }

    #[test]
    fn envelope_opens_at_its_own_place_only() {
        let key = SealingKey::random().expect("random");
        let bytes = to_envelope(&key, MailboxNo(3), Seq(9), 17, &[4; 32], &event()).expect("seal");
        let back = from_envelope(&key, MailboxNo(3), Seq(9), &bytes).expect("opens");
        assert_eq!((back.time_ms, back.previous, back.event), (17, [4; 32], event()));
        assert!(from_envelope(&key, MailboxNo(3), Seq(10), &bytes).is_err());
        assert!(from_envelope(&key, MailboxNo(4), Seq(9), &bytes).is_err());
        for at in 0..bytes.len() {
            let mut bent = bytes.clone();
            bent[at] ^= 0x80;
            assert!(from_envelope(&key, MailboxNo(3), Seq(9), &bent).is_err(), "byte {at}");
        }
    }

    #[test]
    fn stored_shape_of_version_1_is_frozen() {
        // These bytes lie in data directories: if this fails, an event's shape was changed
        // instead of a new variant being added.
        let configured =
            Event::MailboxConfigured(MailboxConfigured { own_addresses: vec!["a@b".into()] });
        assert_eq!(encode(&configured), [5, 1, 3, b'a', b'@', b'b']);
        assert_eq!(decode::<Event>(&encode(&event())), Some(event()));
        assert_eq!(encode(&event())[0], 3);
    }
}
