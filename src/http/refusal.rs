//! Refusals: every answer that is no success, and the one place where a code gets its status.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::wire::ErrorBody;
use crate::app::Error;

/// Why a request is refused. [`super::request_id`] renders it.
#[derive(Debug, Clone)]
pub(super) struct Refusal(pub(super) Box<ErrorBody>);

impl Refusal {
    /// A refusal with this code.
    pub(super) fn new(code: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        ErrorBody::new(code, message, fix).into()
    }

    /// One value of the request is wrong.
    pub(super) fn invalid(path: &str, message: impl Into<String>) -> Self {
        ErrorBody::invalid(&[(path.to_owned(), message.into())]).into()
    }

    /// Too much at once.
    pub(super) fn busy() -> Self {
        Error::Busy.into()
    }

    /// For an answer that some other part of the program refused with nothing but a status.
    pub(super) fn of_status(status: StatusCode) -> Self {
        let (code, fix) = match status {
            StatusCode::NOT_FOUND => ("not_found", "docs/http.md lists the routes"),
            StatusCode::METHOD_NOT_ALLOWED => ("method_not_allowed", "see the Allow header"),
            StatusCode::PAYLOAD_TOO_LARGE => ("payload_too_large", "send less"),
            status if status.is_client_error() => ("invalid_request", "correct the request"),
            _ => ("internal_error", "see the server's traces"),
        };
        let reason = status.canonical_reason().unwrap_or("refused").to_lowercase();
        Self::new(code, reason, fix)
    }

    /// The status of its code.
    pub(super) fn status(&self) -> StatusCode {
        status_of(&self.0.code)
    }
}

/// The HTTP status of a code.
fn status_of(code: &str) -> StatusCode {
    match code {
        "invalid_request" | "invalid_query" => StatusCode::BAD_REQUEST,
        "unauthenticated" => StatusCode::UNAUTHORIZED,
        "host_denied" | "origin_denied" => StatusCode::FORBIDDEN,
        "not_found" | "identity_not_found" | "message_not_found" | "thread_not_found"
        | "job_not_found" | "receipt_not_found" | "hold_not_found" => StatusCode::NOT_FOUND,
        "method_not_allowed" => StatusCode::METHOD_NOT_ALLOWED,
        "payload_too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "cancelled" => StatusCode::CONFLICT,
        "unavailable" | "search_degraded" => StatusCode::SERVICE_UNAVAILABLE,
        "timeout" => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<ErrorBody> for Refusal {
    fn from(body: ErrorBody) -> Self {
        Self(Box::new(body))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        ErrorBody::from(&error).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_the_use_cases_has_its_status() {
        let cases = [
            (Error::NoSuchMailbox, 404),
            (Error::NoSuchMessage, 404),
            (Error::Busy, 503),
            (Error::Timeout { waited_ms: 1 }, 504),
            (Error::TooLarge { limit: 1 }, 413),
            (Error::Invalid { path: "limit", message: "must be".into() }, 400),
            (Error::Rebuild("disk".into()), 500),
            (Error::Gone, 500),
        ];
        for (error, status) in cases {
            let code = error.code();
            assert_eq!(Refusal::from(error).status().as_u16(), status, "{code}");
        }
    }

    #[test]
    fn a_bare_status_keeps_its_class() {
        for status in [400, 404, 405, 413, 415, 500] {
            let status = StatusCode::from_u16(status).expect("a status");
            let rendered = Refusal::of_status(status).status();
            assert_eq!(rendered.is_client_error(), status.is_client_error(), "{status}");
        }
    }
}
