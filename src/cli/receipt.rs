//! `postrider receipt`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::app::ReceiptOut;
use crate::config::Config;
use crate::events::receipt::ErasureState;
use crate::http::wire_lifecycle::Receipts;

use super::access::Access;
use super::args_lifecycle::{Receipt, ReceiptWhat};
use super::count::counted;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::safe;

/// Lists receipts, or shows one.
pub(super) async fn run(config: Config, args: Receipt, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    if matches!(args.what, ReceiptWhat::Export) {
        let exported = export(&access).await;
        access.close().await;
        out.value(&exported?)?;
        return Ok(Exit::Fine);
    }
    let found = match (&access, &args.what) {
        (_, ReceiptWhat::Export) => Ok(Vec::new()),
        (Access::Here(postrider), ReceiptWhat::List) => {
            postrider.erasures().await.map_err(Failure::from)
        }
        (Access::Server(client), ReceiptWhat::List) => {
            client.get::<Receipts>("/v1/admin/receipts").await.map(|all| all.receipts)
        }
        (Access::Here(postrider), ReceiptWhat::Show { receipt }) => {
            postrider.erasure(*receipt).await.map(|one| vec![one]).map_err(Failure::from)
        }
        (Access::Server(client), ReceiptWhat::Show { receipt }) => {
            client.get(&format!("/v1/receipts/{receipt}")).await.map(|one| vec![one])
        }
    };
    access.close().await;
    tell(&found?, out)
}

async fn export(access: &Access) -> Result<Value, Failure> {
    match access {
        Access::Here(postrider) => Ok(json!({ "erasures": postrider.erasures_to_repeat().await? })),
        Access::Server(client) => client.get("/v1/admin/receipts/export").await,
    }
}

/// Prints receipts; a probe that found something is a failure.
pub(super) fn tell(receipts: &[ReceiptOut], out: Output) -> Result<Exit, Failure> {
    if out.json {
        match receipts {
            [one] => out.value(one)?,
            many => out.value(&Receipts { receipts: many.to_vec() })?,
        }
    } else {
        let texts: Vec<String> = receipts.iter().map(for_people).collect();
        let empty = "no receipt: nothing was erased yet\n";
        out.text(if texts.is_empty() { empty } else { "" })?;
        out.text(&texts.join("\n"))?;
    }
    let failed = receipts.iter().any(|receipt| receipt.status == ErasureState::Failed);
    Ok(if failed { Exit::Partly } else { Exit::Fine })
}

fn for_people(receipt: &ReceiptOut) -> String {
    let mut text = String::new();
    let status = match receipt.status {
        ErasureState::Erased => "erased; its bytes are not off the disk yet",
        ErasureState::Completed => "completed",
        ErasureState::CompletedWithHolds => "completed; held messages stayed",
        ErasureState::Failed => "FAILED: something was found after the purge",
    };
    let _ = writeln!(text, "{}  {status}", receipt.receipt_id);
    let _ = writeln!(
        text,
        "  {}, {}, {} of {}",
        counted(receipt.messages_deleted, "message"),
        counted(receipt.attachments_deleted, "attachment"),
        counted(receipt.raw_bytes_deleted, "byte"),
        receipt.identity_id
    );
    let when = |at: &Option<String>| at.clone().unwrap_or_else(|| "not yet".to_owned());
    let _ = writeln!(
        text,
        "  asked {}, erased {}, purged {}",
        receipt.requested_at,
        when(&receipt.erased_at),
        when(&receipt.purged_at)
    );
    if receipt.remembered {
        text.push_str("  remembered: refused when imported again\n");
    }
    for held in &receipt.held {
        let reason = safe::line(&held.reason);
        let _ = writeln!(
            text,
            "  held: {} of {} by {} ({reason})",
            counted(held.messages, "message"),
            held.thread_id,
            held.hold_id
        );
    }
    if let Some(probe) = &receipt.probe {
        let _ = writeln!(
            text,
            "  probes: {} by search, {}, {} on disk ({} looked for in {}, {})",
            counted(probe.keyword_hits + probe.semantic_hits, "hit"),
            counted(probe.key_hits, "key"),
            counted(probe.byte_hits, "place"),
            counted(probe.byte_tokens, "word"),
            counted(probe.files, "file"),
            counted(probe.bytes, "byte")
        );
    }
    text
}
