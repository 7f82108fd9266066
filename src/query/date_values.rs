//! Dates and durations as written in a query, read and printed. Which instants they mean is
//! [`dates`](super::dates)'s question.

use jiff::{Timestamp, civil};

use super::Fault;
use super::operators::Op;
use super::tree::{DateBound, DateFilter, DurUnit, Filter, RelDuration};
use super::values::Refused;

const EXPECTED_DATE: &str = "date as YYYY-MM-DD, YYYY/MM/DD or RFC 3339";
const EXPECTED_DURATION: &str = "duration as <n>h, <n>d, <n>w, <n>m or <n>y";

const NANOS_PER_MILLI: i128 = 1_000_000;

/// Reads the value of one of the four date operators.
pub(super) fn filter(op: Op, text: &str) -> Result<Filter, Refused> {
    let date = match op {
        Op::After => bound(text).map(DateFilter::After),
        Op::Before => bound(text).map(DateFilter::Before),
        Op::NewerThan => duration(text).map(DateFilter::NewerThan),
        _ => duration(text).map(DateFilter::OlderThan),
    };
    date.map(Filter::Date).ok_or_else(|| Refused {
        fault: Fault::BadValue,
        expected: match op {
            Op::After | Op::Before => EXPECTED_DATE.into(),
            _ => EXPECTED_DURATION.into(),
        },
        suggestion: remedy(op, text),
    })
}

/// Another operator for a value of its kind, else the value written properly.
fn remedy(op: Op, text: &str) -> Option<String> {
    let (other, fits_other) = match op {
        Op::After => (Op::NewerThan, duration(text).is_some()),
        Op::Before => (Op::OlderThan, duration(text).is_some()),
        Op::NewerThan => (Op::After, bound(text).is_some()),
        _ => (Op::Before, bound(text).is_some()),
    };
    if fits_other {
        return Some(format!("{}:{text}", other.name()));
    }
    let proper = match op {
        Op::After | Op::Before => loose_day(text)?.to_string(),
        _ => longest(text)?.to_string(),
    };
    Some(format!("{}:{proper}", op.name()))
}

/// `YYYY-MM-DD`, `YYYY/MM/DD` or an RFC 3339 instant.
fn bound(text: &str) -> Option<DateBound> {
    match text.len() {
        10 => day(text).map(DateBound::Day),
        _ => instant(text).map(DateBound::Instant),
    }
}

fn day(text: &str) -> Option<civil::Date> {
    let separator = *text.as_bytes().get(4)?;
    if !matches!(separator, b'-' | b'/') {
        return None;
    }
    let mut parts = text.split(char::from(separator));
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    if parts.next().is_some() {
        return None;
    }
    civil_date(year, month, day)
}

