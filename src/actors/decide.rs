//! What an arriving message means for a mailbox: stored, already there, or already there but in
//! a new place. A pure function of the message and of what is known.
//!
//! Equal raw bytes are the same message; so are an equal Message-ID and
//! equal content. An equal Message-ID with other content is kept beside the first and flagged.

use std::collections::{HashMap, VecDeque};

use roaring::RoaringBitmap;

use crate::events::event::Placement;
use crate::ids::{MessageId, Ordinal, Seq};

/// Most labels on one message.
pub const LABELS_MAX: usize = 64;

/// What identifies an arriving message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// First half of the SHA-256 of the raw bytes.
    pub raw: [u8; 16],
    /// Key of its Message-ID and first half of its content digest; `None` when the raw bytes are
    /// known already and the message was not read.
    pub content: Option<([u8; 16], [u8; 16])>,
    /// Folders it stands in.
    pub placements: Vec<Placement>,
    /// Labels it carries.
    pub labels: Vec<String>,
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is new.
    Store {
        /// Another message already has its Message-ID.
        message_id_conflict: bool,
    },
    /// It is known; these places and labels are not.
    Place {
        /// Which message.
        ordinal: Ordinal,
        /// New folders.
        placements: Vec<Placement>,
        /// New labels.
        labels: Vec<String>,
    },
    /// It is known, with all of this.
    Known {
        /// Which message.
        ordinal: Ordinal,
    },
    /// Its raw bytes were believed to be known, and are not: read it and ask again.
    NotRead,
}

/// What a mailbox knows about its messages.
pub trait Facts {
    /// Why a look-up can fail.
    type Error;

    /// The message with these raw bytes.
    ///
    /// # Errors
    /// When the store fails.
    fn by_raw(&self, raw: &[u8; 16]) -> Result<Option<Ordinal>, Self::Error>;

    /// Messages with this Message-ID, each with its content digest.
    ///
    /// # Errors
    /// When the store fails.
    fn by_message_id(&self, id: &[u8; 16]) -> Result<Vec<(Ordinal, [u8; 16])>, Self::Error>;

    /// Whether a message stands in a place.
    ///
    /// # Errors
    /// When the store fails.
    fn is_placed(&self, ordinal: Ordinal, placement: &Placement) -> Result<bool, Self::Error>;

    /// Whether a message carries a label.
    ///
    /// # Errors
    /// When the store fails.
    fn has_label(&self, ordinal: Ordinal, label: &str) -> Result<bool, Self::Error>;
}

/// Decides about one arrival.
///
/// # Errors
/// When a look-up fails.
pub fn decide<F: Facts>(facts: &F, arrival: &Arrival) -> Result<Decision, F::Error> {
    let mut known = facts.by_raw(&arrival.raw)?;
    let mut conflict = false;
    if known.is_none() {
        let Some((message_id, content)) = &arrival.content else { return Ok(Decision::NotRead) };
        let holders = facts.by_message_id(message_id)?;
        known = holders.iter().find(|(_, held)| held == content).map(|(ordinal, _)| *ordinal);
        conflict = known.is_none() && !holders.is_empty();
    }
    let Some(ordinal) = known else {
        return Ok(Decision::Store { message_id_conflict: conflict });
    };
    let mut placements = Vec::new();
    for placement in &arrival.placements {
        if !facts.is_placed(ordinal, placement)? {
            placements.push(placement.clone());
        }
    }
    let mut labels = Vec::new();
    for label in &arrival.labels {
        // A copy of a message that was read meanwhile does not make it unread again.
        if label != "unread" && !facts.has_label(ordinal, label)? {
            labels.push(label.clone());
        }
    }
    Ok(if placements.is_empty() && labels.is_empty() {
        Decision::Known { ordinal }
    } else {
        Decision::Place { ordinal, placements, labels }
    })
}

/// Facts that are acknowledged, or about to be, but not in the view yet.
#[derive(Debug, Default)]
pub struct Recent {
    raws: HashMap<[u8; 16], Ordinal>,
    contents: HashMap<[u8; 16], Vec<(Ordinal, [u8; 16])>>,
    placements: HashMap<(Ordinal, Placement), Seq>,
    labels: HashMap<(Ordinal, String), Seq>,
    ids: HashMap<Ordinal, MessageId>,
    order: VecDeque<(Seq, Arrival, Ordinal)>,
}

impl Recent {
    /// Takes in an event about a message; `new` is the identifier of one just stored.
    pub fn add(&mut self, seq: Seq, ordinal: Ordinal, arrival: Arrival, new: Option<MessageId>) {
        for placement in &arrival.placements {
            self.placements.insert((ordinal, placement.clone()), seq);
        }
        for label in &arrival.labels {
            self.labels.insert((ordinal, label.clone()), seq);
        }
        if let Some(id) = new {
            self.ids.insert(ordinal, id);
            self.raws.insert(arrival.raw, ordinal);
            if let Some((message_id, content)) = arrival.content {
                self.contents.entry(message_id).or_default().push((ordinal, content));
            }
        }
        self.order.push_back((seq, arrival, ordinal));
    }

    /// Forgets what a view at `seq` knows.
    pub fn forget_through(&mut self, seq: Seq) {
        let mut forgot = false;
        while let Some((_, arrival, ordinal)) = self.order.pop_front_if(|(at, _, _)| *at <= seq) {
            if self.raws.get(&arrival.raw) == Some(&ordinal) {
                self.raws.remove(&arrival.raw);
            }
            if let Some((message_id, _)) = arrival.content
                && let Some(held) = self.contents.get_mut(&message_id)
            {
                held.retain(|(one, _)| *one != ordinal);
                if held.is_empty() {
                    self.contents.remove(&message_id);
                }
            }
            self.ids.remove(&ordinal);
            forgot = true;
        }
        if forgot {
            self.placements.retain(|_, at| *at > seq);
            self.labels.retain(|_, at| *at > seq);
        }
    }

