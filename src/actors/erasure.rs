//! What an erasure means for a mailbox: which of the messages asked for go, and which a hold keeps.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::decide::Arrival;
use super::mailbox::{Core, Decided, MailboxError};
use crate::events::event::{Event, MessagesErased};
use crate::events::receipt::{Held, Receipt};
use crate::ids::{HoldId, MessageId, Ordinal, ThreadId};

/// A message that is asked to be erased.
#[derive(Debug, Clone)]
pub struct Doomed {
    /// Which.
    pub ordinal: Ordinal,
    /// Its public identifier.
    pub id: MessageId,
    /// Its thread.
    pub thread: ThreadId,
    /// Attachments in it.
    pub attachments: u64,
    /// Raw bytes in it.
    pub raw_bytes: u64,
    /// What identifies its content when it comes again.
    pub identifying: [[u8; 16]; 2],
}

/// An erasure that is asked for.
#[derive(Debug)]
pub struct Order {
    /// The receipt, without what is decided here.
    pub receipt: Receipt,
    /// The messages.
    pub doomed: Vec<Doomed>,
    /// Refuse them when they come again.
    pub remember: bool,
}

/// What identifies a message whose raw bytes are the same, and one whose Message-ID and content are.
#[must_use]
pub fn identifying(raw: [u8; 16], message_id: [u8; 16], content: [u8; 16]) -> [[u8; 16]; 2] {
    let mut both = message_id;
    both.iter_mut().zip(content).for_each(|(a, b)| *a ^= b);
    [raw, both]
}

impl Core {
    pub(super) fn is_suppressed(&self, arrival: &Arrival) -> bool {
        if self.suppressed.is_empty() {
            return false;
        }
        let is_listed =
            |value: &[u8; 16]| self.suppressed.contains(&self.sealer.suppression(value));
        is_listed(&arrival.raw)
            || arrival.content.is_some_and(|(message_id, content)| {
                is_listed(&identifying(arrival.raw, message_id, content)[1])
            })
    }

    /// Messages under each hold: those it names and the threads they stand in.
    fn held(&self) -> Result<Vec<(HoldId, &str, RoaringBitmap)>, MailboxError> {
        let view = self.published.borrow().clone();
        let mut held = Vec::new();
        for hold in self.holds.values() {
            let mut covered = hold.ordinals.clone();
            if let Some(view) = &view {
                for ordinal in &hold.ordinals {
                    if let Some(thread) = view.catalog.thread_of(Ordinal(ordinal))? {
                        covered |= view.catalog.thread(thread)?;
                    }
                }
            }
            held.push((hold.hold, hold.reason.as_str(), covered));
        }
        Ok(held)
    }

    pub(super) fn erase(&mut self, order: Order) -> Result<Decided, MailboxError> {
        let Order { mut receipt, doomed, remember } = order;
        let holds = self.held()?;
        let mut kept: BTreeMap<(ThreadId, HoldId), Held> = BTreeMap::new();
        let mut suppressed = Vec::new();
        for message in doomed {
            let ordinal = message.ordinal.0;
            if self.erased.contains(ordinal) {
                continue;
            }
            if let Some((hold, reason, _)) = holds.iter().find(|(_, _, c)| c.contains(ordinal)) {
                let held = kept.entry((message.thread, *hold)).or_insert_with(|| Held {
                    thread_id: message.thread,
                    hold_id: *hold,
                    reason: (*reason).to_owned(),
                    messages: 0,
                });
                held.messages += 1;
                continue;
            }
            receipt.ordinals.insert(ordinal);
            receipt.messages.push(message.id);
            receipt.attachments += message.attachments;
            receipt.raw_bytes += message.raw_bytes;
            if remember {
                suppressed.extend(message.identifying.map(|v| self.sealer.suppression(&v)));
            }
        }
        receipt.held = kept.into_values().collect();
        receipt.remembered = remember;
        let mut decided = Decided { head: self.sealer.head(), ..Decided::default() };
        if !receipt.ordinals.is_empty() {
            let ordinals = receipt.ordinals.clone();
            let event = MessagesErased { ordinals: ordinals.clone(), receipt: receipt.id };
            let now_ms = self.clock.now_ms();
            let event = Event::MessagesErased(event);
            receipt.seq = self.record(&mut decided, now_ms, event, None)?;
            decided.head = receipt.seq;
            self.recent.forget(&ordinals);
            self.erased |= ordinals;
            self.suppressed.extend(suppressed.iter().copied());
        }
        decided.append.erase(&receipt, &suppressed);
        decided.receipt = Some(receipt);
        Ok(decided)
    }
}
