//! Times of many short runs: the first of each query apart from the warm ones.

use std::time::Duration;

use serde_json::{Value, json};

use crate::results::Figures;

/// Runs of each query within one process; the first is counted apart.
pub(crate) const RUNS: usize = 20;

/// Times of one sort of run.
#[derive(Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Takes one in.
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Nearest-rank percentiles, ms.
    pub(crate) fn figures(mut self) -> Value {
        self.0.sort_unstable();
        let at = |percent: usize| {
            let rank = (self.0.len() * percent).div_ceil(100).max(1) - 1;
            self.0.get(rank).map(|took| (took.as_secs_f64() * 1e6).round() / 1e3)
        };
        json!({ "runs": self.0.len(), "p50_ms": at(50), "p95_ms": at(95), "max_ms": at(100) })
    }
}

/// Figures of queries within one process: first and warm runs, and what each query matches.
pub(crate) fn figures(first: Latencies, warm: Latencies, totals: Vec<u64>) -> Figures {
    let mut figures = Figures::new();
    figures.insert("queries".into(), totals.len().into());
    figures.insert("first".into(), first.figures());
    figures.insert("warm".into(), warm.figures());
    figures.insert("totals".into(), totals.into());
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let mut times = Latencies::default();
        (1..=20).rev().for_each(|ms| times.add(Duration::from_millis(ms)));
        let figures = times.figures();
        assert_eq!(figures["p50_ms"], 10.0);
        assert_eq!(figures["p95_ms"], 19.0);
        assert_eq!(figures["max_ms"], 20.0);
        assert!(Latencies::default().figures()["p50_ms"].is_null());
    }
}
