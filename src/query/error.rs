//! Why a text is not a query: place, expectation and remedy.
//!
//! `Display` repeats parts of the query, so it belongs in answers to the caller and never in
//! traces; [`QueryError::redacted`] is for those.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

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

impl Fault {
    /// The mistake in words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::OpenQuote => "quote not closed",
            Self::UnknownOperator => "unknown operator",
            Self::EmptyValue => "operator without a value",
            Self::BadValue => "value not understood",
            Self::Bracket => "brackets do not pair",
            Self::NoTerm => "term missing",
            Self::NoSpace => "parts of the query touch",
            Self::ShortPrefix => "prefix too short",
            Self::BadDistance => "distance not understood",
            Self::TooLarge => "query too large",
            Self::NoFreeText => "no free text",
        }
    }
}

impl QueryError {
    /// The refusal without any text of the query, for traces. (`expected` may name the categories of
    /// the tenant, which are configuration.)
    #[must_use]
    pub fn redacted(&self) -> impl fmt::Display {
        Redacted(self)
    }
}

struct Redacted<'a>(&'a QueryError);

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueryError { fault, position, expected, found: _, suggestion: _ } = self.0;
        write!(f, "{} at position {position}: expected {expected}", fault.describe())
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Redacted(self).fmt(f)?;
        match &self.found {
            Some(found) => write!(f, ", found {}", Visible(found))?,
            None if self.fault == Fault::NoFreeText => {}
            None => f.write_str(", found the end of the query")?,
        }
        match &self.suggestion {
            Some(remedy) => write!(f, "; try {}", Visible(remedy)),
            None => Ok(()),
        }
    }
}

/// A part of the query with control characters and overrides of the writing direction replaced, so
/// that it cannot steer a terminal or show another order than it has.
struct Visible<'a>(&'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            let steers =
                c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            f.write_char(if steers { char::REPLACEMENT_CHARACTER } else { c })?;
        }
        Ok(())
    }
}

impl std::error::Error for QueryError {}
