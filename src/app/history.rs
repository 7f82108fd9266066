//! The log as a list of events for people and programs. Nothing that a person wrote is in it: names
//! of folders and labels are counted, not told.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Error, Postrider, blocking};
use crate::events::Event;
use crate::events::codec::Recorded;
use crate::ids::{HoldId, MessageId, Ordinal, ReceiptId, Seq};
use crate::search::rfc3339;

/// Events of one listing.
pub const EVENTS_MAX: u32 = 10_000;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventOut {
    /// Position.
    pub seq: u64,
    /// When it was appended; RFC 3339, UTC.
    pub at: String,
    /// Its name.
    pub event: String,
    /// Number of the message it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ordinal: Option<u32>,
    /// Messages it is about.
    pub messages: u64,
    /// Identifier of a message that came in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message_id: Option<MessageId>,
    /// Folders and labels it names, or addresses.
    pub names: u64,
    /// Receipt of an erasure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receipt_id: Option<ReceiptId>,
    /// Hold that was set or released.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hold_id: Option<HoldId>,
    /// Status that was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<crate::events::Status>,
    /// SHA-256 of its envelope, the link of the next one.
    pub digest: String,
}

/// A stream in figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStats {
    /// Events.
    pub events: u64,
    /// Sealed bytes of them.
    pub event_bytes: u64,
    /// Events by name.
    pub by_event: BTreeMap<String, u64>,
    /// When the first was appended.
    pub first_at: Option<String>,
    /// When the last was appended.
    pub last_at: Option<String>,
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::MessageIngested(_) => "message_ingested",
        Event::MessagePlaced(_) => "message_placed",
        Event::MessageUnplaced(_) => "message_unplaced",
        Event::LabelsChanged(_) => "labels_changed",
        Event::StatusChanged(_) => "status_changed",
        Event::MailboxConfigured(_) => "mailbox_configured",
        Event::MessagesErased(_) => "messages_erased",
        Event::HoldSet(_) => "hold_set",
        Event::HoldReleased(_) => "hold_released",
    }
}

impl From<&Recorded> for EventOut {
    fn from(recorded: &Recorded) -> Self {
        let mut out = Self {
            seq: recorded.seq.0,
            at: rfc3339(recorded.time_ms),
            event: name(&recorded.event).to_owned(),
            ordinal: None,
            messages: 0,
            message_id: None,
            names: 0,
            receipt_id: None,
            hold_id: None,
            status: None,
            digest: recorded.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let mut one = |ordinal: Ordinal, names: usize| {
            (out.ordinal, out.messages, out.names) = (Some(ordinal.0), 1, names as u64);
        };
        match &recorded.event {
            Event::MessageIngested(e) => {
                one(e.ordinal, e.placements.len() + e.labels.len());
                (out.message_id, out.status) = (Some(e.id), Some(e.status));
            }
            Event::MessagePlaced(e) => one(e.ordinal, e.placements.len() + e.labels.len()),
            Event::MessageUnplaced(e) => one(e.ordinal, 1),
            Event::LabelsChanged(e) => {
                out.messages = e.ordinals.len();
                out.names = (e.added.len() + e.removed.len()) as u64;
            }
            Event::StatusChanged(e) => {
                (out.messages, out.status) = (e.ordinals.len(), Some(e.status));
            }
            Event::MailboxConfigured(e) => out.names = e.own_addresses.len() as u64,
            Event::MessagesErased(e) => {
                (out.messages, out.receipt_id) = (e.ordinals.len(), Some(e.receipt));
            }
            Event::HoldSet(e) => (out.messages, out.hold_id) = (e.ordinals.len(), Some(e.hold)),
            Event::HoldReleased(e) => out.hold_id = Some(e.hold),
        }
        out
    }
}

impl Postrider {
    /// At most `limit` events after a position, in order; without one, the last.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a limit outside of 1 to [`EVENTS_MAX`].
    pub async fn events(
        &self,
        mailbox: &str,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<EventOut>, Error> {
        if !(1..=EVENTS_MAX).contains(&limit) {
            let message = format!("must be 1 to {EVENTS_MAX}");
            return Err(Error::Invalid { path: "limit", message });
        }
        let number = self.identity(mailbox)?.mailbox;
        let log = Arc::clone(&self.inner.log);
        blocking(move || {
            let head = log.head(number)?.0;
            let after = after.unwrap_or(head.saturating_sub(u64::from(limit)));
            let through = after.saturating_add(u64::from(limit)).min(head);
            if through <= after {
                return Ok(Vec::new());
            }
            let events = log.read(number, Seq(after), Seq(through))?;
            let events: Result<Vec<EventOut>, _> =
                events.map(|recorded| recorded.map(|r| EventOut::from(&r))).collect();
            Ok(events?)
        })
        .await?
    }

    /// A stream in figures. Walks it whole.
    ///
    /// # Errors
    /// What the log says.
    pub async fn log_stats(&self, mailbox: &str) -> Result<LogStats, Error> {
        let number = self.identity(mailbox)?.mailbox;
        let log = Arc::clone(&self.inner.log);
        blocking(move || {
            let (events, event_bytes) = log.stream_bytes(number)?;
            let mut by_event = BTreeMap::new();
            let (mut first, mut last) = (None, None);
            for recorded in log.read(number, Seq::ZERO, Seq(u64::MAX))? {
                let recorded = recorded?;
                *by_event.entry(name(&recorded.event).to_owned()).or_default() += 1;
                first = first.or(Some(recorded.time_ms));
                last = Some(recorded.time_ms);
            }
            let (first_at, last_at) = (first.map(rfc3339), last.map(rfc3339));
            Ok(LogStats { events, event_bytes, by_event, first_at, last_at })
        })
        .await?
    }
}
