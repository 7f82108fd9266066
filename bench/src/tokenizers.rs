//! The analysis of Postrider for an index that Postrider does not own.
//!
//! Postrider registers its analysers privately; these give the same tokens from the same public
//! parts, which a test holds them to, so that both sides do the same work per document.

use postrider::projections::text::analysis::{TokenKind, Tokens};
use postrider::projections::text::stem::Stems;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Behind the language in a value of the `stem` field.
const TAG_END: char = '\u{1f}';

/// Words.
#[derive(Clone)]
pub(crate) struct Words;

pub(crate) struct WordStream<'t> {
    tokens: Tokens<'t>,
    token: Token,
}

impl Tokenizer for Words {
    type TokenStream<'t> = WordStream<'t>;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> WordStream<'t> {
        WordStream { tokens: Tokens::new(text), token: Token::default() }
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

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

/// Stems that differ from their words.
#[derive(Clone, Default)]
pub(crate) struct StemWords(Stems);

pub(crate) struct StemStream<'t> {
    stems: &'t mut Stems,
    language: &'t str,
    text: &'t str,
    tokens: Tokens<'t>,
    next: usize,
    token: Token,
}

impl Tokenizer for StemWords {
    type TokenStream<'t> = StemStream<'t>;

    fn token_stream<'t>(&'t mut self, value: &'t str) -> StemStream<'t> {
        let (language, text) = value.split_once(TAG_END).unwrap_or_default();
        let tokens = Tokens::new(text);
        StemStream { stems: &mut self.0, language, text, tokens, next: 0, token: Token::default() }
    }
}

impl TokenStream for StemStream<'_> {
    fn advance(&mut self) -> bool {
        while self.tokens.advance() {
            let found = self.tokens.token();
            if found.kind != TokenKind::Word {
                continue;
            }
            let written = &self.text[found.start..found.end];
            let stem = if written.is_ascii() {
                self.stems.token(self.language, &found.text, &found.text)
            } else {
                self.stems.token(self.language, &written.to_lowercase(), &found.text)
            };
            if let Some(stem) = stem {
                self.token.text.clear();
                self.token.text.push_str(stem);
                self.token.position = self.next;
                self.next += 1;
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
