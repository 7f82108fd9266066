//! Search: query text → plan → what the words find, what lies near, or both → hits.
//!
//! Score: `0.7 · s / (s + c)` of the text's BM25 `s`, plus 0.3 for a
//! reference hit (none are extracted yet); 1 when nothing is scored. Tantivy adds up the BM25 of
//! each field times its weight, so its scores are several times those of one
//! index over all fields; `c` = 20 puts a good two-word match near the middle of the range
//! (docs/adr/0006).

use std::collections::HashMap;

use jiff::tz::TimeZone;
use roaring::RoaringBitmap;

use super::hits::{MailboxOwner, hydrate};
use super::plan::{Plan, compile};
use super::ranking::{self, Fusion, Ranked};
use super::request::{
    Mode, QueryEcho, RerankOut, SearchError, SearchRequest, SearchResponse, SemanticOut, Sort,
};
use super::rerank::{Judge, ranked_again};
use super::semantic::Meaning;
use super::visibility::Reach;
use crate::projections::text::hits::{Match, Matches, Order};
use crate::projections::view::View;
use crate::query::leaves::semantic_text;
use crate::query::{ParseOptions, parse, resolve};

const HALF_SCORE: f64 = 20.0;

fn millionths(score: f32) -> u32 {
    let score = f64::from(score.max(0.0));
    (700_000.0 * score / (score + HALF_SCORE)).round() as u32
}

/// What a search asks besides the words.
#[derive(Debug, Clone)]
pub struct Aids {
    /// What lies near.
    pub meaning: Meaning,
    /// Who ranks again.
    pub judge: Judge,
    /// How orders are fused.
    pub fusion: Fusion,
}

impl Aids {
    /// Words alone.
    #[must_use]
    pub fn none() -> Self {
        Self { meaning: Meaning::Inactive, judge: Judge::None, fusion: Fusion::default() }
    }
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
    aids: &Aids,
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
    let meant = semantic_text(&query);
    let asked = Asked { order, limit, meant: &meant, aids };
    let found = match request.mode {
        Mode::Keyword => asked.by_words(view, &plan)?,
        Mode::Semantic => asked.by_meaning(view, &plan, request)?,
        // An order by date leaves nothing for nearness to decide.
        Mode::Hybrid if order != Order::Relevance || meant.is_empty() => {
            asked.by_words(view, &plan)?
        }
        Mode::Hybrid => asked.by_both(view, &plan, request.rerank)?,
    };
    if request.require_mode && found.semantic.as_ref().is_some_and(|state| state.degraded) {
        return Err(SearchError::Degraded);
    }
    let hits = hydrate(view, owner, request, &plan, found.ranked)?;
    let mut notes = plan.notes;
    if let (Mode::Semantic, Some(state)) = (request.mode, &found.semantic)
        && !state.degraded
        && state.coverage < 0.9995
    {
        let percent = (state.coverage * 1_000.0).round() / 10.0;
        notes.push(format!(
            "{percent} % of the messages have vectors; `postrider embed run`, or a server, gives \
             them to the others"
        ));
    }
    if let Some(state) = found.semantic.as_ref().filter(|state| state.degraded) {
        notes.push(format!(
            "the model {} does not answer, so these were found by their words alone; \
             `postrider embed run` tells why",
            state.model
        ));
    }
    if let Some(state) = found.rerank.as_ref().filter(|state| state.degraded) {
        notes.push(format!("the reranker {} does not answer: it has ranked nothing", state.model));
    }
    Ok(SearchResponse {
        query: QueryEcho { parsed, mode: found.mode, sort },
        hits,
        total: found.total,
        total_is_exact: found.mode == Mode::Keyword,
        notes,
        as_of_seq: view.seq().0,
        degraded: found.semantic.as_ref().is_some_and(|semantic| semantic.degraded)
            || found.rerank.as_ref().is_some_and(|rerank| rerank.degraded),
        semantic: found.semantic,
        rerank: found.rerank,
    })
}

struct Asked<'r> {
    order: Order,
    limit: usize,
    meant: &'r str,
    aids: &'r Aids,
}

