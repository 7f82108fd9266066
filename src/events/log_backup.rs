//! Copying the truth into another directory while it is in use.
//!
//! Events and content are copied from one snapshot of the store, and only what the copy does not
//! hold yet; they never change. Keys are copied afterwards and whole: a key that was lost since goes
//! from the copy too, and one that came since opens nothing that is in it.

use std::path::Path;

use fjall::{PersistMode, Readable as _};

use super::{Log, LogError, LogOptions};
use crate::events::{codec, keys, registry};
use crate::ids::{MailboxNo, Seq};

/// Entries written together.
const BATCH_ENTRIES: usize = 4_096;
/// Bytes written together.
const BATCH_BYTES: usize = 8 << 20;

/// What a backup copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Events.
    pub events: u64,
    /// Messages.
    pub contents: u64,
    /// Bytes of both.
    pub bytes: u64,
}

impl Log {
    /// Copies everything into the truth at `dir`, which is empty or an earlier copy of this one.
    ///
    /// # Errors
    /// [`LogError::ForeignBackup`] when `dir` holds something else; otherwise what the stores say.
    pub fn copy_to(&self, dir: &Path) -> Result<Copied, LogError> {
        let target = Self::open(dir, LogOptions::default())?;
        let snapshot = self.db.snapshot();
        let mailboxes: Vec<MailboxNo> =
            self.registry()?.identities.iter().map(|identity| identity.mailbox).collect();
        let mut copied = Copied::default();
        for mailbox in mailboxes {
            let head = target.head(mailbox)?;
            self.check_copy(&target, mailbox, head)?;
            let range = keys::event(mailbox, head.next())..=keys::event(mailbox, Seq(u64::MAX));
            copied.events += copy(
                &target,
                &target.events,
                snapshot.range(&self.events, range),
                &mut copied.bytes,
            )?;
            let known = target.content_ordinals(mailbox)?.max().map_or(0, |last| last + 1);
            let range = keys::message(mailbox, crate::ids::Ordinal(known))
                ..=keys::message(mailbox, crate::ids::Ordinal(u32::MAX));
            copied.contents += copy(
                &target,
                &target.content,
                snapshot.range(&self.content, range),
                &mut copied.bytes,
            )?;
        }
        self.copy_embeddings(&target)?;
        let mut batch = target.db.batch().durability(Some(PersistMode::SyncAll));
        let mut gone: Vec<Vec<u8>> = Vec::new();
        for guard in target.registry.iter() {
            gone.push(guard.key()?.to_vec());
        }
        for key in gone {
            batch.remove(&target.registry, key);
        }
        for guard in snapshot.iter(&self.registry) {
            let (key, value) = guard.into_inner()?;
            batch.insert(&target.registry, key, value);
        }
        batch.commit()?;
        self.keys.copy_to(&target.keys)?;
        // A mailbox that was erased whole since the snapshot has no key any more.
        for identity in target.registry()?.identities {
            match target.keys.mailbox(identity.mailbox) {
                Err(LogError::MailboxKeyGone(_)) => {
                    let mut batch = target.db.batch().durability(Some(PersistMode::SyncAll));
                    batch.remove(&target.registry, registry::identity_record(&identity).0);
                    let (key, value) = registry::erased_record(&identity);
                    batch.insert(&target.registry, key, value);
                    batch.commit()?;
                }
                Ok(_) => {}
                Err(other) => return Err(other),
            }
        }
        target.settle()?;
        Ok(copied)
    }

    /// Copies vectors that the target does not hold: they can be computed again, at a price.
    fn copy_embeddings(&self, target: &Self) -> Result<(), LogError> {
        let mut batch = target.db.batch();
        let mut size = 0;
        for guard in self.db.snapshot().iter(&self.embeddings) {
            let (key, value) = guard.into_inner()?;
            if target.embeddings.contains_key(&key)? {
                continue;
            }
            size += key.len() + value.len();
            batch.insert(&target.embeddings, key, value);
            if size >= BATCH_BYTES {
                batch.commit()?;
                (batch, size) = (target.db.batch(), 0);
            }
        }
        Ok(batch.commit()?)
    }

    /// Whether `target` is an earlier copy: its last event is ours at that position.
    fn check_copy(&self, target: &Self, mailbox: MailboxNo, head: Seq) -> Result<(), LogError> {
        if head == Seq::ZERO {
            return Ok(());
        }
        let digest = |log: &Self| -> Result<Option<codec::ChainDigest>, LogError> {
            let envelope = log.events.get(keys::event(mailbox, head))?;
            Ok(envelope.map(|bytes| codec::chain_digest(mailbox, head, &bytes)))
        };
        if digest(self)? == digest(target)? {
            return Ok(());
        }
        Err(LogError::ForeignBackup(target.dir.clone()))
    }
}

fn copy(
    target: &Log,
    keyspace: &fjall::Keyspace,
    from: impl Iterator<Item = fjall::Guard>,
    bytes: &mut u64,
) -> Result<u64, LogError> {
    let mut count = 0;
    let mut batch = target.db.batch();
    let (mut entries, mut size) = (0, 0);
    for guard in from {
        let (key, value) = guard.into_inner()?;
        size += key.len() + value.len();
        entries += 1;
        batch.insert(keyspace, key, value);
        if entries >= BATCH_ENTRIES || size >= BATCH_BYTES {
            batch.commit()?;
            count += entries as u64;
            *bytes += size as u64;
            (entries, size) = (0, 0);
            batch = target.db.batch();
        }
    }
    // The last one makes all of them durable.
    batch.durability(Some(PersistMode::SyncAll)).commit()?;
    *bytes += size as u64;
    Ok(count + entries as u64)
}
