//! Messages of a source as Postrider's own walk finds them, and which of them are copies.

use std::collections::HashSet;
use std::path::Path;

use postrider::mail::sources::{Entry, Item, Options, plan};
use postrider::mail::{Message, ReadHints, read_guarded};

use crate::Fallible;

/// Hands every message of a source to `take`, in the order of an import, until it says `false`.
///
/// A message that cannot be read ends it: figures over different messages mean nothing.
pub(crate) fn each(source: &Path, mut take: impl FnMut(Entry) -> Fallible<bool>) -> Fallible<()> {
    for item in plan(source, &Options::default())?.read() {
        match item {
            Item::Entry(entry) => {
                if !take(entry)? {
                    break;
                }
            }
            Item::Failure(failure) => {
                return Err(format!("{}: {}", failure.place, failure.reason).into());
            }
        }
    }
    Ok(())
}

/// Reads an entry as an import does.
pub(crate) fn message(entry: &Entry) -> Message {
    let hints =
        ReadHints { separator_ms: entry.separator_ms, file_ms: entry.file_ms, arrived_ms: None };
    read_guarded(&entry.raw, &hints)
}

/// Tells copies by the rule of an import: equal bytes, or equal Message-ID and content.
#[derive(Default)]
pub(crate) struct Seen {
    raws: HashSet<[u8; 32]>,
    contents: HashSet<(String, [u8; 32])>,
}

impl Seen {
    /// Whether this message was not met before.
    pub(crate) fn is_new(&mut self, message: &Message) -> bool {
        self.raws.insert(message.raw_digest)
            && self.contents.insert((message.message_id.clone(), message.content_digest))
    }
}

/// The five texts of a message that are searched.
pub(crate) struct Texts {
    pub(crate) subject: String,
    pub(crate) participants: String,
    pub(crate) new: String,
    pub(crate) quoted: String,
    pub(crate) attachments: String,
}

/// The same texts that Postrider indexes, each joined into one.
pub(crate) fn texts(message: &Message) -> Texts {
    let people = message
        .from
        .iter()
        .chain(&message.sender)
        .chain(&message.reply_to)
        .chain(&message.to)
        .chain(&message.cc)
        .chain(&message.bcc);
    let mut participants: Vec<String> = Vec::new();
    for person in people {
        let one = format!("{} {}", person.name, person.address);
        if !participants.contains(&one) {
            participants.push(one);
        }
    }
    for address in &message.delivered_to {
        if !participants.iter().any(|known| known.ends_with(&format!(" {address}"))) {
            participants.push(address.clone());
        }
    }
    let attachments: Vec<&str> = message
        .attachments
        .iter()
        .flat_map(|a| [a.filename.as_str(), a.text.as_str()])
        .filter(|text| !text.is_empty())
        .collect();
    Texts {
        subject: message.subject.clone(),
        participants: participants.join("\n"),
        new: message.new_text(),
        quoted: message.quoted_text(),
        attachments: attachments.join("\n"),
    }
}
