//! A view: text and catalog at one position. Immutable; searches hold it while they run.

use super::catalog::CatalogView;
use super::text::TextReader;
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
    /// Position of the last event in it.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.catalog.checkpoint()
    }
}
