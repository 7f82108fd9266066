//! How each event changes the catalog. Deterministic: the same events give the same tables.

use heed::RwTxn;
use roaring::RoaringBitmap;

use super::bitmaps::{Changes, Facet};
use super::blocks::BlockWriter;
use super::erase::Suspects;
use super::prepared::Prepared;
use super::tables::{Table, Tables, by_date_key};
use super::{CatalogError, Counters, filing, holds, people, ranges, threads};
use crate::events::event::{
    Event, LabelsChanged, MessageIngested, MessagePlaced, MessageUnplaced, Placement, Status,
    StatusChanged,
};
use crate::mail::Message;
use crate::projections::Applicable;

/// The changes of one transaction.
pub(super) struct Batch<'t> {
    pub(super) tables: &'t Tables,
    pub(super) changes: Changes,
    pub(super) blocks: BlockWriter,
    pub(super) suspects: Suspects,
}

/// Value of a placement's bitmap.
pub(super) fn placement_value(placement: &Placement) -> Vec<u8> {
    [placement.folder.as_bytes(), &[0], placement.source.as_bytes()].concat()
}

impl<'t> Batch<'t> {
    pub(super) fn new(tables: &'t Tables) -> Self {
        Self {
            tables,
            changes: Changes::default(),
            blocks: BlockWriter::default(),
            suspects: Suspects::default(),
        }
    }

    pub(super) fn event(
        &mut self,
        wtxn: &mut RwTxn<'_>,
        counters: &mut Counters,
        applicable: &Applicable,
    ) -> Result<(), CatalogError> {
        match &applicable.event {
            Event::MessageIngested(ingested) => {
                match &applicable.message {
                    Some(message) => self.ingest(wtxn, counters, ingested, message)?,
                    // Its key is gone: it was erased since.
                    None => {
                        counters.erased.insert(ingested.ordinal.0);
                    }
                }
                counters.next_ordinal = counters.next_ordinal.max(ingested.ordinal.0 + 1);
            }
            Event::MessagePlaced(placed) if !counters.erased.contains(placed.ordinal.0) => {
                self.place(placed);
            }
            Event::MessagePlaced(_) => {}
            Event::MessageUnplaced(MessageUnplaced { ordinal, placement }) => {
                let one = RoaringBitmap::from_iter([ordinal.0]);
                self.changes.remove_all(Facet::Placement, &placement_value(placement), &one);
            }
            Event::LabelsChanged(LabelsChanged { ordinals, added, removed }) => {
                let ordinals = ordinals - &counters.erased;
                for label in removed {
                    self.changes.remove_all(Facet::Label, label.as_bytes(), &ordinals);
                }
                for label in added {
                    self.changes.add_all(Facet::Label, label.as_bytes(), &ordinals);
                }
            }
            Event::StatusChanged(StatusChanged { ordinals, status }) => {
                let ordinals = ordinals - &counters.erased;
                for other in Status::ALL.into_iter().filter(|s| s != status) {
                    self.changes.remove_all(Facet::Status, &[other as u8], &ordinals);
                }
                self.changes.add_all(Facet::Status, &[*status as u8], &ordinals);
            }
            Event::MessagesErased(erased) => self.erase(wtxn, counters, &erased.ordinals)?,
            Event::HoldSet(set) => holds::set(self.tables, wtxn, set)?,
            Event::HoldReleased(released) => holds::release(self.tables, wtxn, released.hold)?,
            Event::MailboxConfigured(configured) => {
                counters.own_addresses.clone_from(&configured.own_addresses);
            }
        }
        Ok(())
    }

    /// Writes down what was gathered.
    pub(super) fn finish(mut self, wtxn: &mut RwTxn<'_>) -> Result<(), CatalogError> {
        self.blocks.flush(self.tables, wtxn)?;
        self.changes.flush(self.tables, wtxn)?;
        self.forget_people(wtxn)
    }

    fn place(&mut self, placed: &MessagePlaced) {
        for placement in &placed.placements {
            self.changes.add(Facet::Placement, &placement_value(placement), placed.ordinal.0);
        }
        for label in &placed.labels {
            self.changes.add(Facet::Label, label.as_bytes(), placed.ordinal.0);
        }
    }

    fn ingest(
        &mut self,
        wtxn: &mut RwTxn<'_>,
        counters: &mut Counters,
        ingested: &MessageIngested,
        message: &Message,
    ) -> Result<(), CatalogError> {
        let tables = self.tables;
        let ordinal = ingested.ordinal;
        let key = ordinal.0.to_be_bytes();
        let prepared = Prepared::new(ordinal, ingested.id, ingested.message_id_conflict, message);
        self.blocks.push(tables, wtxn, &prepared)?;
        tables.of(Table::Ids).put(wtxn, &ingested.id.0.0.to_be_bytes(), &key)?;
        let raw = threads::first_16(&message.raw_digest);
        tables.of(Table::RawDigests).put(wtxn, &raw, &key)?;
        let content = threads::first_16(&message.content_digest);
        let identity = [ingested.id.0.0.to_be_bytes(), content, raw].concat();
        tables.of(Table::Identities).put(wtxn, &key, &identity)?;
        tables.of(Table::Dates).put(wtxn, &key, &message.date_ms.to_be_bytes())?;
        tables.of(Table::ByDate).put(wtxn, &by_date_key(message.date_ms, ordinal.0), &[])?;
        let size = ranges::clamp(message.raw_bytes).to_be_bytes();
        tables.of(Table::BySize).put(wtxn, &[size, key].concat(), &[])?;
        threads::add(tables, wtxn, ordinal.0, message)?;
        self.people(wtxn, counters, &prepared)?;
        self.facets(ingested, &prepared);
        Ok(())
    }

    fn people(
        &mut self,
        wtxn: &mut RwTxn<'_>,
        counters: &mut Counters,
        prepared: &Prepared,
    ) -> Result<(), CatalogError> {
        for (facet, person) in filing::people(prepared) {
            let number = people::number(self.tables, wtxn, person, &mut counters.next_person)?;
            self.changes.add(facet, &number.to_be_bytes(), prepared.ordinal.0);
        }
        Ok(())
    }

    fn facets(&mut self, ingested: &MessageIngested, prepared: &Prepared) {
        let ordinal = prepared.ordinal.0;
        let changes = &mut self.changes;
        changes.add(Facet::Status, &[ingested.status as u8], ordinal);
        for placement in &ingested.placements {
            changes.add(Facet::Placement, &placement_value(placement), ordinal);
        }
        for label in &ingested.labels {
            changes.add(Facet::Label, label.as_bytes(), ordinal);
        }
        for (facet, value) in filing::values(prepared) {
            changes.add(facet, &value, ordinal);
        }
    }
}
