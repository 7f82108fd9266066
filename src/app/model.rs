//! Models that do not come with the program: taken into the data directory, checked.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use crate::config::Config;
use crate::embed::{Model, ModelError, Reranker, Role};

/// Files of a model; those that need not be there are marked.
const FILES: [(&str, bool); 6] = [
    ("model.safetensors", true),
    ("config.json", true),
    ("tokenizer.json", true),
    ("1_Pooling/config.json", false),
    ("sentence_bert_config.json", false),
    ("config_sentence_transformers.json", false),
];
/// What a model that works tells apart: the first two mean the same.
const SENTENCES: [&str; 3] = [
    "The heating in my flat has stopped working.",
    "My apartment's radiators are broken and cold.",
    "The orchestra plays a symphony on Sunday.",
];
/// A text and its vector, beside the model, by whoever made it.
const PARITY: &str = "parity.json";
/// Cosine of a vector with that of the parity file at least.
const PARITY_COSINE_MIN: f32 = 0.998;

/// A model in the data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelOut {
    /// Its name.
    pub name: String,
    /// Its folder, for `embedding_folder` or `rerank_folder`.
    pub folder: PathBuf,
    /// What it is for.
    pub kind: ModelKind,
    /// Length of its vectors; absent for a reranker.
    pub dimensions: Option<u32>,
    /// Tokens of a text that it reads; absent for a reranker.
    pub tokens_max: Option<u32>,
    /// Digest of its files, the first 16 bytes in hexadecimal; absent for a reranker.
    pub digest: Option<String>,
    /// A parity file was there and its vectors were met.
    pub parity: bool,
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// Vectors of texts.
    Embedding,
    /// Judging a text beside a query.
    Reranker,
}

#[derive(Deserialize)]
struct Parity {
    text: String,
    vector: Vec<f32>,
}

fn models_dir(config: &Config) -> PathBuf {
    config.data_dir.join("models")
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f32::MIN_POSITIVE)
}

/// Takes a model from a folder as sentence-transformers, model2vec or transformers write it into the
/// data directory: checked before it is copied, and read again from there. Takes seconds.
///
/// # Errors
/// [`Error::Model`] for files that are none or a model that tells nothing apart; [`Error::Invalid`]
/// for a name that cannot be one or is taken; otherwise what the disk says.
pub fn add_model(config: &Config, dir: &Path, name: Option<&str>) -> Result<ModelOut, Error> {
    let own = dir.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.map(str::to_owned).or(own).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) || name.starts_with('.') {
        return Err(Error::Invalid {
            path: "name",
            message: "must be 1 to 64 of a-z A-Z 0-9 - _ . and not begin with a dot".into(),
        });
    }
    if !dir.join("model.safetensors").exists() {
        return Err(Error::Invalid {
            path: "dir",
            message: "must be a folder with model.safetensors, config.json and tokenizer.json"
                .into(),
        });
    }
    check(dir)?;
    let place = models_dir(config).join(&name);
    if place.exists() {
        return Err(Error::Invalid {
            path: "name",
            message:
                "is taken by a model that is there already; remove its folder or give another name"
                    .into(),
        });
    }
    let adding = models_dir(config).join(format!(".{name}.adding"));
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    };
    if adding.exists() {
        std::fs::remove_dir_all(&adding).map_err(io(&adding))?;
    }
    for (file, wanted) in FILES.into_iter().chain([(PARITY, false)]) {
        let (from, to) = (dir.join(file), adding.join(file));
        if !wanted && !from.exists() {
            continue;
        }
        let parent = to.parent().unwrap_or(&adding);
        std::fs::create_dir_all(parent).map_err(io(parent))?;
        std::fs::copy(&from, &to).map_err(io(&from))?;
    }
    std::fs::rename(&adding, &place).map_err(io(&place))?;
    let checked = check(&place);
    if checked.is_err() {
        std::fs::remove_dir_all(&place).map_err(io(&place))?;
    }
    let (kind, dimensions, tokens_max, digest, parity) = checked?;
    let folder = std::path::absolute(&place).map_err(io(&place))?;
    Ok(ModelOut { name, folder, kind, dimensions, tokens_max, digest, parity })
}

/// Models in the data directory, in order of their names; those that cannot be used are left out.
///
/// # Errors
/// What the disk says.
pub fn models(config: &Config) -> Result<Vec<ModelOut>, Error> {
    let dir = models_dir(config);
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let io = |source| Error::Io { path: dir.clone(), source };
    let mut models = Vec::new();
    for entry in std::fs::read_dir(&dir).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let folder = entry.path();
        if name.starts_with('.') {
            continue;
        }
        if let Ok((kind, dimensions, tokens_max, digest, parity)) = check(&folder) {
            models.push(ModelOut { name, folder, kind, dimensions, tokens_max, digest, parity });
        }
    }
    models.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(models)
}

type Checked = (ModelKind, Option<u32>, Option<u32>, Option<String>, bool);

/// Whether a model can be used: it loads, means what it should, and meets its parity file.
fn check(dir: &Path) -> Result<Checked, Error> {
    let refused = |error: ModelError| Error::Model(error.to_string());
    if let Ok(reranker) = Reranker::open(dir) {
        reranker.rank(SENTENCES[0], &SENTENCES[1..]).map_err(refused)?;
        return Ok((ModelKind::Reranker, None, None, None, false));
    }
    let model = Model::open(dir).map_err(refused)?;
    let vectors = model.embed(Role::Passage, &SENTENCES);
    let vectors = vectors.into_iter().collect::<Result<Vec<_>, _>>().map_err(refused)?;
    let near = cosine(&vectors[0].values, &vectors[1].values);
    let far = cosine(&vectors[0].values, &vectors[2].values);
    if near <= far {
        return Err(Error::Model(format!(
            "the model cannot be used: two sentences about cold flats are less alike ({near:.3}) than \
             one of them and one about music ({far:.3}); its files may not belong together"
        )));
    }
    let path = dir.join(PARITY);
    let parity = path.exists();
    if parity {
        let read = std::fs::read(&path).map_err(|source| Error::Io { path, source })?;
        let parity: Vec<Parity> = serde_json::from_slice(&read)
            .map_err(|error| Error::Model(format!("{PARITY}: {error}")))?;
        for Parity { text, vector } in parity {
            let own = model.embed(Role::Passage, &[&text]).pop();
            let own = own.unwrap_or(Err(ModelError::Text("no text"))).map_err(refused)?;
            let met = cosine(&own.values, &vector);
            if own.values.len() != vector.len() || met < PARITY_COSINE_MIN {
                return Err(Error::Model(format!(
                    "the model cannot be used: a vector of {PARITY} is not met (cosine {met:.4})"
                )));
            }
        }
    }
    let profile = model.profile();
    let (dimensions, tokens_max) = (Some(profile.dimensions), Some(profile.tokens_max));
    Ok((ModelKind::Embedding, dimensions, tokens_max, Some(profile.version.clone()), parity))
}
