//! Whether the process lives, and whether it can do its work.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Json};

use super::refusal::Refusal;
use super::routes::Shared;
use crate::app::Health;
use crate::search::request::Capability;

/// `GET /healthz`: 200 as long as the process answers; tells its health.
pub(super) async fn alive(State(shared): State<Shared>) -> Json<Health> {
    Json(shared.postrider.health())
}

/// `GET /metrics`: gauges in the text format of Prometheus. No name of a mailbox, no word of mail.
pub(super) async fn metrics(State(shared): State<Shared>) -> impl IntoResponse {
    let Health { writing, semantic, .. } = shared.postrider.health();
    let mut text = String::from(
        "# HELP postrider_writing Mail can be taken in (1) or not (0).\n\
         # TYPE postrider_writing gauge\n",
    );
    let _ = writeln!(text, "postrider_writing {}", u8::from(writing));
    text.push_str(
        "# HELP postrider_semantic Searches by meaning: 1 at the state they are in.\n\
         # TYPE postrider_semantic gauge\n",
    );
    let states = [
        ("inactive", Capability::Inactive),
        ("available", Capability::Available),
        ("degraded", Capability::Degraded),
    ];
    for (name, state) in states {
        let _ = writeln!(
            text,
            "postrider_semantic{{state=\"{name}\"}} {}",
            u8::from(semantic == state)
        );
    }
    text.push_str("# HELP postrider_mailboxes Mailboxes.\n# TYPE postrider_mailboxes gauge\n");
    let _ = writeln!(text, "postrider_mailboxes {}", shared.postrider.identities().len());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
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
