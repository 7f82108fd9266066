//! Dates at the end of a separator line, matched tolerantly.
//!
//! ```text
//! date    = [weekday [","]] (asctime | rfc822 | iso) *extra
//! asctime = month day ...            Tue Apr  1 12:00:00 2003
//! rfc822  = day month [year] ...     Tue, 1 Apr 2003 12:00:00 +0200 (CEST)
//! iso     = YYYY-MM-DD [T] ...       2019-10-02 05:04:34 +0000
//! extra   = time | year | zone | "(" comment ")" | "remote" "from" host     in any order
//! ```
//! Exactly one time (`h:mm[:ss]`) and one year (1900–2199) are needed and every word must fit:
//! prose that begins with "From" never does. Without a zone, or with one unknown, the time is UTC.
//! Sources: RFC 4155 appendix A, C `asctime`, RFC 5322 §3.3 and §4.3 (obsolete zones).

use jiff::civil;
use jiff::tz::TimeZone;

/// Words of a separator line that are looked at; more than any date plus sender has.
const WORDS_MAX: usize = 48;

/// A date that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct When {
    /// Unix ms; `None` when the shape is a date but no such day exists.
    pub(super) ms: Option<i64>,
    /// Weekday and seconds are given, as every program writes and hardly any prose does.
    pub(super) full: bool,
}

/// The longest date that reaches to the end of the text.
pub(super) fn at_end(text: &[u8]) -> Option<When> {
    let mut words: Vec<&[u8]> = Vec::new();
    for word in text.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()) {
        if words.len() == WORDS_MAX {
            return None;
        }
        words.push(word);
    }
    (0..words.len()).find_map(|from| read(&words[from..]))
}

/// date = [weekday [","]] (asctime | rfc822 | iso) *extra
fn read(words: &[&[u8]]) -> Option<When> {
    let mut rest = words;
    let weekday = rest.first().is_some_and(|word| is_weekday(word));
    if weekday {
        rest = &rest[1..];
    }
    let mut fields = Fields::default();
    match rest {
        [month, day, tail @ ..] if month_of(month).is_some() => {
            fields.month = month_of(month)?;
            fields.day = number(day.strip_suffix(b",").unwrap_or(day), 1, 2)?;
            rest = tail;
        }
        [day, month, tail @ ..] if month_of(month).is_some() => {
            fields.month = month_of(month)?;
            fields.day = number(day, 1, 2)?;
            rest = tail;
            // Two-digit years stand only here (RFC 5322 §4.3).
            if let Some(short) = tail.first().and_then(|year| number(year, 2, 2)) {
                fields.year = Some(if short < 70 { 2000 + short } else { 1900 + short });
                rest = &tail[1..];
            }
        }
        [day, tail @ ..] => {
            fields.iso(day)?;
            rest = tail;
        }
        [] => return None,
    }
    while let [word, tail @ ..] = rest {
        rest = tail;
        if word.starts_with(b"(") {
            let end = std::iter::once(word).chain(tail).position(|w| w.ends_with(b")"))?;
            rest = &tail[end..];
        } else if word == b"remote" && tail.len() == 2 && tail[0] == b"from" {
            rest = &[];
        } else {
            fields.extra(word)?;
        }
    }
    let time = fields.time?;
    Some(When { ms: fields.ms(time)?, full: weekday && time.2.is_some() })
}

#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: i64,
    day: i64,
    /// Hour, minute, second.
    time: Option<(i64, i64, Option<i64>)>,
    /// Minutes east of Greenwich.
    zone_minutes: Option<i64>,
}

impl Fields {
    /// iso = YYYY-MM-DD [T time]
    fn iso(&mut self, word: &[u8]) -> Option<()> {
        let (date, time) = match word.iter().position(|b| *b == b'T') {
            Some(at) => (&word[..at], Some(&word[at + 1..])),
            None => (word, None),
        };
        let mut parts = date.split(|b| *b == b'-');
        self.year = Some(year_of(parts.next()?)?);
        self.month = number(parts.next()?, 2, 2)?;
        self.day = number(parts.next()?, 2, 2)?;
        if parts.next().is_some() {
            return None;
        }
        time.map_or(Some(()), |time| self.extra(time))
    }

    /// extra = time | year | zone
    fn extra(&mut self, word: &[u8]) -> Option<()> {
        if let Some(time) = time_of(word) {
            return self.time.replace(time).is_none().then_some(());
        }
        if let Some(year) = year_of(word) {
            return self.year.replace(year).is_none().then_some(());
        }
        let zone = zone_of(word)?;
        // Two zones (`-0500 EST`, `MET DST`): the first that says something counts.
        self.zone_minutes = self.zone_minutes.or(zone);
        Some(())
    }

    fn ms(&self, (hour, minute, second): (i64, i64, Option<i64>)) -> Option<Option<i64>> {
        let year = i16::try_from(self.year?).ok()?;
        let small = |n: i64| i8::try_from(n).ok();
        let date = civil::DateTime::new(
            year,
            small(self.month)?,
            small(self.day)?,
            small(hour)?,
            small(minute)?,
            // A leap second has no unix time of its own.
            small(second.unwrap_or(0).min(59))?,
            0,
        );
        let utc = date.ok().and_then(|date| date.to_zoned(TimeZone::UTC).ok());
        let shift_ms = self.zone_minutes.unwrap_or(0) * 60_000;
        Some(utc.map(|utc| utc.timestamp().as_millisecond() - shift_ms))
    }
}

