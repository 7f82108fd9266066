//! `postrider rebuild`.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use crate::app::Postrider;
use crate::config::Config;
use crate::http::rebuild_mailboxes;
use crate::http::wire::{JobProgress, JobStarted, RebuildRequest, Rebuilt};

use super::access::Access;
use super::args::Rebuild;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::progress::Bar;
use super::{job, safe};

/// Rebuilds, and prints what was rebuilt.
pub(super) async fn run(config: Config, args: Rebuild, out: Output) -> Result<Exit, Failure> {
    let request = RebuildRequest { mailbox: (!args.all).then_some(args.mailbox), all: args.all };
    let access = Access::find(config).await?;
    let done = match &access {
        Access::Here(postrider) => here(postrider, &request).await,
        Access::Server(client) => {
            let started: JobStarted = client.post("/v1/admin/rebuild", &request).await?;
            let view = job::at_server(client, &started.job_id, Bar::rebuild()).await;
            view.map(|view| view.rebuilt)
        }
    };
    access.close().await;
    let rebuilt = done?;
    if out.json {
        out.value(&json!({ "rebuilt": rebuilt }))?;
    } else {
        for Rebuilt { mailbox, events, messages } in &rebuilt {
            let name = safe::line(mailbox);
            out.text(&format!("{name}: {messages} messages from {events} events\n"))?;
        }
    }
    Ok(Exit::Fine)
}

async fn here(postrider: &Postrider, request: &RebuildRequest) -> Result<Vec<Rebuilt>, Failure> {
    let nothing = JobProgress::Rebuild { mailbox: String::new(), events_done: 0, events_total: 0 };
    let progress = Arc::new(Mutex::new(nothing));
    let work = rebuild_mailboxes(postrider, request, Arc::clone(&progress));
    let look = || progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // There is nothing to finish: the old generation serves as before.
    Ok(job::here(work, Bar::rebuild(), look, || false).await??)
}
