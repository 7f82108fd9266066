//! A model behind addresses: OpenAI's `POST /v1/embeddings`, as Ollama, llama.cpp, TEI, vLLM and
//! hosted services speak it too.
//!
//! Passing faults (no connection, too slow, 429, 5xx) are tried again, lasting ones (400, 401, 403,
//! 404, another shape of vectors) are not; then the next address is asked, and this one is left
//! alone for a minute. A batch that is refused is halved until the text that is at fault stands
//! alone. Vectors are counted, measured, checked for numbers; with the first ones of an address comes
//! that of a sentence whose vector is known, so that another model in its place is found out.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::activation::to_unit;
use super::allowance::{Allowance, Used};
use super::chunk;
use super::post::{Address, Fault, Post};
use super::{ModelError, Role, Vector};

/// Texts of one request.
const BATCH_TEXTS: usize = 32;
/// Tokens of one request, by estimate.
const BATCH_TOKENS: u64 = 16_384;
/// Tokens from which on a text that is refused may be refused for its length.
const TOO_LONG_MIN: u64 = 64;
/// Longest wait for the vector of a query (Pylota Mail search §8).
const QUERY_WAIT: Duration = Duration::from_secs(1);
/// Tries of one request for passages.
const TRIES: u32 = 3;
/// Pause before the second try; the third waits five times as long.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest pause that a server may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long an address is left alone after it failed.
pub const GATE: Duration = Duration::from_secs(60);
/// A sentence whose vector tells models apart.
const PROBE: &str = "The quick brown fox jumps over the lazy dog.";
/// Cosine of its vectors at least: hardware and rounding differ, models far more.
const PROBE_COSINE_MIN: f32 = 0.98;

/// A model that is asked by HTTP.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Where, in order: the next one is asked while those before fail. All must be the same model.
    pub addresses: Vec<Address>,
    /// Length of its vectors.
    pub dimensions: u32,
    /// Longest wait for the vectors of a batch of passages.
    pub wait: Duration,
    /// Requests for passages at once, at least 1.
    pub at_once: usize,
    /// Texts it may be given.
    pub allowance: Allowance,
    /// The vector of the probe that earlier vectors go with, if there are any.
    pub reference: Option<Vec<f32>>,
}

struct Link {
    address: Address,
    failed: Mutex<Option<Instant>>,
    /// Its vectors are those of the reference.
    verified: Mutex<bool>,
}

impl Link {
    fn is_resting(&self) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|at| at.elapsed() < GATE)
    }

    fn note(&self, works: bool) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = (!works).then(Instant::now);
        if !works {
            // Whoever answers there next may be somebody else.
            self.set_verified(false);
        }
    }

    fn is_verified(&self) -> bool {
        *self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_verified(&self, verified: bool) {
        *self.verified.lock().unwrap_or_else(PoisonError::into_inner) = verified;
    }
}

pub(super) struct Remote {
    links: Vec<Link>,
    dimensions: usize,
    wait: Duration,
    pub(super) at_once: usize,
    used: Used,
    reference: OnceLock<Vec<f32>>,
    post: Post,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    index: usize,
    embedding: Vec<f32>,
}

type Vectors = Vec<Result<Vector, ModelError>>;

impl Remote {
    pub(super) fn new(endpoint: Endpoint) -> Result<Self, ModelError> {
        let post = Post::new(endpoint.addresses.iter())?;
        let link = |address| Link { address, failed: Mutex::default(), verified: Mutex::default() };
        let reference = OnceLock::new();
        if let Some(known) = endpoint.reference.filter(|v| v.len() == endpoint.dimensions as usize)
        {
            // It is empty.
            let _ = reference.set(known);
        }
        Ok(Self {
            links: endpoint.addresses.into_iter().map(link).collect(),
            dimensions: endpoint.dimensions as usize,
            wait: endpoint.wait,
            at_once: endpoint.at_once.max(1),
            used: Used::new(endpoint.allowance),
            reference,
            post,
        })
    }

    /// Ends whatever is being asked.
    pub(super) fn close(&self) {
        self.post.close();
    }

    /// Takes the vector that those of before go with.
    pub(super) fn refer(&self, reference: Vec<f32>) {
        if reference.len() == self.dimensions {
            // Known already otherwise.
            let _ = self.reference.set(reference);
        }
    }

    /// The vector of the probe; asked for once.
    pub(super) fn reference(&self) -> Result<Vec<f32>, ModelError> {
        if let Some(known) = self.reference.get() {
            return Ok(known.clone());
        }
        let vector = self.embed(Role::Passage, &[PROBE]).pop();
        let vector = vector.unwrap_or(Err(ModelError::Remote("the model answers nothing")))?;
        Ok(self.reference.get_or_init(|| vector.values).clone())
    }