fn number(word: &[u8], digits_min: usize, digits_max: usize) -> Option<i64> {
    if word.len() < digits_min || word.len() > digits_max || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(word.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

fn year_of(word: &[u8]) -> Option<i64> {
    number(word, 4, 4).filter(|year| (1900..2200).contains(year))
}

/// time = h:m[:s[.fraction]]
fn time_of(word: &[u8]) -> Option<(i64, i64, Option<i64>)> {
    let mut parts = word.split(|b| *b == b':');
    let hour = number(parts.next()?, 1, 2)?;
    let minute = number(parts.next()?, 1, 2)?;
    let second = match parts.next() {
        Some(part) => Some(number(part.split(|b| *b == b'.').next()?, 1, 2)?),
        None => None,
    };
    let fits = hour < 25 && minute < 60 && second.unwrap_or(0) < 62 && parts.next().is_none();
    fits.then_some((hour, minute, second))
}

fn month_of(word: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8]; 12] = [
        b"january",
        b"february",
        b"march",
        b"april",
        b"may",
        b"june",
        b"july",
        b"august",
        b"september",
        b"october",
        b"november",
        b"december",
    ];
    let found = MONTHS.iter().position(|name| is_name(word, name))?;
    i64::try_from(found + 1).ok()
}

fn is_weekday(word: &[u8]) -> bool {
    const DAYS: [&[u8]; 7] =
        [b"monday", b"tuesday", b"wednesday", b"thursday", b"friday", b"saturday", b"sunday"];
    let word = word.strip_suffix(b",").unwrap_or(word);
    DAYS.iter().any(|name| is_name(word, name))
}

/// The whole name or its first three letters, in any case.
fn is_name(word: &[u8], name: &[u8]) -> bool {
    word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case(&name[..3])
}

/// A zone: outer `None` when it is none, inner when its offset is not known.
#[expect(clippy::option_option, reason = "no zone and a zone of unknown offset differ")]
fn zone_of(word: &[u8]) -> Option<Option<i64>> {
    let letters = word.iter().take_while(|b| b.is_ascii_uppercase()).count();
    let (name, offset) = word.split_at(letters);
    if letters > 5 || (letters == 0 && offset.is_empty()) {
        return None;
    }
    if offset.is_empty() {
        return Some(named_zone(name));
    }
    if letters > 0 && name != b"GMT" && name != b"UTC" {
        return None;
    }
    let (sign, digits) = match offset {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let minutes = match digits {
        [h1, h2, b':', m1, m2] | [h1, h2, m1, m2] => {
            number(&[*h1, *h2], 2, 2)? * 60 + number(&[*m1, *m2], 2, 2)?
        }
        hours => number(hours, 1, 2)? * 60,
    };
    Some(Some(sign * minutes))
}

fn named_zone(name: &[u8]) -> Option<i64> {
    Some(match name {
        b"UT" | b"UTC" | b"GMT" | b"Z" | b"WET" => 0,
        b"BST" | b"CET" | b"MET" | b"MEZ" | b"WEST" => 60,
        b"CEST" | b"MEST" | b"MESZ" | b"EET" => 120,
        b"EEST" | b"MSK" => 180,
        b"JST" | b"KST" => 540,
        b"EDT" => -240,
        b"EST" | b"CDT" => -300,
        b"CST" | b"MDT" => -360,
        b"MST" | b"PDT" => -420,
        b"PST" => -480,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> Option<i64> {
        at_end(text.as_bytes()).and_then(|when| when.ms)
    }

    #[test]
    fn every_style_gives_the_same_instant() {
        let noon = Some(1_049_198_400_000);
        for text in [
            "jk at host  Tue Apr  1 12:00:00 2003",
            "jk@host Tue Apr 1 12:00 2003",
            "jk@host Apr 1 12:00:00 2003",
            "jk Tue Apr  1 07:00:00 EST 2003",
            "jk Tue Apr  1 14:00:00 2003 +0200",
            "1528@xxx Tue Apr 01 12:00:00 +0000 2003",
            "jk@host Tue, 1 Apr 2003 08:00:00 -0400 (EDT)",
            "jk@host Tue, 01 Apr 03 08:00:00 EDT",
            "jk@host Tuesday, 1 April 2003 14:00 GMT+2",
            "jk Tue Apr  1 14:00:00 MET DST 2003 remote from uucp".replace("MET", "CEST").as_str(),
            "() 2003-04-01 12:00:00 +0000",
            "x 2003-04-01T14:00:00.25 +02:00",
        ] {
            assert_eq!(ms(text), noon, "{text}");
        }
    }

    #[test]
    fn prose_is_no_date() {
        for text in [
            "here on, something like:",
            "Monday on we meet at 12:00",
            "2003 to 2004",
            "jk Tue Apr  1 2003",
            "jk Tue Apr  1 12:00:00",
            "jk Tue Apr  1 12:00:00 2003 it was nice",
            "jk Tue Apr  1 12:00:00 12:01:00 2003",
            "",
        ] {
            assert_eq!(at_end(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn impossible_days_are_dates_without_a_time() {
        assert_eq!(at_end(b"jk Fri Feb 30 12:00:00 2003"), Some(When { ms: None, full: true }));
        assert!(at_end(b"x Thu Feb  1 00:00:00 1945").is_some_and(|w| w.ms < Some(0)));
    }
}
