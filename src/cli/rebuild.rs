//! `postrider rebuild`.

use std::sync::Arc;

use serde_json::json;

use crate::app::{Postrider, Rebuilt};
use crate::config::Config;
use crate::http::wire::{JobStarted, RebuildRequest};
use crate::http::{RebuildWatch, rebuild_mailboxes};
use crate::projections::build::{Compared, Parts};

use super::access::Access;
use super::args::{Rebuild, RebuildParts};
use super::count::counted;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::progress::Bar;
use super::{job, safe};

/// Rebuilds, and prints what was rebuilt.
pub(super) async fn run(config: Config, args: Rebuild, out: Output) -> Result<Exit, Failure> {
    let request = RebuildRequest {
        mailbox: (!args.all).then_some(args.mailbox),
        all: args.all,
        parts: match args.parts {
            RebuildParts::All => Parts::All,
            RebuildParts::Catalog => Parts::Catalog,
            RebuildParts::Text => Parts::Text,
        },
        rate_max: args.max_rate,
        unverified: args.unverified,
        roll_back: args.rollback,
    };
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
    } else if request.roll_back {
        out.text("the indexes from before the last rebuild serve again\n")?;
    } else {
        for Rebuilt { mailbox, events, messages, compared } in &rebuilt {
            let name = safe::line(mailbox);
            let compared = match compared {
                Compared::Equal => "the same as before",
                Compared::Different => "NOT the same as before: the old ones were wrong",
                Compared::Skipped => "not compared with the old ones",
            };
            out.text(&format!(
                "{name}: {} from {}; {compared}\n",
                counted(*messages, "message"),
                counted(*events, "event")
            ))?;
        }
    }
    Ok(Exit::Fine)
}

async fn here(postrider: &Postrider, request: &RebuildRequest) -> Result<Vec<Rebuilt>, Failure> {
    let watch = Arc::<RebuildWatch>::default();
    let work = rebuild_mailboxes(postrider, request, &watch);
    let stop = || {
        watch.cancel();
        true
    };
    Ok(job::here(work, Bar::rebuild(), || watch.look(), stop).await??)
}
