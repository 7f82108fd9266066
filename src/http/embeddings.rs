//! Vectors of mailboxes: how they stand, and computing those that are missing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::Json;

use super::body::{self, ADMIN_JSON_BYTES_MAX};
use super::refusal::Refusal;
use super::routes::Shared;
use super::wire::{ErrorBody, JobStarted};
use super::wire_lifecycle::{
    EmbedReport, EmbedRequest, EmbedStatuses, PruneRequest, ReembedAction, ReembedRequest,
};
use crate::app::{EmbedOptions, EmbedProgress, Error, Estimate, Postrider, Pruned, SpacesOut};

/// Gives vectors to the messages of one mailbox that have none, or of all.
///
/// # Errors
/// [`Error::NoSuchMailbox`], and what the model or the stores say; what is done stays done.
pub async fn embed_mailboxes(
    postrider: &Postrider,
    request: &EmbedRequest,
    progress: &Arc<EmbedProgress>,
) -> Result<EmbedReport, Error> {
    let mut mailboxes = Vec::new();
    for name in names(postrider, request.mailbox.as_deref())? {
        if progress.stop.load(Ordering::Relaxed) {
            break;
        }
        let options =
            EmbedOptions { limit: request.limit, retry: request.retry, ..EmbedOptions::default() };
        mailboxes.push(postrider.embed(&name, options, Arc::clone(progress)).await?);
    }
    let interrupted = progress.stop.load(Ordering::Relaxed);
    Ok(EmbedReport { mailboxes, spaces: postrider.spaces(), interrupted })
}

/// How the vectors of one mailbox stand, or of all.
///
/// # Errors
/// [`Error::NoSuchMailbox`], and what the stores say.
pub async fn embed_statuses(
    postrider: &Postrider,
    mailbox: Option<&str>,
) -> Result<EmbedStatuses, Error> {
    let mut mailboxes = Vec::new();
    for name in names(postrider, mailbox)? {
        mailboxes.push(postrider.embed_status(&name).await?);
    }
    Ok(EmbedStatuses { spaces: postrider.spaces(), mailboxes })
}

/// Begins, cancels or takes back a change of the model.
///
/// # Errors
/// [`Error::Invalid`] when there is nothing to do; otherwise what the stores say.
pub async fn reembed(postrider: &Postrider, action: ReembedAction) -> Result<SpacesOut, Error> {
    match action {
        ReembedAction::Begin => postrider.begin_reembed().await,
        ReembedAction::Cancel => postrider.cancel_reembed().await,
        ReembedAction::RollBack => postrider.roll_back_reembed().await,
    }
}

fn names(postrider: &Postrider, mailbox: Option<&str>) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = match mailbox {
        Some(mailbox) => vec![postrider.identity(mailbox)?.name],
        None => postrider.identities().into_iter().map(|identity| identity.name).collect(),
    };
    names.sort();
    Ok(names)
}

/// `POST /v1/admin/embed`: starts a job.
pub(super) async fn embed(
    State(shared): State<Shared>,
    request: Request,
) -> Result<(StatusCode, Json<JobStarted>), Refusal> {
    let asked: EmbedRequest = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    if let Some(mailbox) = &asked.mailbox {
        shared.postrider.identity(mailbox)?;
    }
    if asked.limit == Some(0) {
        return Err(Refusal::invalid("limit", "must be at least 1"));
    }
    let postrider = shared.postrider.clone();
    let progress = Arc::<EmbedProgress>::default();
    let watched = Arc::clone(&progress);
    let job = shared.jobs.embed(watched, async move {
        let report = embed_mailboxes(&postrider, &asked, &progress).await?;
        serde_json::to_value(report).map_err(|_| Error::Gone)
    })?;
    Ok((StatusCode::ACCEPTED, Json(JobStarted { job_id: job.id().to_owned() })))
}

/// `POST /v1/admin/embed/spaces`.
pub(super) async fn spaces(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Json<SpacesOut>, Refusal> {
    let ReembedRequest { action } = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    Ok(Json(reembed(&shared.postrider, action).await?))
}

/// `POST /v1/admin/embed/prune`.
pub(super) async fn prune(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Json<Pruned>, Refusal> {
    let PruneRequest { superseded } = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    Ok(Json(shared.postrider.prune_embeddings(superseded).await?))
}

/// `GET /v1/admin/embed/estimate`: `null` while searches by meaning are turned off.
pub(super) async fn estimate(
    State(shared): State<Shared>,
) -> Result<Json<Option<Estimate>>, Refusal> {
    Ok(Json(shared.postrider.estimate_embedding().await?))
}

/// `GET /v1/admin/embed?mailbox=`.
pub(super) async fn status(
    State(shared): State<Shared>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Json<EmbedStatuses>, Refusal> {
    let mailbox = match parameters.as_slice() {
        [] => None,
        [(name, value)] if name == "mailbox" => Some(value.as_str()),
        _ => {
            let errors = [("mailbox".to_owned(), "is the only parameter, once".to_owned())];
            return Err(ErrorBody::invalid(&errors).into());
        }
    };
    Ok(Json(embed_statuses(&shared.postrider, mailbox).await?))
}
