//! `postrider embed`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, HumanDuration};

use crate::app::{EmbedProgress, EmbedStatus, Embedded, Estimate, Pruned, SpaceStatus, SpacesOut};
use crate::config::Config;
use crate::http::wire::{JobProgress, path_segment};
use crate::http::wire_lifecycle::{
    EmbedReport, EmbedRequest, EmbedStatuses, PruneRequest, ReembedAction, ReembedRequest,
};
use crate::http::{embed_mailboxes, embed_statuses, reembed};

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
        EmbedWhat::Run { mailbox, limit, retry } => {
            let report = embed(&access, EmbedRequest { mailbox, limit, retry }).await;
            report.and_then(|report| {
                tell_report(&report, out)?;
                Ok(if report.interrupted { Exit::Interrupted } else { Exit::Fine })
            })
        }
        EmbedWhat::Status { mailbox } => {
            let statuses = statuses(&access, mailbox).await;
            statuses.and_then(|statuses| tell_statuses(&statuses, out)).map(|()| Exit::Fine)
        }
        EmbedWhat::Estimate => {
            let estimate = estimate(&access).await;
            estimate.and_then(|estimate| tell_estimate(estimate.as_ref(), out)).map(|()| Exit::Fine)
        }
        EmbedWhat::Begin => change(&access, ReembedAction::Begin, out).await,
        EmbedWhat::Cancel => change(&access, ReembedAction::Cancel, out).await,
        EmbedWhat::Rollback => change(&access, ReembedAction::RollBack, out).await,
        EmbedWhat::Prune { superseded } => prune(&access, superseded, out).await,
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

async fn estimate(access: &Access) -> Result<Option<Estimate>, Failure> {
    match access {
        Access::Here(postrider) => Ok(postrider.estimate_embedding().await?),
        Access::Server(client) => client.get("/v1/admin/embed/estimate").await,
    }
}

async fn change(access: &Access, action: ReembedAction, out: Output) -> Result<Exit, Failure> {
    let spaces: SpacesOut = match access {
        Access::Here(postrider) => reembed(postrider, action).await?,
        Access::Server(client) => {
            client.post("/v1/admin/embed/spaces", &ReembedRequest { action }).await?
        }
    };
    if out.json {
        out.value(&spaces)?;
    } else {
        tell_spaces(&spaces, out)?;
    }
    Ok(Exit::Fine)
}

async fn prune(access: &Access, superseded: bool, out: Output) -> Result<Exit, Failure> {
    let Pruned { indexes, messages } = match access {
        Access::Here(postrider) => postrider.prune_embeddings(superseded).await?,
        Access::Server(client) => {
            client.post("/v1/admin/embed/prune", &PruneRequest { superseded }).await?
        }
    };
    if out.json {
        out.value(&Pruned { indexes, messages })?;
    } else {
        let indexes = if indexes == 1 { "1 index".into() } else { format!("{indexes} indexes") };
        out.text(&format!(
            "removed {indexes} and what was kept of {}\n",
            counted(messages, "message")
        ))?;
    }
    Ok(Exit::Fine)
}

fn tell_spaces(spaces: &SpacesOut, out: Output) -> Result<(), Failure> {
    let SpacesOut { active, building, superseded } = spaces;
    if let Some(active) = active {
        out.text(&format!("{} serves\n", safe::line(active)))?;
    }
    if let Some(building) = building {
        let building = safe::line(building);
        out.text(&format!(
            "{building} is being filled and serves when every mailbox is complete; \
             `postrider embed run`, or a server, goes on\n"
        ))?;
    }
    if let Some(superseded) = superseded {
        let superseded = safe::line(superseded);
        out.text(&format!("{superseded} served before; `postrider embed rollback` goes back\n"))?;
    }
    Ok(())
}

fn tell_estimate(estimate: Option<&Estimate>, out: Output) -> Result<(), Failure> {
    if out.json {
        return out.value(&estimate);
    }
    let Some(Estimate { model, messages, passages, tokens, seconds }) = estimate else {
        return out.text("searches by meaning are turned off\n");
    };
    let time = seconds.map_or_else(String::new, |seconds| {
        format!(", {} on this machine", HumanDuration(Duration::from_secs(seconds)))
    });
    out.text(&format!(
        "{}: {} without vectors; about {}, {} tokens{time}\n",
        safe::line(model),
        counted(*messages, "message"),
        counted(*passages, "passage"),
        HumanCount(*tokens)
    ))
}

fn tell_report(report: &EmbedReport, out: Output) -> Result<(), Failure> {
    if out.json {
        return out.value(report);
    }
    if report.mailboxes.is_empty() && !report.interrupted {
        return out.text("no mailbox\n");
    }
    for Embedded { mailbox, computed, kept, empty, failed, cut, pending } in &report.mailboxes {
        let mut refused = String::new();
        for (count, what) in [(failed, "refused in part"), (cut, "cut")] {
            if *count > 0 {
                refused.push_str(&format!(" ({count} {what})"));
            }
        }
        out.text(&format!(
            "{}: {} computed{refused}, {kept} kept from before, {empty} without text; {pending} to \
             go\n",
            safe::line(mailbox),
            counted(*computed, "message")
        ))?;
    }
    if report.spaces.building.is_some() || report.spaces.superseded.is_some() {
        tell_spaces(&report.spaces, out)?;
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
    for EmbedStatus { mailbox, eligible, active, building } in &statuses.mailboxes {
        let mailbox = safe::line(mailbox);
        if active.is_none() {
            out.text(&format!("{mailbox}: searches by meaning are turned off\n"))?;
        }
        for space in [active, building].into_iter().flatten() {
            let SpaceStatus { model, embedded, failed, deleting, passages, index_bytes, .. } =
                space;
            let mut more = String::new();
            for (count, what) in [(failed, "refused in part"), (deleting, "to lose them")] {
                if *count > 0 {
                    more.push_str(&format!(", {count} {what}"));
                }
            }
            out.text(&format!(
                "{mailbox}: {embedded} of {} have vectors by {}{more}; {}, {}\n",
                counted(*eligible, "message"),
                safe::line(model),
                counted(*passages, "passage"),
                HumanBytes(*index_bytes)
            ))?;
        }
    }
    if statuses.spaces.building.is_some() || statuses.spaces.superseded.is_some() {
        tell_spaces(&statuses.spaces, out)?;
    }
    Ok(())
}
