//! Local dates against the clock changes of three zones, and durations back from now.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::dates::{DateRange, resolve};
use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).expect("zone of the database")
}

fn ms(instant: &str) -> i64 {
    instant.parse::<Timestamp>().expect("instant").as_millisecond()
}

/// The range of a query that is one date filter, at `now` in `zone_name`.
fn range_at(q: &str, zone_name: &str, now_ms: i64) -> DateRange {
    let query = parse(q, &ParseOptions::default()).expect("query");
    match resolve(&query, &zone(zone_name), now_ms).root {
        Some(Expr::Filter(Filter::Date(date))) => date.range,
        other => panic!("{q}: {other:?}"),
    }
}

/// The one bound of the range, in UTC.
fn bound_at(q: &str, zone_name: &str, now: &str) -> String {
    let range = range_at(q, zone_name, ms(now));
    let bound = range.start_ms.or(range.end_ms).expect("one bound");
    Timestamp::from_millisecond(bound).expect("representable").to_string()
}

fn bound(q: &str, zone_name: &str) -> String {
    bound_at(q, zone_name, "2026-06-01T00:00:00Z")
}

#[test]
fn after_is_inclusive_and_before_exclusive() {
    let after = range_at("after:2026-09-01", "UTC", 0);
    let before = range_at("before:2026-09-01", "UTC", 0);
    let midnight = ms("2026-09-01T00:00:00Z");
    assert_eq!(after, DateRange { start_ms: Some(midnight), end_ms: None });
    assert_eq!(before, DateRange { start_ms: None, end_ms: Some(midnight) });
    assert!(after.contains(midnight) && !before.contains(midnight));
    assert!(!after.contains(midnight - 1) && before.contains(midnight - 1));
}

#[test]
fn f9_a_day_starts_at_local_midnight() {
    for (q, zone, instant) in [
        ("after:2026-01-15", "Europe/Berlin", "2026-01-14T23:00:00Z"),
        ("after:2026-07-15", "Europe/Berlin", "2026-07-14T22:00:00Z"),
        ("before:2026-03-29", "Europe/Berlin", "2026-03-28T23:00:00Z"),
        ("before:2026-03-30", "Europe/Berlin", "2026-03-29T22:00:00Z"),
        ("after:2026-10-25", "Europe/Berlin", "2026-10-24T22:00:00Z"),
        ("after:2026-10-26", "Europe/Berlin", "2026-10-25T23:00:00Z"),
        ("after:2026-03-08", "America/New_York", "2026-03-08T05:00:00Z"),
        ("after:2026-03-09", "America/New_York", "2026-03-09T04:00:00Z"),
        ("after:2026-11-01", "America/New_York", "2026-11-01T04:00:00Z"),
        ("after:2026-11-02", "America/New_York", "2026-11-02T05:00:00Z"),
    ] {
        assert_eq!(bound(q, zone), instant, "{q} {zone}");
    }
}

#[test]
fn midnight_in_a_gap_is_the_first_instant_after_it() {
    // Clocks went from 00:00 to 01:00.
    assert_eq!(bound("after:2018-11-04", "America/Sao_Paulo"), "2018-11-04T03:00:00Z");
    // From 23:30 to 00:30 the next day, so that carrying midnight over the gap would give 01:00.
    assert_eq!(bound("after:1919-03-31", "America/Toronto"), "1919-03-31T04:30:00Z");
    // A whole day left out: 30 December 2011 did not happen west of the new date line.
    assert_eq!(bound("after:2011-12-30", "Pacific/Apia"), "2011-12-30T10:00:00Z");
    assert_eq!(bound("after:2011-12-31", "Pacific/Apia"), "2011-12-30T10:00:00Z");
    assert_eq!(bound("before:2011-12-30", "Pacific/Apia"), "2011-12-30T10:00:00Z");
    assert_eq!(bound("after:2011-12-29", "Pacific/Apia"), "2011-12-29T10:00:00Z");
}

#[test]
fn midnight_that_occurs_twice_is_the_earlier() {
    // Clocks went back from 01:00 to 00:00.
    assert_eq!(bound("after:2024-11-03", "America/Havana"), "2024-11-03T04:00:00Z");
    // And from 00:00 to 23:00 of the day before, where midnight occurs once.
    assert_eq!(bound("after:2018-02-18", "America/Sao_Paulo"), "2018-02-18T03:00:00Z");
}

