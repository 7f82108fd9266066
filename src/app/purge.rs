//! The second phase of an erasure: its bytes leave the disk, and then everything is searched for them.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use roaring::RoaringBitmap;
use tokio::sync::{RwLock, RwLockReadGuard, oneshot};

use super::{Error, Postrider, blocking};
use crate::actors::directory::mailbox_dir;
use crate::actors::{MailboxHandle, projector};
use crate::crash_point;
use crate::events::receipt::{ErasureState, Probe, Purge, Receipt};
use crate::ids::{IdentityId, MailboxNo, MessageId, Ordinal, ReceiptId};
use crate::projections::build::Control;
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::probe::{self, Tokens};
use crate::projections::set::Purged;
use crate::projections::view::View;

/// How often, and how many times, a purge looks whether searches still read what it replaced.
const READERS_POLL: Duration = Duration::from_millis(10);
const READERS_POLLS_MAX: u32 = 3_000;

/// Purges and rebuilds on their way, and what the purges look for.
#[derive(Debug, Default)]
pub(super) struct Purges {
    tokens: Mutex<HashMap<ReceiptId, Tokens>>,
    /// One purge or rebuild of a mailbox at a time: each writes generations.
    mailboxes: Mutex<HashMap<MailboxNo, Arc<tokio::sync::Mutex<()>>>>,
    /// Held by every one at work; taken whole when the directory is closed.
    at_work: RwLock<()>,
    /// Of rebuilds at work.
    controls: Mutex<Vec<Weak<Control>>>,
}

impl Purges {
    /// Ends rebuilds and waits until nothing is at work.
    pub(super) async fn settle(&self) {
        for control in self.controls.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if let Some(control) = control.upgrade() {
                control.cancel.store(true, Ordering::SeqCst);
            }
        }
        drop(self.at_work.write().await);
    }

    /// Says that something is at work until the guard goes.
    pub(super) async fn at_work(&self) -> RwLockReadGuard<'_, ()> {
        self.at_work.read().await
    }

    /// The place of the one purge or rebuild of a mailbox.
    pub(super) fn of(&self, mailbox: MailboxNo) -> Arc<tokio::sync::Mutex<()>> {
        let mut mailboxes = self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(mailboxes.entry(mailbox).or_default())
    }

    /// Makes a rebuild end when the directory is closed.
    pub(super) fn watch(&self, control: &Arc<Control>) {
        let mut controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls.retain(|known| known.strong_count() > 0);
        controls.push(Arc::downgrade(control));
    }

    fn tokens(&self) -> std::sync::MutexGuard<'_, HashMap<ReceiptId, Tokens>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the words of an erasure until it is proven.
    pub(super) fn remember(&self, id: ReceiptId, tokens: Tokens) {
        self.tokens().insert(id, tokens);
    }

    /// Forgets them.
    pub(super) fn forget(&self, id: ReceiptId) {
        self.tokens().remove(&id);
    }
}

impl Postrider {
    /// Starts the purge of a mailbox's erasures in the background.
    pub(super) fn purge_soon(&self, mailbox: MailboxNo, identity: IdentityId) {
        let postrider = self.clone();
        tokio::spawn(async move {
            if let Err(error) = postrider.purge(mailbox, identity).await {
                let mailbox = mailbox.0;
                tracing::warn!(
                    mailbox,
                    "a purge failed, it is tried again with the next one and at the next start: \
                     {error}"
                );
            }
        });
    }

    /// Purges every erasure that a crash or a failure left unfinished, one mailbox after the other.
    pub(super) fn purge_unfinished(&self, receipts: &[Receipt]) {
        let unproven = receipts.iter().filter(|receipt| is_unproven(receipt));
        let mailboxes: HashMap<MailboxNo, IdentityId> =
            unproven.map(|receipt| (receipt.mailbox, receipt.identity)).collect();
        let postrider = self.clone();
        tokio::spawn(async move {
            for (mailbox, identity) in mailboxes {
                if let Err(error) = postrider.purge(mailbox, identity).await {
                    let mailbox = mailbox.0;
                    tracing::warn!(mailbox, "an unfinished purge failed again: {error}");
                }
            }
        });
    }

    /// Erasures of a mailbox that are not proven.
    async fn pending(&self, mailbox: MailboxNo) -> Result<Vec<Receipt>, Error> {
        let log = Arc::clone(&self.inner.log);
        let mut receipts = blocking(move || log.receipts()).await??;
        receipts.retain(|receipt| receipt.mailbox == mailbox && is_unproven(receipt));
        Ok(receipts)
    }

