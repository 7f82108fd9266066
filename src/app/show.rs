//! One message: as it was prepared, and raw. One thread.

use serde::{Deserialize, Serialize};

use super::{Error, Postrider, blocking};
use crate::events::Status;
use crate::ids::{IdentityId, MessageId, Ordinal, ThreadId};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::catalog::prepared::{FLAG_NAMES, Person, Prepared};
use crate::projections::view::View;
use crate::search::request::{Direction, PersonOut};
use crate::search::{MailboxOwner, States, ThreadOut, rfc3339, thread_id};

/// A message for people and agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownMessage {
    /// Which message.
    pub message_id: MessageId,
    /// Which thread.
    pub thread_id: ThreadId,
    /// Whose mailbox.
    pub identity_id: IdentityId,
    /// Message-ID header, normal form without angle brackets.
    pub rfc822_message_id: String,
    /// Identifiers of In-Reply-To.
    pub in_reply_to: Vec<String>,
    /// When it was sent, as far as the Date header can be believed; RFC 3339, UTC.
    pub sent_at: Option<String>,
    /// When it was received; RFC 3339, UTC.
    pub received_at: String,
    /// Way it went.
    pub direction: Direction,
    /// Authors.
    pub from: Vec<PersonOut>,
    /// Reply-To.
    pub reply_to: Vec<PersonOut>,
    /// To.
    pub to: Vec<PersonOut>,
    /// Cc.
    pub cc: Vec<PersonOut>,
    /// Bcc.
    pub bcc: Vec<PersonOut>,
    /// Subject; absent when empty.
    pub subject: Option<String>,
    /// List-Id.
    pub list_id: Option<String>,
    /// Language of the new text, ISO 639-1.
    pub language: Option<String>,
    /// Folders it stands in.
    pub folders: Vec<String>,
    /// Labels on it.
    pub labels: Vec<String>,
    /// Facts such as `encrypted`, `hidden_text`, `message_id_conflict`.
    pub flags: Vec<String>,
    /// The whole text, quotes included.
    pub text: String,
    /// The author's new text.
    pub new_text: String,
    /// Attachments in order.
    pub attachments: Vec<AttachmentOut>,
    /// What was wrong with the message and was mended: kind and place.
    pub defects: Vec<(String, String)>,
    /// Size of the raw message, bytes.
    pub raw_bytes: u64,
}

/// One attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentOut {
    /// File name; may be empty.
    pub filename: String,
    /// MIME type: sniffed, else declared.
    pub content_type: String,
    /// Decoded size, bytes.
    pub bytes: u64,
    /// Shown inside the text rather than beside it.
    pub inline: bool,
}

fn people(list: &[Person]) -> Vec<PersonOut> {
    list.iter().map(PersonOut::from).collect()
}

/// The ordinal of a message that may be shown at all: there, placed, not hidden or throttled.
fn showable(view: &View, id: MessageId) -> Result<Ordinal, Error> {
    let ordinal = view.catalog.ordinal(id)?.ok_or(Error::NoSuchMessage)?;
    for status in [Status::Hidden, Status::Throttled] {
        if view.catalog.with(Facet::Status, &[status as u8])?.contains(ordinal.0) {
            return Err(Error::NoSuchMessage);
        }
    }
    let placed = view.catalog.placements()?.iter().any(|(_, set)| set.contains(ordinal.0));
    if placed { Ok(ordinal) } else { Err(Error::NoSuchMessage) }
}

fn shown(view: &View, identity: IdentityId, id: MessageId) -> Result<ShownMessage, Error> {
    let ordinal = showable(view, id)?;
    let prepared: Prepared = view.catalog.prepared([ordinal])?.pop().ok_or(Error::NoSuchMessage)?;
    let states = States::load(view)?;
    let new_text = prepared.new_text();
    let flags = FLAG_NAMES.iter().filter(|name| prepared.flag(name)).map(|n| (*n).to_owned());
    Ok(ShownMessage {
        message_id: id,
        thread_id: thread_id(view, &prepared)?,
        identity_id: identity,
        sent_at: prepared.sent_ms.map(rfc3339),
        received_at: rfc3339(prepared.received_ms),
        direction: states.direction(ordinal),
        from: people(&prepared.from),
        reply_to: people(&prepared.reply_to),
        to: people(&prepared.to),
        cc: people(&prepared.cc),
        bcc: people(&prepared.bcc),
        subject: (!prepared.subject.is_empty()).then(|| prepared.subject.clone()),
        folders: states.folders(ordinal),
        labels: states.labels(ordinal),
        flags: flags.collect(),
        attachments: prepared
            .attachments
            .iter()
            .map(|a| AttachmentOut {
                filename: a.filename.clone(),
                content_type: a.effective_type.clone(),
                bytes: a.bytes,
                inline: !a.by_mime_class,
            })
            .collect(),
        rfc822_message_id: prepared.message_id,
        in_reply_to: prepared.in_reply_to,
        list_id: prepared.list_id,
        language: prepared.language,
        text: prepared.text,
        new_text,
        defects: prepared.defects,
        raw_bytes: prepared.raw_bytes,
    })
}

impl Postrider {
    /// One message of a mailbox.
    ///
    /// # Errors
    /// [`Error::NoSuchMessage`] when it is not there or may not be shown.
    pub async fn show(&self, mailbox: &str, id: MessageId) -> Result<ShownMessage, Error> {
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        blocking(move || shown(&view, identity.id, id)).await?
    }

    /// One thread of a mailbox: its summary and its messages.
    ///
    /// # Errors
    /// [`Error::NoSuchThread`] when it is not there or nothing in it may be shown.
    pub async fn thread(&self, mailbox: &str, id: ThreadId) -> Result<ThreadOut, Error> {
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        let owner = MailboxOwner { identity: identity.id };
        let found = blocking(move || crate::search::thread::thread(&view, &owner, id)).await??;
        found.ok_or(Error::NoSuchThread)
    }

    /// Raw bytes of one message, as they came in.
    ///
    /// # Errors
    /// [`Error::NoSuchMessage`] when it is not there or may not be shown.
    pub async fn raw(&self, mailbox: &str, id: MessageId) -> Result<Vec<u8>, Error> {
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        let log = std::sync::Arc::clone(&self.inner.log);
        blocking(move || {
            let ordinal = showable(&view, id)?;
            Ok(log.raw(identity.mailbox, ordinal)?)
        })
        .await?
    }
}
