//! Receipts: what an erasure took away, when, and the proof that nothing of it can be found.
//!
//! A receipt holds identifiers, counts and times, and nothing that a person wrote. It is written in
//! the same batch as the event, so that a start after a crash knows what to finish; it outlives the
//! mailbox, and is applied again after a restore from an older backup.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::event::bitmap_bytes;
use crate::ids::{HoldId, IdentityId, MailboxNo, MessageId, ReceiptId, Seq, ThreadId};

/// What was asked to be erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeKind {
    /// Messages by identifier.
    Message,
    /// Whole threads.
    Thread,
    /// All mail from or to an address.
    Counterparty,
    /// What a query found.
    Query,
    /// A mailbox with everything in it.
    Identity,
    /// All mailboxes of a tenant.
    Tenant,
}

/// How far an erasure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErasureState {
    /// No door shows it and its keys are gone; derived bytes are still on disk.
    Erased,
    /// Its bytes are gone from disk, and the probes found nothing.
    Completed,
    /// As `completed`, but messages under a hold were kept.
    CompletedWithHolds,
    /// A probe found something after the purge; it is purged again at the next start.
    Failed,
}

/// Messages that a hold kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The thread under the hold.
    pub thread_id: ThreadId,
    /// The hold.
    pub hold_id: HoldId,
    /// Why, as it was given when the hold was set.
    pub reason: String,
    /// Messages that were asked for and kept.
    pub messages: u64,
}

/// What the probes found after the purge; all zeros when the erasure holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Erased identifiers and documents that a search still finds.
    pub keyword_hits: u64,
    /// Chunks of erased messages that a semantic search still finds.
    pub semantic_hits: u64,
    /// Keys of erased messages that are still there.
    pub key_hits: u64,
    /// Places on disk that hold a word only the erased messages held.
    pub byte_hits: u64,
    /// Words looked for; 0 when the erasure was finished after a restart, which no longer knows
    /// them, or when nothing in the messages was distinctive.
    pub byte_tokens: u64,
    /// Files walked.
    pub files: u64,
    /// Bytes walked, what was unpacked included.
    pub bytes: u64,
}

impl Probe {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.keyword_hits + self.semantic_hits + self.key_hits + self.byte_hits == 0
    }
}

/// The second phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purge {
    /// When it ended, unix ms.
    pub purged_ms: i64,
    /// Documents dropped from the text index in this purge, those of other erasures included.
    pub text_documents: u64,
    /// Generations and set-aside directories removed.
    pub directories: u64,
    /// What was found afterwards.
    pub probe: Probe,
}

/// One erasure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which.
    pub id: ReceiptId,
    /// Whose mailbox.
    pub identity: IdentityId,
    /// Number of the mailbox.
    pub mailbox: MailboxNo,
    /// What was asked for.
    pub scope: ScopeKind,
    /// When, unix ms.
    pub requested_ms: i64,
    /// When no door showed it any more, unix ms; `None` while that is not confirmed.
    pub erased_ms: Option<i64>,
    /// The event; zero when nothing was left to erase or the whole mailbox went.
    pub seq: Seq,
    /// Ordinals erased.
    #[serde(with = "bitmap_bytes")]
    pub ordinals: RoaringBitmap,
    /// Identifiers of the messages erased.
    pub messages: Vec<MessageId>,
    /// Attachments in them.
    pub attachments: u64,
    /// Raw bytes in them.
    pub raw_bytes: u64,
    /// Whether the messages are refused when they are imported again.
    pub remembered: bool,
    /// What holds kept.
    pub held: Vec<Held>,
    /// The second phase, once it is done.
    pub purge: Option<Purge>,
}

impl Receipt {
    /// How far it is.
    #[must_use]
    pub fn state(&self) -> ErasureState {
        match &self.purge {
            None => ErasureState::Erased,
            Some(purge) if !purge.probe.is_clean() => ErasureState::Failed,
            Some(_) if self.held.is_empty() => ErasureState::Completed,
            Some(_) => ErasureState::CompletedWithHolds,
        }
    }
}
