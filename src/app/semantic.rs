//! Vectors of the mailboxes: which model, where their indexes lie, and what a search asks of them.
//!
//! What was computed is kept sealed in the log, so that an index that is lost or purged is filled
//! again without asking the model. An index is thrown away rather than mended.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::embedding::EmbedProgress;
use super::{Error, Postrider, blocking};
use crate::config::{Config, Embedding, EndpointSettings, NeverEmbed};
use crate::embed::{Builtin, Endpoint, Model, ModelError};
use crate::events::registry::Identity;
use crate::events::{Log, SpaceName};
use crate::ids::{MailboxNo, Ordinal, ThreadId};
use crate::projections::ProjectionError;
use crate::projections::vectors::{Stored, VectorError, Vectors, mark_path};
use crate::search::semantic::{Meaning, Never, eligible};

/// Indexes kept open.
const OPEN_MAX: usize = 64;

/// The vectors of a data directory.
#[derive(Debug)]
pub(super) struct Semantic {
    setting: Setting,
    /// Mailboxes that no model is given anything of.
    banned: Vec<String>,
    /// What no model is given of the others.
    pub(super) never: Arc<Never>,
    /// A model that does not come with the program, once it was loaded.
    own: OnceLock<Arc<Model>>,
    open: Mutex<HashMap<MailboxNo, Arc<Vectors>>>,
    /// Embeddings at work.
    running: Mutex<Vec<Weak<EmbedProgress>>>,
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
    /// As the settings say.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a thread that is none.
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let NeverEmbed { mailboxes, folders, labels, threads } = config.never_embed.clone();
        let threads = threads.iter().map(|id| id.parse()).collect::<Result<Vec<ThreadId>, _>>();
        let threads = threads.map_err(|_| Error::Invalid {
            path: "never_embed.threads",
            message: "must be identifiers like thr_01J9Z3K8V4QW7X2M5N6P8R0T1V".into(),
        })?;
        Ok(Self {
            setting: Setting::of(config),
            banned: mailboxes,
            never: Arc::new(Never { folders, labels, threads }),
            own: OnceLock::new(),
            open: Mutex::default(),
            running: Mutex::default(),
        })
    }

    /// Whether no model is given anything of this mailbox.
    pub(super) fn is_banned(&self, identity: &Identity) -> bool {
        let id = identity.id.to_string();
        self.banned.iter().any(|name| *name == identity.name || *name == id)
    }

    /// The model; `None` when it is turned off.
    pub(super) fn model(&self) -> Option<Result<Arc<Model>, Error>> {
        let loaded = match &self.setting {
            Setting::Off => return None,
            Setting::Builtin(builtin) => builtin.model(),
            Setting::Folder(dir) => self.own(|| Model::open(dir)),
            Setting::Endpoint(endpoint) => self.own(|| remote(endpoint)),
        };
        Some(loaded.map_err(|error| Error::Model(error.to_string())))
    }

    fn own(
        &self,
        load: impl FnOnce() -> Result<Model, ModelError>,
    ) -> Result<Arc<Model>, ModelError> {
        if let Some(model) = self.own.get() {
            return Ok(Arc::clone(model));
        }
        let loaded = Arc::new(load()?);
        Ok(Arc::clone(self.own.get_or_init(|| loaded)))
    }

    /// The model, where there is anything to ask it about.
    fn model_for(&self, mailbox: MailboxNo, dir: &Path) -> Option<Result<Arc<Model>, Error>> {
        // An open index says so without a look at the disk.
        let known = self.indexes().contains_key(&mailbox) || Space::any(dir);
        if known { self.model() } else { None }
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
            let idle = |(mailbox, index): (&MailboxNo, &Arc<Vectors>)| {
                (Arc::strong_count(index) == 1).then_some(*mailbox)
            };
            let idle: Vec<MailboxNo> = open.iter().filter_map(idle).collect();
            idle.iter().filter_map(|mailbox| open.remove(mailbox)).for_each(close);
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

    /// Makes an embedding end when the directory is closed.
    pub(super) fn watch(&self, progress: &Arc<EmbedProgress>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|known| known.strong_count() > 0);
        running.push(Arc::downgrade(progress));
    }

    /// Asks every embedding to end after the batch at hand.
    pub(super) fn stop(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for progress in running.drain(..).filter_map(|progress| progress.upgrade()) {
            progress.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Closes every index.
    pub(super) fn close(&self) {
        self.indexes().drain().for_each(|(_, index)| close(index));
    }
}

/// Closes an index that nobody uses; another is filled anew at its next opening.
fn close(index: Arc<Vectors>) {
    let closed = Arc::try_unwrap(index).map(Vectors::close);
    if let Ok(Err(error)) = closed {
        tracing::warn!("closing vectors: {error}");
    }
}

/// Which model.
#[derive(Debug)]
enum Setting {
    Off,
    Builtin(Builtin),
    Folder(PathBuf),
    Endpoint(EndpointSettings),
}

impl Setting {
    fn of(config: &Config) -> Self {
        let endpoint = config.embedding_endpoint.clone();
        // Refused as the settings are read when what they need is missing.
        match config.embedding {
            Embedding::Off => Self::Off,
            Embedding::Static128 => Self::Builtin(Builtin::Static128),
            Embedding::MinilmL6 => Self::Builtin(Builtin::MinilmL6),
            Embedding::Folder => config.embedding_folder.clone().map_or(Self::Off, Self::Folder),
            Embedding::Endpoint => endpoint.map_or(Self::Off, Self::Endpoint),
        }
    }
}

fn remote(settings: &EndpointSettings) -> Result<Model, ModelError> {
    let key = match &settings.key_env {
        None => None,
        Some(name) => Some(std::env::var(name).map_err(|_| {
            ModelError::File(format!("the environment variable {name} holds no key"))
        })?),
    };
    let endpoint = Endpoint {
        url: settings.url.clone(),
        model: settings.model.clone(),
        dimensions: settings.dimensions,
        key,
        wait: Duration::from_millis(settings.wait_ms),
    };
    let (query, passage) = (settings.query_prefix.clone(), settings.passage_prefix.clone());
    Model::remote(endpoint, settings.tokens_max, query, passage)
}

/// What a one-shot search asks of a directory that nobody has open: as [`Postrider::search`], but
/// nothing is written.
pub(super) fn closed(config: &Config, identity: &Identity, dir: &Path) -> Meaning {
    let Ok(semantic) = Semantic::new(config) else { return Meaning::Degraded };
    if semantic.is_banned(identity) {
        return Meaning::Inactive;
    }
    if config.embedding != Embedding::Off && !Space::any(dir) {
        return Meaning::Empty;
    }
    let Some(model) = semantic.model() else { return Meaning::Inactive };
    let Ok(model) = model else { return Meaning::Degraded };
    let space = Space::of(&model);
    let index = space.current(dir).map(|path| Vectors::open_read_only(&path, space.dimensions));
    match index {
        Some(Ok(index)) if !index.is_empty() => {
            Meaning::Ready(model, Arc::new(index), semantic.never)
        }
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
            remove(&dir.join(format!("{}{number:06}", self.prefix)))?;
        }
        Ok(index)
    }
}

