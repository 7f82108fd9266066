//! Which model the settings name, and how it is loaded.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{Config, Embedding, EndpointSettings};
use crate::embed::{Builtin, Endpoint, Model, ModelError};

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

    /// Loads it. Takes up to a second.
    pub(super) fn load(&self) -> Result<Arc<Model>, ModelError> {
        match self {
            Self::Builtin(builtin) => builtin.model(),
            Self::Folder(dir) => Model::open(dir).map(Arc::new),
            Self::Endpoint(endpoint) => remote(endpoint).map(Arc::new),
        }
    }
}

fn remote(settings: &EndpointSettings) -> Result<Model, ModelError> {
    let key = match &settings.key_env {
        None => None,
        Some(name) => Some(std::env::var(name).map_err(|_| {
            ModelError::File(format!("the environment variable {name} holds no key"))
        })?),
    };
    let endpoint = Endpoint {
        url: settings.url.clone(),
        model: settings.model.clone(),
        dimensions: settings.dimensions,
        key,
        wait: Duration::from_millis(settings.wait_ms),
    };
    let (query, passage) = (settings.query_prefix.clone(), settings.passage_prefix.clone());
    Model::remote(endpoint, settings.tokens_max, query, passage)
}
