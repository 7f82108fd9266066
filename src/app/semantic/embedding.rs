//! Computing vectors: newest message first, a batch at a time, on threads that give way to others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::batch::{self, Place, Wanted};
use super::indexes::failed;
use super::spaces::{Shape, Space};
use crate::app::{Error, Postrider, VerifyProgress, blocking};
use crate::events::registry::Identity;
use crate::projections::build;

/// How far an embedding is, for whoever watches it, and the means to stop it.
#[derive(Debug, Default)]
pub struct EmbedProgress {
    /// Messages done and to do.
    pub counts: Arc<VerifyProgress>,
    /// Set to stop after the batch at hand; what is done stays done.
    pub stop: AtomicBool,
}

/// What an embedding does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbedOptions {
    /// Messages at most; without it, all that have no vectors.
    pub limit: Option<u64>,
    /// Ask again about passages that the model refused.
    pub retry: bool,
    /// Share of the time to work, percent, 1 to 100; the rest it pauses.
    pub duty_percent: u32,
    /// Leave a model alone that failed less than a minute ago.
    pub gated: bool,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self { limit: None, retry: false, duty_percent: 100, gated: false }
    }
}

/// What an embedding did, in the space that serves and the one that is being filled together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Embedded {
    /// Name of the mailbox.
    pub mailbox: String,
    /// Messages that a model was asked about.
    pub computed: u64,
    /// Messages whose vectors had been kept.
    pub kept: u64,
    /// Messages without a text that a model could read.
    pub empty: u64,
    /// Messages with a passage that the model refused.
    pub failed: u64,
    /// Messages with a passage that was longer than the model reads.
    pub cut: u64,
    /// Messages that are still without vectors.
    pub pending: u64,
}

impl Embedded {
    fn taken(&self) -> u64 {
        self.computed + self.kept + self.empty
    }

    fn add(&mut self, other: &Self) {
        self.computed += other.computed;
        self.kept += other.kept;
        self.empty += other.empty;
        self.failed += other.failed;
        self.cut += other.cut;
    }
}

impl Postrider {
    /// Gives vectors to messages of a mailbox that have none, newest first: in the space that
    /// serves, then in the one that is being filled. When that one is complete in every mailbox, it
    /// serves. May be stopped and run again at any time.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it is turned off; otherwise what the models or the stores say.
    pub async fn embed(
        &self,
        mailbox: &str,
        options: EmbedOptions,
        progress: Arc<EmbedProgress>,
    ) -> Result<Embedded, Error> {
        let identity = self.identity(mailbox)?;
        if options.limit == Some(0) {
            return Err(Error::Invalid { path: "limit", message: "must be at least 1".into() });
        }
        if self.inner.semantic.is_off() {
            return Err(Error::Invalid {
                path: "embedding",
                message:
                    "is `off` in the configuration; set it to minilm-l6, static-128, folder or \
                          endpoint"
                        .into(),
            });
        }
        let mut outcome = Embedded { mailbox: identity.name.clone(), ..Embedded::default() };
        if self.inner.semantic.is_banned(&identity) {
            self.forget_vectors(&identity).await?;
            return Ok(outcome);
        }
        self.inner.semantic.watch(&progress);
        let _at_work = self.inner.purges.at_work().await;
        if self.inner.semantic.is_closing() {
            return Ok(outcome);
        }
        let inner = Arc::clone(&self.inner);
        let written = move || inner.semantic.written(&inner.config, &inner.log);
        let (spaces, mut fault) = blocking(written).await??;
        if let (Some(error), false) = (&fault, spaces.is_empty()) {
            // What served cannot be had any more: what is to serve next is filled all the same.
            tracing::warn!("one of two models cannot be loaded: {error}");
            fault = None;
        }
        let mut left = options.limit.unwrap_or(u64::MAX);
        for space in spaces {
            if options.gated && self.inner.semantic.is_resting(&space) {
                outcome.pending += 1;
                continue;
            }
            let run = Run { identity: &identity, space: &space, options, progress: &progress };
            // A model that does not answer must not keep the other space from being filled.
            match self.embed_space(run, &mut left, &mut outcome).await {
                Ok(()) => {}
                Err(Error::Model(what)) => fault = fault.or(Some(Error::Model(what))),
                Err(other) => return Err(other),
            }
        }
        fault.map_or(Ok(outcome), Err)
    }

