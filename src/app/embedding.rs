//! Computing vectors: newest message first, a batch at a time, on threads that give way to others.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::semantic::{Space, failed};
use super::{Error, Inner, Postrider, VerifyProgress};
use crate::config::Embedding;
use crate::embed::chunk::{self, Chunk};
use crate::embed::{Model, ModelError, Role};
use crate::ids::{MailboxNo, Ordinal, Seq};
use crate::projections::build;
use crate::projections::catalog::prepared::Prepared;
use crate::projections::vectors::Stored;
use crate::projections::view::View;
use crate::search::semantic::eligible;

/// Messages embedded together: what a purge waits for at most.
const BATCH_MESSAGES: usize = 64;
/// Time between two looks for mail that has no vectors yet.
const LOOK: Duration = Duration::from_secs(2);
/// Time after a failure.
const REST: Duration = Duration::from_secs(60);
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

/// What an embedding did.
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
    /// Messages that are still without vectors.
    pub pending: u64,
}

impl Postrider {
    /// Gives vectors to messages of a mailbox that have none, newest first, at most `limit` of
    /// them. May be stopped and run again at any time.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it is turned off; otherwise what the model or the stores say.
    pub async fn embed(
        &self,
        mailbox: &str,
        limit: Option<u64>,
        progress: Arc<EmbedProgress>,
    ) -> Result<Embedded, Error> {
        let identity = self.identity(mailbox)?;
        if limit == Some(0) {
            return Err(Error::Invalid { path: "limit", message: "must be at least 1".into() });
        }
        if self.inner.semantic.is_banned(&identity) {
            self.forget_vectors(&identity).await?;
            return Ok(Embedded { mailbox: identity.name, ..Embedded::default() });
        }
        self.inner.semantic.watch(&progress);
        let _at_work = self.inner.purges.at_work().await;
        let mut outcome = Embedded { mailbox: identity.name.clone(), ..Embedded::default() };
        let mut left = limit.unwrap_or(u64::MAX);
        loop {
            // A purge waits for the batch at hand, and the next batch for the purge.
            let one = self.inner.purges.of(identity.mailbox);
            let _one = one.lock().await;
            let handle = self.handle(&identity).await?;
            let view = self.view(&handle).await?;
            let (inner, dir) = (Arc::clone(&self.inner), self.dir_of(&identity));
            let number = identity.mailbox;
            let watched = Arc::clone(&progress);
            let batch =
                build::unhurried(move || embed_batch(&inner, number, &dir, &view, left, &watched))
                    .map_err(|source| Error::Io { path: "a thread".into(), source })?;
            let done = batch.await.map_err(|_| Error::Gone)??;
            outcome.computed += done.computed;
            outcome.kept += done.kept;
            outcome.empty += done.empty;
            outcome.pending = done.pending;
            let taken = done.computed + done.kept + done.empty;
            left = left.saturating_sub(taken);
            progress.counts.done.fetch_add(taken, Ordering::Relaxed);
            if taken == 0 || left == 0 || done.pending == 0 || progress.stop.load(Ordering::Relaxed)
            {
                return Ok(outcome);
            }
        }
    }

    /// Gives vectors to what comes into open mailboxes, until the directory is closed.
    pub fn embed_in_background(&self) {
        if self.inner.config.embedding == Embedding::Off {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            let mut done: HashMap<MailboxNo, Seq> = HashMap::new();
            loop {
                tokio::time::sleep(LOOK).await;
                let Some(inner) = inner.upgrade() else { return };
                let postrider = Self { inner };
                if let Err(error) = postrider.embed_open(&mut done).await {
                    tracing::warn!("giving vectors to new mail failed: {error}");
                    drop(postrider);
                    tokio::time::sleep(REST).await;
                }
            }
        });
    }

    async fn embed_open(&self, done: &mut HashMap<MailboxNo, Seq>) -> Result<(), Error> {
        for identity in self.identities() {
            let Some(handle) = self.inner.running.peek(identity.mailbox).await? else { continue };
            let head = handle.head();
            if done.get(&identity.mailbox) == Some(&head) {
                continue;
            }
            let name = identity.id.to_string();
            let embedded = self.embed(&name, Some(TURN_MESSAGES), Arc::default()).await?;
            if embedded.pending == 0 {
                done.insert(identity.mailbox, head);
            }
        }
        Ok(())
    }
}

