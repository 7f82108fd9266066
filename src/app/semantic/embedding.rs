//! Computing vectors: newest message first, a batch at a time, on threads that give way to others.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::indexes::failed;
use super::spaces::{Shape, Space};
use crate::app::{Error, Inner, Postrider, VerifyProgress, blocking};
use crate::crash_point;
use crate::embed::chunk::{self, Chunk};
use crate::embed::{Fingerprint, Model, ModelError, Role};
use crate::events::registry::Identity;
use crate::ids::{MailboxNo, Ordinal, Seq};
use crate::projections::build;
use crate::projections::catalog::prepared::Prepared;
use crate::projections::vectors::Stored;
use crate::projections::view::View;
use crate::search::semantic::eligible;

/// Messages embedded together: what a purge waits for at most.
const BATCH_MESSAGES: usize = 64;
/// Time between two looks for mail that has no vectors yet.
const LOOK: Duration = Duration::from_millis(250);
/// Time after a failure.
const REST: Duration = Duration::from_secs(60);
/// Time between two tries of what a model refused (Pylota Mail search §6.6: every night).
const RECONCILE: Duration = Duration::from_secs(24 * 3_600);
/// Messages embedded for one mailbox before the others have their turn.
const TURN_MESSAGES: u64 = 512;

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
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self { limit: None, retry: false, duty_percent: 100 }
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
                message: "is `off` in the configuration; set it to minilm-l6 or static-128".into(),
            });
        }
        let mut outcome = Embedded { mailbox: identity.name.clone(), ..Embedded::default() };
        if self.inner.semantic.is_banned(&identity) {
            self.forget_vectors(&identity).await?;
            return Ok(outcome);
        }
        self.inner.semantic.watch(&progress);
        let _at_work = self.inner.purges.at_work().await;
        let inner = Arc::clone(&self.inner);
        let (spaces, mut fault) = blocking(move || inner.semantic.written(&inner.config)).await??;
        let mut left = options.limit.unwrap_or(u64::MAX);
        for space in spaces {
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
        let mut retry = options.retry;
        loop {
            // A purge waits for the batch at hand, and the next batch for the purge.
            let one = self.inner.purges.of(mailbox);
            let held = one.lock().await;
            if !self.inner.semantic.spaces().written().any(|now| now.vectors == Some(shape)) {
                // Cancelled, or another model serves now.
                return Ok(());
            }
            let handle = self.handle(identity).await?;
            let view = self.view(&handle).await?;
            let (inner, dir, space) =
                (Arc::clone(&self.inner), self.dir_of(identity), space.clone());
            let (limit, watched, began) = (*left, Arc::clone(progress), Instant::now());
            let batch = build::unhurried(move || {
                let batch = Batch { mailbox, dir: &dir, view: &view, limit, retry };
                batch.embed(&inner, &space, &watched)
            });
            let batch = batch.map_err(|source| Error::Io { path: "a thread".into(), source })?;
            let done = batch.await.map_err(|_| Error::Gone)??;
            retry = false;
            let taken = done.taken();
            outcome.add(&done);
            *left = left.saturating_sub(taken);
            progress.counts.done.fetch_add(taken, Ordering::Relaxed);
            if done.pending == 0 {
                drop(held);
                self.build_trees(identity, shape, progress).await?;
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

    /// Builds trees over a very large index, beside whatever else goes on.
    async fn build_trees(
        &self,
        identity: &Identity,
        shape: Shape,
        progress: &Arc<EmbedProgress>,
    ) -> Result<(), Error> {
        let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(identity));
        let (mailbox, watched) = (identity.mailbox, Arc::clone(progress));
        let index = blocking(move || inner.semantic.indexes.get(mailbox, &dir, shape)).await??;
        if !index.wants_trees() {
            return Ok(());
        }
        let built = build::unhurried(move || {
            let stop = || watched.stop.load(Ordering::Relaxed);
            let built = index.build_trees(stop);
            // What was stopped is begun anew another time.
            if stop() { Ok(()) } else { built }
        });
        let built = built.map_err(|source| Error::Io { path: "a thread".into(), source })?;
        built.await.map_err(|_| Error::Gone)?.map_err(failed)
    }

    /// Gives vectors to what comes into open mailboxes, and to every mailbox while a space is being
    /// filled, until the directory is closed.
    pub fn embed_in_background(&self) {
        if self.inner.semantic.is_off() {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            let mut done = Done::default();
            let mut reconciled = Instant::now();
            let mut retry = false;
            loop {
                tokio::time::sleep(LOOK).await;
                let Some(inner) = inner.upgrade() else { return };
                let postrider = Self { inner };
                if reconciled.elapsed() >= RECONCILE {
                    (reconciled, retry) = (Instant::now(), true);
                    done.clear();
                }
                let looked = postrider.embed_pending(&mut done, retry).await;
                retry = false;
                if let Err(error) = looked {
                    tracing::warn!("giving vectors to mail failed: {error}");
                    drop(postrider);
                    tokio::time::sleep(REST).await;
                }
            }
        });
    }

    /// One look. A mailbox that fails does not keep the others from their turn.
    async fn embed_pending(&self, done: &mut Done, retry: bool) -> Result<(), Error> {
        let building = self.inner.semantic.building();
        let open = self.inner.running.open().await?;
        let open: HashMap<MailboxNo, Seq> =
            open.into_iter().map(|(mailbox, handle)| (mailbox, handle.head())).collect();
        if building.is_none() && open.iter().all(|(m, head)| done.get(m) == Some(&(*head, None))) {
            return Ok(());
        }
        let mut fault = Ok(());
        for identity in self.identities() {
            let head = match open.get(&identity.mailbox) {
                Some(head) => *head,
                None if building.is_some_and(|b| !self.is_complete(identity.mailbox, b)) => {
                    match self.handle(&identity).await {
                        Ok(handle) => handle.head(),
                        Err(error) => {
                            fault = Err(error);
                            continue;
                        }
                    }
                }
                None => continue,
            };
            if done.get(&identity.mailbox) == Some(&(head, building)) {
                continue;
            }
            let options = EmbedOptions {
                limit: Some(TURN_MESSAGES),
                retry,
                duty_percent: self.inner.config.embedding_duty_percent,
            };
            match self.embed(&identity.id.to_string(), options, Arc::default()).await {
                Ok(embedded) if embedded.pending == 0 => {
                    done.insert(identity.mailbox, (head, building));
                }
                Ok(_) => {}
                // Erased meanwhile.
                Err(Error::NoSuchMailbox) => {}
                Err(error) => fault = Err(error),
            }
        }
        fault
    }
}

