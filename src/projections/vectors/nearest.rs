//! The rows nearest to a query: approximately for all, then exactly for the best.

use std::ops::Bound;

use heed::{RoTxn, WithoutTls};
use roaring::RoaringBitmap;

use super::rows::{Members, PLACE_BYTES, Place};
use super::{BLOCK_ROWS, VectorError, Vectors, block_number, scan, stored};
use crate::ids::Ordinal;

/// Rows ranked exactly for each one wanted; scores of bytes are off by about a hundredth.
const RESCORED: usize = 4;
/// Rows ranked exactly at least.
const RESCORED_MIN: usize = 256;
/// Rows from which on a scan is shared among threads: below, starting them costs more.
const SHARED_FROM: usize = 65_536;
/// Threads of one scan; more than a few only wait for memory.
const THREADS_MAX: usize = 4;

/// A message near a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// Which message.
    pub ordinal: Ordinal,
    /// Cosine of its best passage, -1 to 1.
    pub cosine: f32,
    /// Where that passage lies in its new text, bytes.
    pub passage: (u32, u32),
}

/// A block where it lies: its first row, the places and the bytes of its rows.
type Block<'t> = (u32, &'t [u8], &'t [u8]);

impl Vectors {
    /// The messages among `candidates` whose best passage is nearest to `query`, a vector of length
    /// 1: best first, equal ones by ordinal. Exact but for rows whose scores are within the error of
    /// signed bytes at the end of [`RESCORED`] times as many, and for what trees miss where there
    /// are any.
    ///
    /// # Errors
    /// [`VectorError`].
    pub fn nearest(
        &self,
        query: &[f32],
        candidates: &RoaringBitmap,
        limit: usize,
    ) -> Result<Vec<Near>, VectorError> {
        if query.len() != self.dimensions || limit == 0 {
            return Ok(Vec::new());
        }
        let rtxn = self.env.read_txn()?;
        let wanted = Members::new(candidates);
        let count = (limit * RESCORED).max(RESCORED_MIN);
        let trees = self.trees().filter(|_| {
            // With fewer candidates the trees would have to be asked for far more rows.
            candidates.len() * 2 >= self.messages()
        });
        let from = trees.as_ref().map_or(0, |trees| trees.rows());
        let mut rows = self.scanned(&rtxn, query, &wanted, count, from)?;
        if let Some(trees) = trees {
            let found = trees.nearest(query, count)?;
            let places = &self.tables.places;
            for row in found {
                let block = places.get(&rtxn, &(row / BLOCK_ROWS as u32).to_be_bytes())?;
                let block = block.ok_or(VectorError::Damaged("places"))?;
                let place = block.as_chunks::<PLACE_BYTES>().0.get(row as usize % BLOCK_ROWS);
                if place.is_some_and(|place| wanted.hold(Place::ordinal(place))) {
                    rows.push(row);
                }
            }
        }
        self.rescored(&rtxn, query, rows, limit)
    }

    /// The best rows of row `from` and after by their bytes, in their own order.
    fn scanned(
        &self,
        rtxn: &RoTxn<'_, WithoutTls>,
        query: &[f32],
        wanted: &Members,
        count: usize,
        from: u32,
    ) -> Result<Vec<u32>, VectorError> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let first_key = (from / BLOCK_ROWS as u32).to_be_bytes();
        let range = (Bound::Included(&first_key[..]), Bound::Unbounded);
        let places = self.tables.places.range(rtxn, &range)?;
        let bytes = self.tables.bytes.range(rtxn, &range)?;
        for (places, bytes) in places.zip(bytes) {
            let ((key, places), (same, bytes)) = (places?, bytes?);
            if key != same {
                return Err(VectorError::Damaged("block"));
            }
            blocks.push((block_number(key)? * BLOCK_ROWS as u32, places, bytes));
        }
        let (bytes, step) = scan::quantise(query);
        let dot_bytes = scan::dot_bytes();
        let scan = |blocks: &[Block<'_>]| {
            let mut best = scan::Best::new(count);
            for (first, places, rows) in blocks {
                let rows = rows.chunks_exact(self.dimensions);
                let places = places.as_chunks::<PLACE_BYTES>().0;
                for ((row, place), number) in rows.zip(places).zip(*first..) {
                    if wanted.hold(Place::ordinal(place)) && number >= from {
                        let score = dot_bytes(&bytes, row) as f32;
                        best.offer(score * Place::read(place).step * step, number);
                    }
                }
            }
            best
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(THREADS_MAX);
        if threads < 2 || blocks.len() * BLOCK_ROWS < SHARED_FROM {
            return Ok(scan(&blocks).rows());
        }
        let (own, others) = blocks.split_at(blocks.len().div_ceil(threads));
        let best = std::thread::scope(|scope| {
            let scan = &scan;
            let share = others.len().div_ceil(threads - 1).max(1);
            let running: Vec<_> =
                others.chunks(share).map(|part| scope.spawn(move || scan(part))).collect();
            let mut best = scan(own);
            for thread in running {
                best.merge(thread.join().map_err(|_| VectorError::Damaged("a scan that died"))?);
            }
            Ok::<_, VectorError>(best)
        });
        Ok(best?.rows())
    }

    fn rescored(
        &self,
        rtxn: &RoTxn<'_, WithoutTls>,
        query: &[f32],
        rows: Vec<u32>,
        limit: usize,
    ) -> Result<Vec<Near>, VectorError> {
        let mut found: Vec<Near> = Vec::with_capacity(rows.len());
        let mut block = (u32::MAX, &[][..]);
        for row in rows {
            let number = row / BLOCK_ROWS as u32;
            if block.0 != number {
                let places = self.tables.places.get(rtxn, &number.to_be_bytes())?;
                block = (number, places.ok_or(VectorError::Damaged("places"))?);
            }
            let place = block.1.as_chunks::<PLACE_BYTES>().0.get(row as usize % BLOCK_ROWS);
            let place = Place::read(place.ok_or(VectorError::Damaged("place"))?);
            let halves = self.tables.exact.get(rtxn, &row.to_be_bytes())?;
            let halves = halves.ok_or(VectorError::Damaged("exact vector"))?;
            let cosine = scan::dot(query, &stored::vector(halves));
            found.push(Near { ordinal: Ordinal(place.ordinal), cosine, passage: place.passage });
        }
        // The best passage of each message first, then the best messages.
        found.sort_by(|a, b| {
            a.ordinal
                .cmp(&b.ordinal)
                .then(b.cosine.total_cmp(&a.cosine))
                .then(a.passage.cmp(&b.passage))
        });
        found.dedup_by_key(|near| near.ordinal);
        found.sort_by(|a, b| b.cosine.total_cmp(&a.cosine).then(a.ordinal.cmp(&b.ordinal)));
        found.truncate(limit);
        Ok(found)
    }
}
