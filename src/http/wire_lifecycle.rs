//! Wire types of labels, erasures, holds and receipts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::app::{
    EmbedStatus, Embedded, EraseRequest, Error, EventOut, HoldOut, LabelChange, ReceiptOut,
    Selection, SpacesOut, Verified,
};
use crate::events::Status;
use crate::ids::{MessageId, ThreadId};

/// Which messages: exactly one of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selector {
    /// Identifiers of messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageId>,
    /// Identifiers of threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadId>,
    /// An address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterparty: Option<String>,
    /// A query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

impl Selector {
    /// The selection, when exactly one kind is given.
    ///
    /// # Errors
    /// What must be sent instead.
    pub fn selection(self) -> Result<Selection, Error> {
        let Self { messages, threads, counterparty, query } = self;
        let mut given = Vec::new();
        if !messages.is_empty() {
            given.push(Selection::Messages(messages));
        }
        if !threads.is_empty() {
            given.push(Selection::Threads(threads));
        }
        given.extend(counterparty.map(Selection::Counterparty));
        given.extend(query.map(Selection::Query));
        match (given.pop(), given.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(Error::Invalid {
                path: "query",
                message: "must be given, or one of messages, threads, counterparty, and only one"
                    .into(),
            }),
        }
    }
}

/// `POST …/labels`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "fields as in app::LabelChange and Selector")]
pub struct LabelsRequest {
    pub messages: Vec<MessageId>,
    pub threads: Vec<ThreadId>,
    pub counterparty: Option<String>,
    pub query: Option<String>,
    pub add: Vec<String>,
    pub remove: Vec<String>,
    pub status: Option<Status>,
    pub as_of_seq: Option<u64>,
    pub dry_run: bool,
}

impl LabelsRequest {
    /// As the use case takes it.
    ///
    /// # Errors
    /// What must be sent instead.
    pub fn change(self) -> Result<LabelChange, Error> {
        let Self { messages, threads, counterparty, query, .. } = self;
        let select = Selector { messages, threads, counterparty, query }.selection()?;
        Ok(LabelChange {
            select,
            add: self.add,
            remove: self.remove,
            status: self.status,
            as_of_seq: self.as_of_seq,
            dry_run: self.dry_run,
        })
    }
}

/// `POST …/labels/undo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UndoRequest {
    /// An event that a change of labels answered with.
    pub event: u64,
}

/// `POST …/erasures`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "fields as in app::EraseRequest and Selector")]
pub struct ErasureRequest {
    pub messages: Vec<MessageId>,
    pub threads: Vec<ThreadId>,
    pub counterparty: Option<String>,
    pub query: Option<String>,
    pub remember: bool,
    pub as_of_seq: Option<u64>,
    pub dry_run: bool,
}

impl ErasureRequest {
    /// As the use case takes it.
    ///
    /// # Errors
    /// What must be sent instead.
    pub fn request(self) -> Result<EraseRequest, Error> {
        let Self { messages, threads, counterparty, query, remember, as_of_seq, dry_run: _ } = self;
        let select = Selector { messages, threads, counterparty, query }.selection()?;
        Ok(EraseRequest { select, remember, as_of_seq })
    }
}

/// `POST …/holds`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "fields as in Selector")]
pub struct HoldRequest {
    /// Why; repeated in receipts, so it should name a case and no person.
    pub reason: String,
    pub messages: Vec<MessageId>,
    pub threads: Vec<ThreadId>,
    pub counterparty: Option<String>,
    pub query: Option<String>,
}

/// Holds in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// Oldest first.
    pub holds: Vec<HoldOut>,
}

/// Receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    /// Oldest first.
    pub receipts: Vec<ReceiptOut>,
}

/// Body of `POST /v1/admin/verify`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerifyRequest {
    /// Name or identity; all without one.
    pub mailbox: Option<String>,
    /// Build wrong indexes anew.
    pub repair: bool,
}

/// Body of `POST /v1/admin/embed`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbedRequest {
    /// Name or identity; all without one.
    pub mailbox: Option<String>,
    /// Messages at most; without it, all that have no vectors.
    pub limit: Option<u64>,
    /// Ask again about passages that the model refused.
    pub retry: bool,
}

/// What to do about a change of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReembedAction {
    /// Fill the space of the model that the settings name.
    Begin,
    /// Stop filling it.
    Cancel,
    /// Let the model serve again that served before.
    RollBack,
}

/// Body of `POST /v1/admin/embed/spaces`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReembedRequest {
    /// What to do.
    pub action: ReembedAction,
}

/// Body of `POST /v1/admin/embed/prune`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PruneRequest {
    /// Those of the model that served before the last swap too.
    pub superseded: bool,
}

/// What an embedding did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedReport {
    /// Mailboxes in order of their names.
    pub mailboxes: Vec<Embedded>,
    /// Which models there are vectors of now.
    pub spaces: SpacesOut,
    /// It was stopped before the end; what is done stays done.
    pub interrupted: bool,
}

/// How vectors stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedStatuses {
    /// Which models there are vectors of.
    pub spaces: SpacesOut,
    /// Mailboxes in order of their names.
    pub mailboxes: Vec<EmbedStatus>,
}

/// Body of `POST /v1/admin/backup`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackupRequest {
    /// Where, absolute.
    pub dir: PathBuf,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Mailboxes in order of their names.
    pub mailboxes: Vec<Verified>,
}

/// Events of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// In order.
    pub events: Vec<EventOut>,
}
