//! Labels and status of many messages at once, with a count first and a way back.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::ingest::is_label;
use super::{Error, Postrider, Selection, blocking};
use crate::actors::decide::LABELS_MAX;
use crate::events::event::{LabelsChanged, StatusChanged};
use crate::events::{Event, Status};
use crate::ids::Seq;
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::view::View;

/// What is to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelChange {
    /// Which messages.
    pub select: Selection,
    /// Labels to add, each `[a-z0-9][a-z0-9_:-]{0,63}`; at most 64 on one message.
    #[serde(default)]
    pub add: Vec<String>,
    /// Labels to remove.
    #[serde(default)]
    pub remove: Vec<String>,
    /// New status.
    #[serde(default)]
    pub status: Option<Status>,
    /// Only messages that had arrived at this position ([`LabelOutcome::as_of_seq`]).
    #[serde(default)]
    pub as_of_seq: Option<u64>,
    /// Count only.
    #[serde(default)]
    pub dry_run: bool,
}

/// What changed, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelOutcome {
    /// Messages chosen.
    pub matched: u64,
    /// Of those, messages that change.
    pub changed: u64,
    /// Position of the view that was looked at: send it back as `as_of_seq` to change what was
    /// counted and nothing that arrived later.
    pub as_of_seq: u64,
    /// Events that were recorded, for undoing; none on a dry run.
    pub events: Vec<u64>,
}

/// Changes as events, each only about messages it really changes, so that its inverse is exact.
fn events(view: &View, chosen: &RoaringBitmap, change: &LabelChange) -> Result<Vec<Event>, Error> {
    let mut events: Vec<Event> = Vec::new();
    let mut add = |ordinals: RoaringBitmap, added: &[String], removed: &[String]| {
        if ordinals.is_empty() {
            return;
        }
        for event in &mut events {
            if let Event::LabelsChanged(known) = event
                && known.ordinals == ordinals
            {
                known.added.extend_from_slice(added);
                known.removed.extend_from_slice(removed);
                return;
            }
        }
        let (added, removed) = (added.to_vec(), removed.to_vec());
        events.push(Event::LabelsChanged(LabelsChanged { ordinals, added, removed }));
    };
    for label in &change.add {
        let held = view.catalog.with(Facet::Label, label.as_bytes())?;
        add(chosen - &*held, std::slice::from_ref(label), &[]);
    }
    for label in &change.remove {
        let held = view.catalog.with(Facet::Label, label.as_bytes())?;
        add(chosen & &*held, &[], std::slice::from_ref(label));
    }
    if let Some(status) = change.status {
        let held = view.catalog.with(Facet::Status, &[status as u8])?;
        let ordinals = chosen - &*held;
        if !ordinals.is_empty() {
            events.push(Event::StatusChanged(StatusChanged { ordinals, status }));
        }
    }
    Ok(events)
}

fn ordinals(event: &Event) -> Option<&RoaringBitmap> {
    match event {
        Event::LabelsChanged(change) => Some(&change.ordinals),
        Event::StatusChanged(change) => Some(&change.ordinals),
        _ => None,
    }
}

/// Refuses a change that would leave a message with more than [`LABELS_MAX`] labels.
fn check_count(view: &View, chosen: &RoaringBitmap, change: &LabelChange) -> Result<(), Error> {
    let labels = view.catalog.labels()?;
    let new = |label: &&String| !labels.iter().any(|(known, _)| known == *label);
    if labels.len() + change.add.iter().filter(new).count() <= LABELS_MAX {
        return Ok(());
    }
    let mut counts = vec![0_u8; view.catalog.next_ordinal().0 as usize];
    let mut after: Vec<RoaringBitmap> = Vec::new();
    for (label, held) in labels {
        let mut held = held & chosen;
        if change.add.contains(label) {
            held.clone_from(chosen);
        }
        if !change.remove.contains(label) {
            after.push(held);
        }
    }
    after.extend(change.add.iter().filter(new).map(|_| chosen.clone()));
    for ordinal in after.iter().flatten() {
        if let Some(count) = counts.get_mut(ordinal as usize) {
            *count = count.saturating_add(1);
        }
    }
    let over = counts.iter().filter(|count| usize::from(**count) > LABELS_MAX).count();
    if over == 0 {
        return Ok(());
    }
    let message = format!("would give {over} messages more than {LABELS_MAX} labels");
    Err(Error::Invalid { path: "add", message })
}

