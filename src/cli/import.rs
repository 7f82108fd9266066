//! `postrider import`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::app::{Account, Error, ImportFailure, ImportOptions, ImportProgress, Postrider};
use crate::config::{Config, Embedding};
use crate::http::wire::{ImportRequest, JobProgress, JobStarted};
use crate::http::wire_lifecycle::EmbedRequest;
use crate::query::leaves::semantic_text;
use crate::query::{ParseOptions, parse};
use crate::search::SearchRequest;

use super::access::Access;
use super::args::Import;
use super::failure::{Exit, Failure};
use super::job;
use super::output::Output;
use super::progress::Bar;
use super::{embed, safe, search};

/// Messages that get vectors before the search after an import: seconds of work.
const EMBEDDED_FIRST_MAX: u64 = 500;

/// Imports, and prints the account.
pub(super) async fn run(config: Config, args: Import, out: Output) -> Result<Exit, Failure> {
    let paths = args
        .paths
        .iter()
        .map(std::path::absolute)
        .collect::<Result<Vec<PathBuf>, _>>()
        .map_err(|e| Failure::caller(format!("a path cannot be made absolute: {e}"), ""))?;
    let embeds = match &args.search {
        Some(query) => {
            // What cannot be understood is refused before anything is done.
            let parsed = parse(query, &ParseOptions::default())
                .map_err(|error| Failure::from(Error::Query(error)).about(query))?;
            config.embedding != Embedding::Off && !semantic_text(&parsed).is_empty()
        }
        None => false,
    };
    let access = Access::find_or_make(config).await?;
    let then = args.search.as_ref().map(|q| (args.of.mailbox.clone(), search::request(q, out)));
    let done = match &access {
        Access::Here(postrider) => here(postrider, paths, args).await,
        Access::Server(client) => {
            let request = ImportRequest {
                paths,
                mailbox: args.of.mailbox,
                folder: args.folder,
                labels: args.labels,
                source: args.source,
            };
            let started: JobStarted = client.post("/v1/admin/import", &request).await?;
            let view = job::at_server(client, &started.job_id, Bar::import()).await;
            view.map(|view| view.account.unwrap_or_default())
        }
    };
    let done = match (done, &then) {
        // So that what is asked at once is also found by what it means.
        (Ok(account), Some((mailbox, _))) if embeds => {
            let request = EmbedRequest {
                mailbox: Some(mailbox.clone()),
                limit: Some(EMBEDDED_FIRST_MAX),
                retry: false,
            };
            embed::embed(&access, request).await.map(|report| Account {
                interrupted: account.interrupted || report.interrupted,
                ..account
            })
        }
        (done, _) => done,
    };
    let told = match done {
        Ok(account) => tell(&access, &account, then, out).await.map(|()| account),
        Err(failure) => Err(failure),
    };
    access.close().await;
    let account = told?;
    Ok(match &account {
        Account { interrupted: true, .. } => Exit::Interrupted,
        Account { failed: 0, .. } => Exit::Fine,
        _ => Exit::Partly,
    })
}

/// Prints the account, and what the search after it finds.
async fn tell(
    access: &Access,
    account: &Account,
    then: Option<(String, SearchRequest)>,
    out: Output,
) -> Result<(), Failure> {
    let Some((mailbox, request)) = then else {
        return if out.json { out.value(account) } else { out.text(&for_people(account)) };
    };
    if !out.json {
        out.text(&format!("{}\n", for_people(account)))?;
        return search::print(search::ask(access, &mailbox, &request).await, &request, out);
    }
    let found = search::ask(access, &mailbox, &request).await;
    let answer = found.map_err(|failure| failure.about(&request.q))?;
    out.value(&serde_json::json!({ "account": account, "search": answer }))
}

async fn here(
    postrider: &Postrider,
    paths: Vec<PathBuf>,
    args: Import,
) -> Result<Account, Failure> {
    let progress = Arc::new(ImportProgress::default());
    let options = ImportOptions {
        folder: args.folder,
        source: args.source,
        labels: args.labels,
        progress: Arc::clone(&progress),
    };
    let work = postrider.import(&args.of.mailbox, &paths, options);
    let look = || JobProgress::Import {
        bytes_done: progress.bytes_done.load(Relaxed),
        bytes_total: progress.bytes_total.load(Relaxed),
        messages: progress.messages.load(Relaxed),
    };
    let stop = || {
        progress.stop.store(true, Relaxed);
        true
    };
    Ok(job::here(work, Bar::import(), look, stop).await??)
}

fn for_people(account: &Account) -> String {
    let Account { read, stored, already_there, placed, failed, .. } = account;
    let mut text = String::new();
    if account.interrupted {
        text.push_str("Interrupted; run the import again to continue it.\n");
    }
    text.push_str(&format!(
        "{read} read = {stored} stored + {already_there} already there + {failed} failed\n"
    ));
    if *placed > 0 {
        text.push_str(&format!("{placed} of those already there got a new folder or label\n"));
    }
    list(&mut text, "Failed", &account.failures, *failed);
    list(&mut text, "Holds no mail", &account.skipped, account.skipped_files);
    text
}

fn list(text: &mut String, title: &str, listed: &[ImportFailure], all: u64) {
    if all == 0 {
        return;
    }
    text.push_str(&format!("\n{title}:\n"));
    for ImportFailure { file, offset, reason } in listed {
        let file = safe::line(&file.display().to_string());
        let place = if title == "Failed" { format!(" at byte {offset}") } else { String::new() };
        text.push_str(&format!("  {file}{place}: {}\n", safe::line(reason)));
    }
    let more = all.saturating_sub(listed.len() as u64);
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_names_file_byte_and_reason() {
        let failure =
            ImportFailure { file: "a\u{1b}.mbox".into(), offset: 7, reason: "too large".into() };
        let account = Account {
            read: 3,
            stored: 1,
            already_there: 1,
            failed: 1,
            failures: vec![failure],
            ..Account::default()
        };
        assert_eq!(
            for_people(&account),
            "3 read = 1 stored + 1 already there + 1 failed\n\n\
             Failed:\n  a\u{fffd}.mbox at byte 7: too large\n"
        );
    }
}
