//! The half of a search that goes by meaning: what it needs, and which messages lie near.

use std::borrow::Cow;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::request::{Capability, SearchError, SemanticOut};
use crate::embed::{Model, ModelError};
use crate::events::Status;
use crate::ids::{MessageId, ThreadId};
use crate::projections::catalog::bitmaps::Facet;
use crate::projections::catalog::{CatalogError, CatalogView};
use crate::projections::vectors::{Near, Vectors};
use crate::query::fold_name;

/// What a search by meaning is asked of.
#[derive(Debug, Clone)]
pub enum Meaning {
    /// It is turned off.
    Inactive,
    /// The model cannot be had.
    Degraded {
        /// Its name.
        name: String,
        /// Vectors of the mailbox, which nobody can ask.
        index: Option<Arc<Vectors>>,
        /// What the model is never given.
        never: Arc<Never>,
    },
    /// No message has vectors of the model of this name yet: nothing to ask, and nothing to load.
    Empty(String),
    /// There are vectors.
    Ready {
        /// Name of the model.
        name: String,
        /// The model they come from.
        model: Arc<Model>,
        /// Those of the mailbox.
        index: Arc<Vectors>,
        /// What the model is never given.
        never: Arc<Never>,
    },
}

/// Mail that no model is ever given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Never {
    /// What stands in one of these folders, whatever their case.
    pub folders: Vec<String>,
    /// What has one of these labels.
    pub labels: Vec<String>,
    /// These threads.
    pub threads: Vec<ThreadId>,
}

impl Never {
    /// Whether it is about nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.labels.is_empty() && self.threads.is_empty()
    }

    /// The messages it is about.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn messages(&self, catalog: &CatalogView) -> Result<RoaringBitmap, CatalogError> {
        let mut messages = RoaringBitmap::new();
        if !self.folders.is_empty() {
            let named: Vec<String> = self.folders.iter().map(|name| fold_name(name)).collect();
            for (placement, held) in catalog.placements()? {
                if named.contains(&fold_name(&placement.folder)) {
                    messages |= held;
                }
            }
        }
        for label in &self.labels {
            messages |= &*catalog.with(Facet::Label, label.as_bytes())?;
        }
        for ThreadId(ulid) in &self.threads {
            if let Some(first) = catalog.ordinal(MessageId(*ulid))?
                && let Some(number) = catalog.thread_of(first)?
            {
                messages |= catalog.thread(number)?;
            }
        }
        Ok(messages)
    }
}

/// Messages that should have vectors: those that anybody may see without asking for more, without
/// what no model is given.
///
/// # Errors
/// [`CatalogError`].
pub fn eligible(catalog: &CatalogView, never: &Never) -> Result<RoaringBitmap, CatalogError> {
    reachable(catalog.with(Facet::All, b"")?.as_ref().clone(), catalog, never)
}

/// Those of some messages that a model may be given.
pub(super) fn reachable(
    mut messages: RoaringBitmap,
    catalog: &CatalogView,
    never: &Never,
) -> Result<RoaringBitmap, CatalogError> {
    for status in [Status::Hidden, Status::Throttled, Status::Quarantined] {
        messages -= &*catalog.with(Facet::Status, &[status as u8])?;
    }
    messages -= never.messages(catalog)?;
    Ok(messages)
}

impl Meaning {
    /// How the semantic half stands for a catalog; `None` when it is turned off.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn state(&self, catalog: &CatalogView) -> Result<Option<SemanticOut>, CatalogError> {
        let (name, capability) = match self {
            Self::Inactive => return Ok(None),
            Self::Degraded { name, .. } => (name, Capability::Degraded),
            Self::Ready { name, model, .. } if !model.may_be_asked() => {
                (name, Capability::Degraded)
            }
            Self::Empty(name) | Self::Ready { name, .. } => (name, Capability::Available),
        };
        let share = match self {
            Self::Ready { index, never, .. } | Self::Degraded { index: Some(index), never, .. } => {
                let wanted = eligible(catalog, never)?;
                let covered = index.whole_among(&wanted);
                if wanted.is_empty() { 1.0 } else { covered as f64 / wanted.len() as f64 }
            }
            _ => 0.0,
        };
        Ok(Some(SemanticOut {
            model: name.clone(),
            capability,
            coverage: (share * 1_000.0).round() / 1_000.0,
            degraded: false,
        }))
    }

    /// The messages among `candidates` that lie nearest to a text; `None` when nobody can tell.
    pub(super) fn near(
        &self,
        catalog: &CatalogView,
        text: &str,
        candidates: &RoaringBitmap,
        limit: usize,
    ) -> Result<Option<Vec<Near>>, SearchError> {
        match self {
            Self::Inactive | Self::Degraded { .. } => Ok(None),
            Self::Empty(_) => Ok(Some(Vec::new())),
            // It failed less than a minute ago.
            Self::Ready { model, .. } if !model.may_be_asked() => Ok(None),
            Self::Ready { model, index, never, .. } => {
                let query = match model.query(text) {
                    Ok(query) => query,
                    // A text without a word that the model knows lies near nothing.
                    Err(ModelError::Text(_)) => return Ok(Some(Vec::new())),
                    Err(_) => return Ok(None),
                };
                // What was given to a model before it was forbidden to.
                let allowed = if never.is_empty() {
                    Cow::Borrowed(candidates)
                } else {
                    Cow::Owned(candidates - never.messages(catalog)?)
                };
                match index.nearest(&query, &allowed, limit) {
                    Ok(found) => Ok(Some(found)),
                    Err(error) => {
                        tracing::warn!("vectors are damaged and begin anew: {error}");
                        index.distrust();
                        Ok(None)
                    }
                }
            }
        }
    }
}
