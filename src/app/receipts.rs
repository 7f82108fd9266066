//! Receipts for whoever asks, and the second phase of an erasure.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use tokio::sync::{RwLock, oneshot, watch};

use super::{Error, Postrider, blocking};
use crate::actors::directory::mailbox_dir;
use crate::actors::{MailboxHandle, projector};
use crate::crash_point;
use crate::events::receipt::{ErasureState, Held, Probe, Purge, Receipt, ScopeKind};
use crate::events::registry::Identity;
use crate::ids::{IdentityId, MailboxNo, MessageId, Ordinal, ReceiptId};
use crate::projections::probe::{self, Tokens};
use crate::projections::set::Purged;
use crate::projections::view::View;
use crate::search::rfc3339;

/// How often, and how many times, a purge looks whether searches still read what it replaced.
const READERS_POLL: Duration = Duration::from_millis(10);
const READERS_POLLS_MAX: u32 = 3_000;

/// What an erasure took and what was found afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptOut {
    /// Which.
    pub receipt_id: ReceiptId,
    /// Whose mailbox.
    pub identity_id: IdentityId,
    /// What was asked for.
    pub scope: ScopeKind,
    /// How far it is.
    pub status: ErasureState,
    /// When it was asked for; RFC 3339, UTC.
    pub requested_at: String,
    /// When no door showed it any more.
    pub erased_at: Option<String>,
    /// When its bytes were gone from disk.
    pub purged_at: Option<String>,
    /// Messages erased, each with its key and its content.
    pub messages_deleted: u64,
    /// Attachments in them.
    pub attachments_deleted: u64,
    /// Raw bytes in them.
    pub raw_bytes_deleted: u64,
    /// Documents that left the text index in that purge, those of other erasures included.
    pub text_documents_deleted: u64,
    /// Vectors of their chunks.
    pub vectors_deleted: u64,
    /// Whether the messages are refused when they are imported again.
    pub remembered: bool,
    /// What holds kept.
    pub held: Vec<Held>,
    /// What was found after the purge; all zeros when it holds.
    pub probe: Option<Probe>,
}

impl From<&Receipt> for ReceiptOut {
    fn from(receipt: &Receipt) -> Self {
        let purge = receipt.purge.as_ref();
        Self {
            receipt_id: receipt.id,
            identity_id: receipt.identity,
            scope: receipt.scope,
            status: receipt.state(),
            requested_at: rfc3339(receipt.requested_ms),
            erased_at: receipt.erased_ms.map(rfc3339),
            purged_at: purge.map(|p| rfc3339(p.purged_ms)),
            messages_deleted: receipt.ordinals.len(),
            attachments_deleted: receipt.attachments,
            raw_bytes_deleted: receipt.raw_bytes,
            text_documents_deleted: purge.map_or(0, |p| p.text_documents),
            vectors_deleted: 0,
            remembered: receipt.remembered,
            held: receipt.held.clone(),
            probe: purge.map(|p| p.probe.clone()),
        }
    }
}

/// Purges on their way, and what they look for.
#[derive(Debug)]
pub(super) struct Purges {
    tokens: Mutex<HashMap<ReceiptId, Tokens>>,
    /// One purge or rebuild of a mailbox at a time.
    mailboxes: Mutex<HashMap<MailboxNo, Arc<tokio::sync::Mutex<()>>>>,
    /// Held by every purge at work; taken whole when the directory is closed.
    at_work: RwLock<()>,
    /// Counts purges that ended.
    ended: watch::Sender<u64>,
}

impl Default for Purges {
    fn default() -> Self {
        Self {
            tokens: Mutex::default(),
            mailboxes: Mutex::default(),
            at_work: RwLock::default(),
            ended: watch::Sender::new(0),
        }
    }
}

impl Purges {
    /// Waits until no purge is at work.
    pub(super) async fn settle(&self) {
        drop(self.at_work.write().await);
    }

