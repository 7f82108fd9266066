//! A loaded model: built in, or from a folder.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::bert::{Bert, Pooling, Scratch, Shape};
use super::chunk::MODEL_TOKENS_MIN;
use super::profile::Profile;
use super::query_cache::QueryCache;
use super::remote::{Endpoint, GATE, Remote};
use super::table::Table;
use super::tokens::{Tokens, UNKNOWN};
use super::weights::Weights;
use super::{ModelError, Vector};

/// Largest file of a model that is read, bytes.
const FILE_BYTES_MAX: u64 = 4 << 30;
/// Tokens that a static model averages.
const TABLE_TOKENS_MAX: u32 = 512;
/// Tokens of texts that go through a model together.
const BATCH_TOKENS_MAX: usize = 2_048;

/// What a text is to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What is searched for.
    Query,
    /// What is found.
    Passage,
}

enum Kind {
    Bert(Tokens, Box<Bert>),
    Table { tokens: Tokens, table: Table, unknown: Option<u32> },
    Remote(Remote),
}

/// A model that is ready.
pub struct Model {
    profile: Profile,
    kind: Kind,
    /// When it was last seen to fail; nothing while it works.
    failed: Mutex<Option<Instant>>,
    queries: QueryCache,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Model({})", self.profile.model)
    }
}

/// The files a model is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'f> {
    pub(super) weights: &'f [u8],
    pub(super) config: &'f [u8],
    pub(super) tokenizer: &'f [u8],
}

/// What else a folder of sentence-transformers may say.
#[derive(Debug, Default)]
pub(super) struct Advice {
    pub(super) tokens_max: Option<usize>,
    pub(super) first_token: bool,
    pub(super) query_prefix: String,
    pub(super) passage_prefix: String,
}

impl Model {
    pub(super) fn load(
        provider: &str,
        name: &str,
        files: Files<'_>,
        advice: Advice,
    ) -> Result<Self, ModelError> {
        #[derive(Deserialize)]
        struct Config {
            model_type: Option<String>,
        }
        let config: Config = serde_json::from_slice(files.config)
            .map_err(|e| ModelError::File(format!("config.json: {e}")))?;
        let (kind, dimensions, tokens_max) = if config.model_type.is_some() {
            let shape = Shape::read(files.config)?;
            let tokens_max = advice.tokens_max.unwrap_or(usize::MAX).min(shape.tokens_max()) as u32;
            if tokens_max < MODEL_TOKENS_MIN {
                let what = format!("reads fewer than {MODEL_TOKENS_MIN} tokens");
                return Err(ModelError::File(what));
            }
            let dimensions = shape.dimensions();
            let pooling = if advice.first_token { Pooling::First } else { Pooling::Mean };
            let named = Weights::open(files.weights)?.unprefixed();
            if ["classifier.weight", "classifier.out_proj.weight"].iter().any(|n| named.has(n)) {
                let what = "it is a cross-encoder, which gives no vectors: set it as rerank_folder";
                return Err(ModelError::File(what.into()));
            }
            let bert = Bert::load(files.weights, shape, pooling)?;
            let tokens = Tokens::read(files.tokenizer, tokens_max as usize, true)?;
            fits(&tokens, bert.vocabulary())?;
            (Kind::Bert(tokens, Box::new(bert)), dimensions, tokens_max)
        } else {
            let table = Table::load(files.weights)?;
            let tokens = Tokens::read(files.tokenizer, TABLE_TOKENS_MAX as usize, false)?;
            let dimensions = table.dimensions();
            fits(&tokens, table.vocabulary())?;
            let unknown = UNKNOWN.into_iter().find_map(|token| tokens.number(token));
            (Kind::Table { tokens, table, unknown }, dimensions, TABLE_TOKENS_MAX)
        };
        let mut hash = Sha256::new();
        // Everything that decides about a vector; the lengths keep the parts apart.
        for part in [files.weights, files.config, files.tokenizer] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update([u8::from(advice.first_token)]);
        let digest = hash.finalize();
        let version = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let profile = Profile {
            provider: provider.into(),
            model: name.into(),
            version,
            dimensions: dimensions as u32,
            tokens_max,
            query_prefix: advice.query_prefix,
            passage_prefix: advice.passage_prefix,
        };
        Ok(Self { profile, kind, failed: Mutex::default(), queries: QueryCache::default() })
    }

    /// A model behind an address. `tokens_max`: how much of a text it reads.
    ///
    /// # Errors
    /// [`ModelError::File`] for an address that is none.
    pub fn remote(
        endpoint: Endpoint,
        tokens_max: u32,
        query_prefix: String,
        passage_prefix: String,
    ) -> Result<Self, ModelError> {
        let profile = Profile {
            provider: "endpoint".into(),
            model: endpoint.addresses.first().map_or_else(String::new, |a| a.model.clone()),
            version: String::new(),
            dimensions: endpoint.dimensions,
            tokens_max,
            query_prefix,
            passage_prefix,
        };
        let kind = Kind::Remote(Remote::new(endpoint)?);
        Ok(Self { profile, kind, failed: Mutex::default(), queries: QueryCache::default() })
    }

