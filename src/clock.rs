//! Time and randomness, handed down instead of taken, so that every test is repeatable.
//!
//! The only place in the program that reads the system clock or the system's random source.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Where the time and fresh random bits come from.
pub trait Clock: Send + Sync + Debug {
    /// Now, unix ms.
    fn now_ms(&self) -> i64;

    /// Random bits for public identifiers; secrecy is not needed, distinctness is.
    fn random_bits(&self) -> u128;
}

/// Shared handle to a clock.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clock and random source.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
    fn now_ms(&self) -> i64 {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }

    fn random_bits(&self) -> u128 {
        let mut bytes = [0_u8; 16];
        // Distinctness only: a failing source degrades to zero and the ULID's time still differs.
        let _ = getrandom::fill(&mut bytes);
        u128::from_le_bytes(bytes)
    }
}

/// A clock that moves only when told, with counted instead of random bits: for tests.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicI64,
    count: AtomicU64,
}

impl ManualClock {
    /// A clock standing at `now_ms`.
    #[must_use]
    pub fn at(now_ms: i64) -> Arc<Self> {
        Arc::new(Self { now_ms: AtomicI64::new(now_ms), count: AtomicU64::new(0) })
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn random_bits(&self) -> u128 {
        u128::from(self.count.fetch_add(1, Ordering::SeqCst))
    }
}
