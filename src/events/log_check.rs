//! Walking a stream from end to end: chain, seals, and whether sealed content opens.

use roaring::RoaringBitmap;

use super::{Log, LogError};
use crate::events::codec::{self, ChainDigest, Recorded};
use crate::events::keys;
use crate::ids::{MailboxNo, Seq};

/// The first event of a stream that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenLink {
    /// Its position.
    pub seq: Seq,
    /// What does not hold.
    pub what: &'static str,
}

impl Log {
    /// Hands every event to `take` as long as the chain holds, and names the first one at which it
    /// does not: an event that is missing, changed, moved or taken from another stream.
    ///
    /// # Errors
    /// [`LogError::MailboxKeyGone`], or what the store or `take` says.
    pub fn check_chain(
        &self,
        mailbox: MailboxNo,
        mut take: impl FnMut(&Recorded) -> Result<(), LogError>,
    ) -> Result<Option<BrokenLink>, LogError> {
        let key = self.keys.mailbox(mailbox)?;
        let mut expected = Seq::ZERO;
        let mut before = ChainDigest::default();
        for guard in self.events.prefix(keys::mailbox(mailbox)) {
            let (at, envelope) = guard.into_inner()?;
            expected = expected.next();
            let broken = |what| Ok(Some(BrokenLink { seq: expected, what }));
            if keys::seq_of(&at) != Some(expected) {
                return broken("it is missing");
            }
            let recorded = match codec::from_envelope(&key, mailbox, expected, &envelope) {
                Ok(recorded) => recorded,
                Err(LogError::DamagedEvent { what, .. }) => return broken(what),
                Err(other) => return Err(other),
            };
            if recorded.previous != before {
                return broken("the event before it is not the one it was written after");
            }
            before = recorded.digest;
            take(&recorded)?;
        }
        Ok(None)
    }

    /// Ordinals of a mailbox whose content is stored, opened or not.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn content_ordinals(&self, mailbox: MailboxNo) -> Result<RoaringBitmap, LogError> {
        let mut ordinals = RoaringBitmap::new();
        for guard in self.content.prefix(keys::mailbox(mailbox)) {
            let key = guard.key()?;
            let ordinal = key.get(4..8).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
            ordinals.extend(ordinal);
        }
        Ok(ordinals)
    }

    /// Ordinals of a mailbox that still have a key.
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn keyed_ordinals(&self, mailbox: MailboxNo) -> Result<RoaringBitmap, LogError> {
        self.keys.ordinals(mailbox)
    }

    /// Rewrites what fjall and the key store hold without what was let go.
    ///
    /// # Errors
    /// What the stores say.
    pub fn compact(&self) -> Result<(), LogError> {
        for keyspace in [&self.registry, &self.events, &self.content, &self.embeddings] {
            keyspace.rotate_memtable_and_wait()?;
            keyspace.major_compact()?;
        }
        self.keys.compact()
    }

    /// Bytes of the sealed events of a mailbox, with their count.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn stream_bytes(&self, mailbox: MailboxNo) -> Result<(u64, u64), LogError> {
        let (mut count, mut bytes) = (0, 0);
        for guard in self.events.prefix(keys::mailbox(mailbox)) {
            count += 1;
            bytes += u64::from(guard.size()?);
        }
        Ok((count, bytes))
    }
}