/// Up to where mailboxes are complete, and in which space that was being filled.
type Done = HashMap<MailboxNo, (Seq, Option<Fingerprint>)>;

/// One mailbox on its way through one space.
struct Run<'r> {
    identity: &'r Identity,
    space: &'r Space,
    options: EmbedOptions,
    progress: &'r Arc<EmbedProgress>,
}

/// The passages of one message on their way through a model.
struct Work {
    ordinal: Ordinal,
    digest: [u8; 16],
    chunks: Vec<Chunk>,
    passages: Vec<String>,
}

/// The next messages of a mailbox in a space.
struct Batch<'b> {
    mailbox: MailboxNo,
    dir: &'b Path,
    view: &'b View,
    limit: u64,
    /// Ask again about what the model refused.
    retry: bool,
}

impl Batch<'_> {
    fn embed(
        &self,
        inner: &Inner,
        space: &Space,
        progress: &EmbedProgress,
    ) -> Result<Embedded, Error> {
        let (semantic, mailbox, catalog) = (&inner.semantic, self.mailbox, &self.view.catalog);
        let (model, Shape { fingerprint, dimensions }) = semantic.model_of(space)?;
        semantic.indexes.keep_only(mailbox, self.dir, &semantic.spaces().kept())?;
        let index = semantic.indexes.get(mailbox, self.dir, Shape { fingerprint, dimensions })?;
        let never = &semantic.never;
        let stale = index.covered() & never.messages(catalog)?;
        if !stale.is_empty() {
            index.remove(&stale).map_err(failed)?;
            inner.log.drop_embeddings(&inner.log.spaces()?, mailbox, &stale)?;
        }
        if self.retry {
            index.remove(&index.failed()).map_err(failed)?;
        }
        let pending = eligible(catalog, never)? - index.covered();
        let mut done = Embedded { pending: pending.len(), ..Embedded::default() };
        let counts = &progress.counts;
        let total = counts.done.load(Ordering::Relaxed) + pending.len().min(self.limit);
        counts.total.fetch_max(total, Ordering::Relaxed);
        let wanted = BATCH_MESSAGES.min(usize::try_from(self.limit).unwrap_or(usize::MAX));
        let mut newest = Vec::with_capacity(wanted);
        catalog.in_date_order(&pending, true, |_, ordinal| {
            newest.push(ordinal);
            newest.len() < wanted
        })?;
        let mut ready = Vec::with_capacity(newest.len());
        let mut work = Vec::new();
        for message in catalog.prepared(newest)? {
            let one = passages(&message, &model);
            let kept = inner.log.embedding(fingerprint.0, mailbox, one.ordinal)?;
            let kept = kept.and_then(|bytes| Stored::decode(&bytes, dimensions as usize));
            let kept = kept
                .filter(|stored| stored.digest == one.digest && !(self.retry && stored.failed > 0));
            match kept {
                Some(stored) => {
                    done.kept += 1;
                    ready.push((one.ordinal, stored));
                }
                None => work.push(one),
            }
        }
        if !work.is_empty() && model.is_remote() {
            semantic.refer(&inner.config, space)?;
        }
        let (computed, fault) = compute(&model, &work);
        if let (Some(what), true) = (fault, ready.is_empty() && computed.is_empty()) {
            return Err(Error::Model(what.to_owned()));
        }
        for (_, stored) in &computed {
            done.failed += u64::from(stored.failed > 0);
            done.cut += u64::from(stored.cut > 0);
            let is_empty = stored.passages.is_empty() && stored.failed == 0;
            if is_empty { done.empty += 1 } else { done.computed += 1 }
        }
        let bytes: Vec<(Ordinal, Vec<u8>)> =
            computed.iter().map(|(ordinal, stored)| (*ordinal, stored.encode())).collect();
        inner.log.put_embeddings(fingerprint.0, mailbox, &bytes)?;
        crash_point::reach("embedding kept");
        ready.extend(computed);
        index.add(&ready).map_err(failed)?;
        crash_point::reach("embedding indexed");
        done.pending = done.pending.saturating_sub(ready.len() as u64);
        Ok(done)
    }
}

