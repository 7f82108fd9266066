//! The events: past-tense facts, a closed set.
//!
//! These are stored shapes. A variant is only ever added at the end and a struct never changes:
//! a new shape is a new variant, lifted from the old one in [`super::codec`]. Events name
//! messages by id and ordinal; nothing here repeats what a person wrote, except folder and label
//! names, which die with the mailbox's key.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::ids::{HoldId, MessageId, Ordinal, ReceiptId};

/// A fact in one mailbox's stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A message entered the mailbox; its raw bytes lie in the content store at `ordinal`.
    MessageIngested(MessageIngested),
    /// A known message was seen again in another folder or with further labels.
    MessagePlaced(MessagePlaced),
    /// A message left a folder.
    MessageUnplaced(MessageUnplaced),
    /// Labels were added to and removed from many messages at once.
    LabelsChanged(LabelsChanged),
    /// The status of many messages changed at once.
    StatusChanged(StatusChanged),
    /// Settings of the mailbox that change how its mail is read or searched.
    MailboxConfigured(MailboxConfigured),
    /// Messages were erased: their keys are gone.
    MessagesErased(MessagesErased),
    /// Messages, and the threads they stand in, may not be erased.
    HoldSet(HoldSet),
    /// A hold ended.
    HoldReleased(HoldReleased),
}

/// Where a message stands: a folder of a source (`import`, `http`, …).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Placement {
    /// Folder name, `/` between levels.
    pub folder: String,
    /// Name of the source that brought it.
    pub source: String,
}

/// See [`Event::MessageIngested`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageIngested {
    /// Position in the mailbox.
    pub ordinal: Ordinal,
    /// Public identifier.
    pub id: MessageId,
    /// Folders, at least one.
    pub placements: Vec<Placement>,
    /// Labels given with it.
    pub labels: Vec<String>,
    /// Status at arrival.
    pub status: Status,
    /// The mailbox already held other content under the same Message-ID.
    pub message_id_conflict: bool,
    /// What was known besides the bytes, so that reading them again gives the same dates.
    pub separator_ms: Option<i64>,
    /// Modification time of the file it came from, unix ms.
    pub file_ms: Option<i64>,
    /// Time of live arrival, unix ms.
    pub arrived_ms: Option<i64>,
}

/// See [`Event::MessagePlaced`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessagePlaced {
    /// Which message.
    pub ordinal: Ordinal,
    /// New folders.
    pub placements: Vec<Placement>,
    /// New labels.
    pub labels: Vec<String>,
}

/// See [`Event::MessageUnplaced`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageUnplaced {
    /// Which message.
    pub ordinal: Ordinal,
    /// The placement that ended.
    pub placement: Placement,
}

/// See [`Event::LabelsChanged`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelsChanged {
    /// Which messages, by ordinal.
    #[serde(with = "bitmap_bytes")]
    pub ordinals: RoaringBitmap,
    /// Labels added to each.
    pub added: Vec<String>,
    /// Labels removed from each.
    pub removed: Vec<String>,
}

/// See [`Event::StatusChanged`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusChanged {
    /// Which messages, by ordinal.
    #[serde(with = "bitmap_bytes")]
    pub ordinals: RoaringBitmap,
    /// What they are from now on.
    pub status: Status,
}

/// See [`Event::MailboxConfigured`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailboxConfigured {
    /// The owner's addresses in normal form: mail from them is outbound.
    pub own_addresses: Vec<String>,
}

/// See [`Event::MessagesErased`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessagesErased {
    /// Which messages, by ordinal.
    #[serde(with = "bitmap_bytes")]
    pub ordinals: RoaringBitmap,
    /// The receipt, which lies in the registry.
    pub receipt: ReceiptId,
}

/// See [`Event::HoldSet`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoldSet {
    /// Which hold.
    pub hold: HoldId,
    /// Messages named by it; it covers the whole threads they stand in, also mail that comes later.
    #[serde(with = "bitmap_bytes")]
    pub ordinals: RoaringBitmap,
    /// Why, in the words of whoever set it.
    pub reason: String,
}

/// See [`Event::HoldReleased`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldReleased {
    /// Which hold.
    pub hold: HoldId,
}

/// State of a message with respect to visibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Ordinary.
    Received,
    /// Out of searches unless asked for and permitted.
    Quarantined,
    /// Never shown.
    Throttled,
    /// Never shown.
    Hidden,
}

impl Status {
    /// Every status, in stored order.
    pub const ALL: [Self; 4] = [Self::Received, Self::Quarantined, Self::Throttled, Self::Hidden];

    /// The name in answers and listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Quarantined => "quarantined",
            Self::Throttled => "throttled",
            Self::Hidden => "hidden",
        }
    }
}

/// A roaring bitmap as its portable serialised form.
pub(crate) mod bitmap_bytes {
    use roaring::RoaringBitmap;
    use serde::{Deserialize, Deserializer, Serializer, de, ser};

    pub(crate) fn serialize<S: Serializer>(
        bitmap: &RoaringBitmap,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(bitmap.serialized_size());
        bitmap.serialize_into(&mut bytes).map_err(ser::Error::custom)?;
        s.serialize_bytes(&bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<RoaringBitmap, D::Error> {
        let bytes = Vec::<u8>::deserialize(d)?;
        RoaringBitmap::deserialize_from(&bytes[..]).map_err(de::Error::custom)
    }
}
