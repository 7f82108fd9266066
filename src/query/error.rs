//! Why a text is not a query: place, expectation and remedy.
//!
//! `Display` repeats parts of the query, so it belongs in answers to the caller and never in
//! traces; [`QueryError::redacted`] is for those.

use std::borrow::Cow;
use std::fmt;

/// Sort of mistake, for callers that must tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A quote was opened and not closed.
    OpenQuote,
    /// `name:` with a name that is no operator.
    UnknownOperator,
    /// `name:` without a value.
    EmptyValue,
    /// A value outside the list, pattern or form of its operator.
    BadValue,
    /// A bracket without its partner.
    Bracket,
    /// Something stands where a term must: after `OR` or `-`, before `OR`, inside `()` or `""`.
    NoTerm,
    /// Two parts without white space between them.
    NoSpace,
    /// `*` with fewer than two characters before it.
    ShortPrefix,
    /// `~` without a distance, or with one out of bounds.
    BadDistance,
    /// Too long, too many leaves or too deep.
    TooLarge,
    /// The search needs free text and the query has none.
    NoFreeText,
}

/// A refusal. The texts are part of the public interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError {
    /// Sort of mistake.
    pub fault: Fault,
    /// Where, in characters from 0; at most the length of the query.
    pub position: u32,
    /// What would have been right there.
    pub expected: Cow<'static, str>,
    /// What stands there, at most [`FOUND_CHARS_MAX`] characters; `None` at the end of the query.
    pub found: Option<String>,
    /// A text that could stand there instead, ready to be typed.
    pub suggestion: Option<String>,
}

/// Bound of [`QueryError::found`].
pub const FOUND_CHARS_MAX: usize = 32;

impl QueryError {
    /// The refusal of a semantic search whose query has no free text
    /// (see [`semantic_text`](super::leaves::semantic_text)).
    #[must_use]
    pub fn no_free_text() -> Self {
        Self {
            fault: Fault::NoFreeText,
            position: 0,
            expected: "free text for semantic search".into(),
            found: None,
            suggestion: None,
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at {}", self.expected, self.position)
    }
}

impl std::error::Error for QueryError {}
