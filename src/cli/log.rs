//! `postrider log`: always JSON, a line an event.

use crate::app::{EventOut, LogStats, Postrider};
use crate::config::Config;
use crate::http::wire::path_segment;
use crate::http::wire_lifecycle::Events;

use super::access::Access;
use super::args_lifecycle::{Log, LogWhat};
use super::failure::{Exit, Failure};
use super::output::Output;

/// Prints events or figures.
pub(super) async fn run(config: Config, args: Log, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let printed = match args.what {
        LogWhat::Tail { limit, after, of } => {
            let events = events(&access, &of.mailbox, after, limit).await;
            events.and_then(|events| lines(&events, out))
        }
        LogWhat::Show { seq, of } => match events(&access, &of.mailbox, Some(seq - 1), 1).await {
            Ok(found) if found.is_empty() => Err(Failure::caller(
                format!("there is no event {seq}"),
                "`postrider log tail` shows the last ones",
            )),
            other => other.and_then(|events| lines(&events, out)),
        },
        LogWhat::Stats(of) => {
            let stats = match &access {
                Access::Here(postrider) => {
                    postrider.log_stats(&of.mailbox).await.map_err(Failure::from)
                }
                Access::Server(client) => {
                    let path = format!("/v1/admin/log/stats?mailbox={}", path_segment(&of.mailbox));
                    client.get::<LogStats>(&path).await
                }
            };
            stats.and_then(|stats| out.value(&stats))
        }
    };
    access.close().await;
    printed.map(|()| Exit::Fine)
}

async fn events(
    access: &Access,
    mailbox: &str,
    after: Option<u64>,
    limit: u32,
) -> Result<Vec<EventOut>, Failure> {
    match access {
        Access::Here(postrider) => here(postrider, mailbox, after, limit).await,
        Access::Server(client) => {
            let mut path = format!("/v1/admin/log?mailbox={}&limit={limit}", path_segment(mailbox));
            if let Some(after) = after {
                path.push_str(&format!("&after={after}"));
            }
            Ok(client.get::<Events>(&path).await?.events)
        }
    }
}

async fn here(
    postrider: &Postrider,
    mailbox: &str,
    after: Option<u64>,
    limit: u32,
) -> Result<Vec<EventOut>, Failure> {
    Ok(postrider.events(mailbox, after, limit).await?)
}

fn lines(events: &[EventOut], out: Output) -> Result<(), Failure> {
    for event in events {
        let line = serde_json::to_string(event).map_err(std::io::Error::from)?;
        out.text(&(line + "\n"))?;
    }
    Ok(())
}
