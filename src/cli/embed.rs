//! `postrider embed`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use indicatif::HumanBytes;

use crate::app::{EmbedProgress, EmbedStatus, Embedded};
use crate::config::Config;
use crate::http::wire::{JobProgress, path_segment};
use crate::http::wire_lifecycle::{EmbedReport, EmbedRequest, EmbedStatuses};
use crate::http::{embed_mailboxes, embed_statuses};

use super::access::Access;
use super::args_lifecycle::{Embed, EmbedWhat};
use super::count::counted;
use super::failure::{Exit, Failure};
use super::maintenance::at_server;
use super::output::Output;
use super::progress::Bar;
use super::{job, safe};

/// Computes missing vectors, or tells how they stand.
pub(super) async fn run(config: Config, args: Embed, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let done = match args.what {
        EmbedWhat::Run { mailbox, limit } => {
            let report = embed(&access, EmbedRequest { mailbox, limit }).await;
            report.and_then(|report| {
                tell_report(&report, out)?;
                Ok(if report.interrupted { Exit::Interrupted } else { Exit::Fine })
            })
        }
        EmbedWhat::Status { mailbox } => {
            let statuses = statuses(&access, mailbox).await;
            statuses.and_then(|statuses| tell_statuses(&statuses, out)).map(|()| Exit::Fine)
        }
    };
    access.close().await;
    done
}

/// Computes missing vectors by whoever holds the directory.
pub(super) async fn embed(access: &Access, request: EmbedRequest) -> Result<EmbedReport, Failure> {
    match access {
        Access::Here(postrider) => {
            let progress = Arc::<EmbedProgress>::default();
            let work = embed_mailboxes(postrider, &request, &progress);
            let look = || JobProgress::Maintenance {
                done: progress.counts.done.load(Relaxed),
                total: progress.counts.total.load(Relaxed),
            };
            let stop = || {
                progress.stop.store(true, Relaxed);
                true
            };
            Ok(job::here(work, Bar::maintenance("embedding"), look, stop).await??)
        }
        Access::Server(client) => at_server(client, "/v1/admin/embed", &request, "embedding").await,
    }
}

async fn statuses(access: &Access, mailbox: Option<String>) -> Result<EmbedStatuses, Failure> {
    match access {
        Access::Here(postrider) => Ok(embed_statuses(postrider, mailbox.as_deref()).await?),
        Access::Server(client) => {
            let asked = mailbox.map(|name| format!("?mailbox={}", path_segment(&name)));
            client.get(&format!("/v1/admin/embed{}", asked.unwrap_or_default())).await
        }
    }
}

fn tell_report(report: &EmbedReport, out: Output) -> Result<(), Failure> {
    if out.json {
        return out.value(report);
    }
    if report.mailboxes.is_empty() && !report.interrupted {
        return out.text("no mailbox\n");
    }
    for Embedded { mailbox, computed, kept, empty, pending } in &report.mailboxes {
        out.text(&format!(
            "{}: {} computed, {kept} kept from before, {empty} without text; {pending} to go\n",
            safe::line(mailbox),
            counted(*computed, "message")
        ))?;
    }
    Ok(())
}

fn tell_statuses(statuses: &EmbedStatuses, out: Output) -> Result<(), Failure> {
    if out.json {
        return out.value(statuses);
    }
    if statuses.mailboxes.is_empty() {
        return out.text("no mailbox\n");
    }
    for EmbedStatus { mailbox, model, eligible, embedded, passages, index_bytes } in
        &statuses.mailboxes
    {
        let mailbox = safe::line(mailbox);
        match model {
            None => out.text(&format!("{mailbox}: searches by meaning are turned off\n"))?,
            Some(model) => out.text(&format!(
                "{mailbox}: {embedded} of {} have vectors by {model}; {}, {}\n",
                counted(*eligible, "message"),
                counted(*passages, "passage"),
                HumanBytes(*index_bytes)
            ))?,
        }
    }
    Ok(())
}