    /// Says that something is at work until the guard goes.
    pub(super) async fn at_work(&self) -> tokio::sync::RwLockReadGuard<'_, ()> {
        self.at_work.read().await
    }

    /// One purge or rebuild of a mailbox at a time: each writes generations.
    pub(super) fn of(&self, mailbox: MailboxNo) -> Arc<tokio::sync::Mutex<()>> {
        let mut mailboxes = self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(mailboxes.entry(mailbox).or_default())
    }
}

impl Postrider {
    pub(super) fn remember_tokens(&self, id: ReceiptId, tokens: Tokens) {
        self.tokens().insert(id, tokens);
    }

    /// A receipt.
    ///
    /// # Errors
    /// [`Error::NoSuchReceipt`].
    pub async fn erasure(&self, id: ReceiptId) -> Result<ReceiptOut, Error> {
        let log = Arc::clone(&self.inner.log);
        let receipt = blocking(move || log.receipt(id)).await??;
        receipt.as_ref().map(ReceiptOut::from).ok_or(Error::NoSuchReceipt)
    }

    /// All receipts, oldest first.
    ///
    /// # Errors
    /// What the store says.
    pub async fn erasures(&self) -> Result<Vec<ReceiptOut>, Error> {
        let log = Arc::clone(&self.inner.log);
        let receipts = blocking(move || log.receipts()).await??;
        Ok(receipts.iter().map(ReceiptOut::from).collect())
    }

    /// Identifiers of the messages that an erasure took.
    ///
    /// # Errors
    /// [`Error::NoSuchReceipt`].
    pub async fn erased_messages(&self, id: ReceiptId) -> Result<Vec<MessageId>, Error> {
        let log = Arc::clone(&self.inner.log);
        let receipt = blocking(move || log.receipt(id)).await??;
        receipt.map(|r| r.messages).ok_or(Error::NoSuchReceipt)
    }

    /// Waits until an erasure is purged, and tells what was found.
    ///
    /// # Errors
    /// [`Error::NoSuchReceipt`]; [`Error::Purge`] when the purge failed.
    pub async fn purged(&self, id: ReceiptId) -> Result<ReceiptOut, Error> {
        let mut ended = self.inner.purges.ended.subscribe();
        loop {
            let log = Arc::clone(&self.inner.log);
            let receipt = blocking(move || log.receipt(id)).await??.ok_or(Error::NoSuchReceipt)?;
            if receipt.purge.is_some() {
                return Ok(ReceiptOut::from(&receipt));
            }
            let identity =
                Identity { id: receipt.identity, mailbox: receipt.mailbox, ..self.nobody() };
            // When none is on its way, this is it.
            let purging = self.clone();
            tokio::select! {
                changed = ended.changed() => drop(changed),
                done = purging.purge(&identity) => done?,
            }
        }
    }

    /// Starts the purge of a mailbox's erasures in the background.
    pub(super) fn purge_soon(&self, identity: Identity) {
        let postrider = self.clone();
        tokio::spawn(async move {
            if let Err(error) = postrider.purge(&identity).await {
                let mailbox = identity.mailbox.0;
                tracing::warn!(
                    mailbox,
                    "a purge failed, it is tried again at the next start: {error}"
                );
            }
        });
    }

    /// Purges every erasure that a crash or a failure left unfinished.
    pub(super) fn purge_unfinished(&self, receipts: &[Receipt]) {
        let mut mailboxes = HashMap::new();
        for receipt in receipts {
            if matches!(receipt.state(), ErasureState::Erased | ErasureState::Failed) {
                mailboxes.insert(receipt.mailbox, receipt.identity);
            }
        }
        for (mailbox, id) in mailboxes {
            self.purge_soon(Identity { id, mailbox, ..self.nobody() });
        }
    }

