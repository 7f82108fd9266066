//! A message as the catalog keeps it: everything a hit, a snippet or `show` needs, so that raw
//! mail is never parsed again for them. A stored shape: changing it changes the schema
//! fingerprint.

use serde::{Deserialize, Serialize};

use crate::ids::{MessageId, Ordinal};
use crate::mail::message::{Address, Attachment, Flags, Kind, Message};

/// Flag bits of [`Prepared::flags`], in order.
pub const FLAG_NAMES: [&str; 11] = [
    "encrypted",
    "signed",
    "hidden_text",
    "parse_degraded",
    "body_truncated",
    "has_link",
    "has_invite",
    "tnef",
    "message_id_synthetic",
    "message_id_conflict",
    "text_from_html",
];

/// One message, prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// Position in the mailbox.
    pub ordinal: Ordinal,
    /// Public identifier.
    pub id: MessageId,
    /// Message-ID in normal form.
    pub message_id: String,
    /// Identifiers of In-Reply-To.
    pub in_reply_to: Vec<String>,
    /// Subject.
    pub subject: String,
    /// Authors: name, address.
    pub from: Vec<Person>,
    /// Reply-To.
    pub reply_to: Vec<Person>,
    /// To.
    pub to: Vec<Person>,
    /// Cc.
    pub cc: Vec<Person>,
    /// Bcc.
    pub bcc: Vec<Person>,
    /// Delivered-To.
    pub delivered_to: Vec<String>,
    /// Date header, unix ms.
    pub sent_ms: Option<i64>,
    /// Received, unix ms.
    pub received_ms: i64,
    /// Message date, unix ms.
    pub date_ms: i64,
    /// List-Id.
    pub list_id: Option<String>,
    /// Sort of mail.
    pub kind: StoredKind,
    /// ISO 639-1 code.
    pub language: Option<String>,
    /// Bits named by [`FLAG_NAMES`].
    pub flags: u16,
    /// Raw size in bytes.
    pub raw_bytes: u64,
    /// Attachments.
    pub attachments: Vec<StoredAttachment>,
    /// Kind and place of each defect.
    pub defects: Vec<(String, String)>,
    /// The whole text.
    pub text: String,
    /// Byte ranges of `text` that are new.
    pub new_ranges: Vec<(u32, u32)>,
}

/// A name and an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Person {
    /// Display name; may be empty.
    pub name: String,
    /// Address; may be empty.
    pub address: String,
}

/// See [`Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "mirror of mail::message::Kind")]
pub enum StoredKind {
    Normal,
    Dsn,
    Mdn,
    List,
    Automated,
    Calendar,
}

/// See [`Attachment`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAttachment {
    /// File name; may be empty.
    pub filename: String,
    /// Sniffed type, else the declared one.
    pub effective_type: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Disposition-based fact.
    pub by_disposition: bool,
    /// MIME-class-based fact.
    pub by_mime_class: bool,
    /// Text of a nested message.
    pub text: String,
}

impl Prepared {
    /// The flag called `name`.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        FLAG_NAMES.iter().position(|n| *n == name).is_some_and(|bit| self.flags & (1 << bit) != 0)
    }

    /// The author's new text, parts joined as they stand.
    #[must_use]
    pub fn new_text(&self) -> String {
        self.new_ranges
            .iter()
            .filter_map(|(start, end)| self.text.get(*start as usize..*end as usize))
            .collect()
    }

    /// From a message just read.
    #[must_use]
    pub fn new(ordinal: Ordinal, id: MessageId, conflict: bool, message: &Message) -> Self {
        Self {
            ordinal,
            id,
            message_id: message.message_id.clone(),
            in_reply_to: message.in_reply_to.clone(),
            subject: message.subject.clone(),
            from: people(&message.from),
            reply_to: people(&message.reply_to),
            to: people(&message.to),
            cc: people(&message.cc),
            bcc: people(&message.bcc),
            delivered_to: message.delivered_to.clone(),
            sent_ms: message.sent_ms,
            received_ms: message.received_ms,
            date_ms: message.date_ms,
            list_id: message.list_id.clone(),
            kind: message.kind.into(),
            language: message.language.map(str::to_owned),
            flags: flag_bits(message, conflict),
            raw_bytes: message.raw_bytes,
            attachments: message.attachments.iter().map(StoredAttachment::from).collect(),
            defects: message
                .defects
                .iter()
                .map(|d| (defect_name(d.kind), d.place.clone()))
                .collect(),
            text: message.text.clone(),
            new_ranges: message.new_ranges.iter().map(|r| (r.start, r.end)).collect(),
        }
    }
}

fn people(addresses: &[Address]) -> Vec<Person> {
    addresses.iter().map(|a| Person { name: a.name.clone(), address: a.address.clone() }).collect()
}

fn defect_name(kind: crate::mail::message::DefectKind) -> String {
    // The serde name is the public name of a defect; a unit variant always serialises.
    serde_json::to_value(kind).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn flag_bits(message: &Message, conflict: bool) -> u16 {
    let Flags {
        encrypted,
        signed,
        hidden_text,
        parse_degraded,
        body_truncated,
        has_link,
        has_invite,
        tnef,
    } = message.flags;
    [
        encrypted,
        signed,
        hidden_text,
        parse_degraded,
        body_truncated,
        has_link,
        has_invite,
        tnef,
        message.message_id_synthetic,
        conflict,
        message.text_from_html,
    ]
    .into_iter()
    .enumerate()
    .fold(0, |bits, (at, set)| bits | (u16::from(set) << at))
}

impl From<Kind> for StoredKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Normal => Self::Normal,
            Kind::Dsn => Self::Dsn,
            Kind::Mdn => Self::Mdn,
            Kind::List => Self::List,
            Kind::Automated => Self::Automated,
            Kind::Calendar => Self::Calendar,
        }
    }
}

impl From<&Attachment> for StoredAttachment {
    fn from(attachment: &Attachment) -> Self {
        Self {
            filename: attachment.filename.clone(),
            effective_type: attachment
                .sniffed_type
                .map_or_else(|| attachment.content_type.clone(), str::to_owned),
            bytes: attachment.bytes,
            by_disposition: attachment.by_disposition,
            by_mime_class: attachment.by_mime_class,
            text: attachment.text.clone(),
        }
    }
}
