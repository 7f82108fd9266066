//! `POST /v1/identities/{id}/search`.

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::Json;

use super::body::{self, JSON_BYTES_MAX};
use super::caller::Caller;
use super::refusal::Refusal;
use super::routes::Shared;
use crate::search::{SearchRequest, SearchResponse};

/// Highest limit of a public search. The administration, which is the command line, may ask for
/// as many as the library gives.
const LIMIT_MAX: u32 = 50;

/// Searches a mailbox; sees everything acknowledged before.
pub(super) async fn search(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(identity): Path<String>,
    request: Request,
) -> Result<Json<SearchResponse>, Refusal> {
    let asked: SearchRequest = body::json(request, JSON_BYTES_MAX).await?;
    if caller != Caller::Admin && !(1..=LIMIT_MAX).contains(&asked.limit) {
        return Err(Refusal::invalid("limit", format!("must be 1 to {LIMIT_MAX}")));
    }
    Ok(Json(shared.postrider.search(&identity, &asked).await?))
}
