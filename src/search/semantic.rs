//! The half of a search that goes by meaning: what it needs, and which messages lie near.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::request::{Capability, SearchError, SemanticOut};
use crate::embed::{Model, ModelError, Role};
use crate::events::Status;
use crate::projections::ProjectionError;
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::catalog::{CatalogError, CatalogView};
use crate::projections::vectors::{Near, Vectors};

/// What a search by meaning is asked of.
#[derive(Debug, Clone)]
pub enum Meaning {
    /// It is turned off.
    Inactive,
    /// The model cannot be had.
    Degraded,
    /// No message has vectors yet: nothing to ask, and no model to load.
    Empty,
    /// Vectors of a mailbox, and the model they come from.
    Ready(Arc<Model>, Arc<Vectors>),
}

/// Messages that should have vectors: those that anybody may see without asking for more.
///
/// # Errors
/// [`CatalogError`].
pub fn eligible(catalog: &CatalogView) -> Result<RoaringBitmap, CatalogError> {
    let mut messages = catalog.with(Facet::All, b"")?.as_ref().clone();
    for status in [Status::Hidden, Status::Throttled, Status::Quarantined] {
        messages -= &*catalog.with(Facet::Status, &[status as u8])?;
    }
    Ok(messages)
}

impl Meaning {
    /// How the semantic half stands for a catalog; `None` when it is turned off.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn state(&self, catalog: &CatalogView) -> Result<Option<SemanticOut>, CatalogError> {
        let capability = match self {
            Self::Inactive => return Ok(None),
            Self::Degraded => Capability::Degraded,
            Self::Ready(model, _) if !model.may_be_asked() => Capability::Degraded,
            Self::Empty | Self::Ready(..) => Capability::Available,
        };
        let wanted = eligible(catalog)?;
        let covered = match self {
            Self::Ready(_, vectors) => vectors.covered().intersection_len(&wanted),
            _ => 0,
        };
        let share = if wanted.is_empty() { 1.0 } else { covered as f64 / wanted.len() as f64 };
        Ok(Some(SemanticOut {
            capability,
            coverage: (share * 1_000.0).round() / 1_000.0,
            degraded: false,
        }))
    }

    /// The messages among `candidates` that lie nearest to a text; `None` when nobody can tell.
    pub(super) fn near(
        &self,
        text: &str,
        candidates: &RoaringBitmap,
        limit: usize,
    ) -> Result<Option<Vec<Near>>, SearchError> {
        match self {
            Self::Inactive | Self::Degraded => Ok(None),
            Self::Empty => Ok(Some(Vec::new())),
            // It failed less than a minute ago.
            Self::Ready(model, _) if !model.may_be_asked() => Ok(None),
            Self::Ready(model, vectors) => {
                let query = match model.embed(Role::Query, &[text]).pop() {
                    Some(Ok(query)) => query,
                    Some(Err(ModelError::Remote(_))) => return Ok(None),
                    // A text without a word that the model knows lies near nothing.
                    _ => return Ok(Some(Vec::new())),
                };
                let found = vectors.nearest(&query, candidates, limit);
                Ok(Some(found.map_err(ProjectionError::from)?))
            }
        }
    }
}
