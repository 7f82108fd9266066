//! Judging again what a search found: the query beside each text, by a model that reads both.
//!
//! A cross-encoder from a folder, or what answers `POST …/rerank` at an address, in the form of
//! Jina and Cohere (llama.cpp and vLLM speak it too) or of TEI.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ModelError;
use super::cross::{Cross, probability};
use super::post::{Address, Fault, Post};
use super::remote::GATE;

/// Longest wait for a cross-encoder (Pylota Mail search §9: 1,500 ms).
const CROSS_WAIT: Duration = Duration::from_millis(1_500);

/// How an address is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RerankStyle {
    /// `documents` → `results[].relevance_score`.
    #[default]
    Jina,
    /// `texts` → `[].score`.
    Tei,
}

/// A reranker that is asked by HTTP.
#[derive(Debug, Clone)]
pub struct RerankEndpoint {
    /// Where; `/rerank` is added.
    pub address: Address,
    /// How.
    pub style: RerankStyle,
    /// Longest wait for an answer.
    pub wait: Duration,
}

enum Kind {
    Cross(Box<Cross>),
    Remote { endpoint: RerankEndpoint, post: Box<Post> },
}

/// A reranker that is ready.
pub struct Reranker {
    name: String,
    kind: Kind,
    failed: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Reranker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reranker({})", self.name)
    }
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Jina>,
}

#[derive(Deserialize)]
struct Jina {
    index: usize,
    relevance_score: f32,
}

#[derive(Deserialize)]
struct Tei {
    index: usize,
    score: f32,
}

impl Reranker {
    /// A cross-encoder of the BERT or XLM-R family with one label.
    ///
    /// # Errors
    /// [`ModelError::Io`] for files that cannot be read, [`ModelError::File`] for what is in them.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let name = dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let kind = Kind::Cross(Box::new(Cross::open(dir)?));
        Ok(Self { name, kind, failed: Mutex::default() })
    }

    /// One behind an address.
    ///
    /// # Errors
    /// [`ModelError::File`] for an address that is none.
    pub fn remote(endpoint: RerankEndpoint) -> Result<Self, ModelError> {
        let post = Box::new(Post::new(std::iter::once(&endpoint.address))?);
        let name = endpoint.address.model.clone();
        let kind = Kind::Remote { endpoint, post };
        Ok(Self { name, kind, failed: Mutex::default() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends whatever is being asked.
    pub fn close(&self) {
        if let Kind::Remote { post, .. } = &self.kind {
            post.close();
        }
    }

    /// How likely each text answers the query, 0 to 1, in order. Blocks; within a minute after a
    /// failure nothing is asked.
    ///
    /// # Errors
    /// [`ModelError`].
    pub fn rank(&self, query: &str, texts: &[&str]) -> Result<Vec<f64>, ModelError> {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_some_and(|at| at.elapsed() < GATE) {
            return Err(ModelError::Remote("the reranker failed less than a minute ago"));
        }
        let ranked = match &self.kind {
            Kind::Cross(cross) => spread(cross, query, texts, Instant::now() + CROSS_WAIT),
            Kind::Remote { endpoint, post } => ask(endpoint, post, query, texts),
        };
        let fault = match &ranked {
            Err(ModelError::Remote(what)) => Some(*what),
            _ => None,
        };
        match (fault, failed.is_some()) {
            (Some(what), false) => tracing::warn!("searches are not ranked again: {what}"),
            (None, true) => tracing::info!("searches are ranked again as before"),
            _ => {}
        }
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = fault.map(|_| Instant::now());
        ranked
    }
}

/// On all processors: a search waits for it.
fn spread(
    cross: &Cross,
    query: &str,
    texts: &[&str],
    until: Instant,
) -> Result<Vec<f64>, ModelError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = texts.len().div_ceil(threads).max(1);
    let scores = std::thread::scope(|scope| {
        let part = |part| scope.spawn(move || cross.scores(query, part, until));
        let running: Vec<_> = texts.chunks(share).map(part).collect();
        let joined = running.into_iter().map(|thread| {
            thread.join().unwrap_or(Err(ModelError::Text("a text that ended its judge")))
        });
        joined.collect::<Result<Vec<_>, _>>()
    });
    Ok(scores?.into_iter().flatten().map(probability).collect())
}

fn ask(
    endpoint: &RerankEndpoint,
    post: &Post,
    query: &str,
    texts: &[&str],
) -> Result<Vec<f64>, ModelError> {
    let RerankEndpoint { address, style, wait } = endpoint;
    let asking = async {
        let silent = Fault::Passing("the reranker does not answer in time", None);
        let answer = tokio::time::timeout(*wait, async {
            match style {
                RerankStyle::Jina => {
                    let body = json!({
                        "model": address.model, "query": query, "documents": texts,
                        "top_n": texts.len(), "return_documents": false,
                    });
                    let Results { results } = post.ask(address, "rerank", &body).await?;
                    Ok(results.into_iter().map(|one| (one.index, one.relevance_score)).collect())
                }
                RerankStyle::Tei => {
                    let body = json!({ "query": query, "texts": texts, "truncate": true });
                    let results: Vec<Tei> = post.ask(address, "rerank", &body).await?;
                    Ok(results.into_iter().map(|one| (one.index, one.score)).collect())
                }
            }
        });
        answer.await.unwrap_or(Err(silent))
    };
    let scores: Vec<(usize, f32)> = post.run(asking).map_err(|fault| match fault {
        Fault::Refused => ModelError::Remote("the reranker refuses what it is asked"),
        other => other.into(),
    })?;
    probabilities(&scores, texts.len())
}

/// Scores of every text, as probabilities: when one lies outside 0 to 1 all are logits (Pylota Mail
/// search §9).
fn probabilities(scores: &[(usize, f32)], count: usize) -> Result<Vec<f64>, ModelError> {
    let mut found: Vec<Option<f32>> = vec![None; count];
    for (index, score) in scores {
        match found.get_mut(*index) {
            Some(slot) if score.is_finite() => *slot = Some(*score),
            _ => return Err(ModelError::Remote("the reranker answers what was not asked")),
        }
    }
    let whole: Option<Vec<f32>> = found.into_iter().collect();
    let whole = whole.ok_or(ModelError::Remote("the reranker answers only a part"))?;
    let logits = whole.iter().any(|score| !(0.0..=1.0).contains(score));
    let as_one = |score| if logits { probability(score) } else { f64::from(score) };
    Ok(whole.into_iter().map(as_one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_come_back_in_order_and_logits_become_probabilities() {
        let plain = probabilities(&[(1, 0.25), (0, 1.0)], 2).expect("whole");
        assert_eq!(plain, [1.0, 0.25]);
        let logits = probabilities(&[(0, 0.0), (1, 4.0), (2, -4.0)], 3).expect("whole");
        assert!((logits[0] - 0.5).abs() < 1e-9 && logits[1] > 0.98 && logits[2] < 0.02);
        for wrong in [&[(0, 0.5)][..], &[(0, 0.5), (2, 0.5)], &[(0, f32::NAN), (1, 0.5)]] {
            assert!(matches!(probabilities(wrong, 2), Err(ModelError::Remote(_))), "{wrong:?}");
        }
        assert_eq!(probabilities(&[], 0).expect("nothing"), [] as [f64; 0]);
    }
}
