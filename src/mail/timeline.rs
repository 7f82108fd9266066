//! When a message was sent and received: the order of witnesses.
//!
//! Live mail was received when it arrived; archived mail when its separator line, its newest
//! Received header or its file says, else at its Date. Nothing is ever "received now" because it
//! was imported now; a message with no witness has `received_ms == 0` and the defect *undated*.

use memchr::memrchr;

use super::date;
use super::defects::Defects;
use super::header::{Headers, unfold};
use super::message::{DefectKind, ReadHints};

const DAY_MS: i64 = 86_400_000;
/// How far a Date may lie after the receipt.
const AHEAD_MS: i64 = DAY_MS;
/// How far a Date of live mail may lie before its arrival: ten years.
const BEHIND_MS: i64 = 3_653 * DAY_MS;
/// 2101-01-01T00:00:00Z: no witness is believed from here on.
const END_MS: i64 = 4_133_980_800_000;
/// How far the message date may lie after the receipt (digest §1.5).
const DATE_SLACK_MS: i64 = 300_000;

/// The three times of a message, unix ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) sent: Option<i64>,
    pub(super) received: i64,
    pub(super) date: i64,
}

/// Weighs the witnesses.
pub(super) fn settle(headers: &Headers<'_>, hints: &ReadHints, defects: &mut Defects) -> Times {
    let date_field = headers.get("Date").or_else(|| headers.get("Resent-Date"));
    let claimed = date_field.and_then(|raw| date::parse(&unfold(raw)));
    let believable = |ms: &i64| (0..END_MS).contains(ms);
    let witnessed = match hints.arrived_ms {
        Some(arrived) => Some(arrived),
        None => hints
            .separator_ms
            .or_else(|| headers.separator.and_then(separator_time))
            .filter(believable)
            .or_else(|| headers.all("Received").filter_map(received_time).find(believable))
            .or(hints.file_ms.filter(believable)),
    };
    let earliest = hints.arrived_ms.map_or(0, |arrived| arrived.saturating_sub(BEHIND_MS));
    let latest = witnessed.map_or(END_MS - 1, |ms| ms.saturating_add(AHEAD_MS));
    let sent = claimed.filter(|ms| (earliest..=latest).contains(ms));
    match (date_field, sent) {
        (None, _) => defects.push(DefectKind::DateMissing, "Date"),
        (Some(_), None) => defects.push(DefectKind::DateUnusable, "Date"),
        _ => {}
    }
    let received = witnessed.or(sent).unwrap_or_else(|| {
        defects.push(DefectKind::Undated, "Date");
        0
    });
    let date = sent.unwrap_or(received).min(received.saturating_add(DATE_SLACK_MS));
    Times { sent, received, date }
}

/// `From sender  Thu Aug 22 12:36:23 2002`: the date begins at the weekday (senders may be several
/// words, `user at host`), else after the sender.
fn separator_time(line: &[u8]) -> Option<i64> {
    let rest = line.splitn(2, |&b| b == b' ').nth(1)?.trim_ascii_start();
    let weekday = rest.windows(5).position(|w| {
        let is_day = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"]
            .iter()
            .any(|d| w[1..4] == d[..]);
        is_day && w[0] == b' ' && matches!(w[4], b' ' | b',')
    });
    let from = weekday.or_else(|| rest.iter().position(u8::is_ascii_whitespace))?;
    date::parse(&rest[from..])
}

/// The date of a Received field stands after its last semicolon (RFC 5322 §3.6.7).
fn received_time(raw: &[u8]) -> Option<i64> {
    let raw = &raw[..raw.len().min(16 * 1024)];
    let at = memrchr(b';', raw)?;
    date::parse(&unfold(&raw[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::super::header::split;
    use super::*;

    fn times(raw: &str, hints: &ReadHints) -> (Times, Vec<DefectKind>) {
        let (headers, _) = split(raw.as_bytes(), 0, true, |_| false);
        let mut defects = Defects::default();
        let times = settle(&headers, hints, &mut defects);
        (times, defects.into_vec().into_iter().map(|d| d.kind).collect())
    }

    const AUG_22: i64 = 1_029_974_400_000; // 2002-08-22T00:00:00Z

    #[test]
    fn an_archive_message_is_never_received_today() {
        let (t, d) = times("Subject: x\n\n", &ReadHints::default());
        assert_eq!((t.sent, t.received, t.date), (None, 0, 0));
        assert_eq!(d, [DefectKind::DateMissing, DefectKind::Undated]);
    }

    #[test]
    fn witnesses_come_in_the_order_of_the_contract() {
        let raw = "Date: Thu, 22 Aug 2002 00:00:00 +0000\nReceived: by a; Thu, 22 Aug 2002 01:00:00 +0000\nReceived: by b; Thu, 22 Aug 2002 00:30:00 +0000\n\n";
        let (t, _) = times(
            raw,
            &ReadHints { separator_ms: Some(AUG_22 + 1), file_ms: Some(5), ..Default::default() },
        );
        assert_eq!(t.received, AUG_22 + 1);
        let (t, _) = times(raw, &ReadHints { file_ms: Some(5), ..Default::default() });
        assert_eq!((t.received, t.sent, t.date), (AUG_22 + 3_600_000, Some(AUG_22), AUG_22));
        let (t, _) = times(
            "Date: Thu, 22 Aug 2002 00:00:00 +0000\n\n",
            &ReadHints { file_ms: Some(AUG_22 + 9), ..Default::default() },
        );
        assert_eq!(t.received, AUG_22 + 9);
    }

    #[test]
    fn dates_from_the_future_and_from_long_ago_are_not_believed() {
        let future = "Date: Thu, 22 Aug 2030 00:00:00 +0000\nReceived: by a; Thu, 22 Aug 2002 00:00:00 +0000\n\n";
        let (t, d) = times(future, &ReadHints::default());
        assert_eq!((t.sent, t.date), (None, AUG_22));
        assert_eq!(d, [DefectKind::DateUnusable]);
        let old = "Date: Thu, 22 Aug 1985 00:00:00 +0000\n\n";
        assert!(times(old, &ReadHints::default()).0.sent.is_some());
        assert!(
            times(old, &ReadHints { arrived_ms: Some(AUG_22), ..Default::default() })
                .0
                .sent
                .is_none()
        );
        let slack = "Date: Thu, 22 Aug 2002 05:00:00 +0000\n\n";
        let (t, _) = times(slack, &ReadHints { arrived_ms: Some(AUG_22), ..Default::default() });
        assert_eq!(t.date, AUG_22 + DATE_SLACK_MS);
    }
}
