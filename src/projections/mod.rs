//! Projections: state derived from the log, which may be deleted while the server is down and
//! comes back by replay. Three of them: `catalog` (LMDB), `text` (Tantivy) and `vectors` (LMDB).
//!
//! Applying is idempotent by position: an event at or before a projection's checkpoint changes
//! nothing, and the checkpoint commits together with the data.

pub mod build;
pub mod catalog;
pub mod feed;
pub mod generation;
mod pair;
pub mod probe;
pub mod set;
pub mod text;
pub mod vectors;
pub mod view;

use std::sync::Arc;

use crate::events::Event;
use crate::ids::Seq;
use crate::mail::Message;

/// One event ready to be applied.
#[derive(Debug, Clone)]
pub struct Applicable {
    /// Its position.
    pub seq: Seq,
    /// The fact.
    pub event: Event,
    /// The message read, for `MessageIngested`; `None` when it was erased since.
    pub message: Option<Arc<Message>>,
}

/// Failure of a projection: whatever it says, the truth is elsewhere and a rebuild mends it.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// The catalog.
    #[error("catalog: {0}")]
    Catalog(#[from] catalog::CatalogError),
    /// The text index.
    #[error("text index: {0}")]
    Text(#[from] text::TextError),
    /// An index of vectors.
    #[error("vectors: {0}")]
    Vectors(#[from] vectors::VectorError),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] crate::events::LogError),
    /// A directory could not be prepared, moved or removed.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A build was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// No generation from before the last swap is kept.
    #[error("no earlier generation is kept; only a rebuild leaves one")]
    NothingToRollBack,
    /// A dump could not be written.
    #[error("writing the dump: {0}")]
    Write(#[from] std::io::Error),
}
