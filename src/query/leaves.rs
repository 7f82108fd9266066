//! What other parts need from a tree: its words for snippets and embedding, its filters for `why`.

use super::tree::{Filter, Query, TextLeaf};

/// The text leaves outside negations, in the order of the query.
#[must_use]
pub fn positive_text<D>(_query: &Query<D>) -> Vec<&TextLeaf> {
    Vec::new()
}

/// The filters outside negations, in the order of the query.
#[must_use]
pub fn positive_filters<D>(_query: &Query<D>) -> Vec<&Filter<D>> {
    Vec::new()
}

/// The free text, for embedding and reranking; empty when there is none.
#[must_use]
pub fn semantic_text<D>(_query: &Query<D>) -> String {
    String::new()
}
