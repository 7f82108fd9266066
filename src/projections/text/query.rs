//! Words and phrases → Tantivy queries. Built from analysed tokens only; text of a caller never
//! reaches a query parser.

use std::ops::Bound;

use tantivy::Term;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, InvertedIndexRangeQuery, Occur, PhrasePrefixQuery,
    PhraseQuery, Query, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use super::analysis::{Token, TokenKind, tokens};
use super::schema::Fields;
use super::{TextReader, stem};

/// A query ready to run.
#[derive(Debug)]
pub struct TextQuery(Box<dyn Query>);

impl Clone for TextQuery {
    fn clone(&self) -> Self {
        Self(self.0.box_clone())
    }
}

impl TextQuery {
    pub(super) fn inner(&self) -> &dyn Query {
        self.0.as_ref()
    }

    /// Every part must match, none of `but_not` may. `parts` must not be empty.
    #[must_use]
    pub fn all_of(parts: Vec<Self>, but_not: Vec<Self>) -> Self {
        let must = parts.into_iter().map(|q| (Occur::Must, q.0));
        let must_not = but_not.into_iter().map(|q| (Occur::MustNot, q.0));
        Self(Box::new(BooleanQuery::new(must.chain(must_not).collect())))
    }

    /// At least one part must match.
    #[must_use]
    pub fn any_of(parts: Vec<Self>) -> Self {
        Self(Box::new(BooleanQuery::new(parts.into_iter().map(|q| (Occur::Should, q.0)).collect())))
    }
}

/// A word or phrase cut into the tokens that a match must hold, at their distances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Token and its position relative to the first.
    pub tokens: Vec<(usize, String)>,
    /// The last token matches every token it begins.
    pub prefix: bool,
    /// How far the tokens may lie apart beyond their distances.
    pub slop: u32,
    /// One word: its stem matches too.
    pub word: Option<String>,
}

impl Pattern {
    /// Analyses a leaf; `None` when it holds no letter or digit.
    ///
    /// Runs of scripts without spaces become their pairs (one character: itself), so that any
    /// piece of such a run is found where it stands.
    #[must_use]
    pub fn new(text: &str, prefix: bool, slop: u32) -> Option<Self> {
        let all = tokens(text);
        let first = all.first()?.position;
        let kept: Vec<(usize, &Token)> = all
            .iter()
            .enumerate()
            .filter(|(at, token)| !is_covered(&all, *at, token))
            .map(|(_, token)| (token.position - first, token))
            .collect();
        let last_is_word = kept.last().is_some_and(|(_, t)| t.kind == TokenKind::Word);
        let word = match kept.as_slice() {
            [(_, only)] if only.kind == TokenKind::Word && !prefix => {
                Some(text[only.start..only.end].to_owned())
            }
            _ => None,
        };
        Some(Self {
            tokens: kept.into_iter().map(|(at, t)| (at, t.text.clone())).collect(),
            // A character of a spaceless script already matches inside every run that holds it.
            prefix: prefix && last_is_word,
            slop,
            word,
        })
    }
}

/// A unigram says nothing that a neighbouring pair does not say.
fn is_covered(all: &[Token], at: usize, token: &Token) -> bool {
    token.kind == TokenKind::Unigram
        && (all.get(at + 1).is_some_and(|next| next.kind == TokenKind::Bigram)
            || at
                .checked_sub(1)
                .and_then(|b| all.get(b))
                .is_some_and(|before| before.kind == TokenKind::Bigram && before.end == token.end))
}

/// Where a pattern may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Any field, weighted.
    Anywhere,
    /// The subject.
    Subject,
    /// Everything but participants and quoted text.
    Written,
}

impl TextReader {
    /// Query of one pattern. `languages` are those of the mailbox's messages, for stems.
    #[must_use]
    pub fn pattern(&self, pattern: &Pattern, scope: Scope, languages: &[String]) -> TextQuery {
        let fields = &self.fields;
        let weighted = match scope {
            Scope::Anywhere => fields.weighted().to_vec(),
            Scope::Subject => vec![(fields.subject, 8.0)],
            Scope::Written => {
                vec![(fields.subject, 8.0), (fields.new, 3.0), (fields.attachments, 1.5)]
            }
        };
        let mut parts: Vec<Box<dyn Query>> = weighted
            .into_iter()
            .map(|(field, weight)| boosted(in_field(pattern, field), weight))
            .collect();
        if let (Some(word), Scope::Anywhere) = (&pattern.word, scope) {
            parts.extend(stems(fields, word, languages));
        }
        TextQuery(Box::new(BooleanQuery::union(parts)))
    }
}

fn boosted(query: Box<dyn Query>, weight: f32) -> Box<dyn Query> {
    Box::new(BoostQuery::new(query, weight))
}

fn stems(fields: &Fields, word: &str, languages: &[String]) -> Vec<Box<dyn Query>> {
    languages
        .iter()
        .filter_map(|language| stem::for_query(language, word))
        .map(|token| {
            let term = Term::from_field_text(fields.stem, &token);
            boosted(
                Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
                Fields::STEM_WEIGHT,
            )
        })
        .collect()
}

fn in_field(pattern: &Pattern, field: Field) -> Box<dyn Query> {
    let terms: Vec<(usize, Term)> = pattern
        .tokens
        .iter()
        .map(|(at, token)| (*at, Term::from_field_text(field, token)))
        .collect();
    match (terms.as_slice(), pattern.prefix) {
        ([(_, term)], false) => {
            Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs))
        }
        ([(_, term)], true) => {
            // Everything from the prefix up to, not including, the first text behind all of its
            // continuations.
            let end = pattern
                .tokens
                .last()
                .map(|(_, token)| Term::from_field_text(field, &format!("{token}\u{10ffff}")));
            let range = InvertedIndexRangeQuery::new(
                Bound::Included(term.clone()),
                end.map_or(Bound::Unbounded, Bound::Excluded),
            );
            Box::new(ConstScoreQuery::new(Box::new(range), 1.0))
        }
        (_, true) => {
            let mut query = PhrasePrefixQuery::new_with_offset(terms);
            query.set_max_expansions(u32::MAX);
            Box::new(query)
        }
        (_, false) => Box::new(PhraseQuery::new_with_offset_and_slop(terms, pattern.slop)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str, prefix: bool) -> (Vec<(usize, String)>, bool, bool) {
        let pattern = Pattern::new(text, prefix, 0).expect("has tokens");
        (pattern.tokens, pattern.prefix, pattern.word.is_some())
    }

    #[test]
    fn compound_words_become_phrases_of_their_parts() {
        let parts = |list: &[&str]| {
            list.iter().enumerate().map(|(at, t)| (at, (*t).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(shape("Re-Use", false), (parts(&["re", "use"]), false, false));
        assert_eq!(shape("Cats", false), (parts(&["cats"]), false, true));
        assert_eq!(shape("foo.ba", true), (parts(&["foo", "ba"]), true, false));
        assert_eq!(Pattern::new("!?", false, 0), None);
    }

    #[test]
    fn spaceless_runs_become_pairs_and_single_characters_themselves() {
        let tokens = |text: &str| shape(text, false).0;
        assert_eq!(tokens("日"), [(0, "日".to_owned())]);
        assert_eq!(tokens("日本語"), [(0, "日本".to_owned()), (1, "本語".to_owned())]);
        let glued: Vec<_> =
            [(0, "v2"), (1, "日本"), (3, "x")].map(|(a, t)| (a, t.to_owned())).into();
        assert_eq!(tokens("V2日本x"), glued);
    }
}
