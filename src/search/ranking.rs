//! From what each half found to one order.
//!
//! Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): a message counts `1 / (60 + rank)` in
//! each list it stands in. Ties go to the better rank by words, then the later message, then the
//! later arrival: a total order.

use std::collections::HashMap;

use crate::ids::Ordinal;
use crate::projections::text::hits::Match;
use crate::projections::vectors::Near;

/// How lists are fused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fusion {
    /// What keeps the first ranks from counting for everything.
    pub rank_offset: f64,
    /// Messages that the words give.
    pub words_max: usize,
    /// Messages that nearness gives.
    pub near_max: usize,
}

impl Default for Fusion {
    /// Pylota Mail search §8 and §9.
    fn default() -> Self {
        Self { rank_offset: 60.0, words_max: 200, near_max: 100 }
    }
}

/// A message with its place in an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ranked {
    pub(super) ordinal: Ordinal,
    /// 0 to 1.
    pub(super) score: f64,
    /// Message date; 0 where no tie goes by it.
    pub(super) date_ms: i64,
    /// What lies nearest to the query, in the new text.
    pub(super) passage: Option<(u32, u32)>,
    pub(super) why: Vec<String>,
}

/// What words found, in its own order; without scores everything counts the same.
pub(super) fn by_words(matches: &[Match], scored: bool) -> Vec<Ranked> {
    let score = |found: &Match| {
        if scored { f64::from(found.score_millionths) / 1_000_000.0 } else { 1.0 }
    };
    let ranked = matches.iter().map(|found| Ranked {
        ordinal: found.ordinal,
        score: score(found),
        date_ms: found.date_ms,
        passage: None,
        why: Vec::new(),
    });
    ranked.collect()
}

fn reason(near: &Near) -> Vec<String> {
    vec![format!("semantic:{:.3}", near.cosine)]
}

/// What lies near, in its own order.
pub(super) fn by_meaning(near: &[Near]) -> Vec<Ranked> {
    let ranked = near.iter().map(|near| Ranked {
        ordinal: near.ordinal,
        score: f64::from(near.cosine.clamp(0.0, 1.0)),
        date_ms: 0,
        passage: Some(near.passage),
        why: reason(near),
    });
    ranked.collect()
}

/// Both, best first. `dates` gives the message date of those that only lie near.
pub(super) fn fused(
    fusion: Fusion,
    words: &[Match],
    near: &[Near],
    dates: &HashMap<u32, i64>,
) -> Vec<Ranked> {
    struct Sum {
        score: f64,
        rank: usize,
        date_ms: i64,
        near: Option<Near>,
    }
    let worth = |rank: usize| 1.0 / (fusion.rank_offset + 1.0 + rank as f64);
    let mut sums: HashMap<u32, Sum> = HashMap::with_capacity(words.len() + near.len());
    for (rank, found) in words.iter().enumerate() {
        let sum = Sum { score: worth(rank), rank, date_ms: found.date_ms, near: None };
        sums.insert(found.ordinal.0, sum);
    }
    for (rank, near) in near.iter().enumerate() {
        let date_ms = dates.get(&near.ordinal.0).copied().unwrap_or(i64::MIN);
        let sum = sums.entry(near.ordinal.0).or_insert(Sum {
            score: 0.0,
            rank: usize::MAX,
            date_ms,
            near: None,
        });
        sum.score += worth(rank);
        sum.near = Some(*near);
    }
    let mut order: Vec<(u32, Sum)> = sums.into_iter().collect();
    order.sort_by(|(a_ordinal, a), (b_ordinal, b)| {
        b.score
            .total_cmp(&a.score)
            .then(a.rank.cmp(&b.rank))
            .then(b.date_ms.cmp(&a.date_ms))
            .then(b_ordinal.cmp(a_ordinal))
    });
    let most = 2.0 * worth(0);
    let ranked = order.into_iter().map(|(ordinal, sum)| Ranked {
        ordinal: Ordinal(ordinal),
        score: sum.score / most,
        date_ms: sum.date_ms,
        passage: sum.near.map(|near| near.passage),
        why: sum.near.as_ref().map(reason).unwrap_or_default(),
    });
    ranked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(ordinal: u32, date_ms: i64) -> Match {
        Match { score_millionths: 1, date_ms, ordinal: Ordinal(ordinal) }
    }

    fn near(ordinal: u32, cosine: f32) -> Near {
        Near { ordinal: Ordinal(ordinal), cosine, passage: (0, 4) }
    }

    #[test]
    fn both_lists_count_and_ties_have_an_order() {
        let words = [word(1, 10), word(2, 20), word(3, 30)];
        let close = [near(4, 0.9), near(2, 0.8), near(5, 0.7)];
        let dates = HashMap::from([(4, 5), (5, 50)]);
        let order = fused(Fusion::default(), &words, &close, &dates);
        let ordinals: Vec<u32> = order.iter().map(|r| r.ordinal.0).collect();
        // 2 stands in both; 1 and 4 lead one list each, and words go first; so do 3 and 5.
        assert_eq!(ordinals, [2, 1, 4, 3, 5]);
        assert_eq!(order[0].why, ["semantic:0.800"]);
        assert_eq!((order[1].why.len(), order[1].passage), (0, None));
        let both = fused(Fusion::default(), &words[..1], &[near(1, 0.5)], &dates);
        assert!((both[0].score - 1.0).abs() < 1e-12);
    }
}
