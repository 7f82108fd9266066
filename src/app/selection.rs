//! Choosing messages of a mailbox: by identifier, by thread, by address, or by a query.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::{Error, Postrider, blocking};
use crate::events::registry::Identity;
use crate::ids::{MessageId, Ordinal, Seq, ThreadId};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::view::View;
use crate::search::Reach;

/// Identifiers in one selection.
pub const SELECTED_IDS_MAX: usize = 10_000;

/// Which messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// These, at most [`SELECTED_IDS_MAX`].
    Messages(Vec<MessageId>),
    /// Everything in these threads, at most [`SELECTED_IDS_MAX`].
    Threads(Vec<ThreadId>),
    /// Everything from, to or answered to this address; a mention in a text does not count.
    Counterparty(String),
    /// What this query finds, quarantined mail included.
    Query(String),
    /// What this query finds, whatever its status.
    AnyStatus(String),
    /// Every message, whatever its folder and status.
    Everything,
}

impl Postrider {
    /// The messages of a selection in a view. `through`: only those that had arrived at that
    /// position, so that a count shown before still holds.
    pub(super) async fn select(
        &self,
        identity: &Identity,
        view: &std::sync::Arc<View>,
        selection: Selection,
        through: Option<Seq>,
    ) -> Result<RoaringBitmap, Error> {
        let zone = self.time_zone(identity);
        let now_ms = self.inner.clock.now_ms();
        let log = std::sync::Arc::clone(&self.inner.log);
        let mailbox = identity.mailbox;
        let view = std::sync::Arc::clone(view);
        blocking(move || {
            let mut chosen = match selection {
                Selection::Messages(ids) => by_id(&view, &ids)?,
                Selection::Threads(ids) => by_thread(&view, &ids)?,
                Selection::Counterparty(address) => by_address(&view, &address)?,
                Selection::Everything => view.catalog.with(Facet::All, b"")?.as_ref().clone(),
                Selection::Query(q) => {
                    crate::search::matching(&view, &q, &zone, now_ms, Reach::Visible)?
                }
                Selection::AnyStatus(q) => {
                    crate::search::matching(&view, &q, &zone, now_ms, Reach::AnyStatus)?
                }
            };
            if let Some(through) = through {
                let next = log.next_ordinal_at(mailbox, through)?;
                chosen.remove_range(next.0..);
            }
            Ok(chosen)
        })
        .await?
    }
}

fn few(path: &'static str, count: usize) -> Result<(), Error> {
    if (1..=SELECTED_IDS_MAX).contains(&count) {
        return Ok(());
    }
    let message = format!("must name 1 to {SELECTED_IDS_MAX}; use a query for more");
    Err(Error::Invalid { path, message })
}

fn by_id(view: &View, ids: &[MessageId]) -> Result<RoaringBitmap, Error> {
    few("messages", ids.len())?;
    let mut chosen = RoaringBitmap::new();
    for id in ids {
        chosen.insert(view.catalog.ordinal(*id)?.ok_or(Error::NoSuchMessage)?.0);
    }
    Ok(chosen)
}

fn by_thread(view: &View, ids: &[ThreadId]) -> Result<RoaringBitmap, Error> {
    few("threads", ids.len())?;
    let mut chosen = RoaringBitmap::new();
    for ThreadId(ulid) in ids {
        let first = view.catalog.ordinal(MessageId(*ulid))?.ok_or(Error::NoSuchMessage)?;
        let number = view.catalog.thread_of(Ordinal(first.0))?.ok_or(Error::NoSuchMessage)?;
        chosen |= view.catalog.thread(number)?;
    }
    Ok(chosen)
}

fn by_address(view: &View, address: &str) -> Result<RoaringBitmap, Error> {
    let address = crate::mail::address_normal(address).ok_or_else(|| Error::Invalid {
        path: "counterparty",
        message: "must be an address like ada@example.org".into(),
    })?;
    let facets = [Facet::From, Facet::To, Facet::Cc, Facet::Bcc, Facet::ReplyTo];
    let mut chosen = view.catalog.by_address(&facets, &address)?;
    chosen |= &*view.catalog.with(Facet::DeliveredTo, address.as_bytes())?;
    Ok(chosen)
}
