//! Vectors of the mailboxes: which models, where their indexes lie, and what a search asks of them.
//!
//! What was computed is kept sealed in the log, so that an index that is lost or purged is filled
//! again without asking a model.

mod background;
mod batch;
mod choice;
mod embedding;
mod indexes;
mod mailbox;
mod reembed;
mod spaces;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use self::choice::{Choice, RerankChoice};
pub use self::embedding::{EmbedOptions, EmbedProgress, Embedded};
use self::indexes::Indexes;
pub use self::mailbox::{EmbedStatus, SpaceStatus};
pub use self::reembed::{Estimate, Pruned, SpacesOut};
use self::spaces::{Shape, Space, Spaces};
use super::{Error, Postrider, blocking};
use crate::config::{Config, NeverEmbed};
use crate::embed::Model;
use crate::embed::remote::GATE;
use crate::events::Log;
use crate::events::registry::Identity;
use crate::ids::ThreadId;
use crate::projections::vectors::Vectors;
use crate::search::request::{Capability, Mode};
use crate::search::rerank::Judge;
use crate::search::semantic::{Meaning, Never};
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
    /// Models that could not be loaded, when, and why: left alone for a minute.
    unloadable: Mutex<Vec<(Choice, Instant, String)>>,
    /// Held by whoever loads one: the loaded ones are used meanwhile.
    loading: Mutex<()>,
    /// The directory is about to be closed.
    closing: AtomicBool,
    /// Who ranks again, as the settings name it.
    reranking: Option<RerankChoice>,
    reranker: Mutex<Option<Judge>>,
    indexes: Indexes,
    /// Which mailboxes are complete in the space that is being filled.
    complete: Mutex<reembed::Complete>,
    /// Embeddings at work.
    running: Mutex<Vec<Weak<EmbedProgress>>>,
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
            unloadable: Mutex::default(),
            loading: Mutex::default(),
            closing: AtomicBool::new(false),
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
            if !changed.has_roles_of(&spaces) {
                // What was seen complete says nothing of what is being filled now.
                *lock(&self.complete) = reembed::Complete::default();
            }
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
        if let Some(model) = self.loaded(&space.model) {
            return Ok(model);
        }
        let _loading = lock(&self.loading);
        if let Some(model) = self.loaded(&space.model) {
            return Ok(model);
        }
        if let Some(why) = self.why_unloadable(&space.model) {
            return Err(Error::Model(why));
        }
        let reference = space.reference.as_ref().map(spaces::Reference::values);
        let model = match space.model.load(reference, &self.data_dir) {
            Ok(model) => model,
            Err(error) => {
                let why = error.to_string();
                let mut unloadable = lock(&self.unloadable);
                let known = unloadable.iter().any(|(known, ..)| *known == space.model);
                if !known {
                    tracing::warn!("searches by meaning are degraded: {why}");
                }
                unloadable.retain(|(known, ..)| *known != space.model);
                unloadable.push((space.model.clone(), Instant::now(), why.clone()));
                return Err(Error::Model(why));
            }
        };
        lock(&self.unloadable).retain(|(known, ..)| *known != space.model);
        let mut loaded = lock(&self.loaded);
        if loaded.len() >= LOADED_MAX {
            loaded.remove(0);
        }
        loaded.push((space.model.clone(), Arc::clone(&model)));
        Ok(model)
    }

    fn loaded(&self, choice: &Choice) -> Option<Arc<Model>> {
        let loaded = lock(&self.loaded);
        loaded.iter().find(|(known, _)| known == choice).map(|(_, model)| Arc::clone(model))
    }

    /// Why a model could not be loaded less than a minute ago.
    fn why_unloadable(&self, choice: &Choice) -> Option<String> {
        let unloadable = lock(&self.unloadable);
        let known = unloadable.iter().find(|(known, at, _)| known == choice && at.elapsed() < GATE);
        known.map(|(_, _, why)| why.clone())
    }

    /// Whether the model of a space is to be left alone: it failed less than a minute ago.
    fn is_resting(&self, space: &Space) -> bool {
        self.why_unloadable(&space.model).is_some()
            || self.loaded(&space.model).is_some_and(|model| !model.may_be_asked())
    }

    /// Whether the directory is about to be closed.
    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Whether searches by meaning can be answered, as far as the last attempt tells. Nothing is
    /// loaded or asked for it.
    pub(super) fn capability(&self) -> Capability {
        let (false, Some(active)) = (self.is_off(), &self.spaces().active) else {
            return Capability::Inactive;
        };
        let other = self.loaded(&active.model).is_some_and(|model| {
            let shape = Shape::of(model.profile());
            active.vectors.is_some_and(|known| known != shape)
        });
        if !other && !self.is_resting(active) {
            Capability::Available
        } else {
            Capability::Degraded
        }
    }

    /// Sees to it that a model behind an address is told from another that takes its place: by a
    /// vector that is kept in the log beside those of its space.
    fn refer(&self, config: &Config, log: &Log, model: &Model, shape: Shape) -> Result<(), Error> {
        let known = |space: &Space| space.vectors == Some(shape) && space.reference.is_some();
        if self.spaces().written().any(known) {
            return Ok(());
        }
        let space = shape.fingerprint.0;
        if let Some(reference) = log.reference(space)? {
            model.refer(reference);
        }
        let reference = model.reference().map_err(|error| Error::Model(error.to_string()))?;
        let Some(reference) = reference else { return Ok(()) };
        log.put_reference(space, &reference)?;
        self.change(config, |spaces| spaces.refer(shape, &reference))
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
    fn written(&self, config: &Config, log: &Log) -> Result<(Vec<Space>, Option<Error>), Error> {
        let mut fault = None;
        for space in self.spaces().written() {
            match self.load(space) {
                Ok(model) => {
                    let shape = Shape::of(model.profile());
                    self.change(config, |spaces| spaces.resolve(&space.model, shape))?;
                    if let Some(reference) = log.reference(shape.fingerprint.0)? {
                        // What was kept goes with the model that it came from.
                        self.change(config, |spaces| spaces.refer(shape, &reference))?;
                        model.refer(reference);
                    }
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
        let mut judge = lock(&self.reranker);
        if let Some(known) = &*judge {
            return known.clone();
        }
        let loaded = match choice.load() {
            Ok(loaded) => Judge::Ready(Arc::new(loaded)),
            Err(error) => {
                tracing::warn!("searches are not ranked again until a restart: {error}");
                Judge::Broken(choice.name())
            }
        };
        judge.insert(loaded).clone()
    }

    /// Makes an embedding end when the directory is closed.
    fn watch(&self, progress: &Arc<EmbedProgress>) {
        let mut running = lock(&self.running);
        running.retain(|known| known.strong_count() > 0);
        running.push(Arc::downgrade(progress));
    }

    /// Asks every embedding to end after the batch at hand.
    pub(super) fn stop(&self) {
        self.closing.store(true, Ordering::Relaxed);
        for progress in lock(&self.running).drain(..).filter_map(|progress| progress.upgrade()) {
            progress.stop.store(true, Ordering::Relaxed);
        }
        // What is being asked of an address is not waited for.
        lock(&self.loaded).iter().for_each(|(_, model)| model.close());
        if let Some(Judge::Ready(reranker)) = &*lock(&self.reranker) {
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
        let index = match self.indexes.get(mailbox, dir, shape) {
            Ok(index) if index.is_empty() => return Meaning::Empty(name),
            Ok(index) => index,
            Err(error) => {
                tracing::warn!(mailbox = mailbox.0, "vectors cannot be read: {error}");
                return Meaning::Degraded { name, index: None, never: self.never.clone() };
            }
        };
        self.asking(active, name, index)
    }

    /// Vectors with their model, when it can be had.
    fn asking(&self, space: &Space, name: String, index: Arc<Vectors>) -> Meaning {
        let never = Arc::clone(&self.never);
        match self.model_of(space) {
            Ok((model, _)) => Meaning::Ready { name, model, index, never },
            Err(_) => Meaning::Degraded { name, index: Some(index), never },
        }
    }
}

/// What a one-shot search asks of a directory that nobody has open: as [`Postrider::search`], but
/// nothing is written except the count of texts that an endpoint was given.
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
        let (name, index, never) = (String::new(), None, Arc::default());
        return Aids { meaning: Meaning::Degraded { name, index, never }, ..Aids::none() };
    };
    if semantic.is_off() || semantic.is_banned(identity) {
        return Aids::none();
    }
    Aids { meaning: closed_meaning(&semantic, dir), judge: semantic.judge(request), ..Aids::none() }
}

fn closed_meaning(semantic: &Semantic, dir: &Path) -> Meaning {
    let wanted = || semantic.wanted.as_ref().map_or_else(String::new, Choice::name);
    let mut spaces = semantic.spaces().as_ref().clone();
    if let Some(wanted) = &semantic.wanted {
        // The address that is set now, not the one that was.
        spaces.take_way(wanted);
    }
    let Some(active) = &spaces.active else { return Meaning::Empty(wanted()) };
    let name = active.model.name();
    let index = active.vectors.and_then(|shape| indexes::read_only(dir, shape));
    let Some(index) = index.filter(|index| !index.is_empty()) else { return Meaning::Empty(name) };
    semantic.asking(active, name, Arc::new(index))
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
}
