//! Verifying, backing up, compacting, and looking at the log: work of the administration.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::Json;
use serde_json::{Value, json};

use super::body::{self, ADMIN_JSON_BYTES_MAX};
use super::refusal::Refusal;
use super::routes::Shared;
use super::wire::{ErrorBody, JobStarted};
use super::wire_lifecycle::{BackupRequest, Events, VerifyReport, VerifyRequest};
use crate::app::{Error, LogStats, Postrider, VerifyProgress};

/// Verifies one mailbox, or all in order of their names.
///
/// # Errors
/// [`Error::NoSuchMailbox`], and what a store says that cannot be read at all.
pub async fn verify_mailboxes(
    postrider: &Postrider,
    request: &VerifyRequest,
    progress: &Arc<VerifyProgress>,
) -> Result<VerifyReport, Error> {
    let mut names: Vec<String> = match &request.mailbox {
        Some(mailbox) => vec![postrider.identity(mailbox)?.name],
        None => postrider.identities().into_iter().map(|identity| identity.name).collect(),
    };
    names.sort();
    let mut mailboxes = Vec::new();
    for name in names {
        mailboxes.push(postrider.verify(&name, request.repair, Arc::clone(progress)).await?);
    }
    Ok(VerifyReport { mailboxes })
}

fn value(outcome: &impl serde::Serialize) -> Result<Value, Error> {
    serde_json::to_value(outcome).map_err(|_| Error::Gone)
}

type Started = (StatusCode, Json<JobStarted>);

fn started(job_id: &str) -> Started {
    (StatusCode::ACCEPTED, Json(JobStarted { job_id: job_id.to_owned() }))
}

/// `POST /v1/admin/verify`: starts a job.
pub(super) async fn verify(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Started, Refusal> {
    let asked: VerifyRequest = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    if let Some(mailbox) = &asked.mailbox {
        shared.postrider.identity(mailbox)?;
    }
    let postrider = shared.postrider.clone();
    let progress = Arc::<VerifyProgress>::default();
    let watched = Arc::clone(&progress);
    let job = shared.jobs.maintain(watched, async move {
        value(&verify_mailboxes(&postrider, &asked, &progress).await?)
    })?;
    Ok(started(job.id()))
}

/// `POST /v1/admin/backup`: starts a job.
pub(super) async fn backup(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Started, Refusal> {
    let BackupRequest { dir } = body::json(request, ADMIN_JSON_BYTES_MAX).await?;
    if !dir.is_absolute() {
        return Err(Refusal::invalid("dir", "must be an absolute path"));
    }
    let postrider = shared.postrider.clone();
    let job = shared
        .jobs
        .maintain(Arc::default(), async move { value(&back_up(&postrider, dir).await?) })?;
    Ok(started(job.id()))
}

async fn back_up(postrider: &Postrider, dir: PathBuf) -> Result<crate::app::BackedUp, Error> {
    postrider.back_up(&dir).await
}

/// `POST /v1/admin/compact`: starts a job.
pub(super) async fn compact(State(shared): State<Shared>) -> Result<Started, Refusal> {
    let postrider = shared.postrider.clone();
    let job =
        shared.jobs.maintain(Arc::default(), async move { value(&postrider.compact().await?) })?;
    Ok(started(job.id()))
}

/// `GET /v1/admin/log?mailbox=&after=&limit=`.
pub(super) async fn log(
    State(shared): State<Shared>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Json<Events>, Refusal> {
    let (mut mailbox, mut after, mut limit) = (None, None, 20);
    let mut errors = Vec::new();
    for (name, value) in parameters {
        match (name.as_str(), value.parse::<u64>()) {
            ("mailbox", _) => mailbox = Some(value),
            ("after", Ok(seq)) => after = Some(seq),
            ("limit", Ok(count)) => limit = u32::try_from(count).unwrap_or(u32::MAX),
            ("after" | "limit", Err(_)) => errors.push((name, "must be a number".to_owned())),
            _ => errors.push((name, "is no parameter; known are mailbox, after, limit".into())),
        }
    }
    let Some(mailbox) = mailbox.filter(|_| errors.is_empty()) else {
        if errors.is_empty() {
            errors.push(("mailbox".to_owned(), "must be named".to_owned()));
        }
        return Err(ErrorBody::invalid(&errors).into());
    };
    Ok(Json(Events { events: shared.postrider.events(&mailbox, after, limit).await? }))
}

/// `GET /v1/admin/log/stats?mailbox=`.
pub(super) async fn log_stats(
    State(shared): State<Shared>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Json<LogStats>, Refusal> {
    match parameters.as_slice() {
        [(name, mailbox)] if name == "mailbox" => {
            Ok(Json(shared.postrider.log_stats(mailbox).await?))
        }
        _ => Err(Refusal::invalid("mailbox", "must be named, and is the only parameter")),
    }
}

/// `GET /v1/admin/receipts/export`: erasures to be applied again after a restore.
pub(super) async fn export(State(shared): State<Shared>) -> Result<Json<Value>, Refusal> {
    Ok(Json(json!({ "erasures": shared.postrider.erasures_to_repeat().await? })))
}
