//! One thread: its summary and its messages.
//!
//! Counts come from the lengths of bitmaps and dates from the catalog's own index, so a summary
//! cannot drift from its messages; the work grows with the thread, never with the mailbox. Only
//! messages that an ordinary search may show take part.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::hits::{MailboxOwner, States, rfc3339};
use super::request::{Direction, PersonOut, SearchError};
use super::visibility::{Reach, visible};
use crate::ids::{IdentityId, MessageId, Ordinal, ThreadId};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::catalog::prepared::Prepared;
use crate::projections::view::View;
use crate::query::leaves::Named;

/// People named in a summary.
pub const PARTICIPANTS_MAX: usize = 50;
/// Messages listed, the latest ones.
pub const LISTED_MAX: usize = 200;
/// Messages read for the people in them, the latest ones.
const READ_MAX: usize = 1_000;

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadOut {
    /// Which thread.
    pub thread_id: ThreadId,
    /// Whose mailbox.
    pub identity_id: IdentityId,
    /// Subject of the earliest message read; absent when empty.
    pub subject: Option<String>,
    /// Who takes part, latest first, at most [`PARTICIPANTS_MAX`]: authors and recipients of what
    /// came in, recipients of what went out; never the owner, never Bcc.
    pub participants: Vec<PersonOut>,
    /// Messages in it.
    pub message_count: u64,
    /// Those that are unread.
    pub unread_count: u64,
    /// Date of the earliest message; RFC 3339, UTC.
    pub first_at: String,
    /// Date of the latest message.
    pub last_at: String,
    /// The latest [`LISTED_MAX`], oldest first.
    pub messages: Vec<ThreadMessage>,
    /// The answer holds everything acknowledged up to this event.
    pub as_of_seq: u64,
}

/// One message of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadMessage {
    /// Which message.
    pub message_id: MessageId,
    /// Message date; RFC 3339, UTC.
    pub date: String,
    /// Way it went.
    pub direction: Direction,
    /// First author.
    pub from: PersonOut,
    /// Subject; absent when empty.
    pub subject: Option<String>,
    /// Nobody has read it.
    pub unread: bool,
    /// Folders it stands in.
    pub folders: Vec<String>,
    /// Labels on it.
    pub labels: Vec<String>,
}

/// The thread a message began; `None` when there is none, or nothing in it may be shown.
///
/// # Errors
/// [`SearchError::Projection`].
pub fn thread(
    view: &View,
    owner: &MailboxOwner,
    thread_id: ThreadId,
) -> Result<Option<ThreadOut>, SearchError> {
    let catalog = &view.catalog;
    let Some(first) = catalog.ordinal(MessageId(thread_id.0))? else { return Ok(None) };
    let Some(number) = catalog.thread_of(first)? else { return Ok(None) };
    let members =
        catalog.thread(number)? & visible(catalog, &Named::default(), Reach::Unquarantined)?;
    let (Some(first_ms), Some(last_ms)) =
        (end_date(view, &members, false)?, end_date(view, &members, true)?)
    else {
        return Ok(None);
    };
    // A merge keeps the earlier thread's name.
    let named = catalog.id(Ordinal(number))?.map_or(thread_id, |MessageId(ulid)| ThreadId(ulid));
    let unread = catalog.with(Facet::Label, b"unread")?;
    let mut latest = Vec::new();
    catalog.in_date_order(&members, true, |date_ms, ordinal| {
        latest.push((date_ms, ordinal));
        latest.len() < READ_MAX
    })?;
    let states = States::load(view)?;
    let mut participants = Participants { own: catalog.own_addresses(), people: Vec::new() };
    let mut messages = Vec::new();
    let mut subject = None;
    for (date_ms, ordinal) in latest {
        let Some(message) = catalog.prepared([ordinal])?.pop() else { continue };
        let direction = states.direction(ordinal);
        participants.add(&message, direction);
        if messages.len() < LISTED_MAX {
            messages.push(ThreadMessage {
                message_id: message.id,
                date: rfc3339(date_ms),
                direction,
                from: message.from.first().map(PersonOut::from).unwrap_or_default(),
                subject: shown(&message.subject),
                unread: unread.contains(ordinal.0),
                folders: states.folders(ordinal),
                labels: states.labels(ordinal),
            });
        }
        subject = shown(&message.subject);
    }
    messages.reverse();
    Ok(Some(ThreadOut {
        thread_id: named,
        identity_id: owner.identity,
        subject,
        participants: participants.people,
        message_count: members.len(),
        unread_count: members.intersection_len(&unread),
        first_at: rfc3339(first_ms),
        last_at: rfc3339(last_ms),
        messages,
        as_of_seq: view.seq().0,
    }))
}

fn end_date(
    view: &View,
    members: &RoaringBitmap,
    latest: bool,
) -> Result<Option<i64>, SearchError> {
    let mut end = None;
    view.catalog.in_date_order(members, latest, |date_ms, _| {
        end = Some(date_ms);
        false
    })?;
    Ok(end)
}

fn shown(subject: &str) -> Option<String> {
    (!subject.is_empty()).then(|| subject.to_owned())
}

struct Participants<'v> {
    own: &'v [String],
    people: Vec<PersonOut>,
}

impl Participants<'_> {
    /// Messages come latest first, so the first name an address is seen with is its latest.
    fn add(&mut self, message: &Prepared, direction: Direction) {
        let authors = match direction {
            Direction::Inbound => &message.from[..],
            Direction::Outbound => &[],
        };
        for person in authors.iter().chain(&message.to).chain(&message.cc) {
            if self.people.len() >= PARTICIPANTS_MAX {
                return;
            }
            let known = self.people.iter_mut().find(|known| known.address == person.address);
            match known {
                Some(known) if known.name.is_empty() => known.name.clone_from(&person.name),
                Some(_) => {}
                None if person.address.is_empty() || self.own.contains(&person.address) => {}
                None => self.people.push(person.into()),
            }
        }
    }
}
