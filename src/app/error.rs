//! One error type for every door, sorted by whose fault it is.

use std::path::PathBuf;

use crate::actors::OpenError;
use crate::actors::mailbox::MailboxError;
use crate::config::ConfigError;
use crate::events::LogError;
use crate::projections::ProjectionError;
use crate::query::QueryError;
use crate::search::SearchError;

/// Whose fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The caller can send something else.
    Caller,
    /// The machine, the disk, another process: somebody can mend it.
    Environment,
    /// Ours.
    Bug,
}

/// Why a use case was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The query cannot be understood. Its text stays out of `Display`.
    #[error("the query cannot be understood: {}", .0.redacted())]
    Query(QueryError),
    /// A value of the request is out of its range.
    #[error("{path}: {message}")]
    Invalid {
        /// Which field.
        path: &'static str,
        /// What is allowed.
        message: String,
    },
    /// There is no such mailbox.
    #[error("no mailbox of that name or id; `postrider status` lists them")]
    NoSuchMailbox,
    /// There is no such message, or the caller may not see it.
    #[error("no such message")]
    NoSuchMessage,
    /// There is no such thread, or the caller may see nothing of it.
    #[error("no such thread")]
    NoSuchThread,
    /// There is no such receipt.
    #[error("no such receipt; `postrider receipt list` lists them")]
    NoSuchReceipt,
    /// The message is larger than the limit.
    #[error("the message is larger than {limit} bytes (message_bytes_max)")]
    TooLarge {
        /// The limit, bytes.
        limit: usize,
    },
    /// Too much is on its way in; try again.
    #[error("too much mail is on its way in; try again in a moment")]
    Busy,
    /// Acknowledged mail did not become searchable in time.
    #[error("the index did not catch up within {waited_ms} ms; try again")]
    Timeout {
        /// How long was waited.
        waited_ms: u64,
    },
    /// A source of mail cannot be read.
    #[error(transparent)]
    Source(#[from] crate::mail::sources::SourceError),
    /// The data directory is held by another process.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// A file or directory failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What the caller gave to write into failed.
    #[error("the output cannot be written: {0}")]
    Output(std::io::Error),
    /// Settings are refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The truth cannot be read or written.
    #[error(transparent)]
    Log(LogError),
    /// A mailbox refused or failed.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
    /// A mailbox cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A projection failed; it is rebuilt.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    /// A rebuild failed; the old generation still serves.
    #[error("rebuild: {0}")]
    Rebuild(String),
    /// The model for searches by meaning cannot be used.
    #[error("{0}")]
    Model(String),
    /// The model does not answer, and the search wants nothing less.
    #[error("the model for searches by meaning does not answer")]
    Degraded,
    /// It was stopped by whoever started it; nothing changed.
    #[error("cancelled; the old indexes serve as before")]
    Cancelled,
    /// A purge failed; what was erased stays unreadable, its derived bytes are still on disk.
    #[error("purge: {0}; it is tried again at the next start")]
    Purge(String),
    /// An actor or a task went away.
    #[error("a part of the program stopped; restart it and report this")]
    Gone,
}

impl Error {
    /// Stable code for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Query(_) => "invalid_query",
            Self::Invalid { .. } | Self::Config(_) | Self::Source(_) => "invalid_request",
            Self::NoSuchMailbox => "identity_not_found",
            Self::NoSuchMessage | Self::Mailbox(MailboxError::NoSuchMessage) => "message_not_found",
            Self::NoSuchThread => "thread_not_found",
            Self::Degraded => "search_degraded",
            Self::Cancelled => "cancelled",
            Self::NoSuchReceipt => "receipt_not_found",
            Self::Mailbox(MailboxError::NoSuchHold) => "hold_not_found",
            Self::TooLarge { .. } => "payload_too_large",
            Self::Timeout { .. } => "timeout",
            Self::Busy
            | Self::InUse(_)
            | Self::Mailbox(MailboxError::WritesStopped(_) | MailboxError::Unready)
            | Self::Open(_) => "unavailable",
            Self::Io { .. }
            | Self::Output(_)
            | Self::Log(_)
            | Self::Mailbox(MailboxError::Store(_))
            | Self::Projection(_)
            | Self::Rebuild(_)
            | Self::Purge(_)
            | Self::Model(_)
            | Self::Gone => "internal_error",
        }
    }

    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self.code() {
            "internal_error" if matches!(self, Self::Gone) => Fault::Bug,
            "internal_error" | "unavailable" | "timeout" | "search_degraded" => Fault::Environment,
            _ => Fault::Caller,
        }
    }

    /// Whether the same call may go through later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Busy
                | Self::Degraded
                | Self::Timeout { .. }
                | Self::Open(_)
                | Self::Mailbox(MailboxError::Unready)
        )
    }

    /// What to do about it, for people and agents.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Query(error) => match &error.suggestion {
                Some(suggestion) => format!("try {suggestion}"),
                None => format!("expected {} at position {}", error.expected, error.position),
            },
            Self::Invalid { path, message } => format!("{path} {message}"),
            Self::NoSuchMailbox => "list mailboxes with `postrider status`".into(),
            Self::NoSuchMessage => "search again; the message may have been erased".into(),
            Self::NoSuchThread => "search again; its messages may have been erased".into(),
            Self::Degraded => "leave require_mode out for an answer by words".into(),
            Self::Cancelled => "start it again when it may run".into(),
            Self::NoSuchReceipt => "list receipts with `postrider receipt list`".into(),
            Self::Mailbox(MailboxError::NoSuchHold) => {
                "list holds with `postrider hold list`".into()
            }
            Self::TooLarge { .. } => "raise message_bytes_max in the configuration".into(),
            Self::Busy
            | Self::Timeout { .. }
            | Self::Open(_)
            | Self::Mailbox(MailboxError::Unready) => "try again in a moment".into(),
            Self::InUse(_) => {
                "stop the other process, or let the command talk to its server".into()
            }
            Self::Mailbox(MailboxError::WritesStopped(_)) => {
                "free or repair the disk, then restart".into()
            }
            Self::Source(_) | Self::Config(_) | Self::Io { .. } | Self::Output(_) => {
                "see the message".into()
            }
            Self::Log(_) => "restart; if it stays, restore the data directory".into(),
            Self::Projection(_) | Self::Rebuild(_) => {
                "run `postrider rebuild --all`; mail itself is not touched".into()
            }
            Self::Model(_) => {
                "see to the model or its settings (docs/semantic.md); `embed status` tells which \
                               models there are"
                    .into()
            }
            Self::Mailbox(_) | Self::Purge(_) | Self::Gone => "restart".into(),
        }
    }
}

impl From<LogError> for Error {
    fn from(error: LogError) -> Self {
        match error {
            LogError::InUse(path) => Self::InUse(path),
            LogError::Erased { .. } => Self::NoSuchMessage,
            other => Self::Log(other),
        }
    }
}

impl From<SearchError> for Error {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Query(error) => Self::Query(error),
            SearchError::Invalid { path, message } => Self::Invalid { path, message },
            SearchError::Degraded => Self::Degraded,
            SearchError::Projection(error) => Self::Projection(error),
        }
    }
}

impl From<crate::projections::catalog::CatalogError> for Error {
    fn from(error: crate::projections::catalog::CatalogError) -> Self {
        Self::Projection(error.into())
    }
}
