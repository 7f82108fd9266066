//! A catalog and a text index that are applied to and committed together, or one of them alone.

use super::catalog::{Catalog, Writing};
use super::text::TextIndex;
use super::{Applicable, ProjectionError};
use crate::events::LogError;
use crate::events::event::Event;
use crate::ids::{MailboxNo, Seq};

/// Events applied before a commit is due, whoever waits.
const COMMIT_EVENTS: usize = 8_192;
/// Raw bytes of messages applied before a commit is due.
const COMMIT_BYTES: u64 = 48 << 20;

/// Both projections of one mailbox, or one of them.
pub(super) struct Pair {
    pub(super) mailbox: MailboxNo,
    pub(super) catalog: Option<Catalog>,
    pub(super) text: Option<TextIndex>,
    uncommitted: Option<Uncommitted>,
}

/// Applied since the last commit.
struct Uncommitted {
    catalog: Option<Writing>,
    last: Seq,
    events: usize,
    bytes: u64,
}

impl Pair {
    pub(super) fn new(
        mailbox: MailboxNo,
        catalog: Option<Catalog>,
        text: Option<TextIndex>,
    ) -> Self {
        Self { mailbox, catalog, text, uncommitted: None }
    }

    /// Position up to which both have committed.
    pub(super) fn checkpoint(&self) -> Seq {
        let catalog = self.catalog.as_ref().map(Catalog::checkpoint);
        let text = self.text.as_ref().map(TextIndex::checkpoint);
        catalog.into_iter().chain(text).min().unwrap_or(Seq::ZERO)
    }

    /// Applies events in order; commits by itself when enough gathered, and says so. Events that
    /// are already in are passed over.
    pub(super) fn apply(&mut self, events: Vec<Applicable>) -> Result<bool, ProjectionError> {
        let applied = self.uncommitted.as_ref().map_or(Seq::ZERO, |u| u.last);
        let mut last = applied.max(self.checkpoint());
        let mut fresh = Vec::with_capacity(events.len());
        let mut bytes = 0;
        for event in events {
            if event.seq <= last {
                continue;
            }
            if event.seq != last.next() {
                return Err(LogError::DamagedEvent {
                    mailbox: self.mailbox,
                    seq: event.seq,
                    what: "an event before it was not applied",
                }
                .into());
            }
            last = event.seq;
            bytes += event.message.as_ref().map_or(0, |message| message.raw_bytes);
            if let Some(text) = self.text.as_mut().filter(|text| event.seq > text.checkpoint()) {
                match (&event.event, &event.message) {
                    (Event::MessageIngested(ingested), Some(message)) => {
                        text.add(ingested.ordinal, message)?;
                    }
                    (Event::MessagesErased(erased), _) => text.erase(&erased.ordinals)?,
                    _ => {}
                }
            }
            fresh.push(event);
        }
        if fresh.is_empty() {
            return Ok(false);
        }
        let mut uncommitted = match self.uncommitted.take() {
            Some(uncommitted) => uncommitted,
            None => Uncommitted {
                catalog: self.catalog.as_ref().map(Catalog::begin).transpose()?,
                last,
                events: 0,
                bytes: 0,
            },
        };
        uncommitted.last = last;
        uncommitted.events += fresh.len();
        uncommitted.bytes += bytes;
        if let Some(catalog) = &uncommitted.catalog {
            catalog.apply(fresh);
        }
        let due = uncommitted.events >= COMMIT_EVENTS || uncommitted.bytes >= COMMIT_BYTES;
        self.uncommitted = Some(uncommitted);
        if due {
            self.commit()?;
        }
        Ok(due)
    }

    /// Forgets what was applied since the last commit.
    pub(super) fn abandon(&mut self) {
        if let Some(catalog) = self.uncommitted.take().and_then(|u| u.catalog) {
            catalog.abandon();
        }
    }

    /// Whether something applied is not committed yet.
    pub(super) fn is_dirty(&self) -> bool {
        self.uncommitted.is_some()
    }

    /// Commits both at the same position, side by side.
    pub(super) fn commit(&mut self) -> Result<(), ProjectionError> {
        let Some(Uncommitted { catalog: writing, last, .. }) = self.uncommitted.take() else {
            return Ok(());
        };
        if let Some(writing) = &writing {
            writing.start_commit();
        }
        let committed = match &mut self.text {
            Some(text) if text.checkpoint() < last => text.commit(last),
            _ => Ok(()),
        };
        if let (Some(catalog), Some(writing)) = (&mut self.catalog, writing) {
            catalog.commit(writing)?;
        }
        Ok(committed?)
    }

    /// Closes the text writer, which costs threads and memory while open.
    pub(super) fn close_writer(&mut self) -> Result<(), ProjectionError> {
        // Closing it would drop what is not committed.
        self.commit()?;
        match &mut self.text {
            Some(text) => Ok(text.close_writer()?),
            None => Ok(()),
        }
    }
}
