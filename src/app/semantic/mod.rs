//! Vectors of the mailboxes: which models, where their indexes lie, and what a search asks of them.
//!
//! What was computed is kept sealed in the log, so that an index that is lost or purged is filled
//! again without asking a model.

mod choice;
mod embedding;
mod indexes;
mod reembed;
mod spaces;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use self::choice::{Choice, RerankChoice};
pub use self::embedding::{EmbedOptions, EmbedProgress, Embedded};
use self::indexes::Indexes;
pub use self::reembed::{Estimate, Pruned, SpacesOut};
use self::spaces::{Shape, Space, Spaces};
use super::{Error, Postrider, blocking};
use crate::config::{Config, NeverEmbed};
use crate::embed::{Model, Reranker};
use crate::events::registry::Identity;
use crate::events::{Log, SpaceName};
use crate::ids::ThreadId;
use crate::projections::generation::disk_bytes;
use crate::search::request::{Capability, Mode};
use crate::search::rerank::Judge;
use crate::search::semantic::{Meaning, Never, eligible};
use crate::search::{Aids, SearchRequest};

/// Models kept loaded: what serves, what is being filled, what served before.
const LOADED_MAX: usize = 3;

/// The vectors of a data directory.
#[derive(Debug)]
pub(super) struct Semantic {
    /// What the settings name; `None` when searches by meaning are turned off.
    wanted: Option<Choice>,
    data_dir: PathBuf,
    spaces: Mutex<Arc<Spaces>>,
    /// Mailboxes that no model is given anything of.
    banned: Vec<String>,
    /// What no model is given of the others.
    pub(super) never: Arc<Never>,
    loaded: Mutex<Vec<(Choice, Arc<Model>)>>,
    /// The last loading of a model failed.
    load_failed: AtomicBool,
    /// Who ranks again, as the settings name it.
    reranking: Option<RerankChoice>,
    reranker: Mutex<Option<Arc<Reranker>>>,
    indexes: Indexes,
    /// Which mailboxes are complete in the space that is being filled.
    complete: Mutex<reembed::Complete>,
    /// Embeddings at work.
    running: Mutex<Vec<Weak<EmbedProgress>>>,
}

/// How the vectors of a mailbox stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedStatus {
    /// Name of the mailbox.
    pub mailbox: String,
    /// Messages that should have vectors.
    pub eligible: u64,
    /// The space that searches read; absent when searches by meaning are turned off.
    pub active: Option<SpaceStatus>,
    /// The space that is being filled to serve next.
    pub building: Option<SpaceStatus>,
}

