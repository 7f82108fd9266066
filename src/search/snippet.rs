//! Snippets: the piece of a message that shows why it was found.
//!
//! The source is the first of new text, subject, text of nested messages, whole text that holds a
//! word of the query, else the start of the new text. The window is the one that
//! covers most different words, then most words, then the earliest. The result is plain text:
//! control characters gone, white space collapsed, `…` where text was cut. Places are counted in
//! characters of the result, so that a door can mark them after escaping.

use crate::projections::catalog::prepared::Prepared;
use crate::projections::text::analysis::{Token, TokenKind, Tokens};
use crate::projections::text::query::Pattern;
use crate::projections::text::stem;

/// Of a long text, only so many bytes are looked at: the snippet of a match behind them shows the
/// start of the text instead.
const LOOKED_AT_MAX: usize = 256 << 10;
/// Matches that are weighed against each other.
const SPANS_MAX: usize = 2_000;
/// Share of the window in front of the first match.
const LEAD_PART: usize = 4;

/// A snippet and the places of the query's words in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snippet {
    /// Plain text.
    pub text: String,
    /// Start and end, characters.
    pub highlights: Vec<(u32, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: usize,
    end: usize,
    pattern: usize,
}

/// Cuts the snippet of a message, at most `chars_max` characters. `passage`: what lies nearest to
/// the query, in the new text; shown when no word of the query stands anywhere.
#[must_use]
pub fn cut(
    message: &Prepared,
    patterns: &[Pattern],
    passage: Option<(u32, u32)>,
    chars_max: usize,
) -> Snippet {
    let language = message.language.as_deref().unwrap_or("en");
    let wanted: Vec<Wanted<'_>> = patterns.iter().map(|p| Wanted::new(p, language)).collect();
    let new_text = message.new_text();
    let nested = message.attachments.iter().map(|a| a.text.as_str());
    let sources = [new_text.as_str(), &message.subject]
        .into_iter()
        .chain(nested)
        .chain(std::iter::once(message.text.as_str()));
    if !wanted.is_empty() {
        for source in sources {
            let looked_at = &source[..source.floor_char_boundary(LOOKED_AT_MAX)];
            let spans = find(looked_at, &wanted);
            if !spans.is_empty() {
                return window(looked_at, &spans, wanted.len(), chars_max);
            }
        }
    }
    // Found by what it means: the passage that means it.
    let passage = passage.and_then(|(start, end)| new_text.get(start as usize..end as usize));
    if let Some(passage) = passage.filter(|passage| !passage.trim().is_empty()) {
        return window(passage, &[], 0, chars_max);
    }
    let plain = [new_text.as_str(), &message.text, &message.subject]
        .into_iter()
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default();
    window(&plain[..plain.floor_char_boundary(LOOKED_AT_MAX)], &[], 0, chars_max)
}

/// A pattern and the stem its word has in the message's language.
struct Wanted<'p> {
    pattern: &'p Pattern,
    language: &'p str,
    stem: Option<String>,
}

impl<'p> Wanted<'p> {
    fn new(pattern: &'p Pattern, language: &'p str) -> Self {
        let stem = pattern.word.as_deref().and_then(|word| stem::for_query(language, word));
        Self { pattern, language, stem }
    }

    fn matches_one(&self, source: &str, token: &Token) -> bool {
        let Some((_, wanted)) = self.pattern.tokens.last() else { return false };
        if token.text == *wanted {
            return true;
        }
        if self.pattern.prefix {
            return token.text.starts_with(wanted.as_str());
        }
        let Some(stem) = &self.stem else { return false };
        // Inflections share their first letter in every language that has a stemmer here.
        token.kind == TokenKind::Word
            && token.text.chars().next() == wanted.chars().next()
            && stem::for_query(self.language, &source[token.start..token.end]).as_ref()
                == Some(stem)
    }
}

