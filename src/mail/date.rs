//! Dates as mail writes them → unix milliseconds.
//!
//! RFC 5322 §3.3 and §4.3, asctime, ISO 8601, and the odd ones: no weekday, comments, names of
//! zones, two- and three-digit years, `2002/08/22`, no zone (read as UTC). Whether a date can be
//! believed is decided in `timeline`, not here; a date that does not exist is refused.

/// Longest value looked at, bytes.
const DATE_BYTES_MAX: usize = 256;
const DAY_MS: i64 = 86_400_000;

/// Reads a date; `None` when it is none.
pub(super) fn parse(raw: &[u8]) -> Option<i64> {
    let raw = &raw[..raw.len().min(DATE_BYTES_MAX)];
    let mut found = Found::default();
    let mut depth = 0u32;
    let mut token_from = None;
    for (i, &b) in raw.iter().chain(std::iter::once(&b' ')).enumerate() {
        let ends = b.is_ascii_whitespace() || matches!(b, b',' | b'(' | b')' | b'"' | b';');
        if ends && let Some(from) = token_from.take() {
            found.token(raw.get(from..i)?)?;
        } else if !ends && depth == 0 && token_from.is_none() {
            token_from = Some(i);
        }
        match b {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found.finish()
}

/// What the tokens have told so far.
#[derive(Debug, Default)]
struct Found {
    day: Option<i64>,
    month: Option<i64>,
    year: Option<i64>,
    /// Milliseconds since midnight.
    time: Option<i64>,
    /// Minutes east of UTC.
    zone: Option<i64>,
    afternoon: Option<bool>,
}

impl Found {
    /// Takes in one token; `None` when it makes the date impossible.
    fn token(&mut self, token: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(token).unwrap_or("");
        let first = *token.first()?;
        if self.time.is_some() && matches!(first, b'+' | b'-') {
            if self.zone.is_none() || token.len() == 5 {
                self.zone = offset(text).or(self.zone);
            }
            return Some(());
        }
        if first.is_ascii_digit() {
            if let Some((date, time)) = text.split_once(['T', 't'])
                && date.len() >= 8
            {
                self.composed(date)?;
                return self.clock(time);
            }
            if text.contains(':') {
                return self.clock(text);
            }
            if text.bytes().all(|b| b.is_ascii_digit()) {
                return self.number(text);
            }
            if self.day.is_some()
                && self.month.is_some()
                && self.time.is_none()
                && text.matches('.').count() >= 1
            {
                return self.clock(&text.replace('.', ":"));
            }
            // `1st`, `22nd`
            if let Some(day) = text.strip_suffix(|c: char| c.is_ascii_alphabetic()) {
                let day = day.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                if day.len() <= 2 && day.bytes().all(|b| b.is_ascii_digit()) {
                    return self.number(day);
                }
            }
            return self.composed(text);
        }
        self.word(text);
        Some(())
    }

    fn word(&mut self, text: &str) {
        let lower = text
            .trim_matches(|c: char| !c.is_alphanumeric() && c != '+' && c != '-')
            .to_ascii_lowercase();
        match lower.as_str() {
            "am" => self.afternoon = Some(false),
            "pm" => self.afternoon = Some(true),
            _ if self.month.is_none() && month(&lower).is_some() => self.month = month(&lower),
            _ if self.time.is_some() && self.zone.is_none() => self.zone = zone_name(&lower),
            _ => {}
        }
    }

    /// A bare number: the day, then the year (the order of RFC 5322 and of asctime alike).
    fn number(&mut self, text: &str) -> Option<()> {
        let value: i64 = text.parse().ok()?;
        if text.len() == 8 && self.day.is_none() && self.year.is_none() {
            (self.year, self.month, self.day) =
                (Some(value / 10_000), Some(value / 100 % 100), Some(value % 100));
        } else if self.day.is_none() && text.len() <= 2 {
            self.day = Some(value);
        } else if self.year.is_none() {
            self.year = Some(full_year(value, text.len()));
        } else if self.time.is_some() && self.zone.is_none() && text.len() == 4 {
            // A zone that lost its sign.
            self.zone = offset(&format!("+{text}"));
        }
        Some(())
    }

    /// `2002-08-22`, `2002/08/22`, `22-Aug-02`, `22.08.2002`, `08/22/2002`.
    fn composed(&mut self, text: &str) -> Option<()> {
        let pieces: Vec<&str> = text.split(['-', '/', '.']).collect();
        let [a, b, c] = pieces.as_slice() else { return Some(()) };
        let number = |s: &str| s.parse::<i64>().ok().filter(|n| *n >= 0);
        if let Some(named) = month(&b.to_ascii_lowercase()) {
            let (day, year) = if a.len() == 4 { (c, a) } else { (a, c) };
            self.set(full_year(number(year)?, year.len()), named, number(day)?);
        } else if a.len() == 4 {
            self.set(number(a)?, number(b)?, number(c)?);
        } else {
            let (x, y) = (number(a)?, number(b)?);
            let day_first = text.contains('.') || x > 12;
            let (day, month) = if day_first { (x, y) } else { (y, x) };
            self.set(full_year(number(c)?, c.len()), month, day);
        }
        Some(())
    }

    fn set(&mut self, year: i64, month: i64, day: i64) {
        (self.year, self.month, self.day) = (Some(year), Some(month), Some(day));
    }

    /// `11:26[:25[.5]]`, with a zone glued on or not.
    fn clock(&mut self, text: &str) -> Option<()> {
        let end = text.find(|c: char| !matches!(c, '0'..='9' | ':' | '.')).unwrap_or(text.len());
        let (clock, glued) = text.split_at(end);
        let mut pieces = clock.split(':');
        let hour: i64 = pieces.next()?.parse().ok()?;
        let minute: i64 = pieces.next().unwrap_or("0").parse().ok()?;
        let second = pieces.next().unwrap_or("0");
        let (whole, fraction) = second.split_once('.').unwrap_or((second, ""));
        let second: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        if hour > 24 || minute > 59 || second > 61 {
            return None;
        }
        let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
        self.time = Some(
            ((hour * 60 + minute) * 60 + second.min(59)) * 1000
                + digits.parse::<i64>().unwrap_or(0),
        );
        match glued.as_bytes() {
            [] => {}
            [b'+' | b'-', ..] => self.zone = offset(glued),
            _ => self.word(glued),
        }
        Some(())
    }

    fn finish(self) -> Option<i64> {
        let (year, month, day) = (self.year?, self.month?, self.day?);
        if !(1..=12).contains(&month)
            || day < 1
            || day > month_days(year, month)
            || !(1..=9999).contains(&year)
        {
            return None;
        }
        let mut time = self.time.unwrap_or(0);
        let hour = time / 3_600_000;
        match self.afternoon {
            Some(true) if hour < 12 => time += DAY_MS / 2,
            Some(false) if hour == 12 => time -= DAY_MS / 2,
            _ => {}
        }
        Some(days(year, month, day) * DAY_MS + time - self.zone.unwrap_or(0) * 60_000)
    }
}

/// RFC 5322 §4.3: two digits are 1950–2049, three digits count from 1900.
fn full_year(value: i64, digits: usize) -> i64 {
    match digits {
        0..=2 if value < 50 => value + 2000,
        0..=3 if value < 1000 => value + 1900,
        _ => value,
    }
}

fn month(lower: &str) -> Option<i64> {
    const NAMES: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let head = lower.get(..3)?;
    if let Some(i) = NAMES.iter().position(|n| *n == head) {
        // `mar`, `march`, but not `marie`.
        return matches!(
            lower,
            "january"
                | "february"
                | "march"
                | "april"
                | "june"
                | "july"
                | "august"
                | "september"
                | "sept"
                | "october"
                | "november"
                | "december"
        )
        .then_some(())
        .or((lower.len() == 3).then_some(()))
        .map(|()| i as i64 + 1);
    }
    // German, French, Spanish, Italian and Dutch short names that mailers have put into headers.
    Some(match lower {
        "mär" | "mrz" | "mrt" => 3,
        "avr" | "abr" => 4,
        "mai" | "maj" | "mei" | "mag" => 5,
        "juin" | "giu" => 6,
        "juil" | "lug" => 7,
        "août" | "aou" | "ago" => 8,
        "set" => 9,
        "okt" | "ott" => 10,
        "dez" | "déc" | "dic" => 12,
        _ => return None,
    })
}

/// `+0200`, `-2:30`, `+02`; what is no offset, or beyond 24 hours, counts as unknown.
fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some((h, m)) => (h.parse::<i64>().ok()?, m.parse::<i64>().ok()?),
        None => {
            let digits: i64 = rest.parse().ok()?;
            if rest.len() <= 2 { (digits, 0) } else { (digits / 100, digits % 100) }
        }
    };
    (hours < 24 && (0..60).contains(&minutes)).then_some(sign * (hours * 60 + minutes))
}

