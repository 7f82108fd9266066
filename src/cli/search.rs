//! `postrider search`.
//!
//! A directory that nobody holds and that was closed well answers at once, without a runtime and
//! without opening its log; otherwise its server is asked, or it is opened.

use std::sync::Arc;

use crate::app::search_closed;
use crate::clock::{SharedClock, SystemClock};
use crate::config::Config;
use crate::http::wire::path_segment;
use crate::search::{SearchRequest, SearchResponse};

use super::access::{self, Access};
use super::args::Search;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::{in_runtime, table};

/// Searches, and prints what is found.
pub(super) fn run(config: Config, args: &Search, out: Output) -> Result<Exit, Failure> {
    let request = SearchRequest {
        mode: args.mode.into(),
        sort: args.sort.map(Into::into),
        limit: args.limit,
        highlight: args.highlight || out.marks(),
        include_quarantined: args.include_quarantined,
        rerank: !args.no_rerank,
        ..request(&args.query.join(" "), out)
    };
    let mailbox = &args.of.mailbox;
    access::exists(&config)?;
    let clock: SharedClock = Arc::new(SystemClock);
    let answer = match search_closed(&config, &clock, mailbox, &request) {
        Some(answer) => answer.map_err(Failure::from),
        None => return in_runtime(open(config, mailbox, &request, out)),
    };
    print(answer, &request, out)?;
    Ok(Exit::Fine)
}

/// The request for a query alone.
pub(super) fn request(query: &str, out: Output) -> SearchRequest {
    SearchRequest { q: query.to_owned(), highlight: out.marks(), ..SearchRequest::default() }
}

async fn open(
    config: Config,
    mailbox: &str,
    request: &SearchRequest,
    out: Output,
) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let printed = print(ask(&access, mailbox, request).await, request, out);
    access.close().await;
    printed?;
    Ok(Exit::Fine)
}

/// Asks whoever holds the directory.
pub(super) async fn ask(
    access: &Access,
    mailbox: &str,
    request: &SearchRequest,
) -> Result<SearchResponse, Failure> {
    match access {
        Access::Here(postrider) => postrider.search(mailbox, request).await.map_err(Failure::from),
        Access::Server(client) => {
            let path = format!("/v1/identities/{}/search", path_segment(mailbox));
            client.post(&path, request).await
        }
    }
}

/// Prints an answer.
pub(super) fn print(
    answer: Result<SearchResponse, Failure>,
    request: &SearchRequest,
    out: Output,
) -> Result<(), Failure> {
    let answer = answer.map_err(|failure| failure.about(&request.q))?;
    if out.json { out.value(&answer) } else { out.text(&table::answer(&answer, out)) }
}
