//! `postrider hold`.

use crate::app::HoldOut;
use crate::config::Config;
use crate::http::wire::path_segment;
use crate::http::wire_lifecycle::{HoldRequest, Holds, Selector};

use super::access::Access;
use super::args::OfMailbox;
use super::args_lifecycle::{Hold, HoldWhat, Which};
use super::count::counted;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::safe;

/// Sets, releases or lists holds.
pub(super) async fn run(config: Config, args: Hold, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let done = match args.what {
        HoldWhat::Set { reason, which, of } => {
            set(&access, reason, which, of).await.map(|hold| vec![hold])
        }
        HoldWhat::Release { hold, of } => {
            let path = format!("/v1/identities/{}/holds/{hold}", path_segment(&of.mailbox));
            match &access {
                Access::Here(postrider) => match postrider.release_hold(&of.mailbox, hold).await {
                    Ok(()) => postrider.holds(&of.mailbox).await.map_err(Failure::from),
                    Err(error) => Err(error.into()),
                },
                Access::Server(client) => client.delete::<Holds>(&path).await.map(|h| h.holds),
            }
        }
        HoldWhat::List(of) => {
            let path = format!("/v1/identities/{}/holds", path_segment(&of.mailbox));
            match &access {
                Access::Here(postrider) => {
                    postrider.holds(&of.mailbox).await.map_err(Failure::from)
                }
                Access::Server(client) => client.get::<Holds>(&path).await.map(|h| h.holds),
            }
        }
    };
    access.close().await;
    let holds = done?;
    if out.json {
        out.value(&Holds { holds })?;
    } else if holds.is_empty() {
        out.text("no hold\n")?;
    } else {
        for HoldOut { hold_id, reason, messages } in &holds {
            out.text(&format!(
                "{hold_id}  {}  {}\n",
                counted(*messages, "message"),
                safe::line(reason)
            ))?;
        }
    }
    Ok(Exit::Fine)
}

async fn set(
    access: &Access,
    reason: String,
    which: Which,
    of: OfMailbox,
) -> Result<HoldOut, Failure> {
    let Which { messages, threads, counterparty, query } = which;
    match access {
        Access::Here(postrider) => {
            let select = Selector { messages, threads, counterparty, query }.selection()?;
            Ok(postrider.set_hold(&of.mailbox, select, &reason).await?)
        }
        Access::Server(client) => {
            let path = format!("/v1/identities/{}/holds", path_segment(&of.mailbox));
            let asked = HoldRequest { reason, messages, threads, counterparty, query };
            client.post(&path, &asked).await
        }
    }
}
