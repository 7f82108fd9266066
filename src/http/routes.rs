//! All routes, and what their handlers share.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{delete, get, post};

use super::body::BodyBudget;
use super::host::Hosts;
use super::jobs::Jobs;
use super::refusal::Refusal;
use super::{
    admin, caller, dump, embeddings, erasures, health, host, labels, maintenance, messages,
    request_id, search, time_limit,
};
use crate::app::Postrider;
use crate::clock::SharedClock;

/// What handlers share.
pub(super) struct Context {
    /// The use cases.
    pub(super) postrider: Postrider,
    /// Long work of the administration.
    pub(super) jobs: Jobs,
    /// Token of the administration.
    pub(super) token: String,
    /// Names under which the server may be addressed.
    pub(super) hosts: Hosts,
    /// Room for messages on their way in.
    pub(super) bodies: BodyBudget,
    /// Time and randomness of identifiers.
    pub(super) clock: SharedClock,
}

/// The context, as handlers get it.
pub(super) type Shared = Arc<Context>;

/// All routes behind all layers.
pub(super) fn router(shared: &Shared) -> Router {
    let administration = Router::new()
        .route("/status", get(admin::status))
        .route("/import", post(admin::import))
        .route("/rebuild", post(admin::rebuild))
        .route("/jobs/{job_id}", get(admin::job))
        .route("/jobs/{job_id}/stop", post(admin::stop))
        .route("/jobs/{job_id}/pause", post(admin::pause))
        .route("/jobs/{job_id}/resume", post(admin::resume))
        .route("/own-addresses", post(admin::own_addresses))
        .route("/dump", get(dump::dump))
        .route("/receipts", get(erasures::receipts))
        .route("/receipts/export", get(maintenance::export))
        .route("/embed", get(embeddings::status).post(embeddings::embed))
        .route("/embed/spaces", post(embeddings::spaces))
        .route("/embed/prune", post(embeddings::prune))
        .route("/embed/estimate", get(embeddings::estimate))
        .route("/verify", post(maintenance::verify))
        .route("/backup", post(maintenance::backup))
        .route("/compact", post(maintenance::compact))
        .route("/log", get(maintenance::log))
        .route("/log/stats", get(maintenance::log_stats))
        .route_layer(from_fn(caller::admin_only));
    let erasing = Router::new()
        .route("/v1/identities/{identity}", delete(erasures::erase_identity))
        .route("/v1/identities/{identity}/erasures", post(erasures::erase))
        .route("/v1/identities/{identity}/holds", get(erasures::holds).post(erasures::hold))
        .route("/v1/identities/{identity}/holds/{hold}", delete(erasures::release))
        .route("/v1/tenants/{tenant}", delete(erasures::erase_tenant))
        .route_layer(from_fn(caller::admin_only));
    // Layers are listed from the inside out.
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/v1/identities/{identity}/search", post(search::search))
        .route("/v1/identities/{identity}/messages", post(messages::ingest))
        .route("/v1/identities/{identity}/messages/{message_id}", get(messages::show))
        .route("/v1/identities/{identity}/messages/{message_id}/raw", get(messages::raw))
        .route("/v1/identities/{identity}/threads/{thread_id}", get(messages::thread))
        .route("/v1/identities/{identity}/labels", post(labels::change))
        .route("/v1/identities/{identity}/labels/undo", post(labels::undo))
        .route("/v1/receipts/{receipt}", get(erasures::receipt))
        .merge(erasing)
        .nest("/v1/admin", administration)
        .fallback(async || Refusal::of_status(StatusCode::NOT_FOUND))
        .method_not_allowed_fallback(async || Refusal::of_status(StatusCode::METHOD_NOT_ALLOWED))
        .layer(from_fn(time_limit::layer))
        .layer(from_fn_with_state(Arc::clone(shared), caller::layer))
        .layer(from_fn_with_state(Arc::clone(shared), host::layer))
        .layer(from_fn_with_state(Arc::clone(shared), request_id::layer))
        .with_state(Arc::clone(shared))
}
