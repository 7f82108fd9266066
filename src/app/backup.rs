//! Backups of the truth, and putting one back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{EraseRequest, Error, Postrider, SELECTED_IDS_MAX, Selection, blocking};
use crate::config::Config;
use crate::events::receipt::{Receipt, ScopeKind};
use crate::events::{Log, LogOptions};
use crate::ids::{IdentityId, MessageId, ReceiptId};
use crate::projections::generation::disk_bytes;

/// What a backup copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUp {
    /// Where.
    pub dir: PathBuf,
    /// Events that were new to it.
    pub events: u64,
    /// Messages that were new to it.
    pub messages: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// What a compaction freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// Bytes on disk before.
    pub bytes_before: u64,
    /// Bytes on disk after.
    pub bytes_after: u64,
}

/// An erasure as it is applied again: what must not come back from a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureToRepeat {
    /// The receipt.
    pub receipt_id: ReceiptId,
    /// Whose mailbox.
    pub identity_id: IdentityId,
    /// What was asked for.
    pub scope: ScopeKind,
    /// Messages that were erased.
    pub messages: Vec<MessageId>,
    /// Whether they are refused when they come again.
    pub remembered: bool,
    /// Whether the mailbox went whole.
    pub whole: bool,
}

/// What putting a backup back did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Mailboxes.
    pub mailboxes: u64,
    /// Messages.
    pub messages: u64,
    /// Erasures that were applied again because the backup is older than they are.
    pub erasures_repeated: u64,
    /// Messages that these took.
    pub messages_erased: u64,
}

impl From<&Receipt> for ErasureToRepeat {
    fn from(receipt: &Receipt) -> Self {
        Self {
            receipt_id: receipt.id,
            identity_id: receipt.identity,
            scope: receipt.scope,
            messages: receipt.messages.clone(),
            remembered: receipt.remembered,
            whole: receipt.seq == crate::ids::Seq::ZERO
                && receipt.held.is_empty()
                && matches!(receipt.scope, ScopeKind::Identity | ScopeKind::Tenant),
        }
    }
}

/// Erasures of a closed data directory, oldest first.
///
/// # Errors
/// What its log says.
pub fn erasures_of(data_dir: &Path) -> Result<Vec<ErasureToRepeat>, Error> {
    let truth = data_dir.join("truth");
    if !truth.is_dir() {
        let message = format!("{} is no data directory", data_dir.display());
        return Err(Error::Invalid { path: "receipts", message });
    }
    // Nobody else may have it open: an opening tidies up.
    let _lock = super::lock(data_dir)?;
    let log = Log::open(&truth, LogOptions::default())?;
    Ok(log.receipts()?.iter().map(ErasureToRepeat::from).collect())
}

/// Puts the backup in `backup` into the data directory of `config`, which must not be there or be
/// empty, applies erasures again, and builds the indexes.
///
/// # Errors
/// [`Error::Invalid`] for a directory that is no backup or not empty; otherwise what the stores say.
pub async fn restore(
    config: Config,
    backup: PathBuf,
    erasures: Vec<ErasureToRepeat>,
) -> Result<Restored, Error> {
    let data_dir = config.data_dir.clone();
    blocking(move || {
        let io = |path: &Path, source| Error::Io { path: path.to_owned(), source };
        let invalid = |path, message| Error::Invalid { path, message };
        if !backup.join("truth").is_dir() {
            return Err(invalid("backup", format!("{} is no backup", backup.display())));
        }
        if std::fs::read_dir(&data_dir).is_ok_and(|mut entries| entries.next().is_some()) {
            let message = format!("{} is not empty", data_dir.display());
            return Err(invalid("data_dir", message));
        }
        std::fs::create_dir_all(&data_dir).map_err(|e| io(&data_dir, e))?;
        use std::os::unix::fs::PermissionsExt as _;
        let owner_only = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&data_dir, owner_only).map_err(|e| io(&data_dir, e))?;
        let source = Log::open(&backup.join("truth"), LogOptions::default())?;
        source.copy_to(&data_dir.join("truth"))?;
        Ok(())
    })
    .await??;
    let postrider = Postrider::open(config).await?;
    let restored = postrider.repeat(erasures).await;
    postrider.close().await;
    restored
}

