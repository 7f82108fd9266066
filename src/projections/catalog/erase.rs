//! Taking a message out of every table, so that the catalog is what it would be had the message
//! never come: the same tables as a rebuild gives, which passes over messages without a key.
//!
//! Its bytes stay in free and half-used pages until the catalog is rewritten ([`super::purge`]).

use std::collections::BTreeMap;

use heed::RwTxn;
use roaring::RoaringBitmap;

use super::apply::Batch;
use super::bitmaps::{self, Facet};
use super::blocks::{self, BlockReader, BlockWriter};
use super::prepared::{Person, Prepared};
use super::tables::{Table, by_date_key};
use super::{CatalogError, Counters, filing, people, ranges, threads};
use crate::ids::Ordinal;

/// Facets whose values events give, not the message.
const GIVEN: [Facet; 3] = [Facet::Label, Facet::Status, Facet::Placement];
/// Facets whose values are numbers of people.
pub(super) const OF_PEOPLE: [Facet; 5] =
    [Facet::From, Facet::To, Facet::Cc, Facet::Bcc, Facet::ReplyTo];

/// People who may have no message any more.
pub(super) type Suspects = BTreeMap<u32, Person>;

impl Batch<'_> {
    pub(super) fn erase(
        &mut self,
        wtxn: &mut RwTxn<'_>,
        counters: &mut Counters,
        ordinals: &RoaringBitmap,
    ) -> Result<(), CatalogError> {
        let gone = ordinals - &counters.erased;
        counters.erased |= &gone;
        self.blocks.flush(self.tables, wtxn)?;
        self.blocks = BlockWriter::default();
        self.changes.flush(self.tables, wtxn)?;
        for facet in GIVEN {
            for key in bitmaps::keys(self.tables, wtxn, facet)? {
                self.changes.remove_from(key, &gone);
            }
        }
        let mut blocks = BlockReader::default();
        for ordinal in &gone {
            if let Some(prepared) = blocks.get(self.tables, wtxn, Ordinal(ordinal))? {
                self.unfile(wtxn, &prepared)?;
            }
        }
        blocks::erase(self.tables, wtxn, &gone)?;
        threads::erase(self.tables, wtxn, &gone)
    }

    fn unfile(&mut self, wtxn: &mut RwTxn<'_>, prepared: &Prepared) -> Result<(), CatalogError> {
        let tables = self.tables;
        let ordinal = prepared.ordinal;
        let key = ordinal.0.to_be_bytes();
        let one = RoaringBitmap::from_iter([ordinal.0]);
        for (facet, value) in filing::values(prepared) {
            self.changes.remove_all(facet, &value, &one);
        }
        for (facet, person) in filing::people(prepared) {
            if let Some(number) = people::known(tables, wtxn, person)? {
                self.changes.remove_all(facet, &number.to_be_bytes(), &one);
                self.suspects.insert(number, person.clone());
            }
        }
        let identity = tables.of(Table::Identities).get(wtxn, &key)?;
        let raw: [u8; 16] = identity
            .and_then(|value| value.get(32..48)?.try_into().ok())
            .ok_or(CatalogError::Damaged("identity"))?;
        if tables.of(Table::RawDigests).get(wtxn, &raw)? == Some(&key[..]) {
            tables.of(Table::RawDigests).delete(wtxn, &raw)?;
        }
        tables.of(Table::Identities).delete(wtxn, &key)?;
        tables.of(Table::Ids).delete(wtxn, &prepared.id.0.0.to_be_bytes())?;
        tables.of(Table::Dates).delete(wtxn, &key)?;
        tables.of(Table::ByDate).delete(wtxn, &by_date_key(prepared.date_ms, ordinal.0))?;
        let size = ranges::clamp(prepared.raw_bytes).to_be_bytes();
        tables.of(Table::BySize).delete(wtxn, &[size, key].concat())?;
        Ok(())
    }

    /// Forgets people whom no message names any more. All changes must be written down.
    pub(super) fn forget_people(&mut self, wtxn: &mut RwTxn<'_>) -> Result<(), CatalogError> {
        for (number, person) in std::mem::take(&mut self.suspects) {
            let mut named = false;
            for facet in OF_PEOPLE {
                let value = number.to_be_bytes();
                named |= !bitmaps::of_value(self.tables, wtxn, facet, &value)?.is_empty();
            }
            if !named {
                people::forget(self.tables, wtxn, number, &person)?;
            }
        }
        Ok(())
    }
}
