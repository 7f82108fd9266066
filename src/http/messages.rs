//! Messages of a mailbox: taking one in, showing one, its raw bytes, its thread.

use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};

use super::refusal::Refusal;
use super::routes::Shared;
use super::wire::{ErrorBody, Ingested};
use crate::app::{IngestOutcome, IngestRequest, ShownMessage};
use crate::ids::MessageId;
use crate::search::ThreadOut;

/// `POST /v1/identities/{id}/messages?folder=&label=&label=&source=`: one RFC 5322 message as the
/// body, of any content type.
pub(super) async fn ingest(
    State(shared): State<Shared>,
    Path(identity): Path<String>,
    Query(parameters): Query<Vec<(String, String)>>,
    request: Request,
) -> Result<Response, Refusal> {
    let mut ingest = IngestRequest {
        raw: Vec::new(),
        folder: "INBOX".into(),
        labels: Vec::new(),
        source: "http".into(),
    };
    let mut errors = Vec::new();
    for (name, value) in parameters {
        match name.as_str() {
            "folder" => ingest.folder = value,
            "label" => ingest.labels.push(value),
            "source" => ingest.source = value,
            _ => errors.push((name, "is no parameter; known are folder, label, source".into())),
        }
    }
    if !errors.is_empty() {
        return Err(ErrorBody::invalid(&errors).into());
    }
    // Before the body is read: a caller with a wrong name need not send it all.
    shared.postrider.identity(&identity)?;
    let (bytes, _permit) = shared.bodies.message(request).await?;
    ingest.raw = bytes.into();
    Ok(match shared.postrider.ingest(&identity, ingest).await? {
        IngestOutcome::Stored { id, seq } => {
            let body = Ingested::Stored { message_id: id.to_string(), seq: seq.0 };
            (StatusCode::ACCEPTED, Json(body)).into_response()
        }
        IngestOutcome::Duplicate { id, placed } => {
            Json(Ingested::Duplicate { message_id: id.to_string(), placed }).into_response()
        }
        IngestOutcome::Suppressed => Json(Ingested::Suppressed).into_response(),
    })
}

fn parse(message_id: &str) -> Result<MessageId, Refusal> {
    message_id.parse().map_err(|e| Refusal::invalid("message_id", format!("is malformed: {e}")))
}

/// `GET /v1/identities/{id}/messages/{message_id}`.
pub(super) async fn show(
    State(shared): State<Shared>,
    Path((identity, message_id)): Path<(String, String)>,
) -> Result<Json<ShownMessage>, Refusal> {
    Ok(Json(shared.postrider.show(&identity, parse(&message_id)?).await?))
}

/// `GET /v1/identities/{id}/threads/{thread_id}`.
pub(super) async fn thread(
    State(shared): State<Shared>,
    Path((identity, thread_id)): Path<(String, String)>,
) -> Result<Json<ThreadOut>, Refusal> {
    let id = thread_id
        .parse()
        .map_err(|e| Refusal::invalid("thread_id", format!("is malformed: {e}")))?;
    Ok(Json(shared.postrider.thread(&identity, id).await?))
}

/// `GET /v1/identities/{id}/messages/{message_id}/raw`: the bytes as they came in, for saving and
/// never for a browser to show.
pub(super) async fn raw(
    State(shared): State<Shared>,
    Path((identity, message_id)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let id = parse(&message_id)?;
    let bytes = shared.postrider.raw(&identity, id).await?;
    let headers = [
        (header::CONTENT_TYPE, "message/rfc822".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{id}.eml\"")),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    Ok((headers, bytes).into_response())
}
