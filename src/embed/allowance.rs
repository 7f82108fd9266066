//! How many texts a model behind an address may be given in a minute and in a day.
//!
//! The count of the day outlives the process: a limit that protects a purse must hold over restarts.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::post::Fault;
use crate::clock::{Clock as _, SystemClock};

const MINUTE: Duration = Duration::from_secs(60);

/// Limits; `None` is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Texts in a minute.
    pub per_minute: Option<u32>,
    /// Texts in a day (UTC).
    pub per_day: Option<u32>,
    /// File that keeps the count of the day.
    pub kept_in: Option<PathBuf>,
}

/// What was used of them.
#[derive(Debug)]
pub(super) struct Used {
    allowance: Allowance,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    minute: Instant,
    in_minute: u32,
    day: Day,
}

/// As the file holds it.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
struct Day {
    /// Days since 1970.
    day: u64,
    texts: u32,
}

fn today() -> u64 {
    // The day of whoever counts them too, not of a test.
    u64::try_from(SystemClock.now_ms() / 86_400_000).unwrap_or(0)
}

impl Used {
    pub(super) fn new(allowance: Allowance) -> Self {
        let read = allowance.kept_in.as_ref().and_then(|path| std::fs::read(path).ok());
        let day = read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let state = Mutex::new(State { minute: Instant::now(), in_minute: 0, day });
        Self { allowance, state }
    }

    /// Takes so many texts; otherwise tells how long to wait for them. Queries are counted and never
    /// held up by the minute.
    pub(super) fn take(&self, texts: usize, is_query: bool) -> Result<Option<Duration>, Fault> {
        let texts = u32::try_from(texts).unwrap_or(u32::MAX);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.day.day != today() {
            state.day = Day { day: today(), texts: 0 };
        }
        if let Some(per_day) = self.allowance.per_day
            && state.day.texts.saturating_add(texts) > per_day
        {
            return Err(Fault::Spent("the model has had its texts of today; more come tomorrow"));
        }
        if state.minute.elapsed() >= MINUTE {
            (state.minute, state.in_minute) = (Instant::now(), 0);
        }
        if let Some(per_minute) = self.allowance.per_minute
            // A batch that is larger than the limit goes alone.
            && state.in_minute > 0
            && state.in_minute.saturating_add(texts) > per_minute
            && !is_query
        {
            return Ok(Some(MINUTE.saturating_sub(state.minute.elapsed())));
        }
        state.in_minute = state.in_minute.saturating_add(texts);
        state.day.texts = state.day.texts.saturating_add(texts);
        if let (Some(path), Some(_)) = (&self.allowance.kept_in, self.allowance.per_day) {
            let written = path.with_extension("new");
            let kept = serde_json::to_vec(&state.day).map_err(std::io::Error::from);
            let kept = kept.and_then(|bytes| std::fs::write(&written, bytes));
            if kept.and_then(|()| std::fs::rename(&written, path)).is_err() {
                return Err(Fault::Lasting("the count of today's texts cannot be kept"));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minute_makes_wait_and_the_day_refuses_over_a_restart() {
        let dir = tempfile::tempdir().expect("temp dir");
        let allowance = Allowance {
            per_minute: Some(10),
            per_day: Some(30),
            kept_in: Some(dir.path().join("texts-today.json")),
        };
        let used = Used::new(allowance.clone());
        assert!(matches!(used.take(20, false), Ok(None)), "a large batch goes alone");
        assert!(matches!(used.take(1, false), Ok(Some(wait)) if wait <= MINUTE));
        assert!(matches!(used.take(1, true), Ok(None)), "a query is not held up");
        let used = Used::new(allowance);
        assert!(matches!(used.take(10, false), Err(Fault::Spent(_))), "21 of 30 are used");
        assert!(matches!(used.take(9, false), Ok(None)));
        assert!(matches!(used.take(1, true), Err(Fault::Spent(_))), "nor a query");
        let free = Used::new(Allowance::default());
        assert!((0..100).all(|_| matches!(free.take(1_000_000, false), Ok(None))));
    }
}
