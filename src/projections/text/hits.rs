//! Running a query: the best messages in total order with an exact count, or all of them as a
//! bitmap.
//!
//! The order is score, then message date, then ordinal, all descending, so that equal input gives
//! equal output on every machine. The filter is a bitmap of ordinals, checked per match.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use roaring::RoaringBitmap;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::{DocId, Score, SegmentOrdinal, SegmentReader};

use super::query::TextQuery;
use super::{TextError, TextReader};
use crate::ids::Ordinal;

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Best score, then newest.
    Relevance,
    /// Latest message date.
    Newest,
    /// Earliest message date.
    Oldest,
}

/// One match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// Score in millionths, 0 unless ordered by relevance.
    pub score_millionths: u32,
    /// Message date, unix ms.
    pub date_ms: i64,
    /// Which message.
    pub ordinal: Ordinal,
}

/// The best matches and how many there are in all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches {
    /// Best first.
    pub top: Vec<Match>,
    /// All of them, exact.
    pub total: u64,
}

/// Comparable form of a match: greater is better.
pub type Key = (u32, i64, u32);

/// Key of a match under an order.
#[must_use]
pub fn key(order: Order, score_millionths: u32, date_ms: i64, ordinal: u32) -> Key {
    match order {
        Order::Relevance => (score_millionths, date_ms, ordinal),
        Order::Newest => (0, date_ms, ordinal),
        Order::Oldest => (0, date_ms.saturating_neg(), u32::MAX - ordinal),
    }
}

fn from_key(order: Order, (score_millionths, date, ordinal): Key) -> Match {
    let (date_ms, ordinal) = match order {
        Order::Oldest => (date.saturating_neg(), u32::MAX - ordinal),
        Order::Relevance | Order::Newest => (date, ordinal),
    };
    Match { score_millionths, date_ms, ordinal: Ordinal(ordinal) }
}

/// The best `limit` of many keys.
#[derive(Debug)]
pub struct Best {
    limit: usize,
    heap: BinaryHeap<Reverse<Key>>,
}

impl Best {
    /// Keeps at most `limit`.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::with_capacity(limit.min(1_000) + 1) }
    }

    /// Offers one.
    pub fn offer(&mut self, key: Key) {
        if self.heap.len() < self.limit {
            self.heap.push(Reverse(key));
        } else if self.heap.peek().is_some_and(|Reverse(worst)| key > *worst) {
            self.heap.pop();
            self.heap.push(Reverse(key));
        }
    }

    /// Best first.
    #[must_use]
    pub fn into_matches(self, order: Order) -> Vec<Match> {
        // Ascending in `Reverse` is descending in the key.
        self.heap.into_sorted_vec().into_iter().map(|Reverse(k)| from_key(order, k)).collect()
    }
}

struct TopCollector {
    order: Order,
    limit: usize,
    filter: Option<Arc<RoaringBitmap>>,
    score: fn(f32) -> u32,
}

struct SegmentTop {
    order: Order,
    best: Best,
    total: u64,
    filter: Option<Arc<RoaringBitmap>>,
    score: fn(f32) -> u32,
    ordinals: Column<u64>,
    dates: Column<i64>,
}

fn ordinal_at(column: &Column<u64>, doc: DocId) -> u32 {
    column.first(doc).and_then(|v| u32::try_from(v).ok()).unwrap_or(u32::MAX)
}

impl Collector for TopCollector {
    type Fruit = (Vec<Key>, u64);
    type Child = SegmentTop;

    fn for_segment(
        &self,
        _: SegmentOrdinal,
        segment: &SegmentReader,
    ) -> tantivy::Result<SegmentTop> {
        Ok(SegmentTop {
            order: self.order,
            best: Best::new(self.limit),
            total: 0,
            filter: self.filter.clone(),
            score: self.score,
            ordinals: segment.fast_fields().u64("ordinal")?,
            dates: segment.fast_fields().i64("date")?,
        })
    }