    /// Purges and proves every erasure of a mailbox that is not proven yet.
    pub(super) async fn purge(
        &self,
        mailbox: MailboxNo,
        identity: IdentityId,
    ) -> Result<(), Error> {
        let _at_work = self.inner.purges.at_work().await;
        let one = self.inner.purges.of(mailbox);
        let _one = one.lock().await;
        let pending = self.pending(mailbox).await?;
        if pending.is_empty() {
            return Ok(());
        }
        let name = identity.to_string();
        // An identity that is gone has no mailbox to wake.
        let living = self.identity(&name).is_ok();
        let purged = if living {
            self.purge_projections(&name).await?
        } else {
            self.inner.running.remove(mailbox).await?;
            Purged { text_documents: 0, directories: 1 }
        };
        let gone = pending.iter().fold(RoaringBitmap::new(), |all, r| all | &r.ordinals);
        let vectors_left = if living {
            self.purge_vectors(&self.identity(&name)?, gone).await?
        } else {
            self.inner.semantic.forget(mailbox);
            let log = Arc::clone(&self.inner.log);
            blocking(move || log.drop_embeddings(&log.spaces()?, mailbox, &gone)).await??;
            0
        };
        let (log, receipts) = (Arc::clone(&self.inner.log), pending.clone());
        blocking(move || {
            for receipt in &receipts {
                log.lose_again(receipt)?;
                log.drop_content(receipt.mailbox, &receipt.ordinals)?;
            }
            crash_point::reach("purge content dropped");
            log.compact_keys()
        })
        .await??;
        let ids: HashSet<ReceiptId> = pending.iter().map(|r| r.id).collect();
        let probes = self.prove(living.then_some(name.as_str()), mailbox, &pending).await?;
        for (receipt, mut probe) in pending.into_iter().zip(probes) {
            // Of all erasures of this purge together.
            probe.semantic_hits = vectors_left;
            if !probe.is_clean()
                && self.pending(mailbox).await?.iter().any(|r| !ids.contains(&r.id))
            {
                // The same words were erased again since, and are still on disk: the purge of that
                // erasure, which is on its way, proves both.
                continue;
            }
            let now_ms = self.inner.clock.now_ms();
            let receipt = Receipt {
                erased_ms: receipt.erased_ms.or(Some(now_ms)),
                purge: Some(Purge {
                    purged_ms: now_ms,
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
            self.inner.purges.forget(id);
        }
        Ok(())
    }

    /// Rewrites the projections of a mailbox, whatever was erased.
    pub(super) async fn purge_now(&self, mailbox: MailboxNo, name: &str) -> Result<(), Error> {
        let _at_work = self.inner.purges.at_work().await;
        let one = self.inner.purges.of(mailbox);
        let _one = one.lock().await;
        self.purge_projections(name).await.map(drop)
    }

    async fn purge_projections(&self, name: &str) -> Result<Purged, Error> {
        let handle = self.handle(&self.identity(name)?).await?;
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

    /// Looks for what was erased. The same words may arrive again while it looks: what is found
    /// counts only when nothing that is there now holds it by right.
    async fn prove(
        &self,
        name: Option<&str>,
        mailbox: MailboxNo,
        receipts: &[Receipt],
    ) -> Result<Vec<Probe>, Error> {
        let mut tokens: Vec<Tokens> = {
            let known = self.inner.purges.tokens();
            receipts.iter().map(|r| known.get(&r.id).cloned().unwrap_or_default()).collect()
        };
        loop {
            let view = match name {
                Some(name) => Some(self.view(&self.handle(&self.identity(name)?).await?).await?),
                None => None,
            };
            let before: usize = tokens.iter().map(HashSet::len).sum();
            let (postrider, asked) = (self.clone(), receipts.to_vec());
            let (probes, left) =
                blocking(move || postrider.look(mailbox, &asked, view.as_deref(), tokens))
                    .await??;
            let after: usize = left.iter().map(HashSet::len).sum();
            if probes.iter().all(|probe| probe.byte_hits == 0) || before == after {
                return Ok(probes);
            }
            tokens = left;
        }
    }

    fn look(
        &self,
        mailbox: MailboxNo,
        receipts: &[Receipt],
        view: Option<&View>,
        mut tokens: Vec<Tokens>,
    ) -> Result<(Vec<Probe>, Vec<Tokens>), Error> {
        let mut all: Tokens = tokens.iter().flatten().cloned().collect();
        if let Some(view) = view {
            all = probe::distinctive(view, all)?;
        }
        self.inner.log.each_record(|bytes| probe::take_out(bytes, &mut all))?;
        tokens.iter_mut().for_each(|own| own.retain(|token| all.contains(token)));
        // One walk for all; only when it finds something, one for each.
        let whole = self.walk(mailbox, view, &all)?;
        let mut probes = Vec::new();
        for (receipt, own) in receipts.iter().zip(&tokens) {
            let mut probe = match whole.byte_hits {
                0 => whole.clone(),
                _ => self.walk(mailbox, view, own)?,
            };
            if let Some(view) = view {
                probe.keyword_hits = still_found(view, &receipt.messages, &receipt.ordinals)?;
            }
            probe.key_hits = self.inner.log.keys_left(receipt.mailbox, &receipt.ordinals)?;
            probe.byte_tokens = own.len() as u64;
            probes.push(probe);
        }
        Ok((probes, tokens))
    }

    /// Walks the mailbox's own directory, the truth and what lies beside them. Other mailboxes may
    /// hold the same mail by right.
    fn walk(
        &self,
        mailbox: MailboxNo,
        view: Option<&View>,
        tokens: &Tokens,
    ) -> Result<Probe, Error> {
        let mut probe = Probe::default();
        if tokens.is_empty() {
            return Ok(probe);
        }
        let data_dir = &self.inner.config.data_dir;
        let mailboxes = data_dir.join("mailboxes");
        let own = mailbox_dir(&mailboxes, mailbox);
        let others: Vec<PathBuf> = std::fs::read_dir(&mailboxes)
            .map(|entries| entries.flatten().map(|e| e.path()).filter(|p| *p != own).collect())
            .unwrap_or_default();
        let walked = probe::walk(data_dir, &others, tokens)?;
        (probe.files, probe.bytes, probe.byte_hits) = (walked.files, walked.bytes, walked.hits);
        if let Some(view) = view {
            probe.byte_hits += probe::dictionaries(&view.text, tokens)?;
        }
        Ok(probe)
    }
}

fn is_unproven(receipt: &Receipt) -> bool {
    matches!(receipt.state(), ErasureState::Erased | ErasureState::Failed)
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
    found += view.catalog.with(Facet::All, b"")?.intersection_len(ordinals);
    for ordinal in ordinals {
        let held = view.text.holds(Ordinal(ordinal));
        found += u64::from(held.map_err(crate::projections::ProjectionError::from)?);
    }
    Ok(found)
}
