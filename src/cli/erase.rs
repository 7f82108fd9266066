//! `postrider erase`: asks first, then erases, then waits for the proof.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

use crate::app::{ErasePreview, ReceiptOut};
use crate::config::Config;
use crate::events::receipt::ScopeKind;
use crate::http::wire::path_segment;
use crate::http::wire_lifecycle::{ErasureRequest, Receipts};

use super::access::Access;
use super::args_lifecycle::Erase;
use super::count::counted;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::receipt;

/// Time between two looks at a receipt.
const LOOK: Duration = Duration::from_millis(100);

/// Erases.
pub(super) async fn run(config: Config, args: Erase, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let done = erase(&access, &args, out).await;
    access.close().await;
    done
}

async fn erase(access: &Access, args: &Erase, out: Output) -> Result<Exit, Failure> {
    let mailbox = args.of.mailbox.as_str();
    let erased = if let Some(tenant) = &args.tenant {
        confirm(args.yes, &format!("all mailboxes of the tenant {tenant}"))?;
        match access {
            Access::Here(postrider) => postrider.erase_tenant(tenant).await?,
            Access::Server(client) => {
                let path = format!("/v1/tenants/{}", path_segment(tenant));
                client.delete::<Receipts>(&path).await?.receipts
            }
        }
    } else if args.everything {
        confirm(args.yes, &format!("the mailbox {mailbox} with everything in it"))?;
        vec![match access {
            Access::Here(postrider) => {
                postrider.erase_identity(mailbox, ScopeKind::Identity).await?
            }
            Access::Server(client) => {
                client.delete(&format!("/v1/identities/{}", path_segment(mailbox))).await?
            }
        }]
    } else {
        let preview = preview(access, args).await?;
        if args.dry_run {
            return show(&preview, out);
        }
        let going = preview.messages - preview.held;
        confirm(
            args.yes,
            &format!("{} ({} held ones stay)", counted(going, "message"), preview.held),
        )?;
        // What was counted, and nothing that arrived meanwhile.
        let mut asked = asked(args);
        asked.as_of_seq = asked.as_of_seq.or(Some(preview.as_of_seq));
        vec![match access {
            Access::Here(postrider) => postrider.erase(mailbox, asked.request()?).await?,
            Access::Server(client) => {
                let path = format!("/v1/identities/{}/erasures", path_segment(mailbox));
                client.post(&path, &asked).await?
            }
        }]
    };
    let mut proven = Vec::new();
    for receipt in erased {
        proven.push(wait(access, &receipt).await?);
    }
    receipt::tell(&proven, out)
}

fn asked(args: &Erase) -> ErasureRequest {
    ErasureRequest {
        messages: args.which.messages.clone(),
        threads: args.which.threads.clone(),
        counterparty: args.which.counterparty.clone(),
        query: args.which.query.clone(),
        remember: args.remember,
        as_of_seq: args.as_of,
        dry_run: false,
    }
}

async fn preview(access: &Access, args: &Erase) -> Result<ErasePreview, Failure> {
    let mut asked = asked(args);
    match access {
        Access::Here(postrider) => {
            Ok(postrider.erase_preview(&args.of.mailbox, asked.request()?).await?)
        }
        Access::Server(client) => {
            asked.dry_run = true;
            let path = format!("/v1/identities/{}/erasures", path_segment(&args.of.mailbox));
            client.post(&path, &asked).await
        }
    }
}

async fn wait(access: &Access, receipt: &ReceiptOut) -> Result<ReceiptOut, Failure> {
    match access {
        Access::Here(postrider) => Ok(postrider.purged(receipt.receipt_id).await?),
        Access::Server(client) => loop {
            let found: ReceiptOut =
                client.get(&format!("/v1/receipts/{}", receipt.receipt_id)).await?;
            if found.purged_at.is_some() {
                return Ok(found);
            }
            tokio::time::sleep(LOOK).await;
        },
    }
}

fn show(preview: &ErasePreview, out: Output) -> Result<Exit, Failure> {
    if out.json {
        out.value(preview)?;
    } else {
        let ErasePreview { messages, held, attachments, raw_bytes, as_of_seq } = preview;
        out.text(&format!(
            "{} found, {held} held; {} and {} would go; nothing was done\n\
             the same messages and none that arrive later: --as-of {as_of_seq}\n",
            counted(*messages, "message"),
            counted(*attachments, "attachment"),
            counted(*raw_bytes, "byte")
        ))?;
    }
    Ok(Exit::Fine)
}

/// Asks on a terminal; elsewhere `--yes` must have been given.
fn confirm(yes: bool, what: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let what = super::safe::line(what);
    if !std::io::stdin().is_terminal() {
        let message = format!("{what} would be erased for good, and nobody can be asked");
        return Err(Failure::caller(message, "look with --dry-run, then say --yes"));
    }
    let mut err = std::io::stderr().lock();
    write!(err, "Erase {what}, for good? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::caller("nothing was erased", "answer y, or say --yes"))
}