    fn requires_scoring(&self) -> bool {
        self.order == Order::Relevance
    }

    fn merge_fruits(&self, fruits: Vec<(Vec<Key>, u64)>) -> tantivy::Result<Self::Fruit> {
        let mut best = Best::new(self.limit);
        let mut total = 0;
        for (keys, count) in fruits {
            keys.into_iter().for_each(|k| best.offer(k));
            total += count;
        }
        Ok((best.heap.into_iter().map(|Reverse(k)| k).collect(), total))
    }
}

impl SegmentCollector for SegmentTop {
    type Fruit = (Vec<Key>, u64);

    fn collect(&mut self, doc: DocId, score: Score) {
        let ordinal = ordinal_at(&self.ordinals, doc);
        if self.filter.as_ref().is_some_and(|f| !f.contains(ordinal)) {
            return;
        }
        self.total += 1;
        let date = self.dates.first(doc).unwrap_or_default();
        let score = if self.order == Order::Relevance { (self.score)(score) } else { 0 };
        self.best.offer(key(self.order, score, date, ordinal));
    }

    fn harvest(self) -> Self::Fruit {
        (self.best.heap.into_iter().map(|Reverse(k)| k).collect(), self.total)
    }
}

struct BitmapCollector;

struct SegmentBitmap {
    found: Vec<u32>,
    ordinals: Column<u64>,
}

impl Collector for BitmapCollector {
    type Fruit = RoaringBitmap;
    type Child = SegmentBitmap;

    fn for_segment(
        &self,
        _: SegmentOrdinal,
        segment: &SegmentReader,
    ) -> tantivy::Result<SegmentBitmap> {
        Ok(SegmentBitmap { found: Vec::new(), ordinals: segment.fast_fields().u64("ordinal")? })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, fruits: Vec<Vec<u32>>) -> tantivy::Result<RoaringBitmap> {
        Ok(fruits.into_iter().flatten().collect())
    }
}

impl SegmentCollector for SegmentBitmap {
    type Fruit = Vec<u32>;

    fn collect(&mut self, doc: DocId, _: Score) {
        self.found.push(ordinal_at(&self.ordinals, doc));
    }

    fn harvest(self) -> Vec<u32> {
        self.found
    }
}

impl TextReader {
    /// The best `limit` messages among `filter` (all, without one). `score` turns Tantivy's score
    /// into millionths and must not fall where the score grows.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn top(
        &self,
        query: &TextQuery,
        filter: Option<Arc<RoaringBitmap>>,
        order: Order,
        limit: usize,
        score: fn(f32) -> u32,
    ) -> Result<Matches, TextError> {
        let collector = TopCollector { order, limit, filter, score };
        let (keys, total) = self.searcher.search(query.inner(), &collector)?;
        let mut best = Best::new(limit);
        keys.into_iter().for_each(|k| best.offer(k));
        Ok(Matches { top: best.into_matches(order), total })
    }

    /// Every message that matches.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn all(&self, query: &TextQuery) -> Result<RoaringBitmap, TextError> {
        Ok(self.searcher.search(query.inner(), &BitmapCollector)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_keeps_the_greatest_and_orders_them() {
        for order in [Order::Relevance, Order::Newest, Order::Oldest] {
            let mut best = Best::new(2);
            for (score, date, ordinal) in [(5, 10, 1), (9, 10, 2), (9, 11, 3), (1, 99, 4)] {
                best.offer(key(order, score, date, ordinal));
            }
            let got: Vec<u32> = best.into_matches(order).iter().map(|m| m.ordinal.0).collect();
            let want = match order {
                Order::Relevance => [3, 2],
                Order::Newest => [4, 3],
                Order::Oldest => [1, 2],
            };
            assert_eq!(got, want, "{order:?}");
        }
        assert_eq!(Best::new(0).into_matches(Order::Newest), []);
    }
}
