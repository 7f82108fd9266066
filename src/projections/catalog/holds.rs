//! Legal holds: which messages, with the threads they stand in, may not be erased, and why.

use heed::{RoTxn, RwTxn, WithoutTls};
use roaring::RoaringBitmap;

use super::CatalogError;
use super::tables::{Table, Tables};
use crate::events::codec;
use crate::events::event::HoldSet;
use crate::ids::HoldId;

pub(super) fn set(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    hold: &HoldSet,
) -> Result<(), CatalogError> {
    let key = hold.hold.0.0.to_be_bytes();
    Ok(tables.of(Table::Holds).put(wtxn, &key, &codec::encode(hold))?)
}

pub(super) fn release(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    hold: HoldId,
) -> Result<(), CatalogError> {
    tables.of(Table::Holds).delete(wtxn, &hold.0.0.to_be_bytes())?;
    Ok(())
}

/// All holds, oldest first, each with the messages of the threads it covers.
pub(super) fn all(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
) -> Result<Vec<(HoldSet, RoaringBitmap)>, CatalogError> {
    let mut holds = Vec::new();
    for item in tables.of(Table::Holds).iter(rtxn)? {
        let (_, value) = item?;
        let hold: HoldSet = codec::decode(value).ok_or(CatalogError::Damaged("hold"))?;
        let mut covered = RoaringBitmap::new();
        for ordinal in &hold.ordinals {
            if !covered.contains(ordinal)
                && let Some(thread) = super::threads::of_message(tables, rtxn, ordinal)?
            {
                covered |= super::threads::members(tables, rtxn, thread)?;
            }
        }
        holds.push((hold, covered));
    }
    Ok(holds)
}
