//! Analysis: text → tokens, the same for indexing, queries, snippets and `why`.
//!
//! * A word is a run of letters and digits, folded: lower case, width, diacritics and ligatures.
//!   Dots, hyphens, `@` and `_` separate, so addresses, domains, file names and hyphenated words
//!   are found by part, and whole as a phrase of their parts.
//! * Han, Kana, Hangul, Thai, Lao, Khmer and Burmese are written without reliable spaces: each
//!   character is a token, and so is each pair of neighbours, at the position of its first
//!   character; also where such a run is glued to Latin letters.
//! * No token is dropped for its length: over [`TOKEN_BYTES_MAX`] the rest becomes a digest.
//! * Every token knows its byte range in the source, whatever folding did to it.
//!
//! Folding strips marks from Latin, Greek, Cyrillic (except й), Hebrew and Arabic only: in other
//! scripts marks are letters. [`VERSION`] is part of the schema fingerprint.

use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Changes whenever the same text would give other tokens.
pub const VERSION: u32 = 1;
/// Longest token, bytes of folded text.
pub const TOKEN_BYTES_MAX: usize = 64;
/// What is kept of a longer one, before `~` and 16 hexadecimal digits.
const KEPT_BYTES: usize = 40;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenKind {
    /// A run of letters and digits.
    #[default]
    Word,
    /// One character of a script without spaces.
    Unigram,
    /// Two such characters; shares the position of the first.
    Bigram,
}

/// One token; reused by [`Tokens::advance`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Token {
    /// Folded text.
    pub text: String,
    /// Byte offset of its first character in the source.
    pub start: usize,
    /// Byte offset behind its last character.
    pub end: usize,
    /// Number of the word or character in the text, 0-based.
    pub position: usize,
    /// What it is.
    pub kind: TokenKind,
}

/// Cuts a text into tokens without allocating per token.
#[derive(Debug)]
pub struct Tokens<'s> {
    source: &'s str,
    at: usize,
    next_position: usize,
    /// Second half of a bigram that is still to be given: folded pair, start, end.
    bigram: Option<(usize, usize)>,
    token: Token,
}

impl<'s> Tokens<'s> {
    /// At the start of `source`.
    #[must_use]
    pub fn new(source: &'s str) -> Self {
        Self { source, at: 0, next_position: 0, bigram: None, token: Token::default() }
    }

    /// The token that [`Tokens::advance`] found.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Moves to the next token; false at the end.
    pub fn advance(&mut self) -> bool {
        if let Some((start, end)) = self.bigram.take() {
            self.emit(start, end, self.next_position - 1, TokenKind::Bigram);
            return true;
        }
        let bytes = self.source.as_bytes();
        while self.at < bytes.len() {
            let byte = bytes[self.at];
            if byte.is_ascii() {
                if byte.is_ascii_alphanumeric() {
                    self.word();
                    return true;
                }
                self.at += 1;
                continue;
            }
            let Some(c) = self.source[self.at..].chars().next() else { break };
            if is_spaceless(c) {
                self.character(c);
                return true;
            }
            if is_word_char(c) {
                self.word();
                return true;
            }
            self.at += c.len_utf8();
        }
        false
    }

    fn word(&mut self) {
        let start = self.at;
        let bytes = self.source.as_bytes();
        let mut ascii = true;
        while self.at < bytes.len() {
            let byte = bytes[self.at];
            if byte.is_ascii() {
                if !byte.is_ascii_alphanumeric() {
                    break;
                }
                self.at += 1;
                continue;
            }
            let Some(c) = self.source[self.at..].chars().next() else { break };
            let inside = is_word_char(c) || is_combining_mark(c) || is_ignorable(c);
            if !inside || is_spaceless(c) {
                break;
            }
            ascii = false;
            self.at += c.len_utf8();
        }
        let position = self.next_position;
        self.next_position += 1;
        if ascii {
            self.token.text.clear();
            self.token.text.push_str(&self.source[start..self.at]);
            self.token.text.make_ascii_lowercase();
            self.finish(start, self.at, position, TokenKind::Word);
        } else {
            self.emit(start, self.at, position, TokenKind::Word);
        }
    }

    fn character(&mut self, c: char) {
        let start = self.at;
        self.at += c.len_utf8();
        // Voicing marks of half-width kana belong to the character before them.
        while let Some(mark) = self.source[self.at..]
            .chars()
            .next()
            .filter(|m| matches!(m, '\u{ff9e}' | '\u{ff9f}' | '\u{3099}' | '\u{309a}'))
        {
            self.at += mark.len_utf8();
        }
        let position = self.next_position;
        self.next_position += 1;
        if let Some(next) = self.source[self.at..].chars().next().filter(|n| is_spaceless(*n)) {
            self.bigram = Some((start, self.at + next.len_utf8()));
        }
        self.emit(start, self.at, position, TokenKind::Unigram);
    }