    fn nobody(&self) -> Identity {
        Identity {
            id: IdentityId::from_bits(0),
            tenant: crate::ids::TenantId::from_bits(0),
            name: String::new(),
            mailbox: MailboxNo(0),
            created_ms: 0,
        }
    }

    /// Erasures of a mailbox that are not proven.
    async fn pending(&self, mailbox: MailboxNo) -> Result<Vec<Receipt>, Error> {
        let log = Arc::clone(&self.inner.log);
        let mut receipts = blocking(move || log.receipts()).await??;
        receipts.retain(|r| {
            r.mailbox == mailbox && matches!(r.state(), ErasureState::Erased | ErasureState::Failed)
        });
        Ok(receipts)
    }

    async fn purge(&self, identity: &Identity) -> Result<(), Error> {
        let _at_work = self.inner.purges.at_work().await;
        let one = self.inner.purges.of(identity.mailbox);
        let _one = one.lock().await;
        let mailbox = identity.mailbox;
        let pending = self.pending(mailbox).await?;
        if pending.is_empty() {
            return Ok(());
        }
        // An identity that is gone has no mailbox to wake.
        let living = self.identity(&identity.id.to_string()).is_ok();
        let purged = if living {
            self.purge_projections(identity).await?
        } else {
            self.inner.running.remove(mailbox).await?;
            Purged { text_documents: 0, directories: 1 }
        };
        let (log, receipts) = (Arc::clone(&self.inner.log), pending.clone());
        blocking(move || {
            for receipt in &receipts {
                log.drop_content(receipt.mailbox, &receipt.ordinals)?;
            }
            crash_point::reach("purge content dropped");
            log.compact_keys()
        })
        .await??;
        let purged_now: HashSet<ReceiptId> = pending.iter().map(|r| r.id).collect();
        for receipt in pending {
            let probe = self.prove(identity, living, &receipt).await?;
            if !probe.is_clean()
                && self.pending(mailbox).await?.iter().any(|r| !purged_now.contains(&r.id))
            {
                // The same words were erased again since, and are still on disk: the purge of that
                // erasure, which is on its way, proves both.
                continue;
            }
            let receipt = Receipt {
                erased_ms: receipt.erased_ms.or(Some(self.inner.clock.now_ms())),
                purge: Some(Purge {
                    purged_ms: self.inner.clock.now_ms(),
                    text_documents: purged.text_documents,
                    directories: purged.directories,
                    probe,
                }),
                ..receipt
            };
            let log = Arc::clone(&self.inner.log);
            let id = receipt.id;
            blocking(move || log.put_receipt(&receipt)).await??;
            crash_point::reach("purge proven");
            self.tokens().remove(&id);
        }
        self.inner.purges.ended.send_modify(|ended| *ended += 1);
        Ok(())
    }

    /// Rewrites the projections of a mailbox, whatever was erased.
    pub(super) async fn purge_now(&self, identity: &Identity) -> Result<(), Error> {
        let _at_work = self.inner.purges.at_work().await;
        let one = self.inner.purges.of(identity.mailbox);
        let _one = one.lock().await;
        self.purge_projections(identity).await.map(drop)
    }

    async fn purge_projections(&self, identity: &Identity) -> Result<Purged, Error> {
        let handle = self.handle(identity).await?;
        // Keeps the mailbox open meanwhile.
        let _place =
            Arc::clone(&handle.admission).acquire_owned().await.map_err(|_| Error::Gone)?;
        let (reply, purged) = oneshot::channel();
        handle.projector.cast(projector::Request::Purge(reply)).map_err(|_| Error::Gone)?;
        let (purged, before) = purged.await.map_err(|_| Error::Gone)?.map_err(Error::Purge)?;
        self.collect_garbage(&handle, &before).await?;
        Ok(purged)
    }

