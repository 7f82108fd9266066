//! Counts with their nouns.

/// `1 message`, `2 messages`: a count and what is counted, in the plural by an `s`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