    /// Whether it lies behind an address.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self.kind, Kind::Remote(_))
    }

    /// Takes the right to ask for the vector of a query: when a minute has passed since it failed,
    /// one search gets it, and the next only when that one was answered or another minute has passed.
    fn claim(&self) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let may = failed.is_none_or(|at| at.elapsed() >= GATE);
        if let (true, Some(at)) = (may, failed.as_mut()) {
            *at = Instant::now();
        }
        may
    }

    /// Whether it may be asked for the vector of a query: not within a minute after it failed, then
    /// one search finds out whether it is there again (MailFathom email search, capability states).
    #[must_use]
    pub fn may_be_asked(&self) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_none_or(|at| at.elapsed() >= GATE)
    }

    /// Threads that may ask for vectors of passages at once.
    #[must_use]
    pub fn at_once(&self) -> usize {
        match &self.kind {
            Kind::Remote(remote) => remote.at_once,
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// The vector by which a model behind an address is told from another that takes its place;
    /// `None` for others, which a digest tells apart. Blocks.
    ///
    /// # Errors
    /// [`ModelError::Remote`].
    pub fn reference(&self) -> Result<Option<Vec<f32>>, ModelError> {
        match &self.kind {
            Kind::Remote(remote) => remote.reference().map(Some),
            _ => Ok(None),
        }
    }

    /// Takes the vector that those of before go with, for a model behind an address.
    pub fn refer(&self, reference: Vec<f32>) {
        if let Kind::Remote(remote) = &self.kind {
            remote.refer(reference);
        }
    }

    /// Ends whatever is being asked of an address, for ever.
    pub fn close(&self) {
        if let Kind::Remote(remote) = &self.kind {
            remote.close();
        }
    }

    /// The vector of a query; of the last ones without asking again. Blocks.
    ///
    /// # Errors
    /// [`ModelError`].
    pub fn query(&self, text: &str) -> Result<Vec<f32>, ModelError> {
        if let Some(known) = self.queries.get(text) {
            return Ok(known);
        }
        if !self.claim() {
            return Err(ModelError::Remote("the model failed less than a minute ago"));
        }
        let vector = self.embed(Role::Query, &[text]).pop();
        let vector = vector.unwrap_or(Err(ModelError::Text("no text")))?.values;
        self.queries.put(text, &vector);
        Ok(vector)
    }

    /// Keeps what an answer says of its health; says so in the traces when that changed.
    fn note(&self, vectors: &[Result<Vector, ModelError>]) {
        let fault = vectors.iter().find_map(|vector| match vector {
            Err(ModelError::Remote(what)) => Some(*what),
            _ => None,
        });
        // What it may not be given tells nothing of it.
        if fault.is_none() && vectors.iter().all(|v| matches!(v, Err(ModelError::Spent(_)))) {
            return;
        }
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match (fault, failed.is_some()) {
            (Some(what), false) => tracing::warn!("searches by meaning are degraded: {what}"),
            (None, true) => tracing::info!("searches by meaning are available again"),
            _ => {}
        }
        *failed = fault.map(|_| Instant::now());
    }

    /// A model of the BERT family or a static one from a folder as sentence-transformers or
    /// model2vec write it: `model.safetensors`, `config.json`, `tokenizer.json`.
    ///
    /// # Errors
    /// [`ModelError::Io`] for files that cannot be read, [`ModelError::File`] for what is in them.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let weights = read(dir, "model.safetensors")?;
        let (config, tokenizer) = (read(dir, "config.json")?, read(dir, "tokenizer.json")?);
        let name = dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let files = Files { weights: &weights, config: &config, tokenizer: &tokenizer };
        Self::load("folder", &name, files, advice(dir)?)
    }

    /// The space of its vectors.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// One vector of length 1 a text, in order; a text that gives none is an error of its own.
    /// What is longer than the model reads is cut. Blocks, on this thread alone.
    #[must_use]
    pub fn embed(&self, role: Role, texts: &[&str]) -> Vec<Result<Vector, ModelError>> {
        let prefix = match role {
            Role::Query => &self.profile.query_prefix,
            Role::Passage => &self.profile.passage_prefix,
        };
        let prefixed: Vec<Cow<'_, str>> = texts
            .iter()
            .map(|text| match prefix.as_str() {
                "" => Cow::Borrowed(*text),
                prefix => Cow::Owned(format!("{prefix}{text}")),
            })
            .collect();
        match &self.kind {
            Kind::Table { tokens, table, unknown } => prefixed
                .iter()
                .map(|text| {
                    let (mut tokens, cut) = tokens.of(text)?;
                    tokens.retain(|token| Some(*token) != *unknown);
                    Ok(Vector { values: table.vector(&tokens)?, cut })
                })
                .collect(),
            Kind::Bert(tokens, bert) => {
                batched(bert, prefixed.iter().map(|text| tokens.of(text)).collect())
            }
            Kind::Remote(remote) => {
                let texts: Vec<&str> = prefixed.iter().map(AsRef::as_ref).collect();
                let vectors = remote.embed(role, &texts);
                self.note(&vectors);
                vectors
            }
        }
    }
}