    /// Waits until old files are off the disk: those that a search still reads cannot go, but
    /// searches are short.
    async fn collect_garbage(
        &self,
        handle: &MailboxHandle,
        before: &[Weak<View>],
    ) -> Result<(), Error> {
        for _ in 0..READERS_POLLS_MAX {
            if before.iter().all(|view| view.strong_count() == 0) {
                let (reply, collected) = oneshot::channel();
                let collect = projector::Request::CollectGarbage(reply);
                handle.projector.cast(collect).map_err(|_| Error::Gone)?;
                if collected.await.map_err(|_| Error::Gone)?.map_err(Error::Purge)? == 0 {
                    return Ok(());
                }
            }
            tokio::time::sleep(READERS_POLL).await;
        }
        Err(Error::Purge("somebody still reads what was replaced".into()))
    }

    fn tokens(&self) -> std::sync::MutexGuard<'_, HashMap<ReceiptId, Tokens>> {
        self.inner.purges.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for what was erased. The same words may arrive again while it looks: what is found
    /// counts only when nothing that is there now holds it by right.
    async fn prove(
        &self,
        identity: &Identity,
        living: bool,
        receipt: &Receipt,
    ) -> Result<Probe, Error> {
        let mut tokens = self.tokens().get(&receipt.id).cloned().unwrap_or_default();
        loop {
            let view = match living {
                true => Some(self.view(&self.handle(identity).await?).await?),
                false => None,
            };
            let (postrider, asked, before) = (self.clone(), receipt.clone(), tokens.len());
            let (probe, left) =
                blocking(move || postrider.look(&asked, view.as_deref(), tokens)).await??;
            if probe.byte_hits == 0 || left.len() == before {
                return Ok(probe);
            }
            tokens = left;
        }
    }

    fn look(
        &self,
        receipt: &Receipt,
        view: Option<&View>,
        mut tokens: Tokens,
    ) -> Result<(Probe, Tokens), Error> {
        let mut probe = Probe::default();
        if let Some(view) = view {
            probe.keyword_hits = still_found(view, &receipt.messages, &receipt.ordinals)?;
            tokens = probe::distinctive(view, tokens)?;
        }
        probe.key_hits = self.inner.log.keys_left(receipt.mailbox, &receipt.ordinals)?;
        probe.byte_tokens = tokens.len() as u64;
        if !tokens.is_empty() {
            self.walk(receipt.mailbox, view, &tokens, &mut probe)?;
        }
        Ok((probe, tokens))
    }

    /// Walks the mailbox's own directory, the truth and what lies beside them. Other mailboxes may
    /// hold the same mail by right.
    fn walk(
        &self,
        mailbox: MailboxNo,
        view: Option<&View>,
        tokens: &Tokens,
        probe: &mut Probe,
    ) -> Result<(), Error> {
        let data_dir = &self.inner.config.data_dir;
        let mailboxes = data_dir.join("mailboxes");
        let own = mailbox_dir(&mailboxes, mailbox);
        let others: Vec<PathBuf> = std::fs::read_dir(&mailboxes)
            .map(|entries| entries.flatten().map(|e| e.path()).filter(|p| *p != own).collect())
            .unwrap_or_default();
        let walked = probe::walk(data_dir, &others, tokens)?;
        probe.files = walked.files;
        probe.bytes = walked.bytes;
        probe.byte_hits = walked.hits;
        if let Some(view) = view {
            probe.byte_hits += probe::dictionaries(&view.text, tokens)?;
        }
        Ok(())
    }
}

fn still_found(
    view: &View,
    messages: &[MessageId],
    ordinals: &RoaringBitmap,
) -> Result<u64, Error> {
    let mut found = 0;
    for id in messages {
        found += u64::from(view.catalog.ordinal(*id)?.is_some());
    }
    let all = view.catalog.with(crate::projections::catalog::bitmaps::Facet::All, b"")?;
    found += all.intersection_len(ordinals);
    for ordinal in ordinals {
        let held = view.text.holds(Ordinal(ordinal));
        found += u64::from(held.map_err(crate::projections::ProjectionError::from)?);
    }
    Ok(found)
}
