//! Who a request comes from. The place where API keys and rate limits will stand: a key becomes a
//! [`Caller`] here, and its rate is counted before anything is done.
//!
//! Today whoever reaches the address may use the public routes, and the token of `server.json`
//! opens the administration. A token that is wrong is refused everywhere, never ignored.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;

use super::refusal::Refusal;
use super::routes::Shared;

/// Who a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// Somebody who can reach the address.
    Anybody,
    /// Who holds the token of `server.json`.
    Admin,
}

/// Finds out who calls.
pub(super) async fn layer(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let caller = of(request.headers(), &shared.token)?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// Lets the administration in and nobody else.
pub(super) async fn admin_only(request: Request, next: Next) -> Result<Response, Refusal> {
    match request.extensions().get::<Caller>() {
        Some(Caller::Admin) => Ok(next.run(request).await),
        _ => Err(denied("this route needs the token of server.json")),
    }
}

fn of(headers: &HeaderMap, token: &str) -> Result<Caller, Refusal> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(Caller::Anybody) };
    let given = value.as_bytes().strip_prefix(b"Bearer ").unwrap_or_default();
    if same(given, token.as_bytes()) {
        Ok(Caller::Admin)
    } else {
        Err(denied("the token of the Authorization header is not known here"))
    }
}

pub(super) fn denied(message: &str) -> Refusal {
    let fix = "send `Authorization: Bearer` with the token of server.json in the data directory";
    Refusal::new("unauthenticated", message, fix)
}

/// Compares in a time that depends on nothing but the length.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).fold(0, |all, (x, y)| std::hint::black_box(all | (x ^ y)));
    a.len() == b.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_token_is_refused_and_not_taken_for_anybody() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
            of(&headers, "secret").map_err(|_| ())
        };
        assert_eq!(with("Bearer secret"), Ok(Caller::Admin));
        for bad in ["Bearer secreT", "Bearer secret2", "Bearer ", "Basic secret", "secret"] {
            assert_eq!(with(bad), Err(()), "{bad}");
        }
        assert!(matches!(of(&HeaderMap::new(), "secret"), Ok(Caller::Anybody)));
    }
}
