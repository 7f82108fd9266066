//! `postrider verify`, `compact`, `backup` and `restore`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use indicatif::HumanBytes;
use serde::de::DeserializeOwned;

use crate::app::{BackedUp, Compacted, ErasureToRepeat, Error, Verified, VerifyProgress};
use crate::config::Config;
use crate::http::verify_mailboxes;
use crate::http::wire::{JobProgress, JobStarted};
use crate::http::wire_lifecycle::{BackupRequest, VerifyReport, VerifyRequest};

use super::access::Access;
use super::args_lifecycle::{Backup, Restore, Verify};
use super::client::Client;
use super::count::counted;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::progress::Bar;
use super::{job, safe, traces};

/// Verifies; what does not hold makes the exit code 1.
pub(super) async fn verify(config: Config, args: Verify, out: Output) -> Result<Exit, Failure> {
    let request = VerifyRequest { mailbox: args.mailbox, repair: args.repair };
    let access = Access::find(config).await?;
    let done: Result<VerifyReport, Failure> = match &access {
        Access::Here(postrider) => {
            let progress = Arc::<VerifyProgress>::default();
            let work = verify_mailboxes(postrider, &request, &progress);
            here(work, &progress, "verification").await
        }
        Access::Server(client) => {
            at_server(client, "/v1/admin/verify", &request, "verification").await
        }
    };
    access.close().await;
    let report = done?;
    if out.json {
        out.value(&report)?;
    } else {
        for verified in &report.mailboxes {
            out.text(&for_people(verified))?;
        }
    }
    let mended = |v: &Verified| v.repaired && v.findings.iter().all(|f| derived(&f.store));
    let fine = report.mailboxes.iter().all(|v| v.is_clean() || mended(v));
    Ok(if fine { Exit::Fine } else { Exit::Partly })
}

fn derived(store: &str) -> bool {
    matches!(store, "catalog" | "text")
}

fn for_people(verified: &Verified) -> String {
    let Verified { mailbox, events, messages, erased, findings, findings_total, repaired } =
        verified;
    let mut text = format!(
        "{}: {}, {}, {erased} erased; {}\n",
        safe::line(mailbox),
        counted(*events, "event"),
        counted(*messages, "message"),
        if *findings_total == 0 { "all holds" } else { "DOES NOT HOLD" }
    );
    for finding in findings {
        let what = safe::line(&finding.what);
        text.push_str(&format!("  {} {}: {what}\n", finding.store, finding.place));
    }
    let listed = findings.len() as u64;
    if *findings_total > listed {
        text.push_str(&format!("  and {} more\n", findings_total - listed));
    }
    if *repaired {
        text.push_str("  the indexes were built anew\n");
    } else if findings.iter().any(|f| derived(&f.store)) {
        text.push_str("  `postrider verify --repair` builds wrong indexes anew\n");
    }
    if findings.iter().any(|f| !derived(&f.store)) {
        text.push_str("  the log itself is damaged: restore a backup\n");
    }
    text
}

/// Compacts.
pub(super) async fn compact(config: Config, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let done: Result<Compacted, Failure> = match &access {
        Access::Here(postrider) => here(postrider.compact(), &Arc::default(), "compaction").await,
        Access::Server(client) => {
            let nothing = serde_json::json!({});
            at_server(client, "/v1/admin/compact", &nothing, "compaction").await
        }
    };
    access.close().await;
    let compacted = done?;
    if out.json {
        out.value(&compacted)?;
    } else {
        let Compacted { bytes_before, bytes_after } = compacted;
        out.text(&format!(
            "{} before, {} now\n",
            HumanBytes(bytes_before),
            HumanBytes(bytes_after)
        ))?;
    }
    Ok(Exit::Fine)
}

/// Backs up.
pub(super) async fn backup(config: Config, args: Backup, out: Output) -> Result<Exit, Failure> {
    let dir = std::path::absolute(&args.dir)?;
    let access = Access::find(config).await?;
    let done: Result<BackedUp, Failure> = match &access {
        Access::Here(postrider) => here(postrider.back_up(&dir), &Arc::default(), "backup").await,
        Access::Server(client) => {
            at_server(client, "/v1/admin/backup", &BackupRequest { dir }, "backup").await
        }
    };
    access.close().await;
    let copied = done?;
    if out.json {
        out.value(&copied)?;
    } else {
        out.text(&format!(
            "{} and {} ({}) copied\n",
            counted(copied.events, "event"),
            counted(copied.messages, "message"),
            HumanBytes(copied.bytes)
        ))?;
    }
    Ok(Exit::Fine)
}

/// Puts a backup back.
pub(super) async fn restore(config: Config, args: Restore, out: Output) -> Result<Exit, Failure> {
    traces::start("warn")?;
    let erasures = match &args.receipts {
        Some(path) => erasures(path)?,
        None => Vec::new(),
    };
    let restored = crate::app::restore(config, args.backup, erasures).await?;
    if out.json {
        out.value(&restored)?;
    } else {
        out.text(&format!(
            "{} in {}; {} applied again took {}\n",
            counted(restored.messages, "message"),
            // Not a noun that takes an `s` alone.
            match restored.mailboxes {
                1 => "1 mailbox".to_owned(),
                many => format!("{many} mailboxes"),
            },
            counted(restored.erasures_repeated, "erasure"),
            counted(restored.messages_erased, "message")
        ))?;
    }
    Ok(Exit::Fine)
}

fn erasures(path: &Path) -> Result<Vec<ErasureToRepeat>, Failure> {
    #[derive(serde::Deserialize)]
    struct Exported {
        erasures: Vec<ErasureToRepeat>,
    }
    if path.is_dir() {
        return Ok(crate::app::erasures_of(path)?);
    }
    let text = std::fs::read(path).map_err(|e| {
        Failure::caller(
            format!("{}: {e}", path.display()),
            "name the old data directory, or a file of `postrider receipt export`",
        )
    })?;
    let exported: Exported = serde_json::from_slice(&text).map_err(|e| {
        Failure::caller(
            format!("{} holds no exported receipts: {e}", path.display()),
            "write it with `postrider --json receipt export`",
        )
    })?;
    Ok(exported.erasures)
}

async fn here<T>(
    work: impl Future<Output = Result<T, Error>>,
    progress: &Arc<VerifyProgress>,
    what: &'static str,
) -> Result<T, Failure> {
    let look = || JobProgress::Maintenance {
        done: progress.done.load(Relaxed),
        total: progress.total.load(Relaxed),
    };
    Ok(job::here(work, Bar::maintenance(what), look, || false).await??)
}

/// Waits for a job of a server, and gives its outcome.
pub(super) async fn at_server<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    body: &impl serde::Serialize,
    what: &'static str,
) -> Result<T, Failure> {
    let started: JobStarted = client.post(path, body).await?;
    let view = job::at_server(client, &started.job_id, Bar::maintenance(what)).await?;
    serde_json::from_value(view.outcome.unwrap_or_default()).map_err(|e| {
        Failure::environment(
            format!("the server's answer is not understood: {e}"),
            "use the same version of Postrider for server and commands",
        )
    })
}