/// The passages of one message on their way through a model.
struct Work {
    ordinal: Ordinal,
    digest: [u8; 16],
    chunks: Vec<Chunk>,
    passages: Vec<String>,
}

fn embed_batch(
    inner: &Inner,
    mailbox: MailboxNo,
    dir: &Path,
    view: &View,
    limit: u64,
    progress: &EmbedProgress,
) -> Result<Embedded, Error> {
    let model = inner.semantic.model().ok_or_else(|| Error::Invalid {
        path: "embedding",
        message: "is `off` in the configuration; set it to minilm-l6 or static-128".into(),
    })??;
    let index = inner.semantic.index(mailbox, dir, &model)?;
    let space = Space::of(&model);
    let never = &inner.semantic.never;
    let stale = index.covered() & never.messages(&view.catalog)?;
    if !stale.is_empty() {
        index.remove(&stale).map_err(failed)?;
        inner.log.drop_embeddings(&inner.log.spaces()?, mailbox, &stale)?;
    }
    let pending = eligible(&view.catalog, never)? - index.covered();
    let mut done = Embedded { pending: pending.len(), ..Embedded::default() };
    let counts = &progress.counts;
    let total = counts.done.load(Ordering::Relaxed) + pending.len().min(limit);
    counts.total.fetch_max(total, Ordering::Relaxed);
    let wanted = BATCH_MESSAGES.min(usize::try_from(limit).unwrap_or(usize::MAX));
    let mut newest = Vec::with_capacity(wanted);
    view.catalog.in_date_order(&pending, true, |_, ordinal| {
        newest.push(ordinal);
        newest.len() < wanted
    })?;
    let mut ready = Vec::with_capacity(newest.len());
    let mut work = Vec::new();
    for message in view.catalog.prepared(newest)? {
        let one = passages(&message, &model);
        let kept = inner.log.embedding(space.name, mailbox, one.ordinal)?;
        let kept = kept.and_then(|bytes| Stored::decode(&bytes, space.dimensions as usize));
        match kept.filter(|stored| stored.digest == one.digest) {
            Some(stored) => {
                done.kept += 1;
                ready.push((one.ordinal, stored));
            }
            None => work.push(one),
        }
    }
    let (computed, fault) = compute(&model, &work);
    if let (Some(what), true) = (fault, ready.is_empty() && computed.is_empty()) {
        return Err(Error::Model(what.to_owned()));
    }
    for (_, stored) in &computed {
        if stored.passages.is_empty() { done.empty += 1 } else { done.computed += 1 }
    }
    let bytes: Vec<(Ordinal, Vec<u8>)> =
        computed.iter().map(|(ordinal, stored)| (*ordinal, stored.encode())).collect();
    inner.log.put_embeddings(space.name, mailbox, &bytes)?;
    ready.extend(computed);
    index.add(&ready).map_err(failed)?;
    done.pending = done.pending.saturating_sub(ready.len() as u64);
    Ok(done)
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

/// Asks the model, on as many threads as there are processors. A passage that has no vector is
/// left out; a message that the model did not answer for is tried again another time.
fn compute(model: &Model, work: &[Work]) -> (Vec<(Ordinal, Stored)>, Option<&'static str>) {
    let texts: Vec<&str> =
        work.iter().flat_map(|one| one.passages.iter().map(String::as_str)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
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
        let mut answered = true;
        for chunk in &one.chunks {
            match vectors.next() {
                Some(Ok(vector)) => {
                    places.push((chunk.start, chunk.end));
                    found.push(vector);
                }
                Some(Err(ModelError::Remote(what))) => (answered, fault) = (false, Some(what)),
                _ => {}
            }
        }
        if answered {
            computed.push((one.ordinal, Stored::new(one.digest, places, &found)));
        }
    }
    (computed, fault)
}
