//! Vectors of messages, kept beside the content they come from.
//!
//! No event: they can be computed again. They are kept so that a rebuild, a second import or a
//! change of labels never asks a model twice. Each is sealed with the key of its message, so
//! that losing the key is erasure here too; whoever reads one learns what the message was about.

use roaring::RoaringBitmap;

use super::{Log, LogError};
use crate::events::keys;
use crate::ids::{MailboxNo, Ordinal};

/// Version byte in front of a sealed value.
const VERSION: u8 = 1;

/// Version byte in front of a reference, which is not sealed.
const REFERENCE: u8 = 2;
/// Stands for the space itself.
const NO_MAILBOX: MailboxNo = MailboxNo(u32::MAX);

/// Short name of the space of vectors: they are never mixed.
pub type SpaceName = [u8; 8];

impl Log {
    /// Keeps what was computed for messages of a mailbox; one that was erased meanwhile is passed
    /// over. Not synced: what a crash takes is computed again.
    ///
    /// # Errors
    /// What the stores say.
    pub fn put_embeddings(
        &self,
        space: SpaceName,
        mailbox: MailboxNo,
        computed: &[(Ordinal, Vec<u8>)],
    ) -> Result<(), LogError> {
        let mut batch = self.db.batch();
        for (ordinal, value) in computed {
            let key = match self.keys.message(mailbox, *ordinal) {
                Ok(key) => key,
                Err(LogError::Erased { .. }) => continue,
                Err(other) => return Err(other),
            };
            let place = keys::embedding(space, mailbox, *ordinal);
            let mut sealed = vec![VERSION];
            sealed.extend_from_slice(&key.seal(value, &place)?);
            batch.insert(&self.embeddings, &place[..], sealed);
        }
        Ok(batch.commit()?)
    }

    /// What was kept for a message; `None` when there is nothing, it does not open, or the message
    /// was erased.
    ///
    /// # Errors
    /// What the stores say.
    pub fn embedding(
        &self,
        space: SpaceName,
        mailbox: MailboxNo,
        ordinal: Ordinal,
    ) -> Result<Option<Vec<u8>>, LogError> {
        let place = keys::embedding(space, mailbox, ordinal);
        let Some(value) = self.embeddings.get(place)? else { return Ok(None) };
        let key = match self.keys.message(mailbox, ordinal) {
            Ok(key) => key,
            Err(LogError::Erased { .. }) => return Ok(None),
            Err(other) => return Err(other),
        };
        Ok(match value.split_first() {
            Some((&VERSION, sealed)) => key.open(sealed, &place),
            _ => None,
        })
    }

