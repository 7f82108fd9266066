//! A place in the characters of a query, and what can be asked there.
//!
//! Knows white space and the characters of a value, nothing else of the grammar. Asking beyond the
//! end answers with nothing and never panics.

use super::error::FOUND_CHARS_MAX;

/// The characters (Unicode scalar values) of a query and the next one to read.
pub(super) struct Cursor {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
}

impl Cursor {
    /// `ws`
    pub(super) fn skip_ws(&mut self) {
        self.at = self.end_of(self.at, char::is_whitespace);
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// The first place from `start` on whose character does not belong.
    pub(super) fn end_of(&self, start: usize, belongs: impl Fn(char) -> bool) -> usize {
        let rest = self.chars.get(start..).unwrap_or_default();
        start + rest.iter().take_while(|&&c| belongs(c)).count()
    }

    /// The characters of a range; none where it leaves the text.
    pub(super) fn slice(&self, start: usize, end: usize) -> String {
        self.chars.get(start..end).unwrap_or_default().iter().collect()
    }

    /// What stands at `start`, quotes included, for suggestions only: a closed quote, else the
    /// characters of a value.
    pub(super) fn raw_value(&self, start: usize) -> String {
        let mut end = self.end_of(start, is_value_char);
        if self.chars.get(start) == Some(&'"') {
            let inner_end = self.end_of(start + 1, |c| c != '"');
            end = self.chars.len().min(inner_end + 1);
        }
        self.slice(start, end)
    }

    /// The character at `position` and what follows it up to white space.
    pub(super) fn found(&self, position: usize) -> Option<String> {
        self.chars.get(position)?;
        let end = self.end_of(position + 1, |c| !c.is_whitespace());
        Some(self.slice(position, end.min(position + FOUND_CHARS_MAX)))
    }
}

/// `value_char = char - ( whitespace | '"' | "(" | ")" ) ;`
pub(super) fn is_value_char(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '"' | '(' | ')')
}

/// A place in the text; it fits, since texts are bounded by
/// [`QUERY_CHARS_MAX`](super::parse::QUERY_CHARS_MAX).
pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