impl Postrider {
    /// Copies the truth into a directory while mail comes in: an earlier backup of the same data
    /// directory is brought up to date, and keys that were lost since go from it. The indexes are not
    /// copied: they are built when the backup is put back.
    ///
    /// # Errors
    /// When the directory holds something else, or a store fails.
    pub async fn back_up(&self, dir: &Path) -> Result<BackedUp, Error> {
        let log = Arc::clone(&self.inner.log);
        let dir = dir.to_owned();
        let _at_work = self.inner.purges.at_work().await;
        blocking(move || {
            let truth = dir.join("truth");
            let new = !truth.is_dir();
            if new && std::fs::read_dir(&dir).is_ok_and(|mut e| e.next().is_some()) {
                return Err(crate::events::LogError::ForeignBackup(dir).into());
            }
            let copied = log.copy_to(&truth)?;
            use std::os::unix::fs::PermissionsExt as _;
            // It holds keys and mail: nobody else looks in.
            std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700))
                .map_err(|source| Error::Io { path: dir.clone(), source })?;
            let crate::events::log::Copied { events, contents, bytes } = copied;
            Ok(BackedUp { dir, events, messages: contents, bytes })
        })
        .await?
    }

    /// Rewrites every store without what was let go, and removes generations kept for going back.
    ///
    /// # Errors
    /// What the stores say; each is whole, old or new.
    pub async fn compact(&self) -> Result<Compacted, Error> {
        let data_dir = self.inner.config.data_dir.clone();
        let measured = data_dir.clone();
        let bytes_before = blocking(move || disk_bytes(&measured)).await?;
        for identity in self.identities() {
            self.purge_now(identity.mailbox, &identity.id.to_string()).await?;
        }
        let log = Arc::clone(&self.inner.log);
        blocking(move || log.compact()).await??;
        let bytes_after = blocking(move || disk_bytes(&data_dir)).await?;
        Ok(Compacted { bytes_before, bytes_after })
    }

    /// Erasures, to be kept apart from backups and applied again after one is put back.
    ///
    /// # Errors
    /// What the store says.
    pub async fn erasures_to_repeat(&self) -> Result<Vec<ErasureToRepeat>, Error> {
        let log = Arc::clone(&self.inner.log);
        let receipts = blocking(move || log.receipts()).await??;
        Ok(receipts.iter().map(ErasureToRepeat::from).collect())
    }

    async fn repeat(&self, erasures: Vec<ErasureToRepeat>) -> Result<Restored, Error> {
        let mut restored =
            Restored { mailboxes: 0, messages: 0, erasures_repeated: 0, messages_erased: 0 };
        for erasure in erasures {
            let mailbox = erasure.identity_id.to_string();
            if self.identity(&mailbox).is_err() {
                continue;
            }
            if erasure.whole {
                let receipt = self.erase_identity(&mailbox, erasure.scope).await?;
                restored.erasures_repeated += 1;
                restored.messages_erased += receipt.messages_deleted;
                self.purged(receipt.receipt_id).await?;
                continue;
            }
            let there = self.still_there(&mailbox, &erasure.messages).await?;
            restored.erasures_repeated += u64::from(!there.is_empty());
            for part in there.chunks(SELECTED_IDS_MAX) {
                let select = Selection::Messages(part.to_vec());
                let remember = erasure.remembered;
                let request = EraseRequest { select, remember, as_of_seq: None };
                let receipt = self.erase(&mailbox, request).await?;
                restored.messages_erased += receipt.messages_deleted;
                self.purged(receipt.receipt_id).await?;
            }
        }
        for identity in self.identities() {
            restored.mailboxes += 1;
            restored.messages += self.mailbox_status(&identity.id.to_string()).await?.messages;
        }
        Ok(restored)
    }

    async fn still_there(
        &self,
        mailbox: &str,
        messages: &[MessageId],
    ) -> Result<Vec<MessageId>, Error> {
        let handle = self.handle(&self.identity(mailbox)?).await?;
        let view = self.view(&handle).await?;
        let mut there = Vec::new();
        for id in messages {
            if view.catalog.ordinal(*id)?.is_some() {
                there.push(*id);
            }
        }
        Ok(there)
    }
}
