//! Importing mail from files: a walk over sources, read ahead on all processors, taken in by the
//! mailbox in the order of the walk.
//!
//! Running an import again continues it: a message whose bytes are known is not even read. The
//! account adds up: `read = stored + already_there + failed`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::ingest::{FOLDER_BYTES_MAX, SOURCE_BYTES_MAX, is_name, prepare, raw_key};
use super::{Error, Postrider, blocking};
use crate::actors::MailboxHandle;
use crate::actors::admission::ByteBudget;
use crate::actors::decide::Arrival;
use crate::actors::mailbox::{Incoming, MailboxError, Outcome, Request};
use crate::events::event::Placement;
use crate::mail::message::ReadHints;
use crate::mail::sources::{Entry, Item, Options, Place, Plan, Progress, SkipReason, plan};

/// Messages handed to the mailbox at once.
const CHUNK_MESSAGES: usize = 256;
/// A chunk closes early at this many raw bytes.
const CHUNK_BYTES: usize = 4 << 20;
/// Failures and skipped files listed; all are counted.
const LISTED_MAX: usize = 1_000;

/// How to import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Put everything into this folder instead of the one the source names.
    pub folder: Option<String>,
    /// Name of the source; default `mbox`, `maildir`, `eml` or `takeout`, as it is found.
    pub source: Option<String>,
    /// Further labels for every message.
    pub labels: Vec<String>,
    /// Hears how far it is, and can stop it.
    pub progress: Arc<ImportProgress>,
}

/// How far an import is; shared with whoever watches it.
#[derive(Debug, Default)]
pub struct ImportProgress {
    /// Bytes that will be read.
    pub bytes_total: AtomicU64,
    /// Bytes read.
    pub bytes_done: AtomicU64,
    /// Messages answered for.
    pub messages: AtomicU64,
    /// Set by the watcher: read no further; what is on its way is finished.
    pub stop: AtomicBool,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Messages found: `stored + already_there + failed`.
    pub read: u64,
    /// New and durable.
    pub stored: u64,
    /// Known before, or found twice.
    pub already_there: u64,
    /// Of those already there: given a new folder or label.
    pub placed: u64,
    /// Of those counted as already there: erased before, and remembered to be refused.
    #[serde(default)]
    pub suppressed: u64,
    /// Not stored.
    pub failed: u64,
    /// Each failure, the first 1,000.
    pub failures: Vec<ImportFailure>,
    /// Files that hold no mail, the first 1,000.
    pub skipped: Vec<ImportFailure>,
    /// All files that hold no mail.
    pub skipped_files: u64,
    /// It was stopped before the end.
    pub interrupted: bool,
}

/// One thing that was not taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportFailure {
    /// Which file.
    pub file: PathBuf,
    /// Where in it, bytes.
    pub offset: u64,
    /// Why, and what to do.
    pub reason: String,
}

impl Account {
    fn fail(&mut self, file: &Path, offset: u64, reason: String) {
        self.read += 1;
        self.failed += 1;
        if self.failures.len() < LISTED_MAX {
            self.failures.push(ImportFailure { file: file.to_owned(), offset, reason });
        }
    }
}

/// What the reading side hands to the taking side.
struct Chunk {
    ready: Vec<(Incoming, Source)>,
    failed: Vec<(Place, String)>,
}

/// What is needed to read a message again.
struct Source {
    place: Place,
    /// Kept only when the message was believed to be known.
    unread: Option<Unread>,
}

struct Unread {
    entry: Entry,
    placements: Vec<Placement>,
    labels: Vec<String>,
}

struct Walk {
    plan: Vec<Plan>,
    source: Option<String>,
    labels: Vec<String>,
    handle: MailboxHandle,
    budget: ByteBudget,
    runtime: Handle,
    progress: Arc<ImportProgress>,
}