fn civil_date(year: u16, month: u16, day: u16) -> Option<civil::Date> {
    let year = i16::try_from(year).ok()?;
    civil::Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Exactly `count` ASCII digits.
fn digits(text: &str, count: usize) -> Option<u16> {
    let exact = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    if exact { text.parse().ok() } else { None }
}

/// RFC 3339 §5.6, which is narrower than what jiff reads: seconds and an offset are required, and
/// `T` stands between date and time.
fn instant(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let shape_holds = bytes.len() > 19
        && bytes[..19].iter().zip(b"0000-00-00T00:00:00").all(|(&b, &shape)| match shape {
            b'0' => b.is_ascii_digit(),
            b'T' => matches!(b, b'T' | b't'),
            _ => b == shape,
        });
    if !shape_holds {
        return None;
    }
    let rest = bytes.get(19..)?;
    let fraction = match rest.strip_prefix(b".") {
        Some(after) => 1 + after.iter().take_while(|b| b.is_ascii_digit()).count(),
        None => 0,
    };
    let offset_holds = match rest.get(fraction..)? {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    };
    if fraction == 1 || !offset_holds {
        return None;
    }
    let nanos = text.to_ascii_uppercase().parse::<Timestamp>().ok()?.as_nanosecond();
    let rounded_up =
        nanos.div_euclid(NANOS_PER_MILLI) + i128::from(nanos.rem_euclid(NANOS_PER_MILLI) != 0);
    let ms = i64::try_from(rounded_up).ok()?;
    // Four digits must be enough for the year when it is printed again, in UTC.
    let year = Timestamp::from_millisecond(ms).ok()?.strftime("%Y").to_string();
    (year.len() == 4 && !year.starts_with('-')).then_some(ms)
}

/// `<n>h`, `<n>d`, `<n>w`, `<n>m` or `<n>y` within the bounds of the unit; case does not matter.
fn duration(text: &str) -> Option<RelDuration> {
    let (n, unit) = count_and_unit(text)?;
    let n = n.parse::<u32>().ok()?;
    (1..=unit.n_max()).contains(&n).then_some(RelDuration { n, unit })
}

fn count_and_unit(text: &str) -> Option<(&str, DurUnit)> {
    let (at, letter) = text.char_indices().next_back()?;
    let unit = match letter.to_ascii_lowercase() {
        'h' => DurUnit::Hour,
        'd' => DurUnit::Day,
        'w' => DurUnit::Week,
        'm' => DurUnit::Month,
        'y' => DurUnit::Year,
        _ => return None,
    };
    let n = &text[..at];
    let is_count = !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    is_count.then_some((n, unit))
}

/// The longest duration of the unit, for one that is too long.
fn longest(text: &str) -> Option<RelDuration> {
    let (n, unit) = count_and_unit(text)?;
    let too_long = n.bytes().any(|b| b != b'0');
    too_long.then(|| RelDuration { n: unit.n_max(), unit })
}

/// A date that leaves out zeros, day or month, or has other separators: `2026-9-1`, `2026.09`.
fn loose_day(text: &str) -> Option<civil::Date> {
    let mut parts = text.split(['-', '/', '.']);
    let year = digits(parts.next()?, 4)?;
    let mut next = || match parts.next() {
        None => Some(1),
        Some(part) => digits(part, 2).or_else(|| digits(part, 1)),
    };
    let (month, day) = (next()?, next()?);
    if parts.next().is_some() { None } else { civil_date(year, month, day) }
}

impl std::fmt::Display for DateFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (op, value): (_, &dyn std::fmt::Display) = match self {
            Self::After(bound) => (Op::After, bound),
            Self::Before(bound) => (Op::Before, bound),
            Self::NewerThan(duration) => (Op::NewerThan, duration),
            Self::OlderThan(duration) => (Op::OlderThan, duration),
        };
        write!(f, "{}:{value}", op.name())
    }
}

impl std::fmt::Display for DateBound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Day(day) => write!(f, "{day}"),
            Self::Instant(ms) => match Timestamp::from_millisecond(*ms) {
                Ok(instant) => write!(f, "{instant}"),
                // Only a tree built by hand holds one that far out.
                Err(_) => write!(f, "{ms}"),
            },
        }
    }
}

impl std::fmt::Display for RelDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letter = match self.unit {
            DurUnit::Hour => 'h',
            DurUnit::Day => 'd',
            DurUnit::Week => 'w',
            DurUnit::Month => 'm',
            DurUnit::Year => 'y',
        };
        write!(f, "{}{letter}", self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_rfc_3339_and_rounded_up() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01t00:00:01z", 1_000),
            ("1970-01-01T01:00:00+01:00", 0),
            ("1970-01-01T00:00:00.001Z", 1),
            ("1970-01-01T00:00:00.0001Z", 1),
            ("1969-12-31T23:59:59.9999Z", 0),
        ] {
            assert_eq!(instant(text), Some(ms), "{text}");
        }
        for text in [
            "1970-01-01T00:00Z",
            "1970-01-01T00:00:00",
            "1970-01-01 00:00:00Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00+0100",
            "1970-01-01T25:00:00Z",
            "1970-01-01T00:00:00Z[UTC]",
            "0000-01-01T00:00:00+10:00",
            "é970-01-01T00:00:00Z",
        ] {
            assert_eq!(instant(text), None, "{text}");
        }
    }

    #[test]
    fn remedies_write_the_value_properly() {
        for (op, text, expected) in [
            (Op::After, "2026-9-1", Some("after:2026-09-01")),
            (Op::After, "2026.09", Some("after:2026-09-01")),
            (Op::Before, "2026", Some("before:2026-01-01")),
            (Op::After, "7d", Some("newer_than:7d")),
            (Op::Before, "1y", Some("older_than:1y")),
            (Op::NewerThan, "2026-01-01", Some("after:2026-01-01")),
            (Op::OlderThan, "2026/01/01", Some("before:2026/01/01")),
            (Op::NewerThan, "99y", Some("newer_than:10y")),
            (Op::NewerThan, "0d", None),
            (Op::After, "01/02/2026", None),
            (Op::After, "2026-02-30", None),
        ] {
            assert_eq!(remedy(op, text).as_deref(), expected, "{text}");
        }
    }
}
