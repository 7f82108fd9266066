//! `postrider show`.

use std::fmt::Write as _;

use crate::app::ShownMessage;
use crate::config::Config;
use crate::http::wire::path_segment;
use crate::search::request::PersonOut;

use super::access::Access;
use super::args::Show;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::{safe, table};

/// Prints one message.
pub(super) async fn run(config: Config, args: Show, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let printed =
        if args.raw { raw(&access, &args, out).await } else { shown(&access, &args, out).await };
    access.close().await;
    printed.map(|()| Exit::Fine)
}

fn path(args: &Show) -> String {
    format!("/v1/identities/{}/messages/{}", path_segment(&args.of.mailbox), args.id)
}

async fn raw(access: &Access, args: &Show, out: Output) -> Result<(), Failure> {
    let mut writer = out.writer();
    match access {
        Access::Here(postrider) => {
            let bytes = postrider.raw(&args.of.mailbox, args.id).await?;
            writer.write_all(&bytes)?;
            Ok(writer.flush()?)
        }
        Access::Server(client) => client.copy(&format!("{}/raw", path(args)), &mut writer).await,
    }
}

async fn shown(access: &Access, args: &Show, out: Output) -> Result<(), Failure> {
    let message = match access {
        Access::Here(postrider) => postrider.show(&args.of.mailbox, args.id).await?,
        Access::Server(client) => client.get(&path(args)).await?,
    };
    if out.json {
        return out.value(&message);
    }
    let text = if args.new_text { &message.new_text } else { &message.text };
    let body = safe::text(text);
    out.text(&format!("{}\n{}\n", head(&message, out), body.trim_end()))
}

fn head(message: &ShownMessage, out: Output) -> String {
    let mut head = String::new();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(head, "{} {}", out.bold(&format!("{name:<12}")), safe::line(&value));
        }
    };
    row("From", people(&message.from));
    row("Reply-To", people(&message.reply_to));
    row("To", people(&message.to));
    row("Cc", people(&message.cc));
    row("Bcc", people(&message.bcc));
    row("Subject", message.subject.clone().unwrap_or_default());
    row("Sent", message.sent_at.as_deref().map(table::local).unwrap_or_default());
    row("Received", table::local(&message.received_at));
    row("Folders", message.folders.join(", "));
    row("Labels", message.labels.join(", "));
    row("Marks", message.flags.join(", "));
    row("List", message.list_id.clone().unwrap_or_default());
    row("Language", message.language.clone().unwrap_or_default());
    row("Message-ID", message.rfc822_message_id.clone());
    row("Message", message.message_id.to_string());
    row("Thread", message.thread_id.to_string());
    for attachment in &message.attachments {
        let name = if attachment.filename.is_empty() { "(no name)" } else { &attachment.filename };
        let place = if attachment.inline { ", inline" } else { "" };
        let size = indicatif::HumanBytes(attachment.bytes);
        row("Attachment", format!("{name} ({}, {size}{place})", attachment.content_type));
    }
    for (kind, place) in &message.defects {
        row("Mended", format!("{kind} {place}"));
    }
    head
}

fn people(list: &[PersonOut]) -> String {
    let one = |p: &PersonOut| match (p.name.is_empty(), p.address.is_empty()) {
        (true, _) => p.address.clone(),
        (false, true) => p.name.clone(),
        (false, false) => format!("{} <{}>", p.name, p.address),
    };
    list.iter().map(one).collect::<Vec<_>>().join(", ")
}