fn passages(message: &Prepared, model: &Model) -> Work {
    let limits = model.profile().limits();
    let text = message.new_text();
    let chunks = chunk::chunks(&message.subject, &text, limits);
    let passages =
        chunks.iter().map(|c| chunk::passage(&message.subject, &text, c, limits)).collect();
    let digest = chunk::digest(&message.subject, &text, limits);
    Work { ordinal: message.ordinal, digest, chunks, passages }
}

/// Asks the model, on as many threads as it may be asked on. A passage that it refuses is counted
/// and left out; a message that it did not answer for is tried again another time.
fn compute(model: &Model, work: &[Work]) -> (Vec<(Ordinal, Stored)>, Option<&'static str>) {
    let texts: Vec<&str> =
        work.iter().flat_map(|one| one.passages.iter().map(String::as_str)).collect();
    let threads = model.at_once();
    let share = texts.len().div_ceil(threads).max(1);
    let vectors: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = texts
            .chunks(share)
            .map(|part| scope.spawn(move || model.embed(Role::Passage, part)))
            .collect();
        // A thread that died gives nothing; its messages are tried again.
        running.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    if vectors.len() < texts.len() {
        return (Vec::new(), Some("the model died"));
    }
    let mut fault = None;
    let mut vectors = vectors.into_iter();
    let mut computed = Vec::with_capacity(work.len());
    for one in work {
        let (mut places, mut found) = (Vec::new(), Vec::new());
        let (mut answered, mut failed, mut cut) = (true, 0, 0);
        for chunk in &one.chunks {
            match vectors.next() {
                Some(Ok(vector)) => {
                    places.push((chunk.start, chunk.end));
                    cut += u32::from(vector.cut);
                    found.push(vector.values);
                }
                Some(Err(ModelError::Remote(what))) => (answered, fault) = (false, Some(what)),
                Some(Err(ModelError::Refused(_))) => failed += 1,
                _ => {}
            }
        }
        if answered {
            let mut stored = Stored::new(one.digest, places, &found);
            (stored.failed, stored.cut) = (failed, cut);
            computed.push((one.ordinal, stored));
        }
    }
    (computed, fault)
}