impl Postrider {
    /// Imports everything at `paths` into a mailbox, which is made when it does not exist.
    ///
    /// # Errors
    /// When a path cannot be read at all, or when durable writing fails; single messages that
    /// fail are in the account.
    pub async fn import(
        &self,
        mailbox: &str,
        paths: &[PathBuf],
        options: ImportOptions,
    ) -> Result<Account, Error> {
        if let Some(bad) = options.labels.iter().find(|l| !super::ingest::is_label(l)) {
            let message = format!("{bad:?} is not of the form [a-z0-9][a-z0-9_:-]{{0,63}}");
            return Err(Error::Invalid { path: "label", message });
        }
        if options.folder.as_ref().is_some_and(|name| !is_name(name, FOLDER_BYTES_MAX)) {
            let message = "must be 1 to 255 bytes without NUL".into();
            return Err(Error::Invalid { path: "folder", message });
        }
        if options.source.as_ref().is_some_and(|name| !is_name(name, SOURCE_BYTES_MAX)) {
            let message = "must be 1 to 64 bytes without NUL".into();
            return Err(Error::Invalid { path: "source", message });
        }
        let source_options = Options {
            folder: options.folder,
            message_bytes_max: self.inner.config.message_bytes_max,
            ..Options::default()
        };
        let paths = paths.to_vec();
        let plans = blocking(move || {
            paths.iter().map(|path| plan(path, &source_options)).collect::<Result<Vec<_>, _>>()
        })
        .await??;
        let identity = self.ensure_identity(mailbox).await?;
        let handle = self.handle(&identity).await?;
        let mut account = Account::default();
        for plan in &plans {
            account.skipped_files += plan.skipped_count;
            for skipped in &plan.skipped {
                let reason = skipped.reason.to_string();
                // Mail may lie in what cannot be read: that is a failure, not a file without mail.
                if matches!(skipped.reason, SkipReason::Unreadable(_)) {
                    account.skipped_files -= 1;
                    account.fail(&skipped.path, 0, reason);
                } else {
                    let file = skipped.path.clone();
                    account.skipped.push(ImportFailure { file, offset: 0, reason });
                }
            }
            account.skipped.truncate(LISTED_MAX);
        }
        let total: u64 = plans.iter().map(Plan::bytes_total).sum();
        options.progress.bytes_total.store(total, Ordering::Relaxed);
        let (give, chunks) = mpsc::channel(2);
        let walk = Walk {
            plan: plans,
            source: options.source,
            labels: options.labels,
            handle: handle.clone(),
            budget: self.inner.running.budget.clone(),
            runtime: Handle::current(),
            progress: Arc::clone(&options.progress),
        };
        let reading = tokio::task::spawn_blocking(move || walk.run(&give));
        take_in(&handle, chunks, &mut account, &options.progress).await?;
        reading.await.map_err(|_| Error::Gone)?;
        account.interrupted = options.progress.stop.load(Ordering::Relaxed);
        Ok(account)
    }
}

impl Walk {
    fn run(mut self, give: &mpsc::Sender<Chunk>) {
        let mut before = 0;
        for plan in std::mem::take(&mut self.plan) {
            let total = plan.bytes_total();
            let mut reader = plan.read();
            let position = reader.progress();
            loop {
                let (entries, failed) = self.gather(&mut reader, &position, before);
                if entries.is_empty() && failed.is_empty() {
                    break;
                }
                let Some(chunk) = self.prepare(entries, failed) else { return };
                if give.blocking_send(chunk).is_err() {
                    return;
                }
            }
            before += total;
        }
    }

    fn gather(
        &self,
        reader: &mut impl Iterator<Item = Item>,
        position: &Progress,
        before: u64,
    ) -> (Vec<Entry>, Vec<(Place, String)>) {
        let (mut entries, mut failed, mut bytes) = (Vec::new(), Vec::new(), 0);
        while entries.len() < CHUNK_MESSAGES && failed.len() < CHUNK_MESSAGES && bytes < CHUNK_BYTES
        {
            if self.progress.stop.load(Ordering::Relaxed) {
                break;
            }
            match reader.next() {
                Some(Item::Entry(entry)) => {
                    bytes += entry.raw.len();
                    entries.push(entry);
                }
                Some(Item::Failure(failure)) => {
                    failed.push((failure.place, failure.reason.to_string()));
                }
                None => break,
            }
        }
        self.progress.bytes_done.store(before + position.bytes_done(), Ordering::Relaxed);
        (entries, failed)
    }

    /// Reads the messages of a chunk on all processors; `None` when the program is going down.
    fn prepare(&self, entries: Vec<Entry>, mut failed: Vec<(Place, String)>) -> Option<Chunk> {
        let bytes = entries.iter().map(|e| e.raw.len()).sum();
        // One permit for the chunk: taking them one by one could deadlock two imports.
        let mut permit = Some(self.runtime.block_on(self.budget.admit(bytes))?);
        let read: Vec<_> = entries.into_par_iter().map(|entry| self.one(entry)).collect();
        let mut ready = Vec::new();
        for one in read {
            match one {
                Ok((mut incoming, source)) => {
                    incoming.permit = permit.take();
                    ready.push((incoming, source));
                }
                Err(failure) => failed.push(failure),
            }
        }
        Some(Chunk { ready, failed })
    }

    fn one(&self, entry: Entry) -> Result<(Incoming, Source), (Place, String)> {
        let raw = raw_key(&entry.raw);
        let known = self
            .handle
            .published
            .borrow()
            .clone()
            .is_some_and(|view| matches!(view.catalog.by_raw_key(&raw), Ok(Some(_))));
        if known {
            let (placements, labels) = self.places(&entry);
            let arrival = Arrival {
                raw,
                content: None,
                placements: placements.clone(),
                labels: labels.clone(),
            };
            let incoming = Incoming {
                arrival,
                compressed: Vec::new(),
                message: None,
                hints: ReadHints::default(),
                permit: None,
            };
            let place = entry.place.clone();
            let unread = Some(Unread { entry, placements, labels });
            return Ok((incoming, Source { place, unread }));
        }
        self.read(&entry)
            .map(|incoming| (incoming, Source { place: entry.place.clone(), unread: None }))
            .map_err(|error| (entry.place, error.to_string()))
    }

