//! The time limit of a request, and the wall around a handler: a panic is an answer too.
//!
//! The handler runs as a task of its own, so a caller who hangs up does not cut a message off in
//! the middle of being taken in.

use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;

use super::refusal::Refusal;

/// Longest time until an answer begins.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// See the module.
pub(super) async fn layer(request: Request, next: Next) -> Result<Response, Refusal> {
    let mut task = tokio::spawn(next.run(request));
    match tokio::time::timeout(ANSWER_MAX, &mut task).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(_)) => Err(Refusal::new(
            "internal_error",
            "a fault of Postrider ended the request",
            "report it with the request id",
        )),
        Err(_) => {
            task.abort();
            let mut refusal =
                Refusal::new("timeout", "there was no answer in time", "try again in a moment");
            refusal.0.retryable = true;
            Err(refusal)
        }
    }
}
