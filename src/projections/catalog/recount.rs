//! Counting again what the catalog's bitmaps count, from its rows.

use std::collections::{BTreeMap, BTreeSet};

use heed::{RoTxn, WithoutTls};
use roaring::RoaringBitmap;

use super::bitmaps::{self, value_key};
use super::blocks::BlockReader;
use super::tables::{Table, Tables, from_be_u32};
use super::{CatalogError, filing, people, threads};
use crate::ids::Ordinal;

/// A count that does not agree with the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miscounted {
    /// Which.
    pub place: String,
    /// What does not hold.
    pub what: &'static str,
}

/// Facets that events give: their values cannot be told from a message's row.
const GIVEN: [u8; 3] = [2, 3, 4];

pub(super) fn miscounted(
    tables: &Tables,
    rtxn: &RoTxn<'_, WithoutTls>,
) -> Result<Vec<Miscounted>, CatalogError> {
    let mut wrong = Vec::new();
    let mut counted: BTreeMap<Vec<u8>, RoaringBitmap> = BTreeMap::new();
    let mut blocks = BlockReader::default();
    let mut all = RoaringBitmap::new();
    for item in tables.of(Table::Dates).iter(rtxn)? {
        let ordinal = from_be_u32(item?.0).ok_or(CatalogError::Damaged("ordinal"))?;
        all.insert(ordinal);
        let place = || format!("ordinal {ordinal}");
        let Some(prepared) = blocks.get(tables, rtxn, Ordinal(ordinal))? else {
            wrong.push(Miscounted { place: place(), what: "its row is missing" });
            continue;
        };
        for (facet, value) in filing::values(&prepared) {
            counted.entry(value_key(facet, &value)).or_default().insert(ordinal);
        }
        for (facet, person) in filing::people(&prepared) {
            match people::known(tables, rtxn, person)? {
                Some(number) => {
                    let key = value_key(facet, &number.to_be_bytes());
                    counted.entry(key).or_default().insert(ordinal);
                }
                None => {
                    wrong.push(Miscounted { place: place(), what: "a person of it is missing" });
                }
            }
        }
        let thread = threads::of_message(tables, rtxn, ordinal)?;
        let joined = match thread {
            Some(thread) => threads::members(tables, rtxn, thread)?.contains(ordinal),
            None => false,
        };
        if !joined {
            wrong.push(Miscounted { place: place(), what: "it is in no thread" });
        }
    }
    let mut keys = BTreeSet::new();
    for item in tables.of(Table::Bitmaps).iter(rtxn)? {
        let (at, _) = item?;
        keys.insert(at[..at.len().saturating_sub(2)].to_vec());
    }
    keys.extend(counted.keys().cloned());
    for key in keys {
        let held = bitmaps::of_key(tables, rtxn, &key)?;
        let place = || format!("facet {}", key[0]);
        if GIVEN.contains(&key[0]) {
            if !held.is_subset(&all) {
                wrong.push(Miscounted { place: place(), what: "it counts messages not listed" });
            }
        } else if counted.get(&key).cloned().unwrap_or_default() != held {
            wrong.push(Miscounted { place: place(), what: "it is not what its rows say" });
        }
    }
    Ok(wrong)
}
