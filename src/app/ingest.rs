//! Taking in single messages that arrive live, and recording facts about messages that are there.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use super::{Error, Postrider, blocking};
use crate::actors::decide::{Arrival, LABELS_MAX};
use crate::actors::mailbox::{Incoming, MailboxError, Outcome, Request};
use crate::compress::{self, Effort};
use crate::events::Event;
use crate::events::event::Placement;
use crate::ids::{MessageId, Seq};
use crate::mail::message::ReadHints;
use crate::mail::read_guarded;
use crate::projections::catalog::threads::{first_16, id_key};

/// Longest name of a source, bytes. With the longest folder it still is a key of the catalog.
pub(super) const SOURCE_BYTES_MAX: usize = 64;
/// Longest folder name, bytes.
pub(super) const FOLDER_BYTES_MAX: usize = 255;

/// A message that arrives.
#[derive(Debug, Clone)]
pub struct IngestRequest {
    /// RFC 5322 bytes.
    pub raw: Vec<u8>,
    /// Folder, at most [`FOLDER_BYTES_MAX`] bytes.
    pub folder: String,
    /// Labels: lower-case letters, digits, `_`, `:`, `-`; at most 64 of at most 64 characters.
    pub labels: Vec<String>,
    /// Name of what brought it.
    pub source: String,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IngestOutcome {
    /// Stored and durable.
    Stored {
        /// Its identifier.
        id: MessageId,
        /// Its event.
        seq: Seq,
    },
    /// Already there; new folders and labels were added.
    Duplicate {
        /// The identifier of the one that is there.
        id: MessageId,
        /// Whether a folder or label was new.
        placed: bool,
    },
    /// Erased before, and remembered to be refused.
    Suppressed,
}

/// Whether a label fits the grammar of the query language.
#[must_use]
pub(super) fn is_label(label: &str) -> bool {
    let mut chars = label.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:-".contains(c);
    first && chars.all(rest) && label.len() <= 64
}

/// Whether a folder or a source may be called so.
pub(super) fn is_name(name: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&name.len()) && !name.contains('\0')
}

/// Reads and compresses one message for its mailbox.
pub(super) fn prepare(
    raw: &[u8],
    hints: ReadHints,
    placements: Vec<Placement>,
    labels: Vec<String>,
) -> Result<Incoming, Error> {
    let message = read_guarded(raw, &hints);
    let arrival = Arrival {
        raw: first_16(&message.raw_digest),
        content: Some((id_key(&message.message_id), first_16(&message.content_digest))),
        placements,
        labels,
    };
    let compressed = compress::compress(raw, Effort::Little)
        .map_err(|source| Error::Io { path: "memory".into(), source })?;
    Ok(Incoming { arrival, compressed, message: Some(Arc::new(message)), hints, permit: None })
}

/// First half of the digest of raw bytes, by which a known message is found unread.
pub(super) fn raw_key(raw: &[u8]) -> [u8; 16] {
    first_16(&Sha256::digest(raw).into())
}

impl Postrider {
    fn check(&self, request: &IngestRequest) -> Result<(), Error> {
        let limit = self.inner.config.message_bytes_max;
        if request.raw.len() > limit {
            return Err(Error::TooLarge { limit });
        }
        let invalid = |path, message: &str| Err(Error::Invalid { path, message: message.into() });
        if request.raw.trim_ascii().is_empty() {
            return invalid("message", "must be an RFC 5322 message; it is empty");
        }
        if !is_name(&request.folder, FOLDER_BYTES_MAX) {
            return invalid("folder", "must be 1 to 255 bytes without NUL");
        }
        if !is_name(&request.source, SOURCE_BYTES_MAX) {
            return invalid("source", "must be 1 to 64 bytes without NUL");
        }
        if request.labels.len() > LABELS_MAX || !request.labels.iter().all(|l| is_label(l)) {
            return invalid("label", "must be at most 64, each [a-z0-9][a-z0-9_:-]{0,63}");
        }
        Ok(())
    }

    /// Takes in one message; durable when this returns.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Invalid`]; [`Error::Busy`] when too much is on its way.
    pub async fn ingest(
        &self,
        mailbox: &str,
        request: IngestRequest,
    ) -> Result<IngestOutcome, Error> {
        self.check(&request)?;
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let _place = Arc::clone(&handle.admission).try_acquire_owned().map_err(|_| Error::Busy)?;
        let permit = self.inner.running.budget.try_admit(request.raw.len()).ok_or(Error::Busy)?;
        let arrived_ms = Some(self.inner.clock.now_ms());
        let mut incoming = blocking(move || {
            let hints = ReadHints { arrived_ms, ..ReadHints::default() };
            let placement = Placement { folder: request.folder, source: request.source };
            prepare(&request.raw, hints, vec![placement], request.labels)
        })
        .await??;
        incoming.permit = Some(permit);
        let (reply, answer) = oneshot::channel();
        handle.actor.cast(Request::Ingest(vec![incoming], reply)).map_err(|_| Error::Busy)?;
        let outcomes = answer.await.map_err(|_| Error::Busy)??;
        match outcomes.into_iter().next() {
            Some(Outcome::Stored { id, seq }) => Ok(IngestOutcome::Stored { id, seq }),
            Some(Outcome::Duplicate { id, placed }) => {
                Ok(IngestOutcome::Duplicate { id, placed: placed.is_some() })
            }
            Some(Outcome::Suppressed) => Ok(IngestOutcome::Suppressed),
            Some(Outcome::NotRead) | None => Err(Error::Gone),
        }
    }

    /// Records a fact about messages of a mailbox; durable when this returns.
    ///
    /// # Errors
    /// [`MailboxError::NoSuchMessage`] when it names a message that is not there.
    pub async fn record(&self, mailbox: &str, event: Event) -> Result<Seq, Error> {
        let handle = self.handle(&self.identity(mailbox)?).await?;
        let _place = Arc::clone(&handle.admission).try_acquire_owned().map_err(|_| Error::Busy)?;
        let (reply, answer) = oneshot::channel();
        handle.actor.cast(Request::Record(event, reply)).map_err(|_| Error::Busy)?;
        let recorded: Result<Seq, MailboxError> = answer.await.map_err(|_| Error::Busy)?;
        Ok(recorded?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_the_grammar() {
        for good in ["a", "unread", "xn--mller-kva", "project:x_1", &"a".repeat(64)] {
            assert!(is_label(good), "{good}");
        }
        for bad in ["", "A", "-a", "ü", "a b", "a/b", &"a".repeat(65)] {
            assert!(!is_label(bad), "{bad}");
        }
    }
}
