//! What other parts need from a tree: its words for snippets and embedding, its filters for `why`,
//! and which hidden parts of the mailbox it asks for.
//!
//! *Positive* means outside of every negation; alternatives count, whether or not they match.

use std::fmt::Display;

use super::tree::{Expr, Filter, Place, Query, State, TextField, TextLeaf};

/// Bound of [`semantic_text`].
pub const SEMANTIC_CHARS_MAX: usize = 2_000;

/// What an expression is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Composition {
    /// Text leaves only.
    Text,
    /// Filters only.
    Filter,
    /// Both.
    Mixed,
}

/// Parts of the mailbox a query names, so that a search does not leave them out. Naming is not
/// being allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named<'q> {
    /// `in:anywhere`
    pub anywhere: bool,
    /// `in:junk`
    pub junk: bool,
    /// `in:trash`
    pub trash: bool,
    /// `is:quarantined`
    pub quarantined: bool,
    /// `folder:` names, folded, in the order of the query.
    pub folders: Vec<&'q str>,
}

impl<D> Query<D> {
    /// The conditions that must all hold: the children of a conjunction at the root, or the root
    /// itself; none for the query for every message.
    #[must_use]
    pub fn conjuncts(&self) -> &[Expr<D>] {
        match &self.root {
            None => &[],
            Some(Expr::And(children)) => children,
            Some(root) => std::slice::from_ref(root),
        }
    }

    /// The query without places in its text; two queries that mean the same compare equal then.
    #[must_use]
    pub fn without_spans(mut self) -> Self {
        self.source_chars = 0;
        if let Some(root) = &mut self.root {
            root.clear_spans();
        }
        self
    }
}

impl<D> Expr<D> {
    /// What the expression is made of.
    #[must_use]
    pub fn composition(&self) -> Composition {
        match self {
            Self::Text(_) => Composition::Text,
            Self::Filter(_) => Composition::Filter,
            Self::Not(inner) => inner.composition(),
            Self::And(children) | Self::Or(children) => {
                let mut parts = children.iter().map(Self::composition);
                let first = parts.next().unwrap_or(Composition::Filter);
                if parts.all(|part| part == first) { first } else { Composition::Mixed }
            }
        }
    }

    fn clear_spans(&mut self) {
        match self {
            Self::And(children) | Self::Or(children) => {
                children.iter_mut().for_each(Self::clear_spans);
            }
            Self::Not(inner) => inner.clear_spans(),
            Self::Text(leaf) => leaf.span = super::tree::Span::default(),
            Self::Filter(_) => {}
        }
    }

    /// Calls `visit` for each positive leaf from left to right.
    fn each_positive<'q>(&'q self, visit: &mut impl FnMut(&'q Self)) {
        match self {
            Self::And(children) | Self::Or(children) => {
                for child in children {
                    child.each_positive(visit);
                }
            }
            // The inside of a double negation is positive, but `negate` leaves none.
            Self::Not(_) => {}
            Self::Text(_) | Self::Filter(_) => visit(self),
        }
    }
}

/// The positive text leaves, in the order of the query.
#[must_use]
pub fn positive_text<D>(query: &Query<D>) -> Vec<&TextLeaf> {
    let mut found = Vec::new();
    if let Some(root) = &query.root {
        root.each_positive(&mut |leaf| {
            if let Expr::Text(text) = leaf {
                found.push(text);
            }
        });
    }
    found
}

/// The positive filters, in the order of the query.
#[must_use]
pub fn positive_filters<D>(query: &Query<D>) -> Vec<&Filter<D>> {
    let mut found = Vec::new();
    if let Some(root) = &query.root {
        root.each_positive(&mut |leaf| {
            if let Expr::Filter(filter) = leaf {
                found.push(filter);
            }
        });
    }
    found
}

/// The `<op>:<value>` texts of the positive filters that `holds` says a message satisfies, each
/// once, in the order of the query.
#[must_use]
pub fn why_filters<D: Display>(
    query: &Query<D>,
    mut holds: impl FnMut(&Filter<D>) -> bool,
) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for filter in positive_filters(query) {
        let text = filter.to_string();
        if !texts.contains(&text) && holds(filter) {
            texts.push(text);
        }
    }
    texts
}

/// The positive free text, for embedding and reranking: operators left out (`subject:` too), quotes
/// and `*` dropped, joined with spaces, cut at [`SEMANTIC_CHARS_MAX`]. Empty when there is none.
#[must_use]
pub fn semantic_text<D>(query: &Query<D>) -> String {
    let free: Vec<&str> = positive_text(query)
        .into_iter()
        .filter(|leaf| leaf.field == TextField::Any)
        .map(|leaf| leaf.kind.text().trim())
        .collect();
    let mut text = free.join(" ");
    if let Some((cut, _)) = text.char_indices().nth(SEMANTIC_CHARS_MAX) {
        text.truncate(cut);
    }
    text
}

/// The hidden parts of the mailbox that positive filters name.
#[must_use]
pub fn named<D>(query: &Query<D>) -> Named<'_> {
    let mut named = Named::default();
    for filter in positive_filters(query) {
        match filter {
            Filter::Place(Place::Anywhere) => named.anywhere = true,
            Filter::Place(Place::Junk) => named.junk = true,
            Filter::Place(Place::Trash) => named.trash = true,
            Filter::Is(State::Quarantined) => named.quarantined = true,
            Filter::Folder(name) => named.folders.push(name),
            _ => {}
        }
    }
    named
}
