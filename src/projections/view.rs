//! A view: text and catalog at one position. Immutable; searches hold it while they run.

use std::path::Path;

use super::ProjectionError;
use super::catalog::{Catalog, CatalogView};
use super::text::{TextIndex, TextReader};
use crate::ids::Seq;

/// What a search reads.
#[derive(Debug)]
pub struct View {
    /// The catalog.
    pub catalog: CatalogView,
    /// The text index.
    pub text: TextReader,
}

impl View {
    /// A view of generations that nobody writes, without changing a byte of them.
    ///
    /// # Errors
    /// [`ProjectionError`].
    pub fn open_read_only(catalog: &Path, text: &Path) -> Result<Self, ProjectionError> {
        let text = TextIndex::open(text, false)?.reader();
        Ok(Self { catalog: Catalog::open_read_only(catalog)?, text })
    }

    /// Position of the last event in it.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.catalog.checkpoint()
    }
}
