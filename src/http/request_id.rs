//! The outermost layer: gives each request its identifier, renders refusals as the envelope, and
//! traces what became of the request: method, route, status and time, nothing of its content.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Json, Response};
use ulid::Ulid;

use super::refusal::Refusal;
use super::routes::Shared;
use super::wire::Envelope;

const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
/// Seconds after which a refused caller may try again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// See the module.
pub(super) async fn layer(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let millis = u64::try_from(shared.clock.now_ms()).unwrap_or(0);
    let id = format!("req_{}", Ulid::from_parts(millis, shared.clock.random_bits()));
    let started = Instant::now();
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let mut response = render(next.run(request).await, &id);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let (status, ms) = (response.status().as_u16(), started.elapsed().as_millis());
    if method == Method::GET && response.status().is_success() {
        // Watchers of jobs and of health ask often.
        tracing::debug!(request_id = id, %method, route, status, ms, "answered");
    } else {
        tracing::info!(request_id = id, %method, route, status, ms, "answered");
    }
    response
}

/// Turns a refusal, or a bare status that is no success, into the envelope.
fn render(mut response: Response, id: &str) -> Response {
    let status = response.status();
    let refusal = response.extensions_mut().remove::<Refusal>();
    let refusal = match refusal {
        Some(refusal) => refusal,
        None if status.is_client_error() || status.is_server_error() => Refusal::of_status(status),
        None => return response,
    };
    let status = refusal.status();
    let Refusal(mut error) = refusal;
    if error.code == "internal_error" {
        tracing::error!(request_id = id, message = error.message, "failed");
    }
    error.request_id = Some(id.to_owned());
    let mut rendered = (status, Json(Envelope { error: *error })).into_response();
    let headers = rendered.headers_mut();
    if let Some(allow) = response.headers().get(header::ALLOW) {
        headers.insert(header::ALLOW, allow.clone());
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    rendered
}
