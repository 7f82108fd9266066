//! Why a command was not done, and the exit code that tells it.

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::app::{Error, Fault};
use crate::http::wire::{Envelope, ErrorBody};

use super::safe;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done.
    Fine,
    /// Done, but something in it failed.
    Partly,
    /// The caller's fault.
    Caller,
    /// The fault of the surroundings.
    Environment,
    /// Our fault.
    Bug,
    /// Stopped from outside.
    Interrupted,
}

impl Exit {
    /// The number the shell sees.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Partly => 1,
            Self::Caller => 2,
            Self::Environment => 3,
            Self::Bug => 4,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

impl From<Fault> for Exit {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Caller => Self::Caller,
            Fault::Environment => Self::Environment,
            Fault::Bug => Self::Bug,
        }
    }
}

/// Why a command was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// To be told.
    Told {
        /// How to exit.
        exit: Exit,
        /// What to say.
        body: Box<ErrorBody>,
        /// The query it is about, to point into it.
        query: Option<String>,
    },
    /// Whoever read our output has gone; nothing to say.
    NobodyListens,
}

impl Failure {
    /// A failure of the surroundings.
    pub(super) fn environment(message: impl Into<String>, fix: impl Into<String>) -> Self {
        let body = Box::new(ErrorBody::new("unavailable", message, fix));
        Self::Told { exit: Exit::Environment, body, query: None }
    }

    /// A failure of the caller.
    pub(super) fn caller(message: impl Into<String>, fix: impl Into<String>) -> Self {
        let body = Box::new(ErrorBody::new("invalid_request", message, fix));
        Self::Told { exit: Exit::Caller, body, query: None }
    }

    /// The same about this query.
    pub(super) fn about(mut self, text: &str) -> Self {
        if let Self::Told { query, .. } = &mut self {
            *query = Some(text.to_owned());
        }
        self
    }

    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Told { exit, .. } => *exit,
            Self::NobodyListens => Exit::Fine,
        }
    }

    /// Says on stderr what went wrong and what to do.
    pub(super) fn tell(&self, as_json: bool) {
        let Self::Told { body, query, .. } = self else { return };
        let text = if as_json {
            let envelope = Envelope { error: (**body).clone() };
            safe::json(&serde_json::to_string(&envelope).unwrap_or_default()) + "\n"
        } else {
            for_people(body, query.as_deref())
        };
        // Without stderr there is nobody to tell.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

fn for_people(body: &ErrorBody, query: Option<&str>) -> String {
    let mut text = format!("postrider: {}\n", safe::line(&body.message));
    let position = body.details.get("position").and_then(serde_json::Value::as_u64);
    if let (Some(query), Some(position)) = (query, position) {
        let position = usize::try_from(position).unwrap_or(0);
        let query = safe::line(query);
        let before: String = query.chars().take(position).collect();
        let indent = " ".repeat(console::measure_text_width(&before));
        text.push_str(&format!("  {query}\n  {indent}^\n"));
    } else if !body.fix.is_empty()
        && !body.message.contains(&body.fix)
        && body.fix != "see the message"
    {
        text.push_str(&format!("  {}\n", safe::line(&body.fix)));
    }
    text
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if let Error::Output(source) = error {
            return source.into();
        }
        let body = Box::new(ErrorBody::from(&error));
        let exit = match error {
            Error::Cancelled => Exit::Interrupted,
            _ => error.fault().into(),
        };
        Self::Told { exit, body, query: None }
    }
}

/// An answer of a server.
impl From<ErrorBody> for Failure {
    fn from(body: ErrorBody) -> Self {
        let exit = match body.code.as_str() {
            "unavailable" | "search_degraded" | "timeout" | "internal_error"
            | "unauthenticated" => Exit::Environment,
            "cancelled" => Exit::Interrupted,
            _ => Exit::Caller,
        };
        Self::Told { exit, body: Box::new(body), query: None }
    }
}

/// Our own output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::NobodyListens;
        }
        Self::environment(format!("the output cannot be written: {error}"), "")
    }
}
