//! Labels: their grammar, and how names from elsewhere become one.
//!
//! ```text
//! label = [a-z0-9] *63([a-z0-9_:-])
//! slug  = level *(":" level)          levels of the name are parted by "/"
//! level = ASCII in lower case, white space and punctuation as "-"
//!       | "xn--" punycode             when anything is not ASCII (RFC 3492, over NFC)
//! ```
//! Names that differ in more than case and punctuation give different labels; too long ones are
//! cut and end in eight hex digits of their SHA-256. A name that would pass for one of
//! [`SYSTEM`] gets the prefix `user:`.

use idna::punycode;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

/// Most labels of one entry.
const LABELS_MAX: usize = 64;

/// Longest label, bytes.
const LABEL_BYTES_MAX: usize = 64;

/// Labels that only a state of the message may give.
const SYSTEM: [&str; 10] = [
    "unread",
    "starred",
    "important",
    "needs_reply",
    "replied",
    "forwarded",
    "draft",
    "trashed",
    "expunged",
    "muted",
];

/// Labels of one entry, in order, without repetition, at most 64.
#[derive(Debug, Default)]
pub(super) struct Labels(Vec<String>);

impl Labels {
    /// Adds a label that fits the grammar.
    pub(super) fn add(&mut self, label: &str) {
        debug_assert!(fits(label), "{label}");
        if self.0.len() < LABELS_MAX && !self.0.iter().any(|known| known == label) {
            self.0.push(label.to_owned());
        }
    }

    /// Adds a name given by a user.
    pub(super) fn add_name(&mut self, name: &str) {
        if !name.trim().is_empty() {
            self.add(&slug(name));
        }
    }

    /// Adds an IMAP keyword (RFC 5788 registry, Thunderbird, Dovecot): those with the meaning of
    /// a system label become that label, marks of filters and clients are left out.
    pub(super) fn add_keyword(&mut self, keyword: &str) {
        match keyword.to_ascii_lowercase().as_str() {
            "\\flagged" => self.add("starred"),
            "\\answered" => self.add("replied"),
            "\\draft" => self.add("draft"),
            "\\deleted" => self.add("trashed"),
            "$forwarded" | "forwarded" => self.add("forwarded"),
            "$important" => self.add("important"),
            "\\seen" | "\\recent" | "$mdnsent" | "mdnsent" | "nonjunk" | "notjunk" | "$notjunk"
            | "junkrecorded" => {}
            _ => self.add_name(keyword),
        }
    }

    pub(super) fn into_vec(self) -> Vec<String> {
        self.0
    }
}

/// Does it match `^[a-z0-9][a-z0-9_:-]{0,63}$`?
pub(super) fn fits(label: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    label.len() <= LABEL_BYTES_MAX
        && label.bytes().next().is_some_and(plain)
        && label.bytes().all(|b| plain(b) || matches!(b, b'_' | b':' | b'-'))
}

/// The label for a name; always fits the grammar.
pub(super) fn slug(name: &str) -> String {
    let name: String = name.trim().to_lowercase().nfc().collect();
    let levels: Vec<String> =
        name.split('/').map(level).filter(|level| !level.is_empty()).collect();
    let mut label = levels.join(":");
    if label.is_empty() {
        return format!("label-{}", digest(&name));
    }
    if SYSTEM.contains(&label.as_str()) {
        label.insert_str(0, "user:");
    }
    if label.len() > LABEL_BYTES_MAX {
        // All ASCII by now, so that any byte is a character boundary.
        label.truncate(LABEL_BYTES_MAX - 9);
        label.push('-');
        label.push_str(&digest(&name));
    }
    label
}

fn level(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_ascii_alphanumeric() || !character.is_ascii() {
            plain.push(character);
        } else if !plain.ends_with('-') {
            plain.push('-');
        }
    }
    let plain = plain.trim_matches('-');
    if plain.is_ascii() {
        return plain.to_owned();
    }
    match punycode::encode_str(plain) {
        Some(encoded) => format!("xn--{encoded}"),
        // Only beyond thousands of characters.
        None => format!("label-{}", digest(name)),
    }
}

fn digest(name: &str) -> String {
    Sha256::digest(name.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_readable_labels() {
        for (name, want) in [
            ("Work", "work"),
            ("Work/Project X", "work:project-x"),
            ("  a, b & c!  ", "a-b-c"),
            ("$label1", "label1"),
            ("Bücher", "xn--bcher-kva"),
            ("Bu\u{308}cher", "xn--bcher-kva"),
            ("Café/Été", "xn--caf-dma:xn--t-9fab"),
            ("Unread", "user:unread"),
            ("needs_reply", "needs-reply"),
        ] {
            assert_eq!(slug(name), want, "{name}");
        }
        assert!(slug("!!!").starts_with("label-"));
        assert_ne!(slug("!!!"), slug("???"));
        assert_ne!(slug(&"long ".repeat(30)), slug(&"long ".repeat(31)));
    }

    #[test]
    fn keywords_with_a_known_meaning() {
        let mut labels = Labels::default();
        for keyword in ["$Forwarded", "NonJunk", "\\Flagged", "$label1", "Todo", "todo"] {
            labels.add_keyword(keyword);
        }
        assert_eq!(labels.into_vec(), ["forwarded", "starred", "label1", "todo"]);
    }

    #[test]
    fn at_most_64() {
        let mut labels = Labels::default();
        (0..100).for_each(|n| labels.add_name(&format!("n{n}")));
        assert_eq!(labels.into_vec().len(), 64);
    }

    proptest! {
        #[test]
        fn every_name_fits(name in "\\PC{0,90}") {
            prop_assert!(fits(&slug(&name)), "{}", slug(&name));
        }

        #[test]
        fn distinct_scripts_stay_distinct(a in "[а-яα-ωあ-ん]{1,12}", b in "[а-яα-ωあ-ん]{1,12}") {
            let same = a.to_lowercase().nfc().eq(b.to_lowercase().nfc());
            prop_assert_eq!(slug(&a) == slug(&b), same);
        }
    }
}
