//! The log's part in erasing: receipts, keys that go, and what becomes of sealed content.

use std::collections::HashSet;

use fjall::PersistMode;
use roaring::RoaringBitmap;

use super::{Log, LogError};
use crate::events::codec::Recorded;
use crate::events::receipt::Receipt;
use crate::events::registry::{self, Identity};
use crate::events::{Event, codec, keys};
use crate::ids::{MailboxNo, Ordinal, ReceiptId, Seq};

impl Log {
    /// Loses the keys of every erasure: a crash may have come before.
    pub(super) fn finish_losing(&self) -> Result<(), LogError> {
        for receipt in self.receipts()? {
            // Also of those that are proven: an older key store may have been put back.
            self.keys.lose(receipt.mailbox, &receipt.ordinals)?;
        }
        for mailbox in self.registry()?.erased {
            self.keys.lose_mailbox(mailbox)?;
        }
        Ok(())
    }

    /// A receipt.
    ///
    /// # Errors
    /// [`LogError::Store`] or [`LogError::DamagedRegistry`].
    pub fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, LogError> {
        let value = self.registry.get(registry::receipt_key(id))?;
        value.map(|value| registry::receipt(&value)).transpose()
    }

    /// All receipts, oldest first.
    ///
    /// # Errors
    /// [`LogError::Store`] or [`LogError::DamagedRegistry`].
    pub fn receipts(&self) -> Result<Vec<Receipt>, LogError> {
        let stored = self.registry.prefix(registry::RECEIPTS);
        stored.map(|guard| registry::receipt(&guard.value()?)).collect()
    }

    /// Stores a receipt as it stands now.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn put_receipt(&self, receipt: &Receipt) -> Result<(), LogError> {
        self.put_record(registry::receipt_record(receipt))
    }

    /// Keyed digests of content that a mailbox refuses when it comes again.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn suppressed(&self, mailbox: MailboxNo) -> Result<HashSet<[u8; 16]>, LogError> {
        let prefix = registry::suppressed_prefix(mailbox);
        let mut digests = HashSet::new();
        for guard in self.registry.prefix(&prefix) {
            digests.extend(<[u8; 16]>::try_from(&guard.key()?[prefix.len()..]));
        }
        Ok(digests)
    }

    /// How many of these messages still have a key.
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn keys_left(&self, mailbox: MailboxNo, ordinals: &RoaringBitmap) -> Result<u64, LogError> {
        let mut left = 0;
        for ordinal in ordinals {
            match self.keys.message(mailbox, Ordinal(ordinal)) {
                Ok(_) => left += 1,
                Err(LogError::Erased { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(left)
    }

    /// Drops the sealed content of messages whose keys are lost. It cannot be read anyway, so this
    /// frees space and may be lost in a crash.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn drop_content(
        &self,
        mailbox: MailboxNo,
        ordinals: &RoaringBitmap,
    ) -> Result<(), LogError> {
        for ordinal in ordinals {
            self.content.remove(keys::message(mailbox, Ordinal(ordinal)))?;
        }
        Ok(())
    }

    /// The ordinal that the next message had at a position: every message before it had arrived.
    ///
    /// # Errors
    /// [`LogError::MailboxKeyGone`] or [`LogError::DamagedEvent`].
    pub fn next_ordinal_at(&self, mailbox: MailboxNo, seq: Seq) -> Result<Ordinal, LogError> {
        let key = self.keys.mailbox(mailbox)?;
        let range = keys::event(mailbox, Seq::ZERO)..=keys::event(mailbox, seq);
        for guard in self.events.range(range).rev() {
            let (at, envelope) = guard.into_inner()?;
            let seq = keys::seq_of(&at).unwrap_or_default();
            if let Event::MessageIngested(ingested) =
                codec::from_envelope(&key, mailbox, seq, &envelope)?.event
            {
                return Ok(Ordinal(ingested.ordinal.0 + 1));
            }
        }
        Ok(Ordinal(0))
    }

    /// One event, `None` when there is none at that position.
    ///
    /// # Errors
    /// [`LogError::MailboxKeyGone`] or [`LogError::DamagedEvent`].
    pub fn event(&self, mailbox: MailboxNo, seq: Seq) -> Result<Option<Recorded>, LogError> {
        let key = self.keys.mailbox(mailbox)?;
        let envelope = self.events.get(keys::event(mailbox, seq))?;
        envelope.map(|bytes| codec::from_envelope(&key, mailbox, seq, &bytes)).transpose()
    }

    /// Loses the keys of an erasure whatever became of the first time.
    ///
    /// # Errors
    /// [`LogError::Keys`].
    pub fn lose_again(&self, receipt: &Receipt) -> Result<(), LogError> {
        self.keys.lose(receipt.mailbox, &receipt.ordinals).map(drop)
    }

    /// Hands every record of the registry to `take`, as it lies there.
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub fn each_record(&self, mut take: impl FnMut(&[u8])) -> Result<(), LogError> {
        for guard in self.registry.iter() {
            take(&guard.value()?);
        }
        Ok(())
    }

    /// Takes the bytes of lost keys off the disk.
    ///
    /// # Errors
    /// [`LogError::Keys`] or [`LogError::Io`].
    pub fn compact_keys(&self) -> Result<(), LogError> {
        self.keys.compact()
    }

    /// Erases a mailbox whole: its identity becomes a number that is never used again, its key and
    /// all keys of its messages go. Events and content stay behind, readable by nobody.
    ///
    /// # Errors
    /// What the stores say; a crash in between is finished by the next opening.
    pub fn erase_mailbox(&self, identity: &Identity, receipt: &Receipt) -> Result<(), LogError> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncAll));
        let (identity_key, _) = registry::identity_record(identity);
        batch.remove(&self.registry, identity_key);
        for (key, value) in [registry::erased_record(identity), registry::receipt_record(receipt)] {
            batch.insert(&self.registry, key, value);
        }
        let suppressed = registry::suppressed_prefix(identity.mailbox);
        for guard in self.registry.prefix(&suppressed) {
            batch.remove(&self.registry, guard.key()?);
        }
        batch.commit()?;
        self.keys.lose_mailbox(identity.mailbox)
    }
}
