//! Ranking the first hits of a hybrid search again by a model that reads the query beside each.
//!
//! Formula of Pylota Mail search §9: of the first 50, half of the score is theirs whatever the model
//! says, the other half 0.8 of what it says and 0.2 of the fused score; what comes after keeps half
//! of its fused score. Mail that no model is given is not judged: its fused score stands for both.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::plan::Plan;
use super::ranking::Ranked;
use super::request::{RerankOut, SearchError};
use super::semantic::{Never, reachable};
use super::snippet;
use crate::embed::Reranker;
use crate::projections::catalog::prepared::Prepared;
use crate::projections::view::View;

/// Hits that are judged.
const JUDGED_MAX: usize = 50;
/// Characters around the query's words, where no passage lies near.
const WINDOW_CHARS: usize = 1_200;
/// Characters that the model is given of a message.
const CONTEXT_CHARS: usize = 1_500;
/// Share of the model's word.
const JUDGEMENT: f64 = 0.8;

/// Who ranks again.
#[derive(Debug, Clone, Default)]
pub enum Judge {
    /// Nobody.
    #[default]
    None,
    /// The model of this name cannot be had.
    Broken(String),
    /// A model.
    Ready(Arc<Reranker>),
}

/// Ranks the first hits again. When the model does not answer, the order stays and the answer says
/// so.
pub(super) fn ranked_again(
    judge: &Judge,
    view: &View,
    plan: &Plan,
    never: &Never,
    query: &str,
    ranked: &mut [Ranked],
) -> Result<Option<RerankOut>, SearchError> {
    let reranker = match judge {
        Judge::None => return Ok(None),
        Judge::Broken(model) => {
            return Ok(Some(RerankOut { model: model.clone(), judged: 0, degraded: true }));
        }
        Judge::Ready(reranker) => reranker,
    };
    let first: RoaringBitmap =
        ranked.iter().take(JUDGED_MAX).map(|found| found.ordinal.0).collect();
    let given = reachable(first, &view.catalog, never)?;
    let (places, judged): (Vec<usize>, Vec<&Ranked>) = ranked
        .iter()
        .take(JUDGED_MAX)
        .enumerate()
        .filter(|(_, found)| given.contains(found.ordinal.0))
        .unzip();
    let messages = view.catalog.prepared(judged.iter().map(|found| found.ordinal))?;
    let texts: Vec<String> = judged
        .iter()
        .zip(&messages)
        .map(|(found, message)| context(found, message, plan))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let model = reranker.name().to_owned();
    let Ok(said) = reranker.rank(query, &texts) else {
        return Ok(Some(RerankOut { model, judged: 0, degraded: true }));
    };
    for (at, found) in ranked.iter_mut().enumerate() {
        found.score *= 0.5;
        if at < JUDGED_MAX {
            found.score += 0.5;
        }
    }
    for (place, said) in places.into_iter().zip(&said) {
        let found = &mut ranked[place];
        let fused = (found.score - 0.5) / 0.5;
        found.score = 0.5 + 0.5 * (JUDGEMENT * said + (1.0 - JUDGEMENT) * fused);
        found.why.push(format!("rerank:{said:.3}"));
    }
    ranked.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then(b.date_ms.cmp(&a.date_ms)).then(b.ordinal.cmp(&a.ordinal))
    });
    Ok(Some(RerankOut { model, judged: said.len() as u32, degraded: false }))
}

/// What the model is given of a message: its subject, and the passage that lies nearest or the text
/// around the query's words.
fn context(found: &Ranked, message: &Prepared, plan: &Plan) -> String {
    let text = message.new_text();
    let passage = found.passage.and_then(|(start, end)| text.get(start as usize..end as usize));
    let passage = match passage {
        Some(passage) => passage.to_owned(),
        None => snippet::cut(message, &plan.patterns, None, WINDOW_CHARS).text,
    };
    let mut context = format!("{}\n{passage}", message.subject);
    if let Some((end, _)) = context.char_indices().nth(CONTEXT_CHARS) {
        context.truncate(end);
    }
    context
}
