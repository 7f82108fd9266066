//! Receipts for whoever asks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Error, Postrider, blocking};
use crate::events::receipt::{ErasureState, Held, Probe, Receipt, ScopeKind};
use crate::ids::{IdentityId, MessageId, ReceiptId};
use crate::search::rfc3339;

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
            remembered: receipt.remembered,
            held: receipt.held.clone(),
            probe: purge.map(|p| p.probe.clone()),
        }
    }
}

impl Postrider {
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
        loop {
            let log = Arc::clone(&self.inner.log);
            let receipt = blocking(move || log.receipt(id)).await??.ok_or(Error::NoSuchReceipt)?;
            if receipt.purge.is_some() {
                return Ok(ReceiptOut::from(&receipt));
            }
            // One that is on its way ends first; a task of its own is not cut off by whoever waits.
            let postrider = self.clone();
            let (mailbox, identity) = (receipt.mailbox, receipt.identity);
            let purging = tokio::spawn(async move { postrider.purge(mailbox, identity).await });
            purging.await.map_err(|_| Error::Gone)??;
        }
    }
}
