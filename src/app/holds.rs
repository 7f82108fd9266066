//! Legal holds: mail that may not be erased until they are released.

use serde::{Deserialize, Serialize};

use super::{Error, Postrider, Selection, blocking};
use crate::events::Event;
use crate::events::event::{HoldReleased, HoldSet};
use crate::ids::HoldId;

/// Longest reason, characters.
pub const HOLD_REASON_CHARS_MAX: usize = 200;

/// A hold in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldOut {
    /// Which.
    pub hold_id: HoldId,
    /// Why; repeated in receipts, so it should name a case and no person.
    pub reason: String,
    /// Messages it covers now: those named and the threads they stand in.
    pub messages: u64,
}

impl Postrider {
    /// Puts messages, and the whole threads they stand in, under a hold.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty selection or a reason out of its range.
    pub async fn set_hold(
        &self,
        mailbox: &str,
        select: Selection,
        reason: &str,
    ) -> Result<HoldOut, Error> {
        let reason = reason.trim();
        if !(1..=HOLD_REASON_CHARS_MAX).contains(&reason.chars().count())
            || reason.chars().any(char::is_control)
        {
            let message =
                format!("must be 1 to {HOLD_REASON_CHARS_MAX} characters without controls");
            return Err(Error::Invalid { path: "reason", message });
        }
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        let ordinals = self.select(&identity, &view, select, None).await?;
        drop(view);
        if ordinals.is_empty() {
            return Err(Error::NoSuchMessage);
        }
        let millis = u64::try_from(self.inner.clock.now_ms()).unwrap_or(0);
        let hold = HoldId::from_parts(millis, self.inner.clock.random_bits());
        let event = Event::HoldSet(HoldSet { hold, ordinals, reason: reason.to_owned() });
        self.record(mailbox, event).await?;
        let all = self.holds(mailbox).await?;
        all.into_iter().find(|h| h.hold_id == hold).ok_or(Error::Gone)
    }

    /// Ends a hold.
    ///
    /// # Errors
    /// When it is not set.
    pub async fn release_hold(&self, mailbox: &str, hold: HoldId) -> Result<(), Error> {
        self.record(mailbox, Event::HoldReleased(HoldReleased { hold })).await?;
        Ok(())
    }

    /// Holds in force, oldest first.
    ///
    /// # Errors
    /// [`Error::NoSuchMailbox`].
    pub async fn holds(&self, mailbox: &str) -> Result<Vec<HoldOut>, Error> {
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        let holds = blocking(move || view.catalog.holds()).await??;
        let out = holds.into_iter().map(|(hold, covered)| HoldOut {
            hold_id: hold.hold,
            reason: hold.reason,
            messages: covered.len(),
        });
        Ok(out.collect())
    }
}
