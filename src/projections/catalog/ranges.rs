//! Ranges of dates and sizes as bitmaps, exact, without walking what lies inside the range.
//!
//! A date range is whole months, then whole days, then single messages at both ends; a size range
//! is whole classes, then single messages in the two classes at the ends. The cost grows with the
//! number of months and with one day's or one class's mail, not with the mailbox.

use std::ops::{Bound, Range};

use heed::{RoTxn, WithoutTls};
use roaring::RoaringBitmap;

use super::CatalogError;
use super::bitmaps::{Facet, of_range, ordered_i32};
use super::tables::{Table, Tables, by_date_key, from_by_date_key};

const DAY_MS: i64 = 86_400_000;

/// Values of a message's date and size.
pub(super) fn values(date_ms: i64, bytes: u64) -> [(Facet, Vec<u8>); 3] {
    let day = day_of(date_ms);
    [
        (Facet::Day, ordered_i32(day).to_vec()),
        (Facet::Month, ordered_i32(month_of_day(day)).to_vec()),
        (Facet::SizeClass, size_class(clamp(bytes)).to_be_bytes().to_vec()),
    ]
}

/// Raw sizes are filed as u32; no message is that large.
pub(super) fn clamp(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn day_of(date_ms: i64) -> i32 {
    let day = date_ms.div_euclid(DAY_MS);
    i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX })
}

/// Months since 1970-01 of a day since 1970-01-01, proleptic Gregorian (Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn month_of_day(day: i32) -> i32 {
    let z = i64::from(day) + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    i32::try_from((year - 1970) * 12 + month - 1).unwrap_or(i32::MAX)
}

