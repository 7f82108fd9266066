//! Stems: what makes `invoices` find `invoice`, in the language of the message.
//!
//! A stem stands in its own field, behind its language code (`en:invoic`), and only where it
//! differs from the folded word: the word itself is found without it. A query looks for the
//! stems of its words in every language that the mailbox holds.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use frostem::{Algorithm, Stemmer};

use super::analysis::{TokenKind, Tokens, fold};

/// Separates the language code from the text in a value of the `stem` field.
const TAG_END: char = '\u{1f}';
/// Words per language remembered with their stems; mail repeats itself (Zipf).
const REMEMBERED_MAX: usize = 50_000;
/// Longer words are names, digests or noise.
const STEMMED_BYTES_MAX: usize = 40;

/// Stemmer of a language by its ISO 639-1 code.
fn algorithm(language: &str) -> Option<Algorithm> {
    Some(match language {
        "ar" => Algorithm::Arabic,
        "da" => Algorithm::Danish,
        "de" => Algorithm::German,
        "el" => Algorithm::Greek,
        "en" => Algorithm::English,
        "es" => Algorithm::Spanish,
        "fi" => Algorithm::Finnish,
        "fr" => Algorithm::French,
        "hu" => Algorithm::Hungarian,
        "it" => Algorithm::Italian,
        "nl" => Algorithm::Dutch,
        "no" | "nb" | "nn" => Algorithm::Norwegian,
        "pt" => Algorithm::Portuguese,
        "ro" => Algorithm::Romanian,
        "ru" => Algorithm::Russian,
        "sv" => Algorithm::Swedish,
        "tr" => Algorithm::Turkish,
        _ => return None,
    })
}

/// The value of the `stem` field: text behind its language. `None` when there is no stemmer for
/// the language. Text too short to tell its language is taken for English when it is ASCII.
#[must_use]
pub fn tagged(language: Option<&str>, subject: &str, new_text: &str) -> Option<String> {
    let language = match language {
        Some(language) => language,
        None if new_text.is_ascii() && subject.is_ascii() => "en",
        None => return None,
    };
    algorithm(language)?;
    Some(format!("{language}{TAG_END}{subject}\n{new_text}"))
}

/// Stems words of any language, remembering what it saw.
#[derive(Default, Clone)]
pub struct Stems {
    remembered: HashMap<String, HashMap<String, Option<String>, RandomState>, RandomState>,
}

impl Stems {
    /// The token for a word's stem, `None` when the stem is the word itself or there is none.
    /// `lower` is the lower-cased word before folding, `folded` after.
    pub fn token(&mut self, language: &str, lower: &str, folded: &str) -> Option<&str> {
        if lower.len() > STEMMED_BYTES_MAX || lower.bytes().any(|b| b.is_ascii_digit()) {
            return None;
        }
        if !self.remembered.contains_key(language) {
            self.remembered.insert(language.to_owned(), HashMap::default());
        }
        let known = self.remembered.get_mut(language)?;
        if !known.contains_key(lower) {
            if known.len() >= REMEMBERED_MAX {
                known.clear();
            }
            let token = algorithm(language).and_then(|algorithm| {
                let stem = fold(&Stemmer::new(algorithm).stem(lower));
                (stem != folded && !stem.is_empty()).then(|| format!("{language}:{stem}"))
            });
            known.insert(lower.to_owned(), token);
        }
        known.get(lower)?.as_deref()
    }
}

impl std::fmt::Debug for Stems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stems({} languages)", self.remembered.len())
    }
}

/// Calls `each` with every stem token of a tagged value.
pub(super) fn each_stem(stems: &mut Stems, value: &str, mut each: impl FnMut(&str)) {
    let Some((language, text)) = value.split_once(TAG_END) else { return };
    let mut tokens = Tokens::new(text);
    while tokens.advance() {
        let token = tokens.token();
        if token.kind == TokenKind::Word
            && let Some(stem) = of_word(stems, language, &text[token.start..token.end], &token.text)
        {
            each(stem);
        }
    }
}

fn of_word<'s>(
    stems: &'s mut Stems,
    language: &str,
    written: &str,
    folded: &str,
) -> Option<&'s str> {
    if written.is_ascii() {
        stems.token(language, folded, folded)
    } else {
        stems.token(language, &written.to_lowercase(), folded)
    }
}

/// Stem tokens to look for when a query holds `word`: what a message in `language` holds when
/// it was written with an inflection of the same stem. Gives the stem itself even where it equals
/// the word, because the message's own word may differ from it.
#[must_use]
pub fn for_query(language: &str, word: &str) -> Option<String> {
    let algorithm = algorithm(language)?;
    if word.len() > STEMMED_BYTES_MAX || word.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    let stem = fold(&Stemmer::new(algorithm).stem(&word.to_lowercase()));
    (!stem.is_empty()).then(|| format!("{language}:{stem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems_of(language: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let value = tagged(Some(language), "", text).expect("known language");
        each_stem(&mut Stems::default(), &value, |s| found.push(s.to_owned()));
        found
    }

    #[test]
    fn only_differing_stems_are_indexed_and_queries_meet_them() {
        assert_eq!(stems_of("en", "The invoices invoice run"), ["en:invoic", "en:invoic"]);
        assert_eq!(for_query("en", "invoice").as_deref(), Some("en:invoic"));
        assert_eq!(stems_of("de", "Häuser"), ["de:haus"]);
        assert_eq!(for_query("de", "Haus").as_deref(), Some("de:haus"));
        assert_eq!(stems_of("en", "x2000s 日本"), Vec::<String>::new());
    }

    #[test]
    fn unknown_language_has_no_stems_and_short_ascii_counts_as_english() {
        assert_eq!(tagged(Some("ja"), "s", "text"), None);
        assert!(tagged(None, "s", "text").is_some_and(|v| v.starts_with("en\u{1f}")));
        assert_eq!(tagged(None, "s", "tëxt"), None);
    }
}
