//! Prepared messages in blocks: up to 16 neighbours compressed together.
//!
//! Neighbours quote each other and repeat addresses and footers, so a block takes about two
//! thirds of what its messages take alone, and LMDB packs a few large values better than many
//! small ones. One hit costs the decompression of one block (some 30 KB, tens of microseconds).
//! A block closes at 16 messages or [`BLOCK_BYTES_MAX`].
//!
//! ```text
//! block = zstd( count u8 ‖ count × end u32 LE ‖ bincode(Prepared) … )
//! ```

use heed::{RoTxn, RwTxn};
use roaring::RoaringBitmap;

use super::CatalogError;
use super::prepared::Prepared;
use super::tables::{Table, Tables, from_be_u32};
use crate::compress::{self, Effort};
use crate::events::codec;
use crate::ids::Ordinal;

const BLOCK_MESSAGES_MAX: usize = 16;
/// A block that holds this many bytes takes no further message.
const BLOCK_BYTES_MAX: usize = 64 << 10;
/// No block decompresses to more: one message's text is capped far below.
const DECOMPRESSED_MAX: usize = 64 << 20;

/// Writes prepared messages in ordinal order; holds the open block in memory.
#[derive(Debug, Default)]
pub(super) struct BlockWriter {
    first: u32,
    encoded: Vec<Vec<u8>>,
    bytes: usize,
    loaded: bool,
}

impl BlockWriter {
    /// Adds the message after all others.
    pub(super) fn push(
        &mut self,
        tables: &Tables,
        wtxn: &mut RwTxn<'_>,
        prepared: &Prepared,
    ) -> Result<(), CatalogError> {
        if !self.loaded {
            self.load_last(tables, wtxn)?;
        }
        // Places inside a block are counted from its first ordinal: an erased message that a replay
        // passes over ends the block before it.
        let expected = self.first + self.encoded.len() as u32;
        let gap = !self.encoded.is_empty() && prepared.ordinal.0 != expected;
        let full = self.encoded.len() >= BLOCK_MESSAGES_MAX || self.bytes >= BLOCK_BYTES_MAX;
        if gap || full {
            self.flush(tables, wtxn)?;
            *self = Self { loaded: true, ..Self::default() };
        }
        if self.encoded.is_empty() {
            self.first = prepared.ordinal.0;
        }
        let bytes = codec::encode(prepared);
        self.bytes += bytes.len();
        self.encoded.push(bytes);
        Ok(())
    }

    fn load_last(&mut self, tables: &Tables, wtxn: &RwTxn<'_>) -> Result<(), CatalogError> {
        if let Some((key, block)) = tables.of(Table::Blocks).last(wtxn)? {
            self.first = from_be_u32(key).ok_or(CatalogError::Damaged("block key"))?;
            let plain = open(block)?;
            for at in 0..count(&plain) {
                let bytes = entry(&plain, at).ok_or(CatalogError::Damaged("block"))?.to_vec();
                self.bytes += bytes.len();
                self.encoded.push(bytes);
            }
        }
        self.loaded = true;
        Ok(())
    }

    /// Writes the open block; it stays open.
    pub(super) fn flush(&self, tables: &Tables, wtxn: &mut RwTxn<'_>) -> Result<(), CatalogError> {
        if self.encoded.is_empty() {
            return Ok(());
        }
        let block = compress::compress(&self.joined(), Effort::Usual)
            .map_err(|_| CatalogError::Damaged("compress"))?;
        tables.of(Table::Blocks).put(wtxn, &self.first.to_be_bytes(), &block)?;
        Ok(())
    }

    fn joined(&self) -> Vec<u8> {
        let mut plain = Vec::with_capacity(1 + 4 * self.encoded.len() + self.bytes);
        plain.push(self.encoded.len() as u8);
        let mut end = 0_u32;
        for bytes in &self.encoded {
            end += bytes.len() as u32;
            plain.extend_from_slice(&end.to_le_bytes());
        }
        for bytes in &self.encoded {
            plain.extend_from_slice(bytes);
        }
        plain
    }
}

