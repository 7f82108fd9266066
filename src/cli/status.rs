//! `postrider status`.

use std::fmt::Write as _;

use indicatif::HumanBytes;

use crate::app::Status;
use crate::config::Config;

use super::access::Access;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::safe;
use super::table::pad;

/// Prints how everything is.
pub(super) async fn run(config: Config, out: Output) -> Result<Exit, Failure> {
    let data_dir = config.data_dir.display().to_string();
    let access = Access::find(config).await?;
    let (status, server) = match &access {
        Access::Here(postrider) => (postrider.status().await.map_err(Failure::from), false),
        Access::Server(client) => (client.get("/v1/admin/status").await, true),
    };
    access.close().await;
    let status: Status = status?;
    if out.json {
        out.value(&status)?;
    } else {
        out.text(&for_people(&status, &data_dir, server, out))?;
    }
    Ok(Exit::Fine)
}

fn for_people(status: &Status, data_dir: &str, server: bool, out: Output) -> String {
    let mut text = String::new();
    let by = if server { "held by a server" } else { "no server" };
    let _ = writeln!(text, "{} ({by})", safe::line(data_dir));
    match &status.health.reason {
        None if status.health.writing => text.push_str("writing works\n"),
        reason => {
            let reason = safe::line(reason.as_deref().unwrap_or("no reason known"));
            let _ = writeln!(text, "WRITING HAS STOPPED: {reason}");
        }
    }
    let _ = writeln!(
        text,
        "log {}, keys {}\n",
        HumanBytes(status.log_bytes),
        HumanBytes(status.key_bytes)
    );
    if status.mailboxes.is_empty() {
        text.push_str("no mailbox yet; `postrider import PATH` makes one\n");
        return text;
    }
    let names = status.mailboxes.iter().map(|m| console::measure_text_width(&m.name)).max();
    let width = names.unwrap_or(0).max("mailbox".len());
    let title = format!(
        "{}  {:>9}  {:>9}  {:>9}  {:>9}  {:>11}  identity",
        pad("mailbox", width),
        "messages",
        "head",
        "catalog",
        "in text",
        "indexes"
    );
    let _ = writeln!(text, "{}", out.bold(&title));
    for mailbox in &status.mailboxes {
        let _ = writeln!(
            text,
            "{}  {:>9}  {:>9}  {:>9}  {:>9}  {:>11}  {}",
            pad(&safe::line(&mailbox.name), width),
            mailbox.messages,
            mailbox.head_seq,
            mailbox.catalog_seq,
            mailbox.text_messages,
            HumanBytes(mailbox.projection_bytes).to_string(),
            mailbox.identity_id
        );
    }
    text
}
