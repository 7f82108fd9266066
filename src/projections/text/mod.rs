//! The `text` projection: a Tantivy index of what messages say, nothing stored in it.
//!
//! Labels, folders and states never enter it: they are bitmaps of the catalog, joined at query
//! time over the `ordinal` fast field. The only folder that knows Tantivy.

pub mod analysis;
mod directory;
mod dump;
pub mod hits;
mod index;
pub mod query;
pub mod schema;
pub mod stem;
mod terms;
mod tokenizer;

pub use index::{TextIndex, TextReader};

/// Failure of the text index.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// Tantivy said so.
    #[error(transparent)]
    Tantivy(#[from] tantivy::TantivyError),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The directory could not be opened.
    #[error(transparent)]
    Directory(#[from] tantivy::directory::error::OpenDirectoryError),
    /// A file does not match its checksum, or the index holds no checkpoint.
    #[error("damaged: {0}")]
    Damaged(&'static str),
}