    /// Messages of a mailbox for which something is kept.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn embedded(
        &self,
        space: SpaceName,
        mailbox: MailboxNo,
    ) -> Result<RoaringBitmap, LogError> {
        let mut ordinals = RoaringBitmap::new();
        for guard in self.embeddings.prefix(keys::embeddings(space, mailbox)) {
            let key = guard.key()?;
            let ordinal = key.get(12..16).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
            ordinals.extend(ordinal);
        }
        Ok(ordinals)
    }

    /// Drops what is kept for messages, in every space.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn drop_embeddings(
        &self,
        spaces: &[SpaceName],
        mailbox: MailboxNo,
        ordinals: &RoaringBitmap,
    ) -> Result<(), LogError> {
        for space in spaces {
            for ordinal in ordinals {
                let place = keys::embedding(*space, mailbox, Ordinal(ordinal));
                if self.embeddings.contains_key(place)? {
                    self.embeddings.remove(place)?;
                }
            }
        }
        Ok(())
    }

    /// Drops everything that is kept in a space, and tells for how many messages that was.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn drop_space(&self, space: SpaceName) -> Result<u64, LogError> {
        let mut dropped = 0;
        for guard in self.embeddings.prefix(space) {
            let key = guard.key()?;
            dropped += u64::from(key.get(8..12) != Some(&NO_MAILBOX.0.to_be_bytes()));
            self.embeddings.remove(key)?;
        }
        Ok(dropped)
    }

    /// Keeps the vector by which the model of a space is told from another: of a known sentence, no
    /// part of any mail.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn put_reference(&self, space: SpaceName, vector: &[f32]) -> Result<(), LogError> {
        let mut value = vec![REFERENCE];
        value.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
        Ok(self.embeddings.insert(keys::embedding(space, NO_MAILBOX, Ordinal(0)), value)?)
    }

    /// What [`Log::put_reference`] kept.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn reference(&self, space: SpaceName) -> Result<Option<Vec<f32>>, LogError> {
        let value = self.embeddings.get(keys::embedding(space, NO_MAILBOX, Ordinal(0)))?;
        Ok(value.and_then(|value| {
            let (_, bytes) = value.split_first().filter(|(kind, _)| **kind == REFERENCE)?;
            Some(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }))
    }

    /// Rewrites what is kept without what was dropped.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn compact_embeddings(&self) -> Result<(), LogError> {
        self.embeddings.rotate_memtable_and_wait()?;
        Ok(self.embeddings.major_compact()?)
    }

    /// Every space for which something is kept.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn spaces(&self) -> Result<Vec<SpaceName>, LogError> {
        let mut spaces: Vec<SpaceName> = Vec::new();
        let mut from: Vec<u8> = Vec::new();
        // One step for each space, however much it holds.
        while let Some(guard) = self.embeddings.range(from..).next() {
            let key = guard.key()?;
            let Some(space) = key.first_chunk::<8>() else { break };
            spaces.push(*space);
            let Some(next) = u64::from_be_bytes(*space).checked_add(1) else { break };
            from = next.to_be_bytes().to_vec();
        }
        Ok(spaces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{self, Effort};
    use crate::events::Event;
    use crate::events::event::MailboxConfigured;
    use crate::events::log::{LogOptions, SealedAppend};
    use crate::events::registry::Identity;
    use crate::ids::{IdentityId, TenantId};

    #[test]
    fn kept_per_space_and_gone_with_the_key() {
        let dir = tempfile::tempdir().expect("temp dir");
        let log = Log::open(dir.path(), LogOptions::default()).expect("opens");
        let mailbox = MailboxNo(1);
        log.put_identity(&Identity {
            id: IdentityId::from_parts(1, 1),
            tenant: TenantId::from_parts(1, 1),
            name: "main".into(),
            mailbox,
            created_ms: 1,
        })
        .expect("stored");
        let mut sealer = log.sealer(mailbox).expect("sealer");
        let mut append = SealedAppend::default();
        for n in 0..3 {
            let packed = compress::compress(b"raw", Effort::Little).expect("small");
            sealer.content(&mut append, Ordinal(n), &packed).expect("sealed");
        }
        // Content alone is not appended.
        let event = Event::MailboxConfigured(MailboxConfigured { own_addresses: Vec::new() });
        sealer.event(&mut append, 10, &event).expect("sealed");
        log.append(&[append]).expect("durable");
        let (one, other) = ([1; 8], [255; 8]);
        let values = [(Ordinal(0), b"zero".to_vec()), (Ordinal(2), b"two".to_vec())];
        log.put_embeddings(one, mailbox, &values).expect("kept");
        log.put_embeddings(other, mailbox, &values[..1]).expect("kept");
        assert_eq!(log.embedding(one, mailbox, Ordinal(2)).expect("reads"), Some(b"two".to_vec()));
        assert_eq!(log.embedding(one, mailbox, Ordinal(1)).expect("reads"), None);
        assert_eq!(log.embedding(other, mailbox, Ordinal(2)).expect("reads"), None);
        assert_eq!(log.embedded(one, mailbox).expect("reads"), RoaringBitmap::from([0, 2]));
        assert_eq!(log.embedded(one, MailboxNo(2)).expect("reads"), RoaringBitmap::new());
        assert_eq!(log.spaces().expect("reads"), [one, other]);
        let copied = tempfile::tempdir().expect("temp dir");
        for _ in 0..2 {
            log.copy_to(copied.path()).expect("copied");
        }
        let copied = Log::open(copied.path(), LogOptions::default()).expect("opens");
        assert_eq!(
            copied.embedding(one, mailbox, Ordinal(2)).expect("reads"),
            Some(b"two".to_vec())
        );
        assert_eq!(copied.spaces().expect("reads"), [one, other]);
        let gone = RoaringBitmap::from([0]);
        log.keys.lose(mailbox, &gone).expect("lost");
        assert_eq!(log.embedding(one, mailbox, Ordinal(0)).expect("reads"), None);
        log.put_embeddings(one, mailbox, &values[..1]).expect("passed over");
        log.drop_embeddings(&[one, other], mailbox, &gone).expect("dropped");
        assert_eq!(log.embedded(one, mailbox).expect("reads"), RoaringBitmap::from([2]));
        assert_eq!(log.spaces().expect("reads"), [one]);
        assert_eq!(log.drop_space(other).expect("nothing there"), 0);
        log.put_reference(one, &[0.5, -0.25]).expect("kept");
        assert_eq!(log.reference(one).expect("reads"), Some(vec![0.5, -0.25]));
        assert_eq!(log.reference(other).expect("reads"), None);
        assert_eq!(log.embedded(one, mailbox).expect("reads"), RoaringBitmap::from([2]));
        assert_eq!(log.drop_space(one).expect("dropped"), 1, "the reference is no message");
        assert_eq!(log.reference(one).expect("reads"), None);
        log.compact_embeddings().expect("compacted");
        assert_eq!(log.spaces().expect("reads"), [] as [SpaceName; 0]);
    }
}
