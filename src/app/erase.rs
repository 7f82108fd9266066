//! Erasing mail: first no door shows it and its keys are gone, then its derived bytes leave the disk.

use std::sync::Arc;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::receipts::ReceiptOut;
use super::{Error, Postrider, Selection, blocking};
use crate::actors::MailboxHandle;
use crate::actors::erasure::{Doomed, Order, identifying};
use crate::actors::mailbox::Request;
use crate::crash_point;
use crate::events::receipt::{Probe, Purge, Receipt, ScopeKind};
use crate::events::registry::Identity;
use crate::ids::{Ordinal, ReceiptId, Seq};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::catalog::threads::id_key;
use crate::projections::probe::{self, Tokens};
use crate::projections::view::View;
use crate::search::thread_id;

/// What is to be erased in a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraseRequest {
    /// Which messages.
    pub select: Selection,
    /// Refuse the same messages when they are imported again.
    #[serde(default)]
    pub remember: bool,
    /// Only messages that had arrived at this position ([`ErasePreview::as_of_seq`]).
    #[serde(default)]
    pub as_of_seq: Option<u64>,
}

/// What an erasure would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasePreview {
    /// Messages chosen.
    pub messages: u64,
    /// Of those, kept by a hold.
    pub held: u64,
    /// Attachments in what would go.
    pub attachments: u64,
    /// Raw bytes of what would go.
    pub raw_bytes: u64,
    /// Position of the view: send it back as `as_of_seq` to erase what was counted and nothing that
    /// arrived later.
    pub as_of_seq: u64,
}

fn scope(selection: &Selection) -> ScopeKind {
    match selection {
        Selection::Messages(_) => ScopeKind::Message,
        Selection::Threads(_) => ScopeKind::Thread,
        Selection::Counterparty(_) => ScopeKind::Counterparty,
        Selection::Query(_) | Selection::AnyStatus(_) => ScopeKind::Query,
        Selection::Everything => ScopeKind::Identity,
    }
}

fn doomed(view: &View, chosen: &RoaringBitmap) -> Result<Vec<Doomed>, Error> {
    let mut list = Vec::with_capacity(chosen.len() as usize);
    for ordinal in chosen {
        let ordinal = Ordinal(ordinal);
        let (Some(prepared), Some([content, raw])) =
            (view.catalog.prepared([ordinal])?.pop(), view.catalog.digests(ordinal)?)
        else {
            continue;
        };
        list.push(Doomed {
            ordinal,
            id: prepared.id,
            thread: thread_id(view, &prepared)?,
            attachments: prepared.attachments.iter().filter(|a| a.by_mime_class).count() as u64,
            raw_bytes: prepared.raw_bytes,
            identifying: identifying(raw, id_key(&prepared.message_id), content),
        });
    }
    Ok(list)
}

impl Postrider {
    pub(super) fn receipt(&self, identity: &Identity, scope: ScopeKind) -> Receipt {
        let requested_ms = self.inner.clock.now_ms();
        let millis = u64::try_from(requested_ms).unwrap_or(0);
        Receipt {
            id: ReceiptId::from_parts(millis, self.inner.clock.random_bits()),
            identity: identity.id,
            mailbox: identity.mailbox,
            scope,
            requested_ms,
            erased_ms: None,
            seq: Seq::ZERO,
            ordinals: RoaringBitmap::new(),
            messages: Vec::new(),
            attachments: 0,
            raw_bytes: 0,
            remembered: false,
            held: Vec::new(),
            purge: None,
        }
    }