    /// One vector of length 1 a text, in order. Blocks; not to be called from an async task.
    pub(super) fn embed(&self, role: Role, texts: &[&str]) -> Vectors {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let mut tokens = 0;
            let fits = |text: &&&str| {
                tokens += chunk::tokens(text);
                tokens <= BATCH_TOKENS
            };
            let count = rest.iter().take(BATCH_TEXTS).take_while(fits).count().max(1);
            let (batch, after) = rest.split_at(count);
            let found = self.batch(role, batch);
            let fault = found.iter().find_map(|one| match one {
                Err(ModelError::Remote(what)) => Some(*what),
                _ => None,
            });
            vectors.extend(found);
            if let Some(what) = fault {
                // It would only be waited for again.
                vectors.extend(after.iter().map(|_| Err(ModelError::Remote(what))));
                break;
            }
            rest = after;
        }
        vectors
    }

    fn batch(&self, role: Role, texts: &[&str]) -> Vectors {
        match self.post.run(self.tried(role, texts)) {
            Ok(vectors) => vectors,
            Err(Fault::Passing(what, _) | Fault::Lasting(what)) => {
                texts.iter().map(|_| Err(ModelError::Remote(what))).collect()
            }
            Err(Fault::Spent(what)) => texts.iter().map(|_| Err(ModelError::Spent(what))).collect(),
            Err(Fault::Refused) if texts.len() == 1 => vec![self.halved(role, texts[0])],
            Err(Fault::Refused) => {
                let (first, second) = texts.split_at(texts.len() / 2);
                let mut vectors = self.batch(role, first);
                vectors.extend(self.batch(role, second));
                vectors
            }
        }
    }

    /// A text that is refused may only be too long for a model that reads less than it is set to:
    /// its first half is tried. When the probe is refused too, it was not for the text.
    fn halved(&self, role: Role, text: &str) -> Result<Vector, ModelError> {
        if chunk::tokens(text) >= TOO_LONG_MIN {
            let half = &text[..text.floor_char_boundary(text.len() / 2)];
            match self.post.run(self.tried(role, &[half])) {
                Ok(mut vectors) => {
                    let vector = vectors.pop().unwrap_or_else(|| Err(Fault::Refused.into()))?;
                    return Ok(Vector { cut: true, ..vector });
                }
                Err(Fault::Refused) => {}
                Err(other) => return Err(other.into()),
            }
        }
        match self.post.run(self.tried(role, &[PROBE])) {
            Err(Fault::Refused) => {
                Err(ModelError::Remote("the model refuses whatever it is asked"))
            }
            _ => Err(Fault::Refused.into()),
        }
    }

    /// Asks the addresses in order.
    async fn tried(&self, role: Role, texts: &[&str]) -> Result<Vectors, Fault> {
        let is_query = role == Role::Query;
        let began = Instant::now();
        let all_rest = self.links.iter().all(Link::is_resting);
        let mut fault = Fault::Lasting("there is no address");
        for link in self.links.iter().filter(|link| all_rest || !link.is_resting()) {
            let left = QUERY_WAIT.saturating_sub(began.elapsed());
            let (tries, wait) = if is_query { (1, left) } else { (TRIES, self.wait) };
            if wait.is_zero() {
                break;
            }
            match self.ask_link(link, role, texts, (tries, wait)).await {
                // What is refused is refused everywhere, and what is spent is spent.
                Err(fault @ (Fault::Refused | Fault::Spent(_))) => return Err(fault),
                Err(other) => {
                    link.note(false);
                    fault = other;
                }
                Ok(vectors) => {
                    link.note(true);
                    return Ok(vectors);
                }
            }
        }
        Err(fault)
    }

    async fn ask_link(
        &self,
        link: &Link,
        role: Role,
        texts: &[&str],
        (tries, wait): (u32, Duration),
    ) -> Result<Vectors, Fault> {
        let mut tried = 0;
        loop {
            // Every try is paid for.
            while let Some(wait) = self.used.take(texts.len(), role == Role::Query)? {
                tokio::time::sleep(wait).await;
            }
            tried += 1;
            let answer = tokio::time::timeout(wait, self.ask(link, texts))
                .await
                .unwrap_or(Err(Fault::Passing("the model does not answer in time", None)));
            match answer {
                Err(Fault::Passing(_, pause)) if tried < tries => {
                    let own = PAUSE * 5_u32.pow(tried - 1);
                    tokio::time::sleep(pause.unwrap_or(own).min(PAUSE_MAX)).await;
                }
                other => return other,
            }
        }
    }

    async fn ask(&self, link: &Link, texts: &[&str]) -> Result<Vectors, Fault> {
        let reference = self.reference.get().filter(|_| !link.is_verified());
        let mut input = texts.to_vec();
        input.extend(reference.map(|_| PROBE));
        let body = json!({
            "model": link.address.model, "input": input, "encoding_format": "float",
        });
        let Answer { data } = self.post.ask(&link.address, "embeddings", &body).await?;
        let mut vectors = self.checked(data, input.len())?;
        if let Some(reference) = reference {
            let probed = vectors.pop().and_then(Result::ok);
            let cosine = probed.map_or(0.0, |probed| {
                probed.values.iter().zip(reference).map(|(a, b)| a * b).sum::<f32>()
            });
            if cosine < PROBE_COSINE_MIN {
                let what = "the model gives other vectors than those that are kept";
                return Err(Fault::Lasting(what));
            }
            link.set_verified(true);
        }
        Ok(vectors)
    }

    /// Vectors in the order of their texts; one that is none is an error of its own.
    fn checked(&self, data: Vec<One>, count: usize) -> Result<Vectors, Fault> {
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
        for One { index, embedding } in data {
            if embedding.len() != self.dimensions {
                return Err(Fault::Lasting("the model gives vectors of another length"));
            }
            match vectors.get_mut(index) {
                Some(slot) => *slot = Some(embedding),
                None => return Err(Fault::Lasting("the model answers what was not asked")),
            }
        }
        let mut checked = Vec::with_capacity(count);
        for vector in vectors {
            // Half a batch is tried again, and not taken for the whole.
            let Some(mut values) = vector else {
                return Err(Fault::Passing("the model answers only a part", None));
            };
            let whole = values.iter().all(|value| value.is_finite()) && to_unit(&mut values);
            checked.push(if whole {
                Ok(Vector { values, cut: false })
            } else {
                Err(ModelError::Refused("a text whose vector is none"))
            });
        }
        Ok(checked)
    }
}
