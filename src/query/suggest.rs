//! Remedies for refused queries: the name that was meant, or the quoting that helps.
//!
//! A remedy is a text that can be typed in place of the refused part. None is better than a wrong
//! one, so the distances are small, and long texts get none.

use super::operators::{self, Op};
use super::print;

/// Greatest length of a remedy, in characters.
pub(super) const CHARS_MAX: usize = 64;

/// The remedy, unless it is too long to be one.
pub(super) fn bounded(remedy: String) -> Option<String> {
    (remedy.chars().nth(CHARS_MAX).is_none()).then_some(remedy)
}

/// The text in quotes.
pub(super) fn quoted(text: &str) -> Option<String> {
    if text.trim().is_empty() { None } else { bounded(print::quoted(text)) }
}

/// For `name:value` with an unknown name; `value` is raw, with its quotes if it has some.
pub(super) fn operator(name: &str, value: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    // `std::fmt` and `https://…` are text whatever their name resembles.
    let literal =
        operators::is_literal(&lower) || value.starts_with(':') || value.starts_with("//");
    let meant = if literal {
        None
    } else {
        operators::synonym(&lower)
            .map(Op::name)
            .or_else(|| nearest(&lower, Op::ALL.into_iter().map(Op::name)))
    };
    match meant {
        Some(op) => bounded(format!("{op}:{value}")),
        None => quoted(&format!("{name}:{}", value.trim_matches('"'))),
    }
}

/// The candidate that `word` (lower case) most likely was meant to be: the only one it begins, with
/// three characters at least, else the first of those at the smallest edit distance, of at most one
/// for words up to three characters and two for longer ones.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(CHARS_MAX + 1).collect();
    if word.is_empty() || word.len() > CHARS_MAX {
        return None;
    }
    let distance_max = if word.len() <= 3 { 1 } else { 2 };
    let mut best: Option<(usize, &str)> = None;
    let mut begun: Vec<&str> = Vec::new();
    for candidate in candidates {
        let folded: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        if word.len() >= 3 && folded.starts_with(&word) {
            begun.push(candidate);
        }
        if folded.len().abs_diff(word.len()) <= distance_max {
            let distance = edit_distance(&word, &folded);
            // A candidate that shares nothing with the word (`ab` for `cc`) is no help.
            let shares = distance < folded.len().max(word.len());
            if distance <= distance_max && shares && best.is_none_or(|(least, _)| distance < least)
            {
                best = Some((distance, candidate));
            }
        }
    }
    match begun.as_slice() {
        [only] => Some(only),
        _ => best.map(|(_, candidate)| candidate),
    }
}

/// Edit distance in which swapping two neighbours counts once (optimal string alignment).
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut two_above: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &to) in b.iter().enumerate() {
            let swap_or_replace = above[j] + usize::from(from != to);
            let mut least = swap_or_replace.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                least = least.min(two_above[j - 1] + 1);
            }
            row.push(least);
        }
        two_above = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: &str, b: &str) -> usize {
        edit_distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
    }

    #[test]
    fn distances() {
        assert_eq!(distance("from", "from"), 0);
        assert_eq!(distance("form", "from"), 1);
        assert_eq!(distance("frm", "from"), 1);
        assert_eq!(distance("unred", "unread"), 1);
        assert_eq!(distance("", "to"), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn the_nearest_is_the_begun_one_or_the_least_distant() {
        let names = ["from", "participant", "larger", "lang", "label"];
        let nearest = |word| nearest(word, names.into_iter());
        assert_eq!(nearest("part"), Some("participant"));
        assert_eq!(nearest("form"), Some("from"));
        assert_eq!(nearest("la"), None);
        assert_eq!(nearest("lan"), Some("lang"));
        assert_eq!(nearest("zebra"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(nearest(&"x".repeat(1000)), None);
    }

    #[test]
    fn operators_are_corrected_or_quoted() {
        let cases = [
            ("frm", "jo", "from:jo"),
            ("FORM", "\"Jo Rivera\"", "from:\"Jo Rivera\""),
            ("sender", "jo", "from:jo"),
            ("since", "2026-01-01", "after:2026-01-01"),
            ("https", "//example.com/a", "\"https://example.com/a\""),
            ("file", "///etc", "\"file:///etc\""),
            ("std", ":fmt", "\"std::fmt\""),
            ("Re", "", "\"Re:\""),
            ("header", "x", "\"header:x\""),
        ];
        for (name, value, remedy) in cases {
            assert_eq!(operator(name, value).as_deref(), Some(remedy), "{name}:{value}");
        }
        assert_eq!(operator("frm", &"x".repeat(100)), None);
    }
}