/// Removes an index and its mark.
fn remove(index: &Path) -> Result<(), Error> {
    let io = |source| Error::Io { path: index.to_owned(), source };
    std::fs::remove_dir_all(index).map_err(io)?;
    match std::fs::remove_file(mark_path(index)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(error)),
        _ => Ok(()),
    }
}

/// Removes the indexes of every other space than `kept`: they are filled again when their model
/// is chosen again.
fn remove_others(dir: &Path, kept: Option<&Space>) -> Result<(), Error> {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let other = name.starts_with("vectors-")
            && !kept.is_some_and(|space| name.starts_with(&space.prefix));
        if other && entry.path().is_dir() {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

pub(super) fn failed(error: VectorError) -> Error {
    Error::Projection(ProjectionError::from(error))
}

impl Postrider {
    /// What a search by meaning asks in a mailbox.
    pub(super) async fn meaning(&self, identity: &Identity) -> Result<Meaning, Error> {
        if self.inner.config.embedding == Embedding::Off || self.inner.semantic.is_banned(identity)
        {
            return Ok(Meaning::Inactive);
        }
        let (inner, dir, mailbox) =
            (Arc::clone(&self.inner), self.dir_of(identity), identity.mailbox);
        blocking(move || match inner.semantic.model_for(mailbox, &dir) {
            None => Meaning::Empty,
            Some(Err(_)) => Meaning::Degraded,
            Some(Ok(model)) => match inner.semantic.index(mailbox, &dir, &model) {
                Ok(index) if index.is_empty() => Meaning::Empty,
                Ok(index) => Meaning::Ready(model, index, Arc::clone(&inner.semantic.never)),
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
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            let model = inner.semantic.model().transpose()?;
            let model = model.map(|model| model.profile().model.clone());
            let eligible = eligible(&view.catalog, &inner.semantic.never)?;
            let mut status = EmbedStatus {
                mailbox: identity.name,
                model,
                eligible: eligible.len(),
                embedded: 0,
                passages: 0,
                index_bytes: 0,
            };
            if let Meaning::Ready(_, index, _) = meaning {
                status.embedded = index.covered_among(&eligible);
                status.passages = u64::from(index.rows());
                let file = std::fs::metadata(index.dir().join("data.mdb"));
                status.index_bytes = file.map_or(0, |file| file.len());
            }
            Ok(status)
        })
        .await?
    }

    /// Lets go of every vector of a mailbox: no model may be given anything of it any more.
    pub(super) async fn forget_vectors(&self, identity: &Identity) -> Result<(), Error> {
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(identity));
        let mailbox = identity.mailbox;
        blocking(move || {
            inner.semantic.forget(mailbox);
            remove_others(&dir, None)?;
            for space in inner.log.spaces()? {
                let embedded = inner.log.embedded(space, mailbox)?;
                inner.log.drop_embeddings(&[space], mailbox, &embedded)?;
            }
            Ok(())
        })
        .await?
    }

    /// Takes erased messages out of the vectors: an index without a trace of them takes the place
    /// of the old one, those of other models go. Tells how many of the messages it still holds.
    /// Called by the purge, which holds the mailbox's place.
    pub(super) async fn purge_vectors(
        &self,
        identity: &Identity,
        gone: RoaringBitmap,
    ) -> Result<u64, Error> {
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(identity));
        let mailbox = identity.mailbox;
        blocking(move || {
            let spaces = inner.log.spaces()?;
            inner.log.drop_embeddings(&spaces, mailbox, &gone)?;
            if !Space::any(&dir) {
                return Ok(0);
            }
            let Some(model) = inner.semantic.model() else {
                remove_others(&dir, None)?;
                return Ok(0);
            };
            let model = model?;
            let space = Space::of(&model);
            remove_others(&dir, Some(&space))?;
            if space.current(&dir).is_none() {
                return Ok(0);
            }
            let old = inner.semantic.index(mailbox, &dir, &model)?;
            let kept = old.covered() - &gone;
            if kept.len() == old.covered().len() {
                return old.held(&gone).map_err(failed);
            }
            // What readers of the old one still hold shows nothing that the catalog does not.
            old.remove(&gone).map_err(failed)?;
            let fresh = space.begin(&dir)?;
            refill(&inner.log, &space, mailbox, &kept, &fresh)?;
            let left = fresh.held(&gone).map_err(failed)?;
            inner.semantic.indexes().insert(mailbox, Arc::new(fresh));
            Ok(left)
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
