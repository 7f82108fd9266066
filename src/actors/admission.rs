//! Admission: actors' queues are unbounded, so a request is let in before it is sent. Its permit
//! travels with it and is given back when the message has been applied to the projections.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that wait for or are in one mailbox.
pub const MAILBOX_REQUESTS_MAX: usize = 256;
/// Unit of the byte budget.
const UNIT_BYTES: usize = 1 << 10;

/// Bytes of mail that may be on the way between a door and the projections, over all mailboxes.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    semaphore: Arc<Semaphore>,
    units: u32,
}

/// Part of the budget; given back when dropped.
#[derive(Debug)]
pub struct BytePermit {
    _units: OwnedSemaphorePermit,
}

impl ByteBudget {
    /// A budget of `bytes`.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let units = u32::try_from((bytes / UNIT_BYTES).max(1)).unwrap_or(u32::MAX);
        Self { semaphore: Arc::new(Semaphore::new(units as usize)), units }
    }

    fn units(&self, bytes: usize) -> u32 {
        // A message larger than the whole budget takes all of it.
        u32::try_from(bytes.div_ceil(UNIT_BYTES).max(1)).unwrap_or(u32::MAX).min(self.units)
    }

    /// Waits until `bytes` fit.
    pub async fn admit(&self, bytes: usize) -> Option<BytePermit> {
        let semaphore = Arc::clone(&self.semaphore);
        let units = semaphore.acquire_many_owned(self.units(bytes)).await.ok()?;
        Some(BytePermit { _units: units })
    }

    /// Takes `bytes` if they fit now.
    #[must_use]
    pub fn try_admit(&self, bytes: usize) -> Option<BytePermit> {
        let semaphore = Arc::clone(&self.semaphore);
        let units = semaphore.try_acquire_many_owned(self.units(bytes)).ok()?;
        Some(BytePermit { _units: units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_budget_refuses_and_a_huge_message_takes_it_whole() {
        let budget = ByteBudget::new(8 << 10);
        let all = budget.try_admit(1 << 30).expect("empty budget takes any one message");
        assert!(budget.try_admit(1).is_none());
        drop(all);
        assert!(budget.try_admit(1).is_some());
    }
}
