//! What an index holds, as of its last commit.

use heed::{RoTxn, WithoutTls};
use roaring::RoaringBitmap;

use super::{Tables, VectorError};

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) rows: u32,
    pub(super) covered: RoaringBitmap,
    /// Those of them with a passage that the model refused.
    pub(super) failed: RoaringBitmap,
    /// Messages that were taken out: their bytes are still in the file.
    pub(super) removed: RoaringBitmap,
    /// Their rows.
    pub(super) dead: u32,
}

impl State {
    pub(super) fn load(tables: Tables, rtxn: &RoTxn<'_, WithoutTls>) -> Result<Self, VectorError> {
        let Some(rows) = tables.meta.get(rtxn, b"rows")? else { return Ok(Self::default()) };
        let rows = rows.try_into().map(u32::from_be_bytes);
        let number = |name: &[u8]| match tables.meta.get(rtxn, name)? {
            None => Ok(0),
            Some(bytes) => bytes
                .try_into()
                .map(u32::from_be_bytes)
                .map_err(|_| VectorError::Damaged("a number")),
        };
        let bitmap = |name: &[u8]| {
            let Some(bytes) = tables.meta.get(rtxn, name)? else {
                return Ok(RoaringBitmap::new());
            };
            RoaringBitmap::deserialize_from(bytes)
                .map_err(|_| VectorError::Damaged("a set of messages"))
        };
        Ok(Self {
            rows: rows.map_err(|_| VectorError::Damaged("rows"))?,
            covered: bitmap(b"covered")?,
            failed: bitmap(b"failed")?,
            removed: bitmap(b"removed")?,
            dead: number(b"dead")?,
        })
    }

    pub(super) fn store(
        &self,
        tables: Tables,
        wtxn: &mut heed::RwTxn<'_>,
    ) -> Result<(), VectorError> {
        let Self { rows, covered, failed, removed, dead } = self;
        for (name, messages) in [("covered", covered), ("failed", failed), ("removed", removed)] {
            let mut bytes = Vec::with_capacity(messages.serialized_size());
            messages.serialize_into(&mut bytes)?;
            tables.meta.put(wtxn, name.as_bytes(), &bytes)?;
        }
        tables.meta.put(wtxn, b"dead", &dead.to_be_bytes())?;
        Ok(tables.meta.put(wtxn, b"rows", &rows.to_be_bytes())?)
    }
}
