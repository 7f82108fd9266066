//! States of a message that mail programs keep in its header, as labels.
//!
//! ```text
//! Status:            letters, "R" = read            (mail(1), Pine, Dovecot)
//! X-Status:          letters A F D T                (same)
//! X-Mozilla-Status:  four hex digits, bits below    (Thunderbird; wins over Status)
//! X-Keywords, X-Mozilla-Keys: IMAP keywords parted by blanks
//! ```
//! Takes the values, reads nothing itself; never guesses a state that no field tells.

use super::header::Facts;
use super::labels::Labels;

/// Bits of X-Mozilla-Status (Thunderbird, `nsMsgMessageFlags`).
const MOZILLA_READ: u32 = 0x0001;
const MOZILLA_REPLIED: u32 = 0x0002;
const MOZILLA_MARKED: u32 = 0x0004;
const MOZILLA_EXPUNGED: u32 = 0x0008;
const MOZILLA_FORWARDED: u32 = 0x1000;

/// Adds the labels that an entry's own fields tell.
pub(super) fn from_header(facts: &Facts, labels: &mut Labels) {
    let mozilla = facts
        .mozilla_status
        .as_deref()
        .and_then(|value| std::str::from_utf8(value).ok())
        .and_then(|value| u32::from_str_radix(value, 16).ok());
    if let Some(bits) = mozilla {
        for (bit, set, label) in [
            (MOZILLA_READ, false, "unread"),
            (MOZILLA_MARKED, true, "starred"),
            (MOZILLA_REPLIED, true, "replied"),
            (MOZILLA_FORWARDED, true, "forwarded"),
            (MOZILLA_EXPUNGED, true, "expunged"),
        ] {
            if (bits & bit != 0) == set {
                labels.add(label);
            }
        }
    } else if facts.status.as_deref().is_some_and(|value| !value.contains(&b'R')) {
        labels.add("unread");
    }
    for letter in facts.x_status.iter().flatten() {
        match letter {
            b'F' => labels.add("starred"),
            b'A' => labels.add("replied"),
            b'D' => labels.add("trashed"),
            b'T' => labels.add("draft"),
            _ => {}
        }
    }
    if let Some(keywords) = &facts.keywords {
        for keyword in String::from_utf8_lossy(keywords).split_ascii_whitespace() {
            labels.add_keyword(keyword);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::header;
    use super::*;

    fn labels(block: &str) -> Vec<String> {
        let mut labels = Labels::default();
        from_header(&header::scan(block.as_bytes(), b'\n'), &mut labels);
        labels.into_vec()
    }

    #[test]
    fn each_field_tells_its_states() {
        for (block, want) in [
            ("Subject: x\n", &[][..]),
            ("Status: RO\n", &[]),
            ("Status: O\n", &["unread"]),
            ("Status:\nX-Status: AF\n", &["unread", "replied", "starred"]),
            ("X-Mozilla-Status: 0001\n", &[]),
            ("Status: O\nX-Mozilla-Status: 0001\n", &[]),
            ("X-Mozilla-Status: 0000\n", &["unread"]),
            ("X-Mozilla-Status: 100f\n", &["starred", "replied", "forwarded", "expunged"]),
            ("X-Keywords: Work $Forwarded\n", &["work", "forwarded"]),
            ("X-Mozilla-Status: zz\n", &[]),
        ] {
            assert_eq!(labels(block), want, "{block}");
        }
    }
}
