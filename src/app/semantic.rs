//! Vectors of the mailboxes: which model, where their indexes lie, and what a search asks of them.
//!
//! What was computed is kept sealed in the log, so that an index that is lost or purged is filled
//! again without asking the model. An index is thrown away rather than mended.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::{Error, Postrider, blocking};
use crate::config::Embedding;
use crate::embed::{Builtin, Model};
use crate::events::registry::Identity;
use crate::events::{Log, SpaceName};
use crate::ids::{MailboxNo, Ordinal};
use crate::projections::ProjectionError;
use crate::projections::vectors::{Stored, VectorError, Vectors};
use crate::search::semantic::{Meaning, eligible};

/// Indexes kept open.
const OPEN_MAX: usize = 64;

/// The vectors of a data directory.
#[derive(Debug)]
pub(super) struct Semantic {
    setting: Embedding,
    open: Mutex<HashMap<MailboxNo, Arc<Vectors>>>,
}

/// How the vectors of a mailbox stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedStatus {
    /// Name of the mailbox.
    pub mailbox: String,
    /// The model; absent when it is turned off.
    pub model: Option<String>,
    /// Messages that should have vectors.
    pub eligible: u64,
    /// Those that have.
    pub embedded: u64,
    /// Passages.
    pub passages: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
}

impl Semantic {
    pub(super) fn new(setting: Embedding) -> Self {
        Self { setting, open: Mutex::default() }
    }

    /// The model; `None` when it is turned off.
    pub(super) fn model(&self) -> Option<Result<Arc<Model>, Error>> {
        let builtin = match self.setting {
            Embedding::Off => return None,
            Embedding::Static128 => Builtin::Static128,
            Embedding::MinilmL6 => Builtin::MinilmL6,
        };
        Some(builtin.model().map_err(|error| Error::Model(error.to_string())))
    }

    /// The model, where there is anything to ask it about.
    fn model_for(&self, dir: &Path) -> Option<Result<Arc<Model>, Error>> {
        if Space::any(dir) { self.model() } else { None }
    }

    fn indexes(&self) -> MutexGuard<'_, HashMap<MailboxNo, Arc<Vectors>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a mailbox; one that cannot be opened gives way to an empty one.
    pub(super) fn index(
        &self,
        mailbox: MailboxNo,
        dir: &Path,
        model: &Model,
    ) -> Result<Arc<Vectors>, Error> {
        let mut open = self.indexes();
        if let Some(known) = open.get(&mailbox) {
            return Ok(Arc::clone(known));
        }
        if open.len() >= OPEN_MAX {
            // Those that nobody uses are closed as they go.
            open.retain(|_, index| Arc::strong_count(index) > 1);
        }
        let space = Space::of(model);
        let opened = match space.current(dir) {
            None => space.begin(dir)?,
            Some(path) => match Vectors::open(&path, space.dimensions) {
                Ok(index) => index,
                Err(error) => {
                    tracing::warn!(mailbox = mailbox.0, "vectors are filled anew: {error}");
                    space.begin(dir)?
                }
            },
        };
        let opened = Arc::new(opened);
        open.insert(mailbox, Arc::clone(&opened));
        Ok(opened)
    }

    /// Lets go of an index.
    pub(super) fn forget(&self, mailbox: MailboxNo) {
        self.indexes().remove(&mailbox);
    }
}

/// What a one-shot search asks of a directory that nobody has open: as [`Postrider::search`], but
/// nothing is written.
pub(super) fn closed(setting: Embedding, dir: &Path) -> Meaning {
    if setting != Embedding::Off && !Space::any(dir) {
        return Meaning::Empty;
    }
    let Some(model) = Semantic::new(setting).model() else { return Meaning::Inactive };
    let Ok(model) = model else { return Meaning::Degraded };
    let space = Space::of(&model);
    let index = space.current(dir).map(|path| Vectors::open_read_only(&path, space.dimensions));
    match index {
        Some(Ok(index)) if !index.covered().is_empty() => Meaning::Ready(model, Arc::new(index)),
        _ => Meaning::Empty,
    }
}

/// A space of vectors and its directories in that of a mailbox: `vectors-<space>-<number>`.
pub(super) struct Space {
    pub(super) name: SpaceName,
    prefix: String,
    pub(super) dimensions: u32,
}

impl Space {
    pub(super) fn of(model: &Model) -> Self {
        let fingerprint = model.profile().fingerprint();
        Self {
            name: fingerprint.0,
            prefix: format!("vectors-{fingerprint}-"),
            dimensions: model.profile().dimensions,
        }
    }

