//! `postrider label` and `postrider mark`.

use crate::app::{LabelOutcome, MAILBOX_DEFAULT, Postrider};
use crate::config::Config;
use crate::events::Status;
use crate::http::wire::path_segment;
use crate::http::wire_lifecycle::{LabelsRequest, UndoRequest};

use super::access::Access;
use super::args_lifecycle::{Label, LabelWhat, Mark, MarkAs, OnQuery};
use super::failure::{Exit, Failure};
use super::output::Output;
use super::safe;

/// Changes labels, or takes a change back.
pub(super) async fn run(config: Config, args: Label, out: Output) -> Result<Exit, Failure> {
    match args.what {
        LabelWhat::Add(args) => {
            let asked = LabelsRequest { add: vec![args.label], ..LabelsRequest::default() };
            change(config, asked, args.on, out).await
        }
        LabelWhat::Remove(args) => {
            let asked = LabelsRequest { remove: vec![args.label], ..LabelsRequest::default() };
            change(config, asked, args.on, out).await
        }
        LabelWhat::Undo { event, of } => undo(config, event, &of.mailbox, out).await,
    }
}

/// Marks messages.
pub(super) async fn mark(config: Config, args: Mark, out: Output) -> Result<Exit, Failure> {
    let mut asked = LabelsRequest::default();
    match args.mark {
        MarkAs::Read => asked.remove.push("unread".into()),
        MarkAs::Unread => asked.add.push("unread".into()),
        MarkAs::Starred => asked.add.push("starred".into()),
        MarkAs::Unstarred => asked.remove.push("starred".into()),
        MarkAs::Received => asked.status = Some(Status::Received),
        MarkAs::Quarantined => asked.status = Some(Status::Quarantined),
        MarkAs::Throttled => asked.status = Some(Status::Throttled),
        MarkAs::Hidden => asked.status = Some(Status::Hidden),
    }
    change(config, asked, args.on, out).await
}

async fn change(
    config: Config,
    mut asked: LabelsRequest,
    on: OnQuery,
    out: Output,
) -> Result<Exit, Failure> {
    asked.query = Some(on.query.join(" "));
    asked.as_of_seq = on.as_of;
    asked.dry_run = on.dry_run;
    let undoable = asked.status.is_none();
    let access = Access::find(config).await?;
    let changed = match &access {
        Access::Here(postrider) => here(postrider, &on.of.mailbox, asked).await,
        Access::Server(client) => {
            let path = format!("/v1/identities/{}/labels", path_segment(&on.of.mailbox));
            client.post(&path, &asked).await
        }
    };
    access.close().await;
    let mailbox = undoable.then_some(on.of.mailbox.as_str());
    tell(&changed?, on.dry_run, mailbox, out)
}

async fn here(
    postrider: &Postrider,
    mailbox: &str,
    asked: LabelsRequest,
) -> Result<LabelOutcome, Failure> {
    Ok(postrider.label(mailbox, asked.change()?).await?)
}

async fn undo(config: Config, event: u64, mailbox: &str, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let undone = match &access {
        Access::Here(postrider) => postrider.undo(mailbox, event).await.map_err(Failure::from),
        Access::Server(client) => {
            let path = format!("/v1/identities/{}/labels/undo", path_segment(mailbox));
            client.post(&path, &UndoRequest { event }).await
        }
    };
    access.close().await;
    tell(&undone?, false, Some(mailbox), out)
}

/// `undo` names the mailbox when the change can be taken back.
fn tell(
    outcome: &LabelOutcome,
    dry_run: bool,
    undo: Option<&str>,
    out: Output,
) -> Result<Exit, Failure> {
    if out.json {
        out.value(outcome)?;
        return Ok(Exit::Fine);
    }
    let LabelOutcome { matched, changed, as_of_seq, events } = outcome;
    if dry_run {
        out.text(&format!(
            "{matched} found, {changed} would change; nothing was done\n\
             the same messages and none that arrive later: --as-of {as_of_seq}\n"
        ))?;
    } else {
        out.text(&format!("{matched} found, {changed} changed\n"))?;
        for (event, mailbox) in events.iter().zip(undo.into_iter().cycle()) {
            let of = match mailbox {
                MAILBOX_DEFAULT => String::new(),
                other => format!(" --mailbox {}", safe::line(other)),
            };
            out.text(&format!("to take it back: postrider label undo {event}{of}\n"))?;
        }
    }
    Ok(Exit::Fine)
}
