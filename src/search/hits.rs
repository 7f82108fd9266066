//! Matches → hits: the last check against the catalog of the same view, then everything a hit
//! shows.

use roaring::RoaringBitmap;

use super::filter::{contains, outbound};
use super::plan::Plan;
use super::ranking::Ranked;
use super::request::{Direction, Hit, PersonOut, SearchError, SearchRequest};
use super::snippet;
use crate::events::Status;
use crate::events::event::Placement;
use crate::ids::{IdentityId, MessageId, Ordinal, ThreadId};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::catalog::prepared::Prepared;
use crate::projections::view::View;

/// Whose mailbox is searched.
#[derive(Debug, Clone)]
pub struct MailboxOwner {
    /// Identity.
    pub identity: IdentityId,
}

/// States of messages, read once for a whole page.
pub(crate) struct States<'v> {
    placements: &'v [(Placement, RoaringBitmap)],
    labels: &'v [(String, RoaringBitmap)],
    outbound: RoaringBitmap,
    quarantined: std::sync::Arc<RoaringBitmap>,
}

impl<'v> States<'v> {
    pub(crate) fn load(view: &'v View) -> Result<Self, SearchError> {
        let catalog = &view.catalog;
        Ok(Self {
            placements: catalog.placements()?,
            labels: catalog.labels()?,
            outbound: outbound(catalog)?,
            quarantined: catalog.with(Facet::Status, &[Status::Quarantined as u8])?,
        })
    }

    pub(crate) fn folders(&self, ordinal: Ordinal) -> Vec<String> {
        let mut folders: Vec<String> = self
            .placements
            .iter()
            .filter(|(_, set)| contains(set, ordinal))
            .map(|(placement, _)| placement.folder.clone())
            .collect();
        folders.sort();
        folders.dedup();
        folders
    }

    pub(crate) fn labels(&self, ordinal: Ordinal) -> Vec<String> {
        let held = self.labels.iter().filter(|(_, set)| contains(set, ordinal));
        held.map(|(label, _)| label.clone()).collect()
    }

    pub(crate) fn direction(&self, ordinal: Ordinal) -> Direction {
        if contains(&self.outbound, ordinal) { Direction::Outbound } else { Direction::Inbound }
    }

    pub(crate) fn is_quarantined(&self, ordinal: Ordinal) -> bool {
        contains(&self.quarantined, ordinal)
    }
}

/// An instant as RFC 3339 in UTC; dates outside of jiff's years become the nearest it has.
#[must_use]
pub(crate) fn rfc3339(unix_ms: i64) -> String {
    let instant = jiff::Timestamp::from_millisecond(unix_ms).unwrap_or(if unix_ms < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    });
    instant.to_string()
}

/// The thread of a message: its identifier comes from the thread's first message.
pub(crate) fn thread_id(view: &View, prepared: &Prepared) -> Result<ThreadId, SearchError> {
    let number = view.catalog.thread_of(prepared.ordinal)?;
    let first = match number {
        Some(number) if number != prepared.ordinal.0 => view.catalog.id(Ordinal(number))?,
        _ => None,
    };
    let MessageId(ulid) = first.unwrap_or(prepared.id);
    Ok(ThreadId(ulid))
}

/// Builds the hits of one page. A match that the catalog does not allow is dropped, whatever an
/// index says.
pub(super) fn hydrate(
    view: &View,
    owner: &MailboxOwner,
    request: &SearchRequest,
    plan: &Plan,
    ranked: Vec<Ranked>,
) -> Result<Vec<Hit>, SearchError> {
    let mut allowed = ranked;
    allowed.retain(|found| plan.filter.contains(found.ordinal.0));
    let states = States::load(view)?;
    let prepared = view.catalog.prepared(allowed.iter().map(|m| m.ordinal))?;
    let mut hits = Vec::with_capacity(prepared.len());
    for (found, message) in allowed.into_iter().zip(&prepared) {
        let chars_max = request.snippet_chars as usize;
        let cut = snippet::cut(message, &plan.patterns, found.passage, chars_max);
        let first = message.from.first();
        hits.push(Hit {
            message_id: message.id,
            thread_id: thread_id(view, message)?,
            identity_id: owner.identity,
            date: rfc3339(message.sent_ms.unwrap_or(message.received_ms)),
            direction: states.direction(message.ordinal),
            from: first.map(PersonOut::from).unwrap_or_default(),
            subject: (!message.subject.is_empty()).then(|| message.subject.clone()),
            snippet: cut.text,
            highlights: request.highlight.then_some(cut.highlights),
            score: (found.score * 1_000.0).round() / 1_000.0,
            folders: states.folders(message.ordinal),
            labels: states.labels(message.ordinal),
            attachments: message.attachments.iter().filter(|a| a.by_mime_class).count() as u32,
            quarantined: states.is_quarantined(message.ordinal),
            why: found.why,
        });
    }
    Ok(hits)
}