/// How far a mailbox is in a space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceStatus {
    /// Name of the model.
    pub model: String,
    /// Messages that have all their vectors.
    pub embedded: u64,
    /// Messages that have none yet.
    pub pending: u64,
    /// Messages with a passage that the model refused; tried again once a day.
    pub failed: u64,
    /// Messages that should have no vectors any more and lose them at the next embedding.
    pub deleting: u64,
    /// Passages.
    pub passages: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Semantic {
    /// As the settings say. Nothing is loaded yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a thread that is none.
    fn read(config: &Config) -> Result<Self, Error> {
        let NeverEmbed { mailboxes, folders, labels, threads } = config.never_embed.clone();
        let threads = threads.iter().map(|id| id.parse()).collect::<Result<Vec<ThreadId>, _>>();
        let threads = threads.map_err(|_| Error::Invalid {
            path: "never_embed.threads",
            message: "must be identifiers like thr_01J9Z3K8V4QW7X2M5N6P8R0T1V".into(),
        })?;
        Ok(Self {
            wanted: Choice::of(config),
            data_dir: config.data_dir.clone(),
            spaces: Mutex::new(Arc::new(Spaces::load(&config.data_dir))),
            banned: mailboxes,
            never: Arc::new(Never { folders, labels, threads }),
            loaded: Mutex::default(),
            load_failed: AtomicBool::new(false),
            reranking: RerankChoice::of(config),
            reranker: Mutex::default(),
            indexes: Indexes::default(),
            complete: Mutex::default(),
            running: Mutex::default(),
        })
    }

    /// As the settings say, for a directory that is open: what they name is taken note of.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a thread that is none; otherwise what the stores say.
    pub(super) fn new(config: &Config, log: &Log) -> Result<Self, Error> {
        let semantic = Self::read(config)?;
        if let Some(wanted) = semantic.wanted.clone() {
            let kept = log.spaces()?;
            semantic.change(config, |spaces| {
                spaces.declare(&wanted, |space| kept.contains(&space.0));
            })?;
        }
        Ok(semantic)
    }

    /// The spaces at this moment.
    fn spaces(&self) -> Arc<Spaces> {
        Arc::clone(&lock(&self.spaces))
    }

    /// Changes the spaces, durably before anybody sees it.
    fn change<R>(
        &self,
        config: &Config,
        change: impl FnOnce(&mut Spaces) -> R,
    ) -> Result<R, Error> {
        let mut spaces = lock(&self.spaces);
        let mut changed = spaces.as_ref().clone();
        let outcome = change(&mut changed);
        if changed != **spaces {
            let dir = &config.data_dir;
            changed.save(dir).map_err(|source| Error::Io { path: dir.clone(), source })?;
            *spaces = Arc::new(changed);
        }
        Ok(outcome)
    }

    /// Whether no model is given anything of this mailbox.
    pub(super) fn is_banned(&self, identity: &Identity) -> bool {
        let id = identity.id.to_string();
        self.banned.iter().any(|name| *name == identity.name || *name == id)
    }

    /// Whether searches by meaning are turned off.
    pub(super) fn is_off(&self) -> bool {
        self.wanted.is_none()
    }

    /// A model, loaded on first use.
    fn load(&self, space: &Space) -> Result<Arc<Model>, Error> {
        let mut loaded = lock(&self.loaded);
        if let Some((_, model)) = loaded.iter().find(|(known, _)| *known == space.model) {
            return Ok(Arc::clone(model));
        }
        let reference = space.reference.as_ref().map(spaces::Reference::values);
        let model = space.model.load(reference, &self.data_dir);
        self.load_failed.store(model.is_err(), Ordering::Relaxed);
        let model = model.map_err(|error| Error::Model(error.to_string()))?;
        if loaded.len() >= LOADED_MAX {
            loaded.remove(0);
        }
        loaded.push((space.model.clone(), Arc::clone(&model)));
        Ok(model)
    }

    /// Whether searches by meaning can be answered, as far as the last attempt tells. Nothing is
    /// loaded or asked for it.
    pub(super) fn capability(&self) -> Capability {
        let (false, Some(active)) = (self.is_off(), &self.spaces().active) else {
            return Capability::Inactive;
        };
        let loaded = lock(&self.loaded);
        let known = loaded.iter().find(|(known, _)| *known == active.model);
        let works = match known {
            Some((_, model)) => {
                let shape = Shape::of(model.profile());
                model.may_be_asked() && active.vectors.is_none_or(|known| known == shape)
            }
            None => !self.load_failed.load(Ordering::Relaxed),
        };
        if works { Capability::Available } else { Capability::Degraded }
    }

    /// Keeps the vector that tells a model behind an address from another that takes its place.
    fn refer(&self, config: &Config, space: &Space) -> Result<(), Error> {
        let (model, shape) = self.model_of(space)?;
        let known =
            self.spaces().written().any(|s| s.vectors == Some(shape) && s.reference.is_some());
        if known {
            return Ok(());
        }
        match model.reference().map_err(|error| Error::Model(error.to_string()))? {
            Some(reference) => self.change(config, |spaces| spaces.refer(shape, &reference)),
            None => Ok(()),
        }
    }

    /// The model of a space, when it still is the one that its vectors come from.
    fn model_of(&self, space: &Space) -> Result<(Arc<Model>, Shape), Error> {
        let model = self.load(space)?;
        let shape = Shape::of(model.profile());
        if space.vectors.is_some_and(|known| known != shape) {
            return Err(Error::Model(format!(
                "{} is another model than the one whose vectors are kept",
                space.model.name()
            )));
        }
        Ok((model, shape))
    }

    /// The spaces to write to, with what is now known of their models. One whose model cannot be
    /// had is left out, and why is told.
    fn written(&self, config: &Config) -> Result<(Vec<Space>, Option<Error>), Error> {
        let mut fault = None;
        for space in self.spaces().written() {
            match self.load(space) {
                Ok(model) => {
                    let shape = Shape::of(model.profile());
                    self.change(config, |spaces| spaces.resolve(&space.model, shape))?;
                }
                Err(error) => fault = Some(error),
            }
        }
        let loaded = |space: &&Space| self.model_of(space).is_ok();
        Ok((self.spaces().written().filter(loaded).cloned().collect(), fault))
    }

    /// Who ranks the first hits of a search again; loaded on first use.
    fn judge(&self, request: &SearchRequest) -> Judge {
        if !request.rerank || request.mode != Mode::Hybrid {
            return Judge::None;
        }
        let Some(choice) = &self.reranking else { return Judge::None };
        let mut reranker = lock(&self.reranker);
        if let Some(known) = &*reranker {
            return Judge::Ready(Arc::clone(known));
        }
        match choice.load() {
            Ok(loaded) => Judge::Ready(Arc::clone(reranker.insert(Arc::new(loaded)))),
            Err(error) => {
                tracing::warn!("searches are not ranked again: {error}");
                Judge::Broken(choice.name())
            }
        }
    }

    /// Makes an embedding end when the directory is closed.
    fn watch(&self, progress: &Arc<EmbedProgress>) {
        let mut running = lock(&self.running);
        running.retain(|known| known.strong_count() > 0);
        running.push(Arc::downgrade(progress));
    }

    /// Asks every embedding to end after the batch at hand.
    pub(super) fn stop(&self) {
        for progress in lock(&self.running).drain(..).filter_map(|progress| progress.upgrade()) {
            progress.stop.store(true, Ordering::Relaxed);
        }
        // What is being asked of an address is not waited for.
        lock(&self.loaded).iter().for_each(|(_, model)| model.close());
        if let Some(reranker) = &*lock(&self.reranker) {
            reranker.close();
        }
    }

    /// Lets go of the indexes of a mailbox.
    pub(super) fn forget(&self, mailbox: crate::ids::MailboxNo) {
        self.indexes.forget(mailbox);
    }

    /// Closes every index.
    pub(super) fn close(&self) {
        self.indexes.close();
    }

    /// What a search asks: the space that serves at this moment, its model and its index together.
    fn meaning(&self, mailbox: crate::ids::MailboxNo, dir: &Path) -> Meaning {
        let spaces = self.spaces();
        let Some(active) = &spaces.active else { return Meaning::Inactive };
        let name = active.model.name();
        // Told without loading a model.
        let Some(shape) = active.vectors.filter(|s| self.indexes.exists(mailbox, dir, *s)) else {
            return Meaning::Empty(name);
        };
        let Ok((model, _)) = self.model_of(active) else { return Meaning::Degraded(name) };
        match self.indexes.get(mailbox, dir, shape) {
            Ok(index) if index.is_empty() => Meaning::Empty(name),
            Ok(index) => Meaning::Ready { name, model, index, never: Arc::clone(&self.never) },
            Err(_) => Meaning::Degraded(name),
        }
    }
}

