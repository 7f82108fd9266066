//! Erasures, receipts and holds. Erasing and holding need the token of the administration; a receipt
//! is for whoever knows its identifier.

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Json, Response};

use super::body::{self, ADMIN_JSON_BYTES_MAX};
use super::refusal::Refusal;
use super::routes::Shared;
use super::wire::ErrorBody;
use super::wire_lifecycle::{ErasureRequest, HoldRequest, Holds, Receipts, Selector};
use crate::app::{HoldOut, ReceiptOut};
use crate::events::receipt::ScopeKind;
use crate::ids::{HoldId, ReceiptId};

/// `POST /v1/identities/{id}/erasures`: 202 with the receipt, or 200 with a count on a dry run.
pub(super) async fn erase(
    State(shared): State<Shared>,
    Path(identity): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: ErasureRequest = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    let dry_run = asked.dry_run;
    let asked = asked.request()?;
    if dry_run {
        let preview = shared.postrider.erase_preview(&identity, asked).await?;
        return Ok(Json(preview).into_response());
    }
    let receipt = shared.postrider.erase(&identity, asked).await?;
    Ok((StatusCode::ACCEPTED, Json(receipt)).into_response())
}

/// `DELETE /v1/identities/{id}`: the mailbox with everything in it.
pub(super) async fn erase_identity(
    State(shared): State<Shared>,
    Path(identity): Path<String>,
) -> Result<(StatusCode, Json<ReceiptOut>), Refusal> {
    let receipt = shared.postrider.erase_identity(&identity, ScopeKind::Identity).await?;
    Ok((StatusCode::ACCEPTED, Json(receipt)))
}

/// `DELETE /v1/tenants/{id}`: all its mailboxes.
pub(super) async fn erase_tenant(
    State(shared): State<Shared>,
    Path(tenant): Path<String>,
) -> Result<(StatusCode, Json<Receipts>), Refusal> {
    let receipts = shared.postrider.erase_tenant(&tenant).await?;
    Ok((StatusCode::ACCEPTED, Json(Receipts { receipts })))
}

/// `GET /v1/receipts/{id}`; with `?wait=true` the answer comes when the purge is proven.
pub(super) async fn receipt(
    State(shared): State<Shared>,
    Path(receipt): Path<String>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Json<ReceiptOut>, Refusal> {
    let id: ReceiptId = receipt
        .parse()
        .map_err(|e| Refusal::invalid("receipt_id", format!("is malformed: {e}")))?;
    let wait = match parameters.as_slice() {
        [] => false,
        [(name, value)] if name == "wait" && value == "true" => true,
        _ => {
            let errors = [("wait".to_owned(), "is the only parameter, and `true`".to_owned())];
            return Err(ErrorBody::invalid(&errors).into());
        }
    };
    let erasure = if wait {
        shared.postrider.purged(id).await?
    } else {
        shared.postrider.erasure(id).await?
    };
    Ok(Json(erasure))
}

/// `GET /v1/admin/receipts`.
pub(super) async fn receipts(State(shared): State<Shared>) -> Result<Json<Receipts>, Refusal> {
    Ok(Json(Receipts { receipts: shared.postrider.erasures().await? }))
}

/// `POST /v1/identities/{id}/holds`.
pub(super) async fn hold(
    State(shared): State<Shared>,
    Path(identity): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<HoldOut>), Refusal> {
    let asked: HoldRequest = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    let HoldRequest { reason, messages, threads, counterparty, query } = asked;
    let select = Selector { messages, threads, counterparty, query }.selection()?;
    let hold = shared.postrider.set_hold(&identity, select, &reason).await?;
    Ok((StatusCode::CREATED, Json(hold)))
}

/// `GET /v1/identities/{id}/holds`.
pub(super) async fn holds(
    State(shared): State<Shared>,
    Path(identity): Path<String>,
) -> Result<Json<Holds>, Refusal> {
    Ok(Json(Holds { holds: shared.postrider.holds(&identity).await? }))
}

/// `DELETE /v1/identities/{id}/holds/{hold}`.
pub(super) async fn release(
    State(shared): State<Shared>,
    Path((identity, hold)): Path<(String, String)>,
) -> Result<Json<Holds>, Refusal> {
    let hold: HoldId =
        hold.parse().map_err(|e| Refusal::invalid("hold_id", format!("is malformed: {e}")))?;
    shared.postrider.release_hold(&identity, hold).await?;
    Ok(Json(Holds { holds: shared.postrider.holds(&identity).await? }))
}
