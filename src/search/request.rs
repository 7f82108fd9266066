//! The plain types of a search: what is asked, what is answered, what can be wrong.

use serde::{Deserialize, Serialize};

use crate::ids::{IdentityId, MessageId, ThreadId};
use crate::projections::ProjectionError;
use crate::projections::catalog::prepared::Person;
use crate::query::QueryError;

/// Default of [`SearchRequest::limit`].
pub const LIMIT_DEFAULT: u32 = 10;
/// Highest [`SearchRequest::limit`] of the library; the HTTP door allows 50.
pub const LIMIT_MAX: u32 = 1_000;
/// Default of [`SearchRequest::snippet_chars`].
pub const SNIPPET_CHARS_DEFAULT: u32 = 240;
/// Bounds of [`SearchRequest::snippet_chars`], both included.
pub const SNIPPET_CHARS: std::ops::RangeInclusive<u32> = 40..=1_000;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchRequest {
    /// The query, ≤ 1,024 characters; empty for every message.
    pub q: String,
    /// How to search.
    pub mode: Mode,
    /// Refuse rather than answer by words alone when the model does not answer.
    pub require_mode: bool,
    /// What comes first; without it, relevance with text in the query, else newest.
    pub sort: Option<Sort>,
    /// Hits to return, 1 to [`LIMIT_MAX`].
    pub limit: u32,
    /// Longest snippet, characters.
    pub snippet_chars: u32,
    /// Give the places of the query's words in each snippet.
    pub highlight: bool,
    /// Show quarantined mail too, where the caller may see it.
    pub include_quarantined: bool,
    /// Rank the first hits of a hybrid search again, where the settings name a model for it.
    pub rerank: bool,
}

impl Default for SearchRequest {
    fn default() -> Self {
        Self {
            q: String::new(),
            mode: Mode::default(),
            require_mode: false,
            sort: None,
            limit: LIMIT_DEFAULT,
            snippet_chars: SNIPPET_CHARS_DEFAULT,
            highlight: false,
            include_quarantined: false,
            rerank: true,
        }
    }
}

/// How to search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// By the words.
    Keyword,
    /// By what is meant: messages near the query in the space of vectors.
    Semantic,
    /// By both; by the words alone where vectors cannot be had.
    #[default]
    Hybrid,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Best match.
    Relevance,
    /// Latest message date.
    Newest,
    /// Earliest message date.
    Oldest,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchResponse {
    /// The query as understood.
    pub query: QueryEcho,
    /// Best first.
    pub hits: Vec<Hit>,
    /// Messages that match.
    pub total: u64,
    /// The total counts every match, not a sample.
    pub total_is_exact: bool,
    /// What the answer leaves out and why, for people; usually empty.
    pub notes: Vec<String>,
    /// The answer holds everything acknowledged up to this event.
    pub as_of_seq: u64,
    /// How the semantic half stands; absent when it was not asked or is turned off.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub semantic: Option<SemanticOut>,
    /// How ranking again went; absent when it was not asked or no model does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rerank: Option<RerankOut>,
    /// The answer is narrower, or in a poorer order, than it was asked to be.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub degraded: bool,
}

/// How ranking the first hits again went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RerankOut {
    /// Name of the model.
    pub model: String,
    /// Hits that it judged.
    pub judged: u32,
    /// It did not answer: the order is that of the fusion.
    pub degraded: bool,
}

/// How the semantic half of an answer stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SemanticOut {
    /// Name of the model that serves.
    pub model: String,
    /// Whether it could be asked.
    pub capability: Capability,
    /// Share of the messages in reach that have vectors, 0 to 1, three decimals.
    pub coverage: f64,
    /// The answer is narrower than it was asked to be.
    pub degraded: bool,
}

/// Whether searches by meaning can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// They are turned off.
    Inactive,
    /// They can.
    Available,
    /// The model does not answer.
    Degraded,
}

/// The query as understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryEcho {
    /// Canonical form.
    pub parsed: String,
    /// How it was searched.
    pub mode: Mode,
    /// What came first.
    pub sort: Sort,
}

/// One message found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Which message.
    pub message_id: MessageId,
    /// Which thread.
    pub thread_id: ThreadId,
    /// Whose mailbox.
    pub identity_id: IdentityId,
    /// When it was sent, else received; RFC 3339, UTC.
    pub date: String,
    /// `inbound` or `outbound`.
    pub direction: Direction,
    /// First author.
    pub from: PersonOut,
    /// Subject; absent when empty.
    pub subject: Option<String>,
    /// A piece of the text, plain, ≤ `snippet_chars` characters.
    pub snippet: String,
    /// Places of the query's words in the snippet: start and end in characters, when asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub highlights: Option<Vec<(u32, u32)>>,
    /// 0 to 1, three decimals.
    pub score: f64,
    /// Folders it stands in.
    pub folders: Vec<String>,
    /// Labels on it.
    pub labels: Vec<String>,
    /// Attachments a person would count.
    pub attachments: u32,
    /// It is quarantined.
    pub quarantined: bool,
    /// Why it was found, where that is not its words alone: `semantic:0.612`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub why: Vec<String>,
}

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Came to the owner.
    Inbound,
    /// Sent by the owner.
    Outbound,
}

/// A name and an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonOut {
    /// Display name; may be empty.
    pub name: String,
    /// Address; may be empty.
    pub address: String,
}

impl From<&Person> for PersonOut {
    fn from(person: &Person) -> Self {
        Self { name: person.name.clone(), address: person.address.clone() }
    }
}

/// Why a search gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The query cannot be understood.
    #[error("{}", .0.redacted())]
    Query(#[from] QueryError),
    /// A value of the request is out of its range.
    #[error("{path}: {message}")]
    Invalid {
        /// Which field.
        path: &'static str,
        /// What is allowed.
        message: String,
    },
    /// The model does not answer, and the request wants nothing less.
    #[error("the model for searches by meaning does not answer")]
    Degraded,
    /// A projection failed.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
}

impl From<crate::projections::catalog::CatalogError> for SearchError {
    fn from(error: crate::projections::catalog::CatalogError) -> Self {
        Self::Projection(error.into())
    }
}

impl From<crate::projections::text::TextError> for SearchError {
    fn from(error: crate::projections::text::TextError) -> Self {
        Self::Projection(error.into())
    }
}

impl SearchRequest {
    /// Refuses values out of their ranges; nothing is clamped.
    ///
    /// # Errors
    /// [`SearchError::Invalid`].
    pub fn validate(&self) -> Result<(), SearchError> {
        if !(1..=LIMIT_MAX).contains(&self.limit) {
            let message = format!("must be 1 to {LIMIT_MAX}");
            return Err(SearchError::Invalid { path: "limit", message });
        }
        if !SNIPPET_CHARS.contains(&self.snippet_chars) {
            let (low, high) = (SNIPPET_CHARS.start(), SNIPPET_CHARS.end());
            let message = format!("must be {low} to {high}");
            return Err(SearchError::Invalid { path: "snippet_chars", message });
        }
        Ok(())
    }
}
