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
        q: args.query.join(" "),
        sort: args.sort.map(Into::into),
        limit: args.limit,
        highlight: args.highlight || (out.colour && !out.json),
        include_quarantined: args.include_quarantined,
        ..SearchRequest::default()
    };
    let mailbox = &args.of.mailbox;
    access::exists(&config)?;
    let clock: SharedClock = Arc::new(SystemClock);
    let answer = match search_closed(&config, &clock, mailbox, &request) {
        Some(answer) => answer.map_err(Failure::from),
        None => return in_runtime(open(config, mailbox, &request, out)),
    };
    print(answer, &request, out)
}

async fn open(
    config: Config,
    mailbox: &str,
    request: &SearchRequest,
    out: Output,
) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let answer = match &access {
        Access::Here(postrider) => postrider.search(mailbox, request).await.map_err(Failure::from),
        Access::Server(client) => {
            let path = format!("/v1/identities/{}/search", path_segment(mailbox));
            client.post(&path, request).await
        }
    };
    let printed = print(answer, request, out);
    access.close().await;
    printed
}

fn print(
    answer: Result<SearchResponse, Failure>,
    request: &SearchRequest,
    out: Output,
) -> Result<Exit, Failure> {
    let answer = answer.map_err(|failure| failure.about(&request.q))?;
    if out.json {
        out.value(&answer)?;
    } else {
        out.text(&table::answer(&answer, out))?;
    }
    Ok(Exit::Fine)
}