/// What a one-shot search asks of a directory that nobody has open: as [`Postrider::search`], but
/// nothing is written.
pub(super) fn closed(
    config: &Config,
    identity: &Identity,
    dir: &Path,
    request: &SearchRequest,
) -> Aids {
    if request.mode == Mode::Keyword {
        return Aids::none();
    }
    let Ok(semantic) = Semantic::read(config) else {
        return Aids { meaning: Meaning::Degraded(String::new()), ..Aids::none() };
    };
    if semantic.is_off() || semantic.is_banned(identity) {
        return Aids::none();
    }
    Aids { meaning: closed_meaning(&semantic, dir), judge: semantic.judge(request), ..Aids::none() }
}

fn closed_meaning(semantic: &Semantic, dir: &Path) -> Meaning {
    let wanted = || semantic.wanted.as_ref().map_or_else(String::new, Choice::name);
    let spaces = semantic.spaces();
    let Some(active) = &spaces.active else { return Meaning::Empty(wanted()) };
    let name = active.model.name();
    let index = active.vectors.and_then(|shape| indexes::read_only(dir, shape));
    let Some(index) = index.filter(|index| !index.is_empty()) else { return Meaning::Empty(name) };
    let Ok((model, _)) = semantic.model_of(active) else { return Meaning::Degraded(name) };
    let never = Arc::clone(&semantic.never);
    Meaning::Ready { name, model, index: Arc::new(index), never }
}

