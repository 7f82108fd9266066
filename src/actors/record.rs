//! Facts about messages that are there: what of them still concerns somebody, and what is refused.

use super::mailbox::{Core, Decided, MailboxError};
use crate::events::Event;
use crate::events::event::{HoldSet, LabelsChanged, MessagePlaced, MessageUnplaced, StatusChanged};

impl Core {
    pub(super) fn fact(&mut self, mut event: Event) -> Result<Decided, MailboxError> {
        let known = match &mut event {
            Event::LabelsChanged(LabelsChanged { ordinals, .. })
            | Event::StatusChanged(StatusChanged { ordinals, .. })
            | Event::HoldSet(HoldSet { ordinals, .. }) => {
                *ordinals -= &self.erased;
                Some(ordinals.max().unwrap_or(u32::MAX))
            }
            Event::MessageUnplaced(MessageUnplaced { ordinal, .. })
            | Event::MessagePlaced(MessagePlaced { ordinal, .. }) => {
                Some(if self.erased.contains(ordinal.0) { u32::MAX } else { ordinal.0 })
            }
            Event::MailboxConfigured(_) => None,
            Event::HoldReleased(released) => {
                if !self.holds.contains_key(&released.hold) {
                    return Err(MailboxError::NoSuchHold);
                }
                None
            }
            // These have requests of their own.
            Event::MessageIngested(_) | Event::MessagesErased(_) => Some(u32::MAX),
        };
        if known.is_some_and(|ordinal| ordinal >= self.next_ordinal) {
            return Err(MailboxError::NoSuchMessage);
        }
        match &event {
            Event::HoldSet(hold) => drop(self.holds.insert(hold.hold, hold.clone())),
            Event::HoldReleased(released) => drop(self.holds.remove(&released.hold)),
            _ => {}
        }
        let mut decided = Decided::default();
        let now_ms = self.clock.now_ms();
        decided.head = self.record(&mut decided, now_ms, event, None)?;
        Ok(decided)
    }
}