    /// Forgets messages that were erased: the same mail is new when it comes again.
    pub fn forget(&mut self, erased: &RoaringBitmap) {
        let is_erased = |ordinal: &Ordinal| erased.contains(ordinal.0);
        self.raws.retain(|_, ordinal| !is_erased(ordinal));
        for held in self.contents.values_mut() {
            held.retain(|(ordinal, _)| !is_erased(ordinal));
        }
        self.contents.retain(|_, held| !held.is_empty());
        self.ids.retain(|ordinal, _| !is_erased(ordinal));
        self.placements.retain(|(ordinal, _), _| !is_erased(ordinal));
        self.labels.retain(|(ordinal, _), _| !is_erased(ordinal));
        self.order.retain(|(_, _, ordinal)| !is_erased(ordinal));
    }

    /// Identifier of a message stored lately.
    #[must_use]
    pub fn id(&self, ordinal: Ordinal) -> Option<MessageId> {
        self.ids.get(&ordinal).copied()
    }

    /// The message with these raw bytes.
    #[must_use]
    pub fn by_raw(&self, raw: &[u8; 16]) -> Option<Ordinal> {
        self.raws.get(raw).copied()
    }

    /// Messages with this Message-ID.
    #[must_use]
    pub fn by_message_id(&self, id: &[u8; 16]) -> &[(Ordinal, [u8; 16])] {
        self.contents.get(id).map_or(&[], Vec::as_slice)
    }

    /// Whether a message was put in a place lately.
    #[must_use]
    pub fn is_placed(&self, ordinal: Ordinal, placement: &Placement) -> bool {
        self.placements.contains_key(&(ordinal, placement.clone()))
    }

    /// Whether a message was given a label lately.
    #[must_use]
    pub fn has_label(&self, ordinal: Ordinal, label: &str) -> bool {
        self.labels.contains_key(&(ordinal, label.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    impl Facts for Recent {
        type Error = Infallible;

        fn by_raw(&self, raw: &[u8; 16]) -> Result<Option<Ordinal>, Infallible> {
            Ok(self.by_raw(raw))
        }
        fn by_message_id(&self, id: &[u8; 16]) -> Result<Vec<(Ordinal, [u8; 16])>, Infallible> {
            Ok(self.by_message_id(id).to_vec())
        }
        fn is_placed(&self, ordinal: Ordinal, at: &Placement) -> Result<bool, Infallible> {
            Ok(self.is_placed(ordinal, at))
        }
        fn has_label(&self, ordinal: Ordinal, label: &str) -> Result<bool, Infallible> {
            Ok(self.has_label(ordinal, label))
        }
    }

    fn arrival(raw: u8, id: u8, content: u8, folder: &str) -> Arrival {
        Arrival {
            raw: [raw; 16],
            content: Some(([id; 16], [content; 16])),
            placements: vec![Placement { folder: folder.into(), source: "import".into() }],
            labels: vec!["unread".into(), "garden".into()],
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "the form that `add` takes")]
    fn id(number: u128) -> Option<MessageId> {
        Some(MessageId::from_parts(0, number))
    }

    fn decided(facts: &Recent, arrival: &Arrival) -> Decision {
        match decide(facts, arrival) {
            Ok(decision) => decision,
            Err(never) => match never {},
        }
    }

    #[test]
    fn same_bytes_same_content_and_same_id_only_are_told_apart() {
        let mut facts = Recent::default();
        let first = arrival(1, 1, 1, "INBOX");
        assert_eq!(decided(&facts, &first), Decision::Store { message_id_conflict: false });
        facts.add(Seq(1), Ordinal(0), first.clone(), id(1));
        assert_eq!(decided(&facts, &first), Decision::Known { ordinal: Ordinal(0) });
        let other_bytes = arrival(2, 1, 1, "INBOX");
        assert_eq!(decided(&facts, &other_bytes), Decision::Known { ordinal: Ordinal(0) });
        let other_content = arrival(3, 1, 9, "INBOX");
        assert_eq!(decided(&facts, &other_content), Decision::Store { message_id_conflict: true });
        let unread = Arrival { content: None, ..arrival(4, 0, 0, "INBOX") };
        assert_eq!(decided(&facts, &unread), Decision::NotRead);
    }

    #[test]
    fn known_message_in_a_new_folder_is_placed_but_not_made_unread() {
        let mut facts = Recent::default();
        facts.add(Seq(1), Ordinal(0), Arrival { labels: vec![], ..arrival(1, 1, 1, "A") }, id(1));
        let again = arrival(1, 1, 1, "B");
        let Decision::Place { placements, labels, .. } = decided(&facts, &again) else {
            panic!("must be placed");
        };
        assert_eq!((placements[0].folder.as_str(), labels), ("B", vec!["garden".to_owned()]));
    }

    #[test]
    fn what_the_view_knows_is_forgotten_and_the_rest_kept() {
        let mut facts = Recent::default();
        facts.add(Seq(1), Ordinal(0), arrival(1, 1, 1, "A"), id(1));
        facts.add(Seq(2), Ordinal(1), arrival(2, 1, 2, "A"), id(1));
        facts.forget_through(Seq(1));
        assert_eq!(facts.by_raw(&[1; 16]), None);
        assert_eq!(facts.by_message_id(&[1; 16]), [(Ordinal(1), [2; 16])]);
        assert!(facts.has_label(Ordinal(1), "garden") && !facts.has_label(Ordinal(0), "garden"));
    }
}
