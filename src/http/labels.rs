//! Labels and status of many messages.

use axum::extract::{Extension, Path, Request, State};
use axum::response::Json;

use super::body::{self, ADMIN_JSON_BYTES_MAX, JSON_BYTES_MAX};
use super::caller::{self, Caller};
use super::refusal::Refusal;
use super::routes::Shared;
use super::wire_lifecycle::{LabelsRequest, UndoRequest};
use crate::app::LabelOutcome;

/// `POST /v1/identities/{id}/labels`.
pub(super) async fn change(
    State(shared): State<Shared>,
    Path(identity): Path<String>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Json<LabelOutcome>, Refusal> {
    // A list of identifiers may be long.
    let asked: LabelsRequest = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    if asked.status.is_some() && caller != Caller::Admin {
        // It decides what anybody sees at all.
        return Err(caller::denied("giving a status needs the token of server.json"));
    }
    Ok(Json(shared.postrider.label(&identity, asked.change()?).await?))
}

/// `POST /v1/identities/{id}/labels/undo`.
pub(super) async fn undo(
    State(shared): State<Shared>,
    Path(identity): Path<String>,
    request: Request,
) -> Result<Json<LabelOutcome>, Refusal> {
    let asked: UndoRequest = body::json(request, JSON_BYTES_MAX).await?;
    Ok(Json(shared.postrider.undo(&identity, asked.event).await?))
}
