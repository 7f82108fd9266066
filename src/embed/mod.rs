//! Text → vectors: cutting messages into passages, and the models that turn passages into
//! vectors. Knows nothing of mailboxes, and everything here blocks.

mod activation;
pub mod allowance;
mod bert;
pub mod builtin;
pub mod chunk;
mod cross;
mod estimate;
pub mod model;
pub mod post;
mod product;
pub mod profile;
mod query_cache;
pub mod remote;
pub mod rerank;
mod table;
mod tokens;
mod weights;

use std::path::PathBuf;

pub use allowance::Allowance;
pub use builtin::Builtin;
pub use model::{Model, Role};
pub use post::Address;
pub use profile::{Fingerprint, Profile};
pub use remote::Endpoint;
pub use rerank::{RerankEndpoint, RerankStyle, Reranker};

/// The vector of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// Its values; their squares add up to 1.
    pub values: Vec<f32>,
    /// The text was longer than the model reads: its end counts nothing.
    pub cut: bool,
}

/// Why a model cannot be used, or a text has no vector. Never holds a text.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("the model cannot be used: {0}")]
    File(String),
    /// The model behind an address does not answer as it should. Never holds a text or a key.
    #[error("{0}")]
    Remote(&'static str),
    /// The model behind an address refuses this text, or gives something that is no vector.
    #[error("{0}")]
    Refused(&'static str),
    /// The model behind an address may not be given more for now.
    #[error("{0}")]
    Spent(&'static str),
    /// This text has no vector.
    #[error("{0}")]
    Text(&'static str),
}

#[cfg(test)]
mod parity_test;