    /// Counts what an erasure would take; nothing changes.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::Query`] for what was asked.
    pub async fn erase_preview(
        &self,
        mailbox: &str,
        request: EraseRequest,
    ) -> Result<ErasePreview, Error> {
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        let through = request.as_of_seq.map(Seq);
        let chosen = self.select(&identity, &view, request.select, through).await?;
        blocking(move || {
            let mut held = RoaringBitmap::new();
            view.catalog.holds()?.into_iter().for_each(|(_, covered)| held |= covered);
            let going = doomed(&view, &(&chosen - &held))?;
            Ok(ErasePreview {
                messages: chosen.len(),
                held: chosen.intersection_len(&held),
                attachments: going.iter().map(|d| d.attachments).sum(),
                raw_bytes: going.iter().map(|d| d.raw_bytes).sum(),
                as_of_seq: view.seq().0,
            })
        })
        .await?
    }

    /// Erases messages. When this returns no door shows them and nobody can read their content;
    /// their derived bytes leave the disk in the background ([`Postrider::purged`] waits for it).
    /// Repeating it is harmless: the second receipt counts nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::Query`] for what was asked.
    pub async fn erase(&self, mailbox: &str, request: EraseRequest) -> Result<ReceiptOut, Error> {
        let (postrider, identity) = (self.clone(), self.identity(mailbox)?);
        // Whoever asked may go away; what was begun is done to its end.
        let erasing = tokio::spawn(async move { postrider.erase_in(identity, request).await });
        erasing.await.map_err(|_| Error::Gone)?
    }

    async fn erase_in(
        &self,
        identity: Identity,
        request: EraseRequest,
    ) -> Result<ReceiptOut, Error> {
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        let receipt = self.receipt(&identity, scope(&request.select));
        let id = receipt.id;
        let through = request.as_of_seq.map(Seq);
        let chosen = self.select(&identity, &view, request.select, through).await?;
        let log = Arc::clone(&self.inner.log);
        let remember = request.remember;
        let number = identity.mailbox;
        let (order, tokens) = blocking(move || {
            let doomed = doomed(&view, &chosen)?;
            let mut tokens = Tokens::new();
            for message in &doomed {
                if tokens.len() >= probe::TOKENS_MAX {
                    break;
                }
                // Without its content there is nothing to look for.
                if let Ok(raw) = log.raw(number, message.ordinal) {
                    tokens.extend(probe::candidates(&crate::mail::read_guarded(
                        &raw,
                        &crate::mail::message::ReadHints::default(),
                    )));
                }
            }
            Ok::<_, Error>((Order { receipt, doomed, remember }, tokens))
        })
        .await??;
        self.inner.purges.remember(id, tokens);
        let receipt = match self.order(&handle, order).await {
            Ok(receipt) => receipt,
            Err(error) => {
                self.inner.purges.forget(id);
                return Err(error);
            }
        };
        // From here on it is done, whatever else fails: the purge must follow.
        let confirmed = self.confirm(&handle, receipt).await;
        self.purge_soon(identity.mailbox, identity.id);
        confirmed.map(|receipt| ReceiptOut::from(&receipt))
    }

    async fn order(&self, handle: &MailboxHandle, order: Order) -> Result<Receipt, Error> {
        let _place =
            Arc::clone(&handle.admission).acquire_owned().await.map_err(|_| Error::Gone)?;
        let (reply, answer) = oneshot::channel();
        handle.actor.cast(Request::Erase(Box::new(order), reply)).map_err(|_| Error::Gone)?;
        Ok(answer.await.map_err(|_| Error::Gone)??)
    }