struct Found {
    mode: Mode,
    ranked: Vec<Ranked>,
    total: u64,
    semantic: Option<SemanticOut>,
    rerank: Option<RerankOut>,
}

impl Asked<'_> {
    fn words(&self, view: &View, plan: &Plan, depth: usize) -> Result<Matches, SearchError> {
        Ok(match &plan.text {
            Some(text) => {
                view.text.top(text, Some(plan.filter.clone()), self.order, depth, millionths)?
            }
            None => by_date(view, &plan.filter, self.order, depth)?,
        })
    }

    fn by_words(&self, view: &View, plan: &Plan) -> Result<Found, SearchError> {
        let matches = self.words(view, plan, self.limit)?;
        let scored = plan.text.is_some() && self.order == Order::Relevance;
        let ranked = ranking::by_words(&matches.top, scored);
        Ok(Found {
            mode: Mode::Keyword,
            ranked,
            total: matches.total,
            semantic: None,
            rerank: None,
        })
    }

    fn by_meaning(
        &self,
        view: &View,
        plan: &Plan,
        request: &SearchRequest,
    ) -> Result<Found, SearchError> {
        let refused =
            |message: &str| Err(SearchError::Invalid { path: "mode", message: message.to_owned() });
        if self.meant.is_empty() {
            return refused(
                "must not be `semantic` for a query without words outside of operators",
            );
        }
        if request.sort.is_some_and(|sort| sort != Sort::Relevance) {
            return refused("must not be `semantic` with an order by date");
        }
        let depth = self.aids.fusion.near_max.max(self.limit);
        let reachable = plan.reachable(view)?;
        let near = self.aids.meaning.near(&view.catalog, self.meant, &reachable, depth)?;
        // What was asked just now counts for the capability too.
        let mut semantic = self.aids.meaning.state(&view.catalog)?;
        let Some(near) = near else {
            let Some(state) = &mut semantic else {
                return refused(
                    "must not be `semantic` while `embedding` is `off` in the settings",
                );
            };
            state.degraded = true;
            return Ok(Found { semantic, ..self.by_words(view, plan)? });
        };
        let mut ranked = ranking::by_meaning(&near);
        ranked.truncate(self.limit);
        Ok(Found { mode: Mode::Semantic, ranked, total: near.len() as u64, semantic, rerank: None })
    }

    fn by_both(&self, view: &View, plan: &Plan, rerank: bool) -> Result<Found, SearchError> {
        let Aids { meaning, judge, fusion } = self.aids;
        let depth = fusion.near_max.max(self.limit);
        let reachable = plan.reachable(view)?;
        let near = meaning.near(&view.catalog, self.meant, &reachable, depth)?;
        let mut semantic = meaning.state(&view.catalog)?;
        let near = match near {
            Some(near) if !near.is_empty() => near,
            nothing => {
                if let Some(state) = &mut semantic {
                    state.degraded = nothing.is_none();
                }
                return Ok(Found { semantic, ..self.by_words(view, plan)? });
            }
        };
        let words = self.words(view, plan, fusion.words_max.max(self.limit))?;
        let among: RoaringBitmap = near.iter().map(|near| near.ordinal.0).collect();
        let mut dates = HashMap::with_capacity(near.len());
        view.catalog.in_date_order(&among, true, |date_ms, ordinal| {
            dates.insert(ordinal.0, date_ms);
            true
        })?;
        let also = match &plan.text {
            // Everything that matches is in the list.
            _ if words.total <= words.top.len() as u64 => {
                words.top.iter().filter(|found| among.contains(found.ordinal.0)).count() as u64
            }
            Some(text) => (view.text.all(text)? & &*plan.filter).intersection_len(&among),
            None => plan.filter.intersection_len(&among),
        };
        let mut ranked = ranking::fused(*fusion, &words.top, &near, &dates);
        let mut judged = None;
        if let (true, Meaning::Ready { never, .. }) = (rerank, meaning) {
            judged = ranked_again(judge, view, plan, never, self.meant, &mut ranked)?;
        }
        ranked.truncate(self.limit);
        let total = words.total + among.len() - also;
        Ok(Found { mode: Mode::Hybrid, ranked, total, semantic, rerank: judged })
    }
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
