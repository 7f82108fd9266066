//! How each event changes the catalog. Deterministic: the same events give the same tables.

use heed::RwTxn;
use roaring::RoaringBitmap;

use super::bitmaps::{Changes, Facet};
use super::blocks::BlockWriter;
use super::prepared::{Person, Prepared};
use super::tables::{Table, Tables, by_date_key};
use super::{CatalogError, Counters, people, ranges, threads};
use crate::events::event::{
    Event, LabelsChanged, MessageIngested, MessagePlaced, MessageUnplaced, Placement, Status,
    StatusChanged,
};
use crate::mail::{AttachmentClass, Message};
use crate::projections::Applicable;

/// The changes of one transaction.
pub(super) struct Batch<'t> {
    tables: &'t Tables,
    changes: Changes,
    blocks: BlockWriter,
}

/// Value of a placement's bitmap.
pub(super) fn placement_value(placement: &Placement) -> Vec<u8> {
    [placement.folder.as_bytes(), &[0], placement.source.as_bytes()].concat()
}

/// A domain with its labels reversed, so that subdomains share a prefix: `org.example.mail`.
pub(super) fn reversed_domain(address: &str) -> Option<String> {
    let (_, domain) = address.rsplit_once('@')?;
    Some(domain.rsplit('.').collect::<Vec<_>>().join("."))
}

impl<'t> Batch<'t> {
    pub(super) fn new(tables: &'t Tables) -> Self {
        Self { tables, changes: Changes::default(), blocks: BlockWriter::default() }
    }

    pub(super) fn event(
        &mut self,
        wtxn: &mut RwTxn<'_>,
        counters: &mut Counters,
        applicable: &Applicable,
    ) -> Result<(), CatalogError> {
        match &applicable.event {
            Event::MessageIngested(ingested) => {
                if let Some(message) = &applicable.message {
                    self.ingest(wtxn, counters, ingested, message)?;
                }
                counters.next_ordinal = counters.next_ordinal.max(ingested.ordinal.0 + 1);
            }
            Event::MessagePlaced(placed) => self.place(placed),
            Event::MessageUnplaced(MessageUnplaced { ordinal, placement }) => {
                let one = RoaringBitmap::from_iter([ordinal.0]);
                self.changes.remove_all(Facet::Placement, &placement_value(placement), &one);
            }
            Event::LabelsChanged(LabelsChanged { ordinals, added, removed }) => {
                for label in removed {
                    self.changes.remove_all(Facet::Label, label.as_bytes(), ordinals);
                }
                for label in added {
                    self.changes.add_all(Facet::Label, label.as_bytes(), ordinals);
                }
            }
            Event::StatusChanged(StatusChanged { ordinals, status }) => {
                for other in Status::ALL.into_iter().filter(|s| s != status) {
                    self.changes.remove_all(Facet::Status, &[other as u8], ordinals);
                }
                self.changes.add_all(Facet::Status, &[*status as u8], ordinals);
            }
            Event::MailboxConfigured(configured) => {
                counters.own_addresses.clone_from(&configured.own_addresses);
            }
        }
        Ok(())
    }

    /// Writes down what was gathered.
    pub(super) fn finish(mut self, wtxn: &mut RwTxn<'_>) -> Result<(), CatalogError> {
        self.blocks.flush(self.tables, wtxn)?;
        self.changes.flush(self.tables, wtxn)
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
        let identity = [ingested.id.0.0.to_be_bytes(), content].concat();
        tables.of(Table::Identities).put(wtxn, &key, &identity)?;
        tables.of(Table::Dates).put(wtxn, &key, &message.date_ms.to_be_bytes())?;
        tables.of(Table::ByDate).put(wtxn, &by_date_key(message.date_ms, ordinal.0), &[])?;
        let size = ranges::clamp(message.raw_bytes).to_be_bytes();
        tables.of(Table::BySize).put(wtxn, &[size, key].concat(), &[])?;
        threads::join(tables, wtxn, ordinal.0, message)?;
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
        let ordinal = prepared.ordinal.0;
        let mut file = |changes: &mut Changes, facet, domain, person: &Person| {
            let number = people::number(self.tables, wtxn, person, &mut counters.next_person)?;
            changes.add(facet, &number.to_be_bytes(), ordinal);
            if let Some(reversed) = reversed_domain(&person.address) {
                changes.add(domain, reversed.as_bytes(), ordinal);
            }
            Ok::<(), CatalogError>(())
        };
        for (facet, domain, list) in [
            (Facet::From, Facet::FromDomain, &prepared.from),
            (Facet::To, Facet::ToDomain, &prepared.to),
            (Facet::Cc, Facet::ToDomain, &prepared.cc),
            (Facet::Bcc, Facet::ToDomain, &prepared.bcc),
        ] {
            for person in list {
                file(&mut self.changes, facet, domain, person)?;
            }
        }
        for address in &prepared.delivered_to {
            self.changes.add(Facet::DeliveredTo, address.as_bytes(), ordinal);
            if let Some(reversed) = reversed_domain(address) {
                self.changes.add(Facet::ToDomain, reversed.as_bytes(), ordinal);
            }
        }
        Ok(())
    }

    fn facets(&mut self, ingested: &MessageIngested, prepared: &Prepared) {
        let ordinal = prepared.ordinal.0;
        let changes = &mut self.changes;
        changes.add(Facet::All, b"", ordinal);
        changes.add(Facet::Status, &[ingested.status as u8], ordinal);
        for placement in &ingested.placements {
            changes.add(Facet::Placement, &placement_value(placement), ordinal);
        }
        for label in &ingested.labels {
            changes.add(Facet::Label, label.as_bytes(), ordinal);
        }
        for bit in (0..16).filter(|bit| prepared.flags & (1 << bit) != 0) {
            changes.add(Facet::Flag, &[bit], ordinal);
        }
        for attachment in &prepared.attachments {
            if attachment.by_disposition {
                changes.add(Facet::Flag, b"attachment", ordinal);
            }
            if attachment.by_mime_class {
                changes.add(Facet::Flag, b"attachment_by_class", ordinal);
            }
            let class = AttachmentClass::of_mime(&attachment.effective_type);
            changes.add(Facet::AttachmentClass, class.name().as_bytes(), ordinal);
            changes.add(Facet::AttachmentType, attachment.effective_type.as_bytes(), ordinal);
            if !attachment.filename.is_empty() {
                let name = crate::query::fold_name(&attachment.filename);
                changes.add(Facet::Filename, name.as_bytes(), ordinal);
            }
        }
        if let Some(list) = &prepared.list_id {
            changes.add(Facet::List, list.as_bytes(), ordinal);
        }
        if let Some(language) = &prepared.language {
            changes.add(Facet::Language, language.as_bytes(), ordinal);
        }
        changes.add(Facet::Kind, &[prepared.kind as u8], ordinal);
        ranges::file(changes, prepared.date_ms, prepared.raw_bytes, ordinal);
    }
}