    /// Waits until no door shows it, however long the index takes, and says so in the receipt.
    async fn confirm(
        &self,
        handle: &MailboxHandle,
        mut receipt: Receipt,
    ) -> Result<Receipt, Error> {
        loop {
            match self.view(handle).await {
                Ok(_) => break,
                Err(Error::Timeout { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        receipt.erased_ms = Some(self.inner.clock.now_ms());
        if receipt.ordinals.is_empty() {
            // Nothing was taken, so there is nothing to take off the disk.
            receipt.purge = Some(Purge {
                purged_ms: self.inner.clock.now_ms(),
                text_documents: 0,
                directories: 0,
                probe: Probe::default(),
            });
            self.inner.purges.forget(receipt.id);
        }
        let (log, stored) = (Arc::clone(&self.inner.log), receipt.clone());
        blocking(move || log.put_receipt(&stored)).await??;
        crash_point::reach("erasure confirmed");
        Ok(receipt)
    }

    /// Erases a mailbox with everything in it: what a hold keeps is all that stays.
    ///
    /// # Errors
    /// [`Error::NoSuchMailbox`]; otherwise what the stores say.
    pub async fn erase_identity(
        &self,
        mailbox: &str,
        scope: ScopeKind,
    ) -> Result<ReceiptOut, Error> {
        let (postrider, identity) = (self.clone(), self.identity(mailbox)?);
        let erasing = tokio::spawn(async move { postrider.erase_whole(identity, scope).await });
        erasing.await.map_err(|_| Error::Gone)?
    }

    async fn erase_whole(&self, identity: Identity, scope: ScopeKind) -> Result<ReceiptOut, Error> {
        let mailbox = &identity.id.to_string();
        let _at_work = self.inner.purges.at_work().await;
        let one = self.inner.purges.of(identity.mailbox);
        let held = one.lock().await;
        let mut receipt = self.receipt(&identity, scope);
        // A mailbox that cannot be opened can be erased all the same.
        if let Ok(handle) = self.handle(&identity).await {
            let (reply, answer) = oneshot::channel();
            handle.actor.cast(Request::Seal(reply)).map_err(|_| Error::Gone)?;
            if !answer.await.map_err(|_| Error::Gone)?? {
                drop(held);
                let select = Selection::Everything;
                let request = EraseRequest { select, remember: false, as_of_seq: None };
                return self.erase(mailbox, request).await;
            }
            if let Ok(view) = self.view(&handle).await {
                count(&mut receipt, view).await?;
            }
        }
        // First nobody writes any more, then it is durably gone, then nobody finds it.
        self.inner.running.close(identity.mailbox).await?;
        receipt.erased_ms = Some(self.inner.clock.now_ms());
        let (log, stored) = (Arc::clone(&self.inner.log), receipt.clone());
        let owner = identity.clone();
        let erased = blocking(move || log.erase_mailbox(&owner, &stored)).await;
        if !matches!(erased, Ok(Ok(()))) {
            self.inner.running.reopen(identity.mailbox);
        }
        erased??;
        self.forget(&identity);
        drop(held);
        self.purge_soon(identity.mailbox, identity.id);
        Ok(ReceiptOut::from(&receipt))
    }

    /// Erases all mailboxes of a tenant, by its name or identifier.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no such tenant; otherwise what the stores say.
    pub async fn erase_tenant(&self, tenant: &str) -> Result<Vec<ReceiptOut>, Error> {
        let registry = self.registry();
        let found = registry
            .tenants
            .iter()
            .find(|t| t.name == tenant || t.id.to_string() == tenant)
            .ok_or_else(|| Error::Invalid { path: "tenant", message: "is not known".into() })?;
        let mut receipts = Vec::new();
        let mut failed = None;
        for identity in registry.identities.iter().filter(|i| i.tenant == found.id) {
            match self.erase_identity(&identity.id.to_string(), ScopeKind::Tenant).await {
                Ok(receipt) => receipts.push(receipt),
                // One mailbox that cannot go keeps no other; erasing the tenant again finds it.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(receipts), Err)
    }
}

/// Notes everything that a mailbox holds in a receipt.
async fn count(receipt: &mut Receipt, view: Arc<View>) -> Result<(), Error> {
    let counted = blocking(move || {
        let all = view.catalog.with(Facet::All, b"")?;
        doomed(&view, &all)
    })
    .await??;
    for message in counted {
        receipt.ordinals.insert(message.ordinal.0);
        receipt.messages.push(message.id);
        receipt.attachments += message.attachments;
        receipt.raw_bytes += message.raw_bytes;
    }
    Ok(())
}
