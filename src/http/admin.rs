//! The administration: what the command line asks of the server that holds its data directory.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Json;

use super::body::{self, ADMIN_JSON_BYTES_MAX};
use super::refusal::Refusal;
use super::routes::Shared;
use super::wire::{
    Configured, ErrorBody, ImportRequest, JobStarted, JobView, OwnAddresses, RebuildRequest,
};
use crate::app::{ImportOptions, ImportProgress, Status};

type Started = (StatusCode, Json<JobStarted>);

fn started(job_id: &str) -> Started {
    (StatusCode::ACCEPTED, Json(JobStarted { job_id: job_id.to_owned() }))
}

/// `GET /v1/admin/status`.
pub(super) async fn status(State(shared): State<Shared>) -> Result<Json<Status>, Refusal> {
    Ok(Json(shared.postrider.status().await?))
}

/// `POST /v1/admin/import`: starts a job.
pub(super) async fn import(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Started, Refusal> {
    let asked: ImportRequest = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    let mut errors = Vec::new();
    if asked.mailbox.is_empty() {
        errors.push(("mailbox".to_owned(), "must be named".to_owned()));
    }
    if asked.paths.is_empty() {
        errors.push(("paths".to_owned(), "must name at least one file or directory".to_owned()));
    }
    for (at, path) in asked.paths.iter().enumerate() {
        if !path.is_absolute() {
            errors.push((format!("paths[{at}]"), "must be absolute".to_owned()));
        }
    }
    if !errors.is_empty() {
        return Err(ErrorBody::invalid(&errors).into());
    }
    let options = ImportOptions {
        folder: asked.folder,
        source: asked.source,
        labels: asked.labels,
        progress: Arc::new(ImportProgress::default()),
    };
    let job = shared.jobs.import(shared.postrider.clone(), asked.mailbox, asked.paths, options)?;
    Ok(started(job.id()))
}

/// `POST /v1/admin/rebuild`: starts a job.
pub(super) async fn rebuild(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Started, Refusal> {
    let asked: RebuildRequest = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    match &asked.mailbox {
        Some(mailbox) if !asked.all => drop(shared.postrider.identity(mailbox)?),
        None if asked.all => {}
        Some(_) => return Err(Refusal::invalid("all", "must be false when a mailbox is named")),
        None => return Err(Refusal::invalid("mailbox", "must be named, unless `all` is true")),
    }
    Ok(started(shared.jobs.rebuild(shared.postrider.clone(), asked)?.id()))
}

/// `GET /v1/admin/jobs/{id}`.
pub(super) async fn job(
    State(shared): State<Shared>,
    Path(job_id): Path<String>,
) -> Result<Json<JobView>, Refusal> {
    Ok(Json(shared.jobs.get(&job_id)?.view()))
}

/// `POST /v1/admin/jobs/{id}/stop`: an import ends early, what is on its way is finished; a rebuild
/// leaves the old indexes as they are.
pub(super) async fn stop(
    State(shared): State<Shared>,
    Path(job_id): Path<String>,
) -> Result<Json<JobView>, Refusal> {
    let job = shared.jobs.get(&job_id)?;
    job.ask_to_stop();
    Ok(Json(job.view()))
}

/// `POST /v1/admin/jobs/{id}/pause`.
pub(super) async fn pause(
    State(shared): State<Shared>,
    Path(job_id): Path<String>,
) -> Result<Json<JobView>, Refusal> {
    hold_up(&shared, &job_id, true)
}

/// `POST /v1/admin/jobs/{id}/resume`.
pub(super) async fn resume(
    State(shared): State<Shared>,
    Path(job_id): Path<String>,
) -> Result<Json<JobView>, Refusal> {
    hold_up(&shared, &job_id, false)
}

fn hold_up(shared: &Shared, job_id: &str, pause: bool) -> Result<Json<JobView>, Refusal> {
    let job = shared.jobs.get(job_id)?;
    if !job.pause(pause) {
        return Err(Refusal::invalid("job_id", "names no rebuild; only those can be held up"));
    }
    Ok(Json(job.view()))
}

/// `POST /v1/admin/own-addresses`.
pub(super) async fn own_addresses(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Json<Configured>, Refusal> {
    let asked: OwnAddresses = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    let seq = shared.postrider.configure(&asked.mailbox, &asked.addresses).await?;
    Ok(Json(Configured { seq: seq.0 }))
}