    async fn embed_space(
        &self,
        run: Run<'_>,
        left: &mut u64,
        outcome: &mut Embedded,
    ) -> Result<(), Error> {
        let Run { identity, space, options, progress } = run;
        let mailbox = identity.mailbox;
        let Some(shape) = space.vectors else { return Ok(()) };
        let dir = self.dir_of(identity);
        let place = Arc::new(Place { mailbox, dir, space: space.clone(), shape });
        let mut begin_again = options.retry;
        loop {
            let began = Instant::now();
            let wanted = Wanted { limit: *left, begin_again, ask_again: options.retry };
            let Some(done) = self.embed_batch(identity, &place, wanted, progress).await? else {
                // Cancelled, or another model serves now.
                return Ok(());
            };
            begin_again = false;
            let taken = done.taken();
            outcome.add(&done);
            *left = left.saturating_sub(taken);
            progress.counts.done.fetch_add(taken, Ordering::Relaxed);
            if done.pending == 0 {
                if let Err(error) = self.build_trees(identity, shape, progress).await {
                    // A scan finds as much.
                    tracing::warn!(mailbox = mailbox.0, "trees over vectors: {error}");
                }
                return self.completed(mailbox, shape).await;
            }
            if *left == 0 || progress.stop.load(Ordering::Relaxed) {
                outcome.pending += done.pending;
                return Ok(());
            }
            if taken == 0 {
                outcome.pending += done.pending;
                return Err(Error::Model(format!(
                    "nothing advances: {} messages stay without vectors though their model \
                     answers; `postrider verify` tells whether the mailbox is whole",
                    done.pending
                )));
            }
            let duty = options.duty_percent.clamp(1, 100);
            tokio::time::sleep(began.elapsed() * (100 - duty) / duty).await;
        }
    }

    /// One batch; `None` when its space is not written any more.
    async fn embed_batch(
        &self,
        identity: &Identity,
        place: &Arc<Place>,
        wanted: Wanted,
        progress: &Arc<EmbedProgress>,
    ) -> Result<Option<Embedded>, Error> {
        let is_written = || {
            let spaces = self.inner.semantic.spaces();
            spaces.written().any(|now| now.vectors == Some(place.shape))
        };
        let one = self.inner.purges.of(place.mailbox);
        let chosen = {
            let _one = one.lock().await;
            if !is_written() {
                return Ok(None);
            }
            let view = self.view(&self.handle(identity).await?).await?;
            let (inner, place) = (Arc::clone(&self.inner), Arc::clone(place));
            let watched = Arc::clone(progress);
            unhurried(move || batch::choose(&inner, &place, &view, wanted, &watched)).await?
        };
        let (inner, asked) = (Arc::clone(&self.inner), Arc::clone(place));
        let computed = unhurried(move || batch::compute(&inner, &asked, chosen)).await?;
        let _one = one.lock().await;
        if !is_written() {
            return Ok(None);
        }
        let view = self.view(&self.handle(identity).await?).await?;
        let (inner, place) = (Arc::clone(&self.inner), Arc::clone(place));
        unhurried(move || batch::keep(&inner, &place, &view, computed)).await.map(Some)
    }

    /// Builds trees over a very large index, beside whatever else goes on.
    async fn build_trees(
        &self,
        identity: &Identity,
        shape: Shape,
        progress: &Arc<EmbedProgress>,
    ) -> Result<(), Error> {
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(identity));
        let (mailbox, watched) = (identity.mailbox, Arc::clone(progress));
        unhurried(move || {
            let indexes = &inner.semantic.indexes;
            if !indexes.exists(mailbox, &dir, shape) {
                return Ok(());
            }
            let index = indexes.get(mailbox, &dir, shape)?;
            let stop = || watched.stop.load(Ordering::Relaxed) || inner.semantic.is_closing();
            if index.wants_trees() {
                let built = index.build_trees(stop);
                // What was stopped is begun anew another time.
                return if stop() { Ok(()) } else { built.map_err(failed) };
            }
            Ok(())
        })
        .await
    }
}

/// One mailbox on its way through one space.
struct Run<'r> {
    identity: &'r Identity,
    space: &'r Space,
    options: EmbedOptions,
    progress: &'r Arc<EmbedProgress>,
}

/// Work on a thread that gives way to others.
async fn unhurried<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, Error> + Send + 'static,
) -> Result<R, Error> {
    let done = build::unhurried(work);
    let done = done.map_err(|source| Error::Io { path: "a thread".into(), source })?;
    done.await.map_err(|_| Error::Gone)?
}