    fn read(&self, entry: &Entry) -> Result<Incoming, Error> {
        let (placements, labels) = self.places(entry);
        read(entry, placements, labels)
    }

    fn places(&self, entry: &Entry) -> (Vec<Placement>, Vec<String>) {
        let placements = std::iter::once(&entry.folder)
            .chain(&entry.more_folders)
            .map(|folder| Placement {
                folder: folder[..folder.floor_char_boundary(FOLDER_BYTES_MAX)].replace('\0', ""),
                source: self.source.clone().unwrap_or_else(|| entry.kind.source_name().to_owned()),
            })
            .collect();
        (placements, entry.labels.iter().chain(&self.labels).cloned().collect())
    }
}

fn read(entry: &Entry, placements: Vec<Placement>, labels: Vec<String>) -> Result<Incoming, Error> {
    let hints =
        ReadHints { separator_ms: entry.separator_ms, file_ms: entry.file_ms, arrived_ms: None };
    prepare(&entry.raw, hints, placements, labels)
}

/// Hands chunks to the mailbox, one ahead of the answers, and keeps the account.
async fn take_in(
    handle: &MailboxHandle,
    mut chunks: mpsc::Receiver<Chunk>,
    account: &mut Account,
    progress: &ImportProgress,
) -> Result<(), Error> {
    let mut before: Option<(Answer, Vec<Source>)> = None;
    loop {
        let chunk = chunks.recv().await;
        let mut next = None;
        if let Some(Chunk { ready, failed }) = chunk {
            for (place, reason) in failed {
                account.fail(&place.path, place.offset, reason);
            }
            let (incoming, sources): (Vec<_>, Vec<_>) = ready.into_iter().unzip();
            next = Some((send(handle, incoming).await?, sources));
        }
        if let Some((answer, sources)) = before.take() {
            settle(handle, answer, sources, account).await?;
            progress.messages.store(account.read, Ordering::Relaxed);
        }
        match next {
            Some(sent) => before = Some(sent),
            None => return Ok(()),
        }
    }
}

/// An answer on its way; the mailbox stays open until it is there.
struct Answer {
    outcomes: oneshot::Receiver<Result<Vec<Outcome>, MailboxError>>,
    _place: OwnedSemaphorePermit,
}

impl Answer {
    async fn get(self) -> Result<Vec<Outcome>, Error> {
        Ok(self.outcomes.await.map_err(|_| Error::Gone)??)
    }
}

async fn send(handle: &MailboxHandle, incoming: Vec<Incoming>) -> Result<Answer, Error> {
    let place = Arc::clone(&handle.admission).acquire_owned().await.map_err(|_| Error::Gone)?;
    let (reply, outcomes) = oneshot::channel();
    handle.actor.cast(Request::Ingest(incoming, reply)).map_err(|_| Error::Gone)?;
    Ok(Answer { outcomes, _place: place })
}

async fn settle(
    handle: &MailboxHandle,
    answer: Answer,
    sources: Vec<Source>,
    account: &mut Account,
) -> Result<(), Error> {
    let outcomes = answer.get().await?;
    for (outcome, source) in outcomes.into_iter().zip(sources) {
        match outcome {
            Outcome::Stored { .. } => account.stored += 1,
            Outcome::Duplicate { placed, .. } => {
                account.already_there += 1;
                account.placed += u64::from(placed.is_some());
            }
            Outcome::Suppressed => {
                account.already_there += 1;
                account.suppressed += 1;
            }
            Outcome::NotRead => {
                again(handle, source, account).await?;
                continue;
            }
        }
        account.read += 1;
    }
    Ok(())
}

/// A message that was known when it was met and is gone now: it is read after all.
async fn again(handle: &MailboxHandle, source: Source, account: &mut Account) -> Result<(), Error> {
    let Source { place, unread } = source;
    let Some(Unread { entry, placements, labels }) = unread else { return Err(Error::Gone) };
    let incoming = blocking(move || read(&entry, placements, labels)).await?;
    let incoming = match incoming {
        Ok(incoming) => incoming,
        Err(error) => {
            account.fail(&place.path, place.offset, error.to_string());
            return Ok(());
        }
    };
    let outcomes = send(handle, vec![incoming]).await?.get().await?;
    match outcomes.first() {
        Some(Outcome::Stored { .. }) => account.stored += 1,
        Some(Outcome::Duplicate { .. }) => account.already_there += 1,
        Some(Outcome::Suppressed) => {
            account.already_there += 1;
            account.suppressed += 1;
        }
        Some(Outcome::NotRead) | None => return Err(Error::Gone),
    }
    account.read += 1;
    Ok(())
}
