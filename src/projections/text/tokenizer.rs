//! Our analysis as Tantivy sees it.

use tantivy::tokenizer::{Token as TantivyToken, TokenStream, Tokenizer};

use super::analysis::Tokens;
use super::stem::{Stems, each_stem};

/// Words and characters, see [`super::analysis`].
#[derive(Debug, Clone, Default)]
pub(super) struct Words;

/// Stems, see [`super::stem`].
#[derive(Debug, Clone, Default)]
pub(super) struct StemWords {
    stems: Stems,
}

pub(super) struct WordStream<'t> {
    tokens: Tokens<'t>,
    token: TantivyToken,
}

impl Tokenizer for Words {
    type TokenStream<'t> = WordStream<'t>;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> WordStream<'t> {
        WordStream { tokens: Tokens::new(text), token: TantivyToken::default() }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        if !self.tokens.advance() {
            return false;
        }
        let found = self.tokens.token();
        self.token.text.clear();
        self.token.text.push_str(&found.text);
        self.token.offset_from = found.start;
        self.token.offset_to = found.end;
        self.token.position = found.position;
        true
    }

    fn token(&self) -> &TantivyToken {
        &self.token
    }

    fn token_mut(&mut self) -> &mut TantivyToken {
        &mut self.token
    }
}

/// Stems of one value, gathered first: they are few.
pub(super) struct StemStream {
    joined: String,
    ends: Vec<usize>,
    at: usize,
    token: TantivyToken,
}

impl Tokenizer for StemWords {
    type TokenStream<'t> = StemStream;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> StemStream {
        let mut joined = String::new();
        let mut ends = Vec::new();
        each_stem(&mut self.stems, text, |stem| {
            joined.push_str(stem);
            ends.push(joined.len());
        });
        StemStream { joined, ends, at: 0, token: TantivyToken::default() }
    }
}

impl TokenStream for StemStream {
    fn advance(&mut self) -> bool {
        let Some(end) = self.ends.get(self.at) else { return false };
        let start = self.at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.token.text.clear();
        self.token.text.push_str(&self.joined[start..*end]);
        self.token.position = self.at;
        self.at += 1;
        true
    }

    fn token(&self) -> &TantivyToken {
        &self.token
    }

    fn token_mut(&mut self) -> &mut TantivyToken {
        &mut self.token
    }
}
