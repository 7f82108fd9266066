//! Whether the process lives, and whether it can do its work.

use axum::extract::State;
use axum::response::Json;

use super::refusal::Refusal;
use super::routes::Shared;
use crate::app::Health;

/// `GET /healthz`: 200 as long as the process answers; tells its health.
pub(super) async fn alive(State(shared): State<Shared>) -> Json<Health> {
    Json(shared.postrider.health())
}

/// `GET /readyz`: 503 when mail cannot be taken in.
pub(super) async fn ready(State(shared): State<Shared>) -> Result<Json<Health>, Refusal> {
    let health = shared.postrider.health();
    if health.writing {
        return Ok(Json(health));
    }
    let reason = health.reason.unwrap_or_default();
    let message = format!("durable writing has stopped: {reason}");
    let mut refusal = Refusal::new("unavailable", message, "free or repair the disk, then restart");
    refusal.0.details = serde_json::json!({ "writing": false, "reason": reason });
    Err(refusal)
}
