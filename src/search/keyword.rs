//! Keyword search: query text → plan → ranked matches → hits.
//!
//! Score: `0.7 · s / (s + c)` of the text's BM25 `s`, plus 0.3 for a
//! reference hit (none are extracted yet); 1 when nothing is scored. Tantivy adds up the BM25 of
//! each field times its weight, so its scores are several times those of one
//! index over all fields; `c` = 20 puts a good two-word match near the middle of the range
//! (docs/adr/0006).

use jiff::tz::TimeZone;
use roaring::RoaringBitmap;

use super::hits::{MailboxOwner, hydrate};
use super::plan::compile;
use super::request::{Mode, QueryEcho, SearchError, SearchRequest, SearchResponse, Sort};
use super::visibility::Reach;
use crate::projections::text::hits::{Match, Matches, Order};
use crate::projections::view::View;
use crate::query::{ParseOptions, parse, resolve};

const HALF_SCORE: f64 = 20.0;

fn millionths(score: f32) -> u32 {
    let score = f64::from(score.max(0.0));
    (700_000.0 * score / (score + HALF_SCORE)).round() as u32
}

/// Answers a request from a view. `zone` and `now_ms` give meaning to dates in the query.
///
/// # Errors
/// [`SearchError`].
pub fn search(
    view: &View,
    owner: &MailboxOwner,
    request: &SearchRequest,
    zone: &TimeZone,
    now_ms: i64,
) -> Result<SearchResponse, SearchError> {
    request.validate()?;
    let query = parse(&request.q, &ParseOptions::default())?;
    let parsed = query.to_string();
    let resolved = resolve(&query, zone, now_ms);
    let reach = if request.include_quarantined { Reach::Visible } else { Reach::Unquarantined };
    let plan = compile(view, &resolved, reach)?;
    let sort =
        request.sort.unwrap_or(if plan.text.is_some() { Sort::Relevance } else { Sort::Newest });
    let order = match sort {
        Sort::Relevance if plan.text.is_some() => Order::Relevance,
        Sort::Relevance | Sort::Newest => Order::Newest,
        Sort::Oldest => Order::Oldest,
    };
    let limit = request.limit as usize;
    let matches = match &plan.text {
        Some(text) => view.text.top(text, Some(plan.filter.clone()), order, limit, millionths)?,
        None => by_date(view, &plan.filter, order, limit)?,
    };
    let scored = plan.text.is_some() && order == Order::Relevance;
    let hits = hydrate(view, owner, request, &plan, &matches, scored)?;
    Ok(SearchResponse {
        query: QueryEcho { parsed, mode: Mode::Keyword, sort },
        hits,
        total: matches.total,
        total_is_exact: true,
        notes: plan.notes,
        as_of_seq: view.seq().0,
    })
}

/// Every message that a query finds within `reach`. A query with a part that cannot be found
/// (a word without letter or digit) is refused: what it would choose is not what was meant.
///
/// # Errors
/// [`SearchError`].
pub fn matching(
    view: &View,
    q: &str,
    zone: &TimeZone,
    now_ms: i64,
    reach: Reach,
) -> Result<RoaringBitmap, SearchError> {
    let query = parse(q, &ParseOptions::default())?;
    let plan = compile(view, &resolve(&query, zone, now_ms), reach)?;
    if let Some(note) = plan.notes.into_iter().next() {
        return Err(SearchError::Invalid { path: "query", message: note });
    }
    Ok(match &plan.text {
        Some(text) => view.text.all(text)? & &*plan.filter,
        None => plan.filter.as_ref().clone(),
    })
}

fn by_date(
    view: &View,
    filter: &RoaringBitmap,
    order: Order,
    limit: usize,
) -> Result<Matches, SearchError> {
    let mut top = Vec::with_capacity(limit.min(64));
    view.catalog.in_date_order(filter, order == Order::Newest, |date_ms, ordinal| {
        top.push(Match { score_millionths: 1_000_000, date_ms, ordinal });
        top.len() < limit
    })?;
    Ok(Matches { top, total: filter.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn score_grows_with_bm25_and_stays_below_its_share() {
        let scores: Vec<u32> = [0.0, 1.0, 20.0, 200.0, f32::MAX].map(millionths).into();
        assert!(scores.is_sorted());
        assert_eq!((scores[0], scores[2]), (0, 350_000));
        assert!(scores[4] <= 700_000);
        assert_eq!(millionths(-1.0), 0);
    }
}
