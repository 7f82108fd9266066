//! Reading a catalog whole: for dumps, checks and probes, never for a search.

use super::CatalogView;
use crate::ids::Ordinal;
use crate::projections::catalog::blocks::BlockReader;
use crate::projections::catalog::prepared::Prepared;
use crate::projections::catalog::recount::{Miscounted, miscounted};
use crate::projections::catalog::tables::{Table, from_be_u32};
use crate::projections::catalog::{CatalogError, dump};

impl CatalogView {
    /// Hands every message to `take`, in order. Walks the whole catalog.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn each_prepared(
        &self,
        mut take: impl FnMut(&Prepared) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        self.read(|tables, txn| {
            let mut blocks = BlockReader::default();
            for item in tables.of(Table::Dates).iter(txn)? {
                let ordinal = from_be_u32(item?.0).ok_or(CatalogError::Damaged("ordinal"))?;
                let prepared = blocks.get(tables, txn, Ordinal(ordinal))?;
                take(&prepared.ok_or(CatalogError::Damaged("a message is missing"))?)?;
            }
            Ok(())
        })
    }

    /// Hands every key and every value but the messages' own to `take`, as they lie there.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn each_entry(&self, mut take: impl FnMut(&[u8])) -> Result<(), CatalogError> {
        self.read(|tables, txn| {
            for table in Table::ALL.into_iter().filter(|table| *table != Table::Blocks) {
                for item in tables.of(table).iter(txn)? {
                    let (key, value) = item?;
                    take(key);
                    take(value);
                }
            }
            Ok(())
        })
    }

    /// Counts that do not agree with the rows; none when all is well.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn miscounted(&self) -> Result<Vec<Miscounted>, CatalogError> {
        self.read(miscounted)
    }

    /// Writes canonical text of every table.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn dump(&self, out: &mut dyn std::io::Write) -> Result<(), CatalogError> {
        self.read(|tables, txn| dump::write(tables, txn, out))
    }
}