impl Postrider {
    /// What a search asks besides the words.
    pub(super) async fn aids(
        &self,
        identity: &Identity,
        request: &SearchRequest,
    ) -> Result<Aids, Error> {
        let semantic = &self.inner.semantic;
        if request.mode == Mode::Keyword || semantic.is_off() || semantic.is_banned(identity) {
            return Ok(Aids::none());
        }
        let (inner, dir, mailbox) =
            (Arc::clone(&self.inner), self.dir_of(identity), identity.mailbox);
        let request = request.clone();
        blocking(move || {
            let semantic = &inner.semantic;
            let meaning = semantic.meaning(mailbox, &dir);
            Aids { meaning, judge: semantic.judge(&request), ..Aids::none() }
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
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(&identity));
        blocking(move || {
            let semantic = &inner.semantic;
            let eligible = eligible(&view.catalog, &semantic.never)?;
            let never = semantic.never.messages(&view.catalog)?;
            let status = |space: &Space| {
                let mut status = SpaceStatus {
                    model: space.model.name(),
                    embedded: 0,
                    pending: eligible.len(),
                    failed: 0,
                    deleting: 0,
                    passages: 0,
                    index_bytes: 0,
                };
                let mailbox = identity.mailbox;
                let there = |shape: &Shape| semantic.indexes.exists(mailbox, &dir, *shape);
                if let Some(shape) = space.vectors.filter(there) {
                    let index = semantic.indexes.get(mailbox, &dir, shape)?;
                    let (covered, failed) = (index.covered(), index.failed());
                    status.failed = eligible.intersection_len(&failed);
                    status.embedded = eligible.intersection_len(&covered) - status.failed;
                    status.pending = (&eligible - &covered).len();
                    status.deleting = covered.intersection_len(&never);
                    status.passages = u64::from(index.rows());
                    status.index_bytes = disk_bytes(index.dir());
                }
                Ok::<_, Error>(status)
            };
            let spaces = semantic.spaces();
            let (mut active, mut building) = (None, None);
            if !semantic.is_off() && !semantic.is_banned(&identity) {
                active = spaces.active.as_ref().map(&status).transpose()?;
                building = spaces.building.as_ref().map(&status).transpose()?;
            }
            let eligible = eligible.len();
            Ok(EmbedStatus { mailbox: identity.name.clone(), eligible, active, building })
        })
        .await?
    }

    /// Lets go of every vector of a mailbox: no model may be given anything of it any more.
    async fn forget_vectors(&self, identity: &Identity) -> Result<(), Error> {
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(identity));
        let mailbox = identity.mailbox;
        blocking(move || {
            inner.semantic.indexes.keep_only(mailbox, &dir, &[])?;
            for space in inner.log.spaces()? {
                let embedded = inner.log.embedded(space, mailbox)?;
                inner.log.drop_embeddings(&[space], mailbox, &embedded)?;
            }
            Ok(())
        })
        .await?
    }

    /// Takes erased messages out of the vectors of every space that is kept; those of others go.
    /// Tells how many of the messages they still hold. Called by the purge, which holds the
    /// mailbox's place.
    pub(super) async fn purge_vectors(
        &self,
        identity: &Identity,
        gone: RoaringBitmap,
    ) -> Result<u64, Error> {
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(identity));
        let mailbox = identity.mailbox;
        blocking(move || {
            let spaces: Vec<SpaceName> = inner.log.spaces()?;
            inner.log.drop_embeddings(&spaces, mailbox, &gone)?;
            let indexes = &inner.semantic.indexes;
            let kept = inner.semantic.spaces().kept();
            indexes.keep_only(mailbox, &dir, &kept)?;
            let mut left = 0;
            for shape in kept {
                left += indexes.purge(&inner.log, mailbox, &dir, shape, &gone)?;
            }
            Ok(left)
        })
        .await?
    }
}