impl Postrider {
    /// Changes labels or status of the messages chosen; durable when this returns.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::Query`] for what was asked.
    pub async fn label(&self, mailbox: &str, change: LabelChange) -> Result<LabelOutcome, Error> {
        for (path, labels) in [("add", &change.add), ("remove", &change.remove)] {
            if labels.len() > LABELS_MAX || !labels.iter().all(|l| is_label(l)) {
                let message = "must be at most 64 labels, each [a-z0-9][a-z0-9_:-]{0,63}".into();
                return Err(Error::Invalid { path, message });
            }
        }
        if change.add.iter().any(|label| change.remove.contains(label)) {
            let message = "must not name a label that is also to be added".into();
            return Err(Error::Invalid { path: "remove", message });
        }
        if change.add.is_empty() && change.remove.is_empty() && change.status.is_none() {
            let message = "must name a label, unless `remove` or `status` is given".into();
            return Err(Error::Invalid { path: "add", message });
        }
        let identity = self.identity(mailbox)?;
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        let through = change.as_of_seq.map(Seq);
        let mut change = change;
        if let (Selection::Query(q), Some(_)) = (&change.select, change.status) {
            // Whoever gives a status must reach what another status hides.
            change.select = Selection::AnyStatus(q.clone());
        }
        let chosen = self.select(&identity, &view, change.select.clone(), through).await?;
        let dry_run = change.dry_run;
        let mut outcome = LabelOutcome {
            matched: chosen.len(),
            changed: 0,
            as_of_seq: view.seq().0,
            events: Vec::new(),
        };
        let events = blocking(move || {
            check_count(&view, &chosen, &change)?;
            events(&view, &chosen, &change)
        })
        .await??;
        let mut changed = RoaringBitmap::new();
        events.iter().filter_map(ordinals).for_each(|ordinals| changed |= ordinals);
        outcome.changed = changed.len();
        if !dry_run {
            for event in events {
                outcome.events.push(self.record(&identity.id.to_string(), event).await?.0);
            }
        }
        Ok(outcome)
    }

    /// Takes back a change of labels by recording its inverse.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no such event, or it is none that can be taken back.
    pub async fn undo(&self, mailbox: &str, event: u64) -> Result<LabelOutcome, Error> {
        let identity = self.identity(mailbox)?;
        let log = std::sync::Arc::clone(&self.inner.log);
        let number = identity.mailbox;
        let recorded = blocking(move || log.event(number, Seq(event))).await??;
        let invalid = |message: &str| Error::Invalid { path: "event", message: message.into() };
        let inverse = match recorded.ok_or_else(|| invalid("is not in the log"))?.event {
            Event::LabelsChanged(change) => LabelsChanged {
                ordinals: change.ordinals,
                added: change.removed,
                removed: change.added,
            },
            _ => return Err(invalid("is no change of labels; only those can be taken back")),
        };
        let changed = inverse.ordinals.len();
        let handle = self.handle(&identity).await?;
        let view = self.view(&handle).await?;
        let again = LabelChange {
            select: Selection::Everything,
            add: inverse.added.clone(),
            remove: inverse.removed.clone(),
            status: None,
            as_of_seq: None,
            dry_run: true,
        };
        let chosen = inverse.ordinals.clone();
        blocking(move || check_count(&view, &chosen, &again)).await??;
        let seq = self.record(mailbox, Event::LabelsChanged(inverse)).await?;
        Ok(LabelOutcome { matched: changed, changed, as_of_seq: seq.0, events: vec![seq.0] })
    }
}
