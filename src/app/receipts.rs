//! Receipts for whoever asks, and the second phase of an erasure.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use tokio::sync::{RwLock, oneshot, watch};

use super::{Error, Postrider, blocking};
use crate::actors::directory::mailbox_dir;
use crate::actors::projector;
use crate::events::receipt::{ErasureState, Held, Probe, Purge, Receipt, ScopeKind};
use crate::events::registry::Identity;
use crate::ids::{IdentityId, MailboxNo, MessageId, Ordinal, ReceiptId};
use crate::projections::probe::{self, Tokens};
use crate::projections::set::{ProjectionSet, Purged};
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
    /// One purge of a mailbox at a time.
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

    fn of(&self, mailbox: MailboxNo) -> Arc<tokio::sync::Mutex<()>> {
        let mut mailboxes = self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(mailboxes.entry(mailbox).or_default())
    }
}

impl Postrider {
    pub(super) fn remember_tokens(&self, id: ReceiptId, tokens: Tokens) {
        let mut known = self.inner.purges.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(id, tokens);
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

    async fn purge(&self, identity: &Identity) -> Result<(), Error> {
        let _at_work = self.inner.purges.at_work.read().await;
        let one = self.inner.purges.of(identity.mailbox);
        let _one = one.lock().await;
        let log = Arc::clone(&self.inner.log);
        let mailbox = identity.mailbox;
        let pending: Vec<Receipt> = blocking(move || log.receipts())
            .await??
            .into_iter()
            .filter(|r| r.mailbox == mailbox)
            .filter(|r| matches!(r.state(), ErasureState::Erased | ErasureState::Failed))
            .collect();
        if pending.is_empty() {
            return Ok(());
        }
        // An identity that is gone has no mailbox to wake.
        let living = self.identity(&identity.id.to_string()).is_ok();
        let (purged, view) = if living {
            let handle = self.handle(identity).await?;
            let (reply, purged) = oneshot::channel();
            handle.projector.cast(projector::Request::Purge(reply)).map_err(|_| Error::Gone)?;
            let (purged, before) = purged.await.map_err(|_| Error::Gone)?.map_err(Error::Purge)?;
            // Files that a search still reads cannot go; searches are short.
            for _ in 0..READERS_POLLS_MAX {
                if before.iter().all(|view| view.strong_count() == 0) {
                    break;
                }
                tokio::time::sleep(READERS_POLL).await;
            }
            let (reply, collected) = oneshot::channel();
            let collect = projector::Request::CollectGarbage(reply);
            handle.projector.cast(collect).map_err(|_| Error::Gone)?;
            collected.await.map_err(|_| Error::Gone)?.map_err(Error::Purge)?;
            (purged, Some(self.view(&handle).await?))
        } else {
            self.inner.running.remove(mailbox).await?;
            (Purged { text_documents: 0, directories: 1 }, None)
        };
        let postrider = self.clone();
        blocking(move || postrider.prove(&pending, purged, view.as_deref())).await??;
        self.inner.purges.ended.send_modify(|ended| *ended += 1);
        Ok(())
    }

    /// Takes keys and content off the disk, looks for what was erased, and stores what was found.
    fn prove(&self, pending: &[Receipt], purged: Purged, view: Option<&View>) -> Result<(), Error> {
        let log = &self.inner.log;
        let known = |id: ReceiptId| {
            let tokens = self.inner.purges.tokens.lock().unwrap_or_else(PoisonError::into_inner);
            tokens.get(&id).cloned().unwrap_or_default()
        };
        for receipt in pending {
            log.drop_content(receipt.mailbox, &receipt.ordinals)?;
        }
        log.compact_keys()?;
        for receipt in pending {
            let mut probe = Probe::default();
            let mut tokens = known(receipt.id);
            if let Some(view) = view {
                probe.keyword_hits = still_found(view, &receipt.messages, &receipt.ordinals)?;
                tokens = probe::distinctive(view, tokens)?;
            }
            probe.key_hits = log.keys_left(receipt.mailbox, &receipt.ordinals)?;
            probe.byte_tokens = tokens.len() as u64;
            if !tokens.is_empty() {
                self.walk(receipt.mailbox, view, &tokens, &mut probe)?;
            }
            let receipt = Receipt {
                erased_ms: receipt.erased_ms.or(Some(self.inner.clock.now_ms())),
                purge: Some(Purge {
                    purged_ms: self.inner.clock.now_ms(),
                    text_documents: purged.text_documents,
                    directories: purged.directories,
                    probe,
                }),
                ..receipt.clone()
            };
            log.put_receipt(&receipt)?;
            let mut tokens =
                self.inner.purges.tokens.lock().unwrap_or_else(PoisonError::into_inner);
            tokens.remove(&receipt.id);
        }
        Ok(())
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
        if let Some(view) = view
            && let Some(dir) = ProjectionSet::generations(&own).1.current()?
        {
            probe.byte_hits += probe::dictionaries(&view.text, &dir, tokens)?;
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