/// Takes messages out of their blocks; their places stay, empty, so that neighbours keep theirs. A
/// block of empty places goes whole. No writer may hold a block open.
pub(super) fn erase(
    tables: &Tables,
    wtxn: &mut RwTxn<'_>,
    ordinals: &RoaringBitmap,
) -> Result<(), CatalogError> {
    let blocks = tables.of(Table::Blocks);
    let mut at = ordinals.iter().peekable();
    while let Some(ordinal) = at.next() {
        let Some((key, block)) = blocks.get_lower_than_or_equal_to(wtxn, &ordinal.to_be_bytes())?
        else {
            continue;
        };
        let first = from_be_u32(key).ok_or(CatalogError::Damaged("block key"))?;
        let plain = open(block)?;
        let held = count(&plain) as u32;
        let mut left = BlockWriter { first, ..BlockWriter::default() };
        for place in 0..held {
            let bytes = entry(&plain, place as usize).ok_or(CatalogError::Damaged("block"))?;
            let kept = if ordinals.contains(first + place) { &[][..] } else { bytes };
            left.bytes += kept.len();
            left.encoded.push(kept.to_vec());
        }
        if left.bytes == 0 {
            blocks.delete(wtxn, &first.to_be_bytes())?;
        } else {
            left.flush(tables, wtxn)?;
        }
        while at.next_if(|next| *next < first + held).is_some() {}
    }
    Ok(())
}

/// One opened block, so that neighbours in a result list share the decompression.
#[derive(Debug, Default)]
pub(super) struct BlockReader {
    first: u32,
    plain: Vec<u8>,
}

impl BlockReader {
    /// The message at `ordinal`, `None` when there is none.
    ///
    /// # Errors
    /// [`CatalogError`] when the store fails or a block does not decode.
    pub(super) fn get(
        &mut self,
        tables: &Tables,
        rtxn: &RoTxn<'_, heed::WithoutTls>,
        ordinal: Ordinal,
    ) -> Result<Option<Prepared>, CatalogError> {
        let held = count(&self.plain) as u32;
        if !(self.first..self.first + held).contains(&ordinal.0) {
            let key = ordinal.0.to_be_bytes();
            let Some((key, block)) =
                tables.of(Table::Blocks).get_lower_than_or_equal_to(rtxn, &key)?
            else {
                return Ok(None);
            };
            self.first = from_be_u32(key).ok_or(CatalogError::Damaged("block key"))?;
            self.plain = open(block)?;
        }
        let at = (ordinal.0 - self.first) as usize;
        let Some(bytes) = entry(&self.plain, at).filter(|bytes| !bytes.is_empty()) else {
            return Ok(None);
        };
        codec::decode(bytes).map(Some).ok_or(CatalogError::Damaged("prepared message"))
    }
}

fn open(block: &[u8]) -> Result<Vec<u8>, CatalogError> {
    compress::decompress(block, DECOMPRESSED_MAX).map_err(|_| CatalogError::Damaged("block"))
}

fn count(plain: &[u8]) -> usize {
    plain.first().map_or(0, |n| usize::from(*n))
}

fn entry(plain: &[u8], at: usize) -> Option<&[u8]> {
    let count = count(plain);
    if at >= count {
        return None;
    }
    let end_at = |n: usize| -> Option<usize> {
        let bytes = plain.get(1 + 4 * n..5 + 4 * n)?.try_into().ok()?;
        Some(1 + 4 * count + u32::from_le_bytes(bytes) as usize)
    };
    let start = if at == 0 { 1 + 4 * count } else { end_at(at - 1)? };
    plain.get(start..end_at(at)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MessageId;
    use crate::mail::Message;
    use heed::EnvOpenOptions;

    #[test]
    fn gap_left_by_an_erased_message_does_not_shift_its_neighbours() {
        let dir = tempfile::tempdir().expect("temp dir");
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(16 << 20).max_dbs(Table::ALL.len() as u32);
        #[expect(unsafe_code, reason = "a directory of this test alone")]
        let env = unsafe { options.open(dir.path()) }.expect("opens");
        let tables = Tables::create(&env).expect("created");
        let mut wtxn = env.write_txn().expect("writes");
        let mut writer = BlockWriter::default();
        for number in (0..50).filter(|n| *n != 3 && *n != 40) {
            let id = MessageId::from_parts(0, u128::from(number));
            let message = Message { subject: format!("number {number}"), ..Message::default() };
            let prepared = Prepared::new(Ordinal(number), id, false, &message);
            writer.push(&tables, &mut wtxn, &prepared).expect("pushed");
        }
        writer.flush(&tables, &mut wtxn).expect("flushed");
        wtxn.commit().expect("committed");
        let rtxn = env.read_txn().expect("reads");
        let mut reader = BlockReader::default();
        for number in 0..51 {
            let found = reader.get(&tables, &rtxn, Ordinal(number)).expect("reads");
            let subject = found.map(|p| p.subject);
            let there = ![3, 40, 50].contains(&number);
            assert_eq!(subject, there.then(|| format!("number {number}")));
        }
    }
}