pub(super) fn fits(tokens: &Tokens, vocabulary: usize) -> Result<(), ModelError> {
    if tokens.count() <= vocabulary {
        return Ok(());
    }
    Err(ModelError::File(format!(
        "tokenizer.json knows {} tokens, the weights {vocabulary}: they do not belong together",
        tokens.count()
    )))
}

/// Runs texts through a model, so many tokens at a time.
fn batched(
    bert: &Bert,
    tokens: Vec<Result<(Vec<u32>, bool), ModelError>>,
) -> Vec<Result<Vector, ModelError>> {
    let mut vectors: Vec<Result<Vector, ModelError>> = Vec::with_capacity(tokens.len());
    let mut scratch = Scratch::default();
    let mut batch: Vec<Vec<u32>> = Vec::new();
    let mut places: Vec<usize> = Vec::new();
    let mut size = 0;
    let mut run = |batch: &mut Vec<Vec<u32>>,
                   places: &mut Vec<usize>,
                   vectors: &mut Vec<Result<Vector, ModelError>>| {
        if batch.is_empty() {
            return;
        }
        let mut put = |place: usize, found: Result<Vec<f32>, ModelError>| {
            let cut = vectors[place].as_ref().is_ok_and(|vector| vector.cut);
            vectors[place] = found.map(|values| Vector { values, cut });
        };
        match bert.forward(batch, &mut scratch) {
            Ok(found) => places.iter().zip(found).for_each(|(place, one)| put(*place, Ok(one))),
            // One bad text must not lose its batch.
            Err(_) => {
                for (place, text) in places.iter().zip(batch.iter()) {
                    let alone = bert.forward(std::slice::from_ref(text), &mut scratch);
                    put(*place, alone.map(|mut one| one.pop().unwrap_or_default()));
                }
            }
        }
        batch.clear();
        places.clear();
    };
    for (place, tokens) in tokens.into_iter().enumerate() {
        match tokens {
            Err(error) => vectors.push(Err(error)),
            Ok((tokens, cut)) => {
                vectors.push(Ok(Vector { values: Vec::new(), cut }));
                if size + tokens.len() > BATCH_TOKENS_MAX {
                    run(&mut batch, &mut places, &mut vectors);
                    size = 0;
                }
                size += tokens.len();
                batch.push(tokens);
                places.push(place);
            }
        }
    }
    run(&mut batch, &mut places, &mut vectors);
    vectors
}

pub(super) fn read(dir: &Path, name: &str) -> Result<Vec<u8>, ModelError> {
    let path = dir.join(name);
    let io = |source| ModelError::Io { path: path.clone(), source };
    let meta = std::fs::metadata(&path).map_err(io)?;
    if !meta.is_file() {
        return Err(ModelError::File(format!("{name} is no file")));
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(ModelError::File(format!("{name} is larger than {FILE_BYTES_MAX} bytes")));
    }
    std::fs::read(&path).map_err(io)
}

/// Settings beside the model, where there are any.
fn advice(dir: &Path) -> Result<Advice, ModelError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Pool {
        pooling_mode_cls_token: bool,
        pooling_mode_mean_tokens: bool,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Sentence {
        max_seq_length: Option<usize>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Prompted {
        prompts: std::collections::BTreeMap<String, String>,
    }
    fn one<T: Default + serde::de::DeserializeOwned>(
        dir: &Path,
        name: &str,
    ) -> Result<T, ModelError> {
        if !dir.join(name).exists() {
            return Ok(T::default());
        }
        serde_json::from_slice(&read(dir, name)?)
            .map_err(|e| ModelError::File(format!("{name}: {e}")))
    }
    let pool: Pool = one(dir, "1_Pooling/config.json")?;
    let sentence: Sentence = one(dir, "sentence_bert_config.json")?;
    let Prompted { mut prompts } = one(dir, "config_sentence_transformers.json")?;
    let mut prompt = |names: [&str; 2]| {
        names.into_iter().find_map(|name| prompts.remove(name)).unwrap_or_default()
    };
    Ok(Advice {
        tokens_max: sentence.max_seq_length,
        first_token: pool.pooling_mode_cls_token && !pool.pooling_mode_mean_tokens,
        query_prefix: prompt(["query", "search_query"]),
        passage_prefix: prompt(["passage", "document"]),
    })
}
