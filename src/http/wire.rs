//! What goes over the wire besides the types of [`crate::app`] and [`crate::search`]: the error
//! envelope, requests and jobs of the administration. Both ends use these types, so they cannot
//! drift apart.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::{Account, Error, Rebuilt};
use crate::projections::build::Parts;

/// Every answer that is no success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// What went wrong.
    pub error: ErrorBody,
}

/// What went wrong, for programs and people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Stable code.
    pub code: String,
    /// What happened. May repeat parts of the query, so it belongs to the caller and no trace.
    pub message: String,
    /// Whether the same request may go through later.
    pub retryable: bool,
    /// What to do.
    pub fix: String,
    /// The request, as in the Request-Id header; absent outside HTTP.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<String>,
    /// More, by code; an object.
    pub details: Value,
}

impl ErrorBody {
    /// A body that is not made of an [`Error`].
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            retryable: false,
            fix: fix.into(),
            request_id: None,
            details: json!({}),
        }
    }

    /// `invalid_request` with what is wrong at each path.
    #[must_use]
    pub fn invalid(errors: &[(String, String)]) -> Self {
        let listed: Vec<String> = errors.iter().map(|(path, why)| complaint(path, why)).collect();
        let errors: Vec<Value> = errors
            .iter()
            .map(|(path, message)| json!({ "path": path, "message": message }))
            .collect();
        let message = listed.join("; ");
        let mut body = Self::new("invalid_request", message, "correct what details.errors names");
        body.details = json!({ "errors": errors });
        body
    }
}

fn complaint(path: &str, why: &str) -> String {
    if path.is_empty() { why.to_owned() } else { format!("{path} {why}") }
}

impl From<&Error> for ErrorBody {
    fn from(error: &Error) -> Self {
        let one = |path: &str, message: String| json!({ "errors": [{ "path": path, "message": message }] });
        let details = match error {
            Error::Query(query) => json!({
                "position": query.position,
                "expected": query.expected,
                "found": query.found,
                "suggestion": query.suggestion,
            }),
            Error::Invalid { path, message } => one(path, message.clone()),
            Error::Source(source) => one("paths", source.to_string()),
            Error::Config(config) => one("config", config.to_string()),
            Error::TooLarge { limit } => json!({ "limit_bytes": limit }),
            Error::Timeout { waited_ms } => json!({ "waited_ms": waited_ms }),
            _ => json!({}),
        };
        let message = match error {
            Error::Query(query) => query.to_string(),
            Error::Invalid { path, message } => format!("{path} {message}"),
            other => other.to_string(),
        };
        Self {
            code: error.code().to_owned(),
            message,
            retryable: error.is_retryable(),
            fix: error.fix(),
            request_id: None,
            details,
        }
    }
}

/// Answer to a message that was taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Ingested {
    /// Stored and durable.
    Stored {
        /// Its identifier.
        message_id: String,
        /// Its event.
        seq: u64,
    },
    /// Already there.
    Duplicate {
        /// The identifier of the one that is there.
        message_id: String,
        /// Whether a folder or label was new to it.
        placed: bool,
    },
    /// Erased before, and remembered to be refused.
    Suppressed,
}

/// Body of `POST /v1/admin/import`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImportRequest {
    /// Absolute paths on the server's machine.
    pub paths: Vec<PathBuf>,
    /// Name of the mailbox; made when it does not exist.
    pub mailbox: String,
    /// Put everything into this folder.
    pub folder: Option<String>,
    /// Further labels for every message.
    pub labels: Vec<String>,
    /// Name of the source.
    pub source: Option<String>,
}

/// Body of `POST /v1/admin/rebuild`: one mailbox, or all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RebuildRequest {
    /// Name or identity.
    pub mailbox: Option<String>,
    /// Every mailbox.
    pub all: bool,
    /// Which projections; both without it.
    pub parts: Parts,
    /// Events per second at most; 0: as fast as it goes.
    pub rate_max: u32,
    /// Do not compare with what serves now.
    pub unverified: bool,
    /// Do not build: let what served before the last rebuild serve again.
    pub roll_back: bool,
}

/// Body of `POST /v1/admin/own-addresses`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnAddresses {
    /// Name or identity.
    pub mailbox: String,
    /// All addresses of its owner.
    pub addresses: Vec<String>,
}

/// Answer to own addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// The event that records them.
    pub seq: u64,
}

/// Answer to a request that starts a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStarted {
    /// Ask for it at `/v1/admin/jobs/{id}`.
    pub job_id: String,
}

/// A job as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// Which.
    pub job_id: String,
    /// How it stands.
    pub state: JobState,
    /// How far it is.
    pub progress: JobProgress,
    /// The same in hundredths; absent until it is known how much there is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub percent: Option<f64>,
    /// Seconds it may still take at the pace so far.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seconds_left: Option<u64>,
    /// Of an import that is done.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub account: Option<Account>,
    /// Of a rebuild: what is done.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rebuilt: Vec<Rebuilt>,
    /// Of a verification, a backup or a compaction: its outcome.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<Value>,
    /// Of a job that failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<ErrorBody>,
}

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// At work.
    Running,
    /// Held up; `resume` lets it go on.
    Paused,
    /// Done; of an import, failures of single messages are in its account.
    Done,
    /// Given up.
    Failed,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JobProgress {
    /// An import.
    Import {
        /// Bytes read.
        bytes_done: u64,
        /// Bytes to read; 0 until that is known.
        bytes_total: u64,
        /// Messages answered for.
        messages: u64,
    },
    /// A rebuild.
    Rebuild {
        /// The mailbox at work; empty before the first.
        mailbox: String,
        /// Events replayed, those of mailboxes that are done included.
        events_done: u64,
        /// Events of all mailboxes of the job.
        events_total: u64,
    },
    /// A verification, a backup or a compaction.
    Maintenance {
        /// Steps done.
        done: u64,
        /// Steps to do; 0 when they cannot be counted.
        total: u64,
    },
}

impl JobProgress {
    /// Part that is done, 0 to 1; `None` until it is known how much there is.
    #[must_use]
    pub fn fraction(&self) -> Option<f64> {
        let (done, total) = match self {
            Self::Import { bytes_done, bytes_total, .. } => (*bytes_done, *bytes_total),
            Self::Rebuild { events_done, events_total, .. } => (*events_done, *events_total),
            Self::Maintenance { done, total } => (*done, *total),
        };
        (total > 0).then(|| (done as f64 / total as f64).min(1.0))
    }
}

/// A text as one segment of a path: everything but unreserved characters in percent form.
#[must_use]
pub fn path_segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            let _ = write!(segment, "%{byte:02X}");
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_segment() {
        assert_eq!(path_segment("main"), "main");
        assert_eq!(path_segment("a b/ü?%"), "a%20b%2F%C3%BC%3F%25");
    }

    #[test]
    fn invalid_requests_name_every_path() {
        let body = ErrorBody::invalid(&[("limit".into(), "must be 1 to 50".into())]);
        assert_eq!(body.message, "limit must be 1 to 50");
        assert_eq!(body.details["errors"][0]["path"], "limit");
    }
}