/// Names of zones, minutes east (RFC 5322 §4.3 and those that mail still carries). Single letters
/// count as UTC, since RFC 822 defined them the wrong way round.
fn zone_name(lower: &str) -> Option<i64> {
    for prefix in ["gmt", "utc", "ut"] {
        if let Some(rest) = lower.strip_prefix(prefix) {
            return Some(offset(rest).unwrap_or(0));
        }
    }
    let hours = match lower {
        "edt" | "ast" => -4,
        "est" | "cdt" => -5,
        "cst" | "mdt" => -6,
        "mst" | "pdt" => -7,
        "pst" | "akdt" => -8,
        "akst" => -9,
        "hst" => -10,
        "adt" => -3,
        "wet" | "z" => 0,
        "bst" | "cet" | "met" | "mez" | "west" => 1,
        "cest" | "mest" | "mesz" | "eet" | "sast" => 2,
        "eest" | "msk" => 3,
        "msd" => 4,
        "hkt" | "sgt" | "awst" => 8,
        "jst" | "kst" => 9,
        "aest" => 10,
        "aedt" => 11,
        "nzst" => 12,
        "nzdt" => 13,
        _ => return None,
    };
    Some(hours * 60)
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instant_in_many_spellings() {
        let instant = 1_030_015_585_000; // 2002-08-22T11:26:25Z
        for text in [
            "Thu, 22 Aug 2002 18:26:25 +0700",
            "22 Aug 2002 11:26:25 GMT",
            "Thu Aug 22 11:26:25 2002",
            "Thu Aug 22 07:26:25 EDT 2002",
            "Thursday, August 22, 2002 11:26:25 AM",
            "Thu, 22 Aug 02 13:26:25 +0200 (CEST)",
            "Thu, 22 Aug 102 11:26:25 Z",
            "2002-08-22T11:26:25Z",
            "2002-08-22T13:26:25+02:00",
            "2002/08/22 11:26:25",
            "22-Aug-2002 11.26.25",
            "08/22/2002 11:26:25",
            "22.08.2002 11:26:25",
            "Thu,22 Aug 2002 11:26:25",
            "Thu (a (b) c), 22 Aug 2002 11:26:25 -0000",
            "Thu, 22 Aug 2002 11:26:25 GMT+0000",
            "Thu, 22 August 2002 11:26:25 \"GMT\"",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(instant), "{text}");
        }
    }

    #[test]
    fn impossible_dates_are_refused() {
        for text in [
            "",
            "yesterday",
            "31 Feb 2002 10:00:00",
            "22 Aug 2002 25:61:00",
            "Thu, Aug 2002",
            "\u{fffd}",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"1 Jan 1970 00:00:00 +0000"), Some(0));
        assert_eq!(parse(b"22 Aug 2002 10:00:00 +9900"), parse(b"22 Aug 2002 10:00:00 +0000"));
    }
}
