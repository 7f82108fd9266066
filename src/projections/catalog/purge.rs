//! Writing a catalog anew, entry by entry, so that nothing of what was taken out is left in the
//! file: LMDB keeps deleted bytes in free pages and in the unused middle of others.

use std::path::Path;

use heed::PutFlags;

use super::tables::Table;
use super::{Catalog, CatalogError};

impl Catalog {
    /// Writes what the catalog holds now into a new catalog in `dir`. This one must not be written
    /// to meanwhile.
    ///
    /// # Errors
    /// [`CatalogError`]; this catalog is as it was.
    pub(in crate::projections) fn rewrite(&self, dir: &Path) -> Result<(), CatalogError> {
        let fresh = Self::open(dir, false)?;
        let rtxn = self.env.read_txn()?;
        let mut wtxn = fresh.env.write_txn()?;
        for table in Table::ALL {
            for item in self.tables.of(table).iter(&rtxn)? {
                let (key, value) = item?;
                fresh.tables.of(table).put_with_flags(&mut wtxn, PutFlags::APPEND, key, value)?;
            }
        }
        wtxn.commit()?;
        drop(rtxn);
        fresh.close();
        Ok(())
    }
}
