//! Dates of a query → half-open ranges in UTC milliseconds.
//!
//! `now` and the zone are handed in; nothing here reads a clock. A local time that a change of clocks
//! leaves out means the first instant that exists after it; one that occurs twice means the earlier.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp};

use super::tree::{DateBound, DateFilter, DurUnit, Expr, Filter, Query, RelDuration};

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

impl DateRange {
    /// Whether an instant lies inside.
    #[must_use]
    pub fn contains(self, ms: i64) -> bool {
        self.start_ms.is_none_or(|start| start <= ms) && self.end_ms.is_none_or(|end| ms < end)
    }
}

impl fmt::Display for ResolvedDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// Replaces every date filter by its range, as seen from `zone` at `now_ms`. Instants beyond what
/// can be represented (years −9999 to 9999) fall on the last one that can.
#[must_use]
pub fn resolve(query: &Query, zone: &TimeZone, now_ms: i64) -> ResolvedQuery {
    let date = |source: &DateFilter| ResolvedDate {
        range: range(source, zone, now_ms),
        source: source.clone(),
    };
    Query {
        root: query.root.as_ref().map(|root| root.map_dates(&date)),
        source_chars: query.source_chars,
    }
}

impl<D> Expr<D> {
    /// The same tree with other dates.
    fn map_dates<E>(&self, date: &impl Fn(&D) -> E) -> Expr<E> {
        let all = |children: &[Self]| children.iter().map(|child| child.map_dates(date)).collect();
        match self {
            Self::And(children) => Expr::And(all(children)),
            Self::Or(children) => Expr::Or(all(children)),
            Self::Not(inner) => Expr::Not(Box::new(inner.map_dates(date))),
            Self::Text(leaf) => Expr::Text(leaf.clone()),
            Self::Filter(filter) => Expr::Filter(filter.map_date(date)),
        }
    }
}

impl<D> Filter<D> {
    fn map_date<E>(&self, date: &impl Fn(&D) -> E) -> Filter<E> {
        match self {
            Self::Date(it) => Filter::Date(date(it)),
            Self::From(who) => Filter::From(who.clone()),
            Self::To(who) => Filter::To(who.clone()),
            Self::Participant(who) => Filter::Participant(who.clone()),
            Self::Cc(who) => Filter::Cc(who.clone()),
            Self::Bcc(who) => Filter::Bcc(who.clone()),
            Self::DeliveredTo(who) => Filter::DeliveredTo(who.clone()),
            Self::Ref(reference) => Filter::Ref(reference.clone()),
            Self::Label(label) => Filter::Label(label.clone()),
            Self::Has(has) => Filter::Has(*has),
            Self::Filename(name) => Filter::Filename(name.clone()),
            Self::Type(wanted) => Filter::Type(wanted.clone()),
            Self::Direction(direction) => Filter::Direction(*direction),
            Self::Place(place) => Filter::Place(*place),
            Self::Thread(id) => Filter::Thread(*id),
            Self::Is(state) => Filter::Is(*state),
            Self::Category(category) => Filter::Category(category.clone()),
            Self::List(list) => Filter::List(list.clone()),
            Self::Larger(bytes) => Filter::Larger(*bytes),
            Self::Smaller(bytes) => Filter::Smaller(*bytes),
            Self::MessageId(id) => Filter::MessageId(id.clone()),
            Self::Folder(name) => Filter::Folder(name.clone()),
            Self::Source(name) => Filter::Source(name.clone()),
            Self::Lang(lang) => Filter::Lang(*lang),
        }
    }
}

fn range(source: &DateFilter, zone: &TimeZone, now_ms: i64) -> DateRange {
    let from = |ms| DateRange { start_ms: Some(ms), end_ms: None };
    let until = |ms| DateRange { start_ms: None, end_ms: Some(ms) };
    match source {
        DateFilter::After(bound) => from(bound_ms(bound, zone)),
        DateFilter::Before(bound) => until(bound_ms(bound, zone)),
        DateFilter::NewerThan(duration) => from(ago_ms(*duration, zone, now_ms)),
        DateFilter::OlderThan(duration) => until(ago_ms(*duration, zone, now_ms)),
    }
}

fn bound_ms(bound: &DateBound, zone: &TimeZone) -> i64 {
    match bound {
        DateBound::Day(day) => instant_ms(day.at(0, 0, 0, 0), zone),
        DateBound::Instant(ms) => *ms,
    }
}

/// `now` less the duration: hours are exact, the other units keep the time on the wall clock, and a
/// day that the target month lacks becomes its last.
fn ago_ms(duration: RelDuration, zone: &TimeZone, now_ms: i64) -> i64 {
    let n = i64::from(duration.n);
    let back = match duration.unit {
        DurUnit::Hour => return now_ms.saturating_sub(n * 3_600_000),
        DurUnit::Day => Span::new().try_days(n),
        DurUnit::Week => Span::new().try_weeks(n),
        DurUnit::Month => Span::new().try_months(n),
        DurUnit::Year => Span::new().try_years(n),
    };
    let local = zone.to_datetime(timestamp(now_ms));
    match back.and_then(|span| local.checked_sub(span)) {
        Ok(then) => instant_ms(then, zone),
        Err(_) => Timestamp::MIN.as_millisecond(),
    }
}

/// The instant of a local time, by the rule at the head of this file.
fn instant_ms(local: DateTime, zone: &TimeZone) -> i64 {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    let in_gap = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
    // Of a fold, the earlier; of a gap, the time carried over it, which may lie past its end.
    match ambiguous.compatible() {
        Ok(carried) if in_gap => gap_end(carried, zone).as_millisecond(),
        Ok(instant) => instant.as_millisecond(),
        // Only at either end of the calendar, where the offset leads out of it.
        Err(_) if local.year() > 0 => Timestamp::MAX.as_millisecond(),
        Err(_) => Timestamp::MIN.as_millisecond(),
    }
}

/// The change of clocks at or before `carried`: the instant at which the gap ends.
fn gap_end(carried: Timestamp, zone: &TimeZone) -> Timestamp {
    let just_after = carried.checked_add(Span::new().nanoseconds(1)).unwrap_or(carried);
    zone.preceding(just_after).next().map_or(carried, |change| change.timestamp())
}

/// The instant, or the nearest that can be represented.
fn timestamp(ms: i64) -> Timestamp {
    let end = if ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(ms).unwrap_or(end)
}