fn find(source: &str, wanted: &[Wanted<'_>]) -> Vec<Span> {
    let longest = wanted.iter().map(|w| w.pattern.tokens.len()).max().unwrap_or(0);
    let mut spans = Vec::new();
    if longest <= 1 {
        let mut stream = Tokens::new(source);
        while stream.advance() && spans.len() < SPANS_MAX {
            let token = stream.token();
            for (at, one) in wanted.iter().enumerate() {
                if one.matches_one(source, token) {
                    spans.push(Span { start: token.start, end: token.end, pattern: at });
                }
            }
        }
        return spans;
    }
    let mut all = Vec::new();
    let mut stream = Tokens::new(source);
    while stream.advance() {
        all.push(stream.token().clone());
    }
    for (first, token) in all.iter().enumerate() {
        for (at, one) in wanted.iter().enumerate() {
            if one.pattern.tokens.len() == 1 {
                if one.matches_one(source, token) {
                    spans.push(Span { start: token.start, end: token.end, pattern: at });
                }
            } else if let Some(end) = phrase_end(&all[first..], one.pattern) {
                spans.push(Span { start: token.start, end, pattern: at });
            }
        }
        if spans.len() >= SPANS_MAX {
            break;
        }
    }
    spans
}

/// End of the phrase that begins at the first of `tokens`, if one does.
fn phrase_end(tokens: &[Token], pattern: &Pattern) -> Option<usize> {
    let first = tokens.first()?;
    let (_, first_wanted) = pattern.tokens.first()?;
    if first.text != *first_wanted {
        return None;
    }
    let mut end = first.end;
    let mut allowed = 0;
    let mut rest = tokens.iter();
    for (number, (offset, wanted)) in pattern.tokens.iter().enumerate().skip(1) {
        allowed += pattern.slop as usize;
        let last = number + 1 == pattern.tokens.len();
        let found = rest.by_ref().find(|token| {
            let distance = token.position - first.position;
            let fits = token.text == *wanted
                || (last && pattern.prefix && token.text.starts_with(wanted.as_str()));
            (fits && distance >= *offset) || distance > offset + allowed
        })?;
        if found.position - first.position > offset + allowed {
            return None;
        }
        end = found.end;
    }
    Some(end)
}

/// The best window of `chars_max` characters.
fn window(source: &str, spans: &[Span], patterns: usize, chars_max: usize) -> Snippet {
    let mut best = 0;
    let mut best_score = 0;
    for (first, span) in spans.iter().enumerate() {
        // A character is at least a byte, so this window never holds more than fits.
        let inside = spans[first..].iter().take_while(|s| s.end <= span.start + chars_max * 3 / 4);
        let mut seen = vec![false; patterns];
        let mut total = 0;
        for one in inside {
            seen[one.pattern] = true;
            total += 1;
        }
        let score = 10 * seen.iter().filter(|s| **s).count() + total;
        if score > best_score {
            (best, best_score) = (first, score);
        }
    }
    // A text that fits whole is shown whole.
    let from = match spans.get(best) {
        Some(span) if source.chars().nth(chars_max).is_some() => {
            word_start(source, span.start, chars_max / LEAD_PART)
        }
        _ => 0,
    };
    render(source, from, spans, chars_max)
}

/// A word boundary at most `chars` characters in front of `at`.
fn word_start(source: &str, at: usize, chars: usize) -> usize {
    let mut start = at;
    let mut boundary = at;
    for (index, c) in source[..at].char_indices().rev().take(chars) {
        if c.is_whitespace() {
            boundary = start;
        }
        start = index;
    }
    if start == 0 { 0 } else { boundary }
}

fn render(source: &str, from: usize, spans: &[Span], chars_max: usize) -> Snippet {
    let mut text = String::new();
    // Byte offset in the source of each character of the result.
    let mut origin: Vec<usize> = Vec::new();
    if source[..from].chars().any(|c| !c.is_whitespace()) {
        text.push('…');
        origin.push(from);
    }
    let mut space = false;
    let mut is_cut = false;
    for (index, c) in source[from..].char_indices() {
        let at = from + index;
        if c.is_whitespace() {
            space = !text.is_empty() && !text.ends_with('…');
            continue;
        }
        if c.is_control() || is_invisible(c) {
            continue;
        }
        if origin.len() + 1 + usize::from(space) > chars_max {
            is_cut = true;
            break;
        }
        if std::mem::take(&mut space) {
            // The blank lies in front of the word, and so does its place.
            text.push(' ');
            origin.push(at - 1);
        }
        text.push(c);
        origin.push(at);
    }
    if is_cut {
        // Give up the last, cut word when it is short, and make room for the mark.
        let keep = text
            .trim_end()
            .rfind(' ')
            .filter(|s| text.len() - s < 40)
            .unwrap_or_else(|| text.char_indices().next_back().map_or(0, |(last, _)| last));
        text.truncate(keep);
        origin.truncate(text.chars().count());
        text.push('…');
    }
    let place = |at: usize| origin.partition_point(|o| *o < at) as u32;
    let end_of_source = origin.last().map_or(from, |last| last + 1);
    let mut highlights: Vec<(u32, u32)> = spans
        .iter()
        .filter(|s| s.start >= from && s.start < end_of_source)
        .map(|s| (place(s.start), place(s.end)))
        .filter(|(start, end)| start < end)
        .collect();
    highlights.sort_unstable();
    highlights.dedup_by(|next, before| {
        let joins = next.0 < before.1;
        if joins {
            before.1 = before.1.max(next.1);
        }
        joins
    });
    Snippet { text, highlights }
}

/// Format characters that only confuse: zero-width, bidirectional, tags.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{ad}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
#[path = "snippet_test.rs"]
mod snippet_test;