    fn emit(&mut self, start: usize, end: usize, position: usize, kind: TokenKind) {
        self.token.text.clear();
        fold_into(&self.source[start..end], &mut self.token.text);
        self.finish(start, end, position, kind);
    }

    fn finish(&mut self, start: usize, end: usize, position: usize, kind: TokenKind) {
        let text = &mut self.token.text;
        if text.len() > TOKEN_BYTES_MAX {
            let digest = Sha256::digest(text.as_bytes());
            text.truncate(text.floor_char_boundary(KEPT_BYTES));
            text.push('~');
            for byte in &digest[..8] {
                for digit in [byte >> 4, byte & 15] {
                    text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
                }
            }
        }
        self.token.start = start;
        self.token.end = end;
        self.token.position = position;
        self.token.kind = kind;
    }
}

/// All tokens of a short text.
#[must_use]
pub fn tokens(source: &str) -> Vec<Token> {
    let mut stream = Tokens::new(source);
    let mut all = Vec::new();
    while stream.advance() {
        all.push(stream.token().clone());
    }
    all
}

/// Folds a text as a whole: for substring matches on names.
#[must_use]
pub fn fold(source: &str) -> String {
    let mut folded = String::with_capacity(source.len());
    fold_into(source, &mut folded);
    folded
}

fn fold_into(source: &str, folded: &mut String) {
    if source.is_ascii() {
        folded.extend(source.bytes().map(|b| char::from(b.to_ascii_lowercase())));
        return;
    }
    if source.chars().any(is_spaceless) {
        // Compose: half-width kana and compatibility ideographs become their usual forms.
        for c in source.nfkc() {
            push_lower(c, folded);
        }
        return;
    }
    for c in source.chars() {
        match c {
            _ if c.is_ascii() => folded.push(c.to_ascii_lowercase()),
            // й is a letter of its own, not an и with a mark.
            'й' | 'Й' => folded.push('й'),
            _ if is_ignorable(c) => {}
            _ => {
                // A letter never becomes punctuation: Ŀ is `L·` in parts, ½ is `1⁄2`.
                let letter = is_word_char(c);
                for part in std::iter::once(c).nfkd().filter(|p| !is_stripped_mark(*p)) {
                    if !letter || is_word_char(part) || is_combining_mark(part) {
                        push_lower(part, folded);
                    }
                }
            }
        }
    }
}

fn push_lower(c: char, folded: &mut String) {
    match c {
        'ß' | 'ẞ' => folded.push_str("ss"),
        'æ' | 'Æ' => folded.push_str("ae"),
        'œ' | 'Œ' => folded.push_str("oe"),
        'þ' | 'Þ' => folded.push_str("th"),
        'ø' | 'Ø' => folded.push('o'),
        'ł' | 'Ł' => folded.push('l'),
        'đ' | 'Đ' | 'ð' | 'Ð' => folded.push('d'),
        'ħ' | 'Ħ' => folded.push('h'),
        'ı' => folded.push('i'),
        'ς' => folded.push('σ'),
        _ => folded.extend(c.to_lowercase().filter(|l| !is_stripped_mark(*l))),
    }
}

/// Marks that folding takes away; marks of other scripts are letters.
fn is_stripped_mark(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}'
        | '\u{0483}'..='\u{0489}'
        | '\u{0591}'..='\u{05bd}' | '\u{05bf}' | '\u{05c1}' | '\u{05c2}' | '\u{05c4}' | '\u{05c5}' | '\u{05c7}'
        | '\u{0610}'..='\u{061a}' | '\u{0640}' | '\u{064b}'..='\u{065f}' | '\u{0670}')
}

/// Characters inside a word that a reader does not see.
fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{00ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{034f}')
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric()
}

/// Scripts whose words are not separated by spaces; Hangul too, whose particles are glued on.
#[must_use]
pub fn is_spaceless(c: char) -> bool {
    matches!(c,
        '\u{0e01}'..='\u{0e3a}' | '\u{0e40}'..='\u{0e4e}' // Thai
        | '\u{0e81}'..='\u{0ece}' | '\u{0edc}'..='\u{0edf}' // Lao
        | '\u{1000}'..='\u{103f}' | '\u{1780}'..='\u{17d3}' // Burmese, Khmer
        | '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7a3}' // Hangul
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{ff66}'..='\u{ff9d}' // Kana
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}') // Han
}

#[cfg(test)]
#[path = "analysis_test.rs"]
mod analysis_test;