/// First day of a month, by search: the inverse of [`month_of_day`] stays in one formula.
fn first_day_of(month: i32) -> i64 {
    let (mut low, mut high) = (i64::from(month) * 28 - 70, i64::from(month) * 32 + 70);
    if month < 0 {
        (low, high) = (i64::from(month) * 32 - 70, i64::from(month) * 28 + 70);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if month_of_day(i32::try_from(middle).unwrap_or(i32::MAX)) < month {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Messages whose date lies in `[start, end)`, unix ms; an open end is `None`.
pub(super) fn dates(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    start_ms: Option<i64>,
    end_ms: Option<i64>,
) -> Result<RoaringBitmap, CatalogError> {
    // Dates of stored mail are far inside these years, so open ends need no case of their own.
    let floor = i64::from(i32::MIN / 64) * DAY_MS;
    let ceiling = i64::from(i32::MAX / 64) * DAY_MS;
    let start = start_ms.unwrap_or(floor).clamp(floor, ceiling);
    let end = end_ms.unwrap_or(ceiling).clamp(floor, ceiling);
    if start >= end {
        return Ok(RoaringBitmap::new());
    }
    let days =
        start.div_euclid(DAY_MS) + i64::from(start.rem_euclid(DAY_MS) != 0)..end.div_euclid(DAY_MS);
    if days.start > days.end {
        return single(tables, rtxn, start, end);
    }
    let mut found = single(tables, rtxn, start, days.start * DAY_MS)?;
    found |= single(tables, rtxn, days.end * DAY_MS, end)?;
    found |= whole_days(tables, rtxn, days)?;
    Ok(found)
}

fn whole_days(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    days: Range<i64>,
) -> Result<RoaringBitmap, CatalogError> {
    if days.is_empty() {
        return Ok(RoaringBitmap::new());
    }
    let narrow = |day: i64| i32::try_from(day).unwrap_or(i32::MAX);
    let of_days = |days: Range<i64>| {
        if days.is_empty() {
            return Ok(RoaringBitmap::new());
        }
        let (first, last) = (ordered_i32(narrow(days.start)), ordered_i32(narrow(days.end - 1)));
        of_range(tables, rtxn, Facet::Day, first, last)
    };
    let first_whole = month_of_day(narrow(days.start - 1)) + 1;
    let last_whole = month_of_day(narrow(days.end)) - 1;
    if first_whole > last_whole {
        return of_days(days);
    }
    let inner = first_day_of(first_whole)..first_day_of(last_whole + 1);
    let mut found = of_days(days.start..inner.start)?;
    found |= of_days(inner.end..days.end)?;
    let (first, last) = (ordered_i32(first_whole), ordered_i32(last_whole));
    found |= of_range(tables, rtxn, Facet::Month, first, last)?;
    Ok(found)
}

fn single(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    start: i64,
    end: i64,
) -> Result<RoaringBitmap, CatalogError> {
    let mut found = RoaringBitmap::new();
    if start < end {
        let (low, high) = (by_date_key(start, 0), by_date_key(end, 0));
        let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
        for item in tables.of(Table::ByDate).range(rtxn, &range)? {
            if let Some((_, ordinal)) = from_by_date_key(item?.0) {
                found.insert(ordinal);
            }
        }
    }
    Ok(found)
}

/// Class of a size: the size rounded down to four bits behind its highest bit.
fn size_class(bytes: u32) -> u32 {
    let bits = bytes.checked_ilog2().unwrap_or(0);
    if bits <= 4 { bytes } else { ((bits - 4) << 4) + (bytes >> (bits - 4)) }
}

/// Messages whose raw size lies in `[start, end)` bytes.
pub(super) fn sizes(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
    range: Range<u32>,
) -> Result<RoaringBitmap, CatalogError> {
    let mut found = RoaringBitmap::new();
    if range.is_empty() {
        return Ok(found);
    }
    let (first, last) = (size_class(range.start), size_class(range.end - 1));
    if last > first + 1 {
        let (low, high) = ((first + 1).to_be_bytes(), (last - 1).to_be_bytes());
        found |= of_range(tables, rtxn, Facet::SizeClass, low, high)?;
    }
    let class_edge = |class: u32| {
        (0..=32).fold(0_u64, |edge, bit| {
            // Smallest size of the class, found bit by bit from above.
            let candidate = edge | (1_u64 << (32 - bit));
            let fits = u32::try_from(candidate - 1).is_ok_and(|below| size_class(below) < class);
            if fits { candidate } else { edge }
        })
    };
    let edge = |class: u32| u32::try_from(class_edge(class)).unwrap_or(u32::MAX);
    let mut scan = |low: u32, high: u32| -> Result<(), CatalogError> {
        let (low, high) = (low.to_be_bytes(), high.to_be_bytes());
        let bounds = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
        for item in tables.of(Table::BySize).range(rtxn, &bounds)? {
            let (key, _) = item?;
            if let Some(ordinal) = key.get(4..).and_then(super::tables::from_be_u32) {
                found.insert(ordinal);
            }
        }
        Ok(())
    };
    if first == last {
        scan(range.start, range.end)?;
    } else {
        scan(range.start, edge(first + 1).min(range.end))?;
        scan(edge(last).max(range.start), range.end)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_turn_at_the_first() {
        assert_eq!(month_of_day(0), 0);
        assert_eq!(month_of_day(30), 0);
        assert_eq!(month_of_day(31), 1);
        assert_eq!(month_of_day(-1), -1);
        assert_eq!(month_of_day(19_782), 649); // 2024-02-29
        assert_eq!(month_of_day(19_783), 650);
        for month in -300..900 {
            let day = first_day_of(month);
            let at = |d: i64| month_of_day(i32::try_from(d).expect("small"));
            assert_eq!((at(day - 1), at(day)), (month - 1, month));
        }
    }

    #[test]
    fn size_classes_grow_with_size() {
        let mut last = 0;
        for bytes in (0..5_000).chain([1 << 20, (1 << 20) + 65_536, 1 << 31, u32::MAX]) {
            let class = size_class(bytes);
            assert!(class >= last, "{bytes}");
            last = class;
        }
        assert_eq!(size_class(1 << 20), size_class((1 << 20) + 65_535));
        assert_ne!(size_class(1 << 20), size_class((1 << 20) + 65_536));
    }
}
