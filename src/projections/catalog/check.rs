//! Reading a catalog once from end to end, after anything but a clean close.
//!
//! LMDB has no page checksums: what this finds is a page that is no page, a value that does not
//! decode, or a table that lost entries. Damage that keeps all of that intact is found by the
//! size and time of the file instead ([`crate::projections::generation`]).

use heed::{RoTxn, WithoutTls};
use roaring::RoaringBitmap;

use super::CatalogError;
use super::blocks::BlockReader;
use super::tables::{Table, Tables};
use crate::ids::Ordinal;

/// Reads everything.
pub(super) fn read_everything(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
) -> Result<(), CatalogError> {
    for table in Table::ALL {
        let mut entries = 0;
        for item in tables.of(table).iter(rtxn)? {
            let (_, value) = item?;
            if matches!(table, Table::Bitmaps | Table::Threads) {
                RoaringBitmap::deserialize_from(value)
                    .map_err(|_| CatalogError::Damaged("bitmap"))?;
            }
            entries += 1;
        }
        if entries != tables.of(table).len(rtxn)? {
            return Err(CatalogError::Damaged("a table lost entries"));
        }
    }
    let mut blocks = BlockReader::default();
    for item in tables.of(Table::Dates).iter(rtxn)? {
        let ordinal = super::from_be_u32(item?.0).ok_or(CatalogError::Damaged("ordinal"))?;
        if blocks.get(tables, rtxn, Ordinal(ordinal))?.is_none() {
            return Err(CatalogError::Damaged("a message is missing"));
        }
    }
    Ok(())
}