#[test]
fn instants_need_no_zone() {
    for zone in ["UTC", "Pacific/Apia"] {
        assert_eq!(bound("after:2026-09-01T10:00:00+02:00", zone), "2026-09-01T08:00:00Z");
    }
}

#[test]
fn hours_are_exact_and_days_keep_the_wall_clock() {
    let (zone, now) = ("Europe/Berlin", "2026-03-29T10:00:00Z");
    assert_eq!(bound_at("newer_than:24h", zone, now), "2026-03-28T10:00:00Z");
    // Twelve noon both days, an hour less between them.
    assert_eq!(bound_at("newer_than:1d", zone, now), "2026-03-28T11:00:00Z");
    assert_eq!(bound_at("older_than:1w", zone, now), "2026-03-22T11:00:00Z");
    let (zone, now) = ("America/New_York", "2026-11-01T17:00:00Z");
    assert_eq!(bound_at("newer_than:1d", zone, now), "2026-10-31T16:00:00Z");
    assert_eq!(bound_at("newer_than:24h", zone, now), "2026-10-31T17:00:00Z");
}

#[test]
fn a_duration_into_a_gap_or_a_fold() {
    // 02:30 the day before did not exist.
    let now = "2026-03-30T00:30:00Z";
    assert_eq!(bound_at("newer_than:1d", "Europe/Berlin", now), "2026-03-29T01:00:00Z");
    // 02:30 the day before occurred twice.
    let now = "2026-10-26T01:30:00Z";
    assert_eq!(bound_at("newer_than:1d", "Europe/Berlin", now), "2026-10-25T00:30:00Z");
    // The same time yesterday fell on the day that was left out.
    let now = "2011-12-31T02:00:00Z";
    assert_eq!(bound_at("newer_than:1d", "Pacific/Apia", now), "2011-12-30T10:00:00Z");
}

#[test]
fn m_is_a_month_and_clamps_to_its_last_day() {
    for (q, now, instant) in [
        ("newer_than:1m", "2026-06-15T12:00:00Z", "2026-05-15T12:00:00Z"),
        ("newer_than:1m", "2026-03-31T12:00:00Z", "2026-02-28T12:00:00Z"),
        ("newer_than:1m", "2024-03-31T12:00:00Z", "2024-02-29T12:00:00Z"),
        ("older_than:120m", "2026-06-15T12:00:00Z", "2016-06-15T12:00:00Z"),
        ("newer_than:1y", "2024-02-29T12:00:00Z", "2023-02-28T12:00:00Z"),
        ("newer_than:13m", "2026-01-31T00:00:00Z", "2024-12-31T00:00:00Z"),
    ] {
        assert_eq!(bound_at(q, "UTC", now), instant, "{q} at {now}");
    }
}

#[test]
fn now_keeps_its_milliseconds() {
    let range = range_at("newer_than:1d", "Europe/Berlin", 1_780_000_000_123);
    assert_eq!(range.start_ms, Some(1_780_000_000_123 - 86_400_000));
}

#[test]
fn the_ends_of_the_calendar_do_not_overflow() {
    let last = Timestamp::MAX.as_millisecond();
    assert_eq!(range_at("after:9999-12-31", "America/New_York", 0).start_ms, Some(last));
    assert!(range_at("after:0000-01-01", "Pacific/Apia", 0).start_ms.is_some());
    for now_ms in [i64::MIN, i64::MAX] {
        for q in ["newer_than:1h", "newer_than:10y", "older_than:3650d"] {
            let range = range_at(q, "Europe/Berlin", now_ms);
            assert!(range.start_ms.or(range.end_ms).is_some(), "{q}");
        }
    }
}

#[test]
fn resolving_keeps_everything_else() {
    let q = "late (from:jo OR after:2026-01-01) -newer_than:2w subject:\"x y\"";
    let query = parse(q, &ParseOptions::default()).expect("query");
    let resolved = resolve(&query, &TimeZone::UTC, 0);
    assert_eq!(resolved.to_string(), query.to_string());
    assert_eq!(resolved.source_chars, query.source_chars);
    assert_eq!(leaves::positive_text(&resolved), leaves::positive_text(&query));
}