    /// Whether a mailbox has vectors of any space: told without loading a model.
    fn any(dir: &Path) -> bool {
        let mut entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_string_lossy().starts_with("vectors-"))
    }

    fn numbers(&self, dir: &Path) -> Vec<u32> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let number = |name: &str| name.strip_prefix(&self.prefix)?.parse().ok();
        entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect()
    }

    fn current(&self, dir: &Path) -> Option<PathBuf> {
        let number = self.numbers(dir).into_iter().max()?;
        Some(dir.join(format!("{}{number:06}", self.prefix)))
    }

    /// An empty index under the next number; the others go. A number is never used twice while
    /// somebody may still read what lies under it.
    fn begin(&self, dir: &Path) -> Result<Vectors, Error> {
        let numbers = self.numbers(dir);
        let next = numbers.iter().max().map_or(1, |most| most + 1);
        let path = dir.join(format!("{}{next:06}", self.prefix));
        let index = Vectors::open(&path, self.dimensions).map_err(failed)?;
        for number in numbers {
            let old = dir.join(format!("{}{number:06}", self.prefix));
            std::fs::remove_dir_all(&old).map_err(|source| Error::Io { path: old, source })?;
        }
        Ok(index)
    }
}

pub(super) fn failed(error: VectorError) -> Error {
    Error::Projection(ProjectionError::from(error))
}

impl Postrider {
    /// What a search by meaning asks in a mailbox.
    pub(super) async fn meaning(&self, identity: &Identity) -> Result<Meaning, Error> {
        if self.inner.config.embedding == Embedding::Off {
            return Ok(Meaning::Inactive);
        }
        let (inner, dir, mailbox) =
            (Arc::clone(&self.inner), self.dir_of(identity), identity.mailbox);
        blocking(move || match inner.semantic.model_for(&dir) {
            None => Meaning::Empty,
            Some(Err(_)) => Meaning::Degraded,
            Some(Ok(model)) => match inner.semantic.index(mailbox, &dir, &model) {
                Ok(index) if index.covered().is_empty() => Meaning::Empty,
                Ok(index) => Meaning::Ready(model, index),
                Err(_) => Meaning::Degraded,
            },
        })
        .await
    }

    /// How the vectors of a mailbox stand.
    ///
    /// # Errors
    /// [`Error::NoSuchMailbox`]; otherwise what the stores say.
    pub async fn embed_status(&self, mailbox: &str) -> Result<EmbedStatus, Error> {
        let identity = self.identity(mailbox)?;
        let view = self.view(&self.handle(&identity).await?).await?;
        let meaning = self.meaning(&identity).await?;
        let model = match self.inner.config.embedding {
            Embedding::Off => None,
            Embedding::Static128 => Some("static-128".to_owned()),
            Embedding::MinilmL6 => Some("minilm-l6".to_owned()),
        };
        blocking(move || {
            let eligible = eligible(&view.catalog)?;
            let mut status = EmbedStatus {
                mailbox: identity.name,
                model,
                eligible: eligible.len(),
                embedded: 0,
                passages: 0,
                index_bytes: 0,
            };
            if let Meaning::Ready(_, index) = meaning {
                status.embedded = index.covered().intersection_len(&eligible);
                status.passages = u64::from(index.rows());
                let file = std::fs::metadata(index.dir().join("data.mdb"));
                status.index_bytes = file.map_or(0, |file| file.len());
            }
            Ok(status)
        })
        .await?
    }

    /// Takes erased messages out of the vectors: an index without a trace of them takes the place
    /// of the old one. Called by the purge, which holds the mailbox's place.
    pub(super) async fn purge_vectors(
        &self,
        identity: &Identity,
        gone: RoaringBitmap,
    ) -> Result<(), Error> {
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(identity));
        let mailbox = identity.mailbox;
        blocking(move || {
            let spaces = inner.log.spaces()?;
            inner.log.drop_embeddings(&spaces, mailbox, &gone)?;
            let Some(model) = inner.semantic.model() else { return Ok(()) };
            let model = model?;
            let space = Space::of(&model);
            if space.current(&dir).is_none() {
                return Ok(());
            }
            let old = inner.semantic.index(mailbox, &dir, &model)?;
            let kept = old.covered() - &gone;
            if kept.len() == old.covered().len() {
                return Ok(());
            }
            // What readers of the old one still hold shows nothing that the catalog does not.
            old.remove(&gone).map_err(failed)?;
            let fresh = space.begin(&dir)?;
            refill(&inner.log, &space, mailbox, &kept, &fresh)?;
            inner.semantic.indexes().insert(mailbox, Arc::new(fresh));
            Ok(())
        })
        .await?
    }
}

/// Fills an index with what is kept in the log.
fn refill(
    log: &Log,
    space: &Space,
    mailbox: MailboxNo,
    messages: &RoaringBitmap,
    index: &Vectors,
) -> Result<(), Error> {
    let mut batch = Vec::new();
    for ordinal in messages {
        let ordinal = Ordinal(ordinal);
        if let Some(bytes) = log.embedding(space.name, mailbox, ordinal)?
            && let Some(stored) = Stored::decode(&bytes, space.dimensions as usize)
        {
            batch.push((ordinal, stored));
        }
        if batch.len() >= 1_024 {
            index.add(&batch).map_err(failed)?;
            batch.clear();
        }
    }
    index.add(&batch).map_err(failed)
}
