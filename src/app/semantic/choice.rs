//! Which model the settings name, and how it is loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::{Config, Embedding, EndpointSettings, Rerank, RerankForm, RerankSettings};
use crate::embed::{
    Address, Allowance, Builtin, Endpoint, Model, ModelError, RerankEndpoint, RerankStyle, Reranker,
};

/// A model as the settings name it: enough to load it again after they changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::app) enum Choice {
    /// One that comes with the program.
    Builtin(Builtin),
    /// What lies in a folder.
    Folder(PathBuf),
    /// What answers at an address. Names the variable of a key, never the key.
    Endpoint(EndpointSettings),
}

impl Choice {
    /// What the settings name; `None` when searches by meaning are turned off.
    pub(in crate::app) fn of(config: &Config) -> Option<Self> {
        // Refused as the settings are read when what they need is missing.
        match config.embedding {
            Embedding::Off => None,
            Embedding::Static128 => Some(Self::Builtin(Builtin::Static128)),
            Embedding::MinilmL6 => Some(Self::Builtin(Builtin::MinilmL6)),
            Embedding::Folder => config.embedding_folder.clone().map(Self::Folder),
            Embedding::Endpoint => config.embedding_endpoint.clone().map(Self::Endpoint),
        }
    }

    /// Whether vectors of both can be compared, as far as that can be told without loading them.
    pub(super) fn is_same_space(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Endpoint(a), Self::Endpoint(b)) => {
                let space = |e: &EndpointSettings| {
                    let prefixes = (e.query_prefix.clone(), e.passage_prefix.clone());
                    (e.model.clone(), e.dimensions, e.tokens_max, prefixes)
                };
                space(a) == space(b)
            }
            _ => self == other,
        }
    }

    /// Name for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Builtin(Builtin::MinilmL6) => "minilm-l6".into(),
            Self::Builtin(Builtin::Static128) => "static-128".into(),
            Self::Folder(dir) => {
                dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
            }
            Self::Endpoint(endpoint) => endpoint.model.clone(),
        }
    }

    /// Loads it. Takes up to a second. `reference` is the vector that those of an address go with,
    /// `data_dir` keeps the count of its texts.
    pub(super) fn load(
        &self,
        reference: Option<Vec<f32>>,
        data_dir: &Path,
    ) -> Result<Arc<Model>, ModelError> {
        match self {
            Self::Builtin(builtin) => builtin.model(),
            Self::Folder(dir) => Model::open(dir).map(Arc::new),
            Self::Endpoint(endpoint) => remote(endpoint, reference, data_dir).map(Arc::new),
        }
    }
}

/// Who ranks the first hits of a search again, as the settings name it.
#[derive(Debug, Clone)]
pub(super) enum RerankChoice {
    Folder(PathBuf),
    Endpoint(RerankSettings),
}

impl RerankChoice {
    pub(super) fn of(config: &Config) -> Option<Self> {
        // Refused as the settings are read when what they need is missing.
        match config.rerank {
            Rerank::Off => None,
            Rerank::Folder => config.rerank_folder.clone().map(Self::Folder),
            Rerank::Endpoint => config.rerank_endpoint.clone().map(Self::Endpoint),
        }
    }

    /// Name for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Folder(dir) => Choice::Folder(dir.clone()).name(),
            Self::Endpoint(endpoint) => endpoint.model.clone(),
        }
    }

    pub(super) fn load(&self) -> Result<Reranker, ModelError> {
        match self {
            Self::Folder(dir) => Reranker::open(dir),
            Self::Endpoint(settings) => Reranker::remote(RerankEndpoint {
                address: Address {
                    url: settings.url.clone(),
                    model: settings.model.clone(),
                    key: key(settings.key_env.as_ref(), settings.key_file.as_ref())?,
                },
                style: match settings.style {
                    RerankForm::Jina => RerankStyle::Jina,
                    RerankForm::Tei => RerankStyle::Tei,
                },
                wait: Duration::from_millis(settings.wait_ms),
            }),
        }
    }
}

/// The key, from the environment or a file.
fn key(variable: Option<&String>, file: Option<&PathBuf>) -> Result<Option<String>, ModelError> {
    if let Some(name) = variable {
        let key = std::env::var(name);
        return key.map(Some).map_err(|_| {
            ModelError::File(format!("the environment variable {name} holds no key"))
        });
    }
    let Some(path) = file else { return Ok(None) };
    let read = std::fs::read_to_string(path);
    let key = read.map_err(|source| ModelError::Io { path: path.clone(), source })?;
    Ok(Some(key.trim().to_owned()))
}

/// Tells endpoints apart in names of files.
fn short_name(settings: &EndpointSettings) -> String {
    let digest = Sha256::digest(format!("{}\n{}", settings.url, settings.model));
    digest[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn remote(
    settings: &EndpointSettings,
    reference: Option<Vec<f32>>,
    data_dir: &Path,
) -> Result<Model, ModelError> {
    let mut addresses = vec![Address {
        url: settings.url.clone(),
        model: settings.model.clone(),
        key: key(settings.key_env.as_ref(), settings.key_file.as_ref())?,
    }];
    for fallback in &settings.fallbacks {
        addresses.push(Address {
            url: fallback.url.clone(),
            model: fallback.model.clone().unwrap_or_else(|| settings.model.clone()),
            key: key(fallback.key_env.as_ref(), fallback.key_file.as_ref())?,
        });
    }
    let endpoint = Endpoint {
        addresses,
        dimensions: settings.dimensions,
        wait: Duration::from_millis(settings.wait_ms),
        at_once: settings.requests_at_once as usize,
        allowance: Allowance {
            per_minute: settings.texts_per_minute,
            per_day: settings.texts_per_day,
            kept_in: Some(data_dir.join(format!("texts-today-{}.json", short_name(settings)))),
        },
        reference,
    };
    let (query, passage) = (settings.query_prefix.clone(), settings.passage_prefix.clone());
    Model::remote(endpoint, settings.tokens_max, query, passage)
}
