//! Indexes of vectors on disk: one for each mailbox and space, in generations like every
//! projection, filled from what the log keeps.
//!
//! An index that was not closed well is read through before it is trusted; one that was changed
//! since it was closed, or fails that, is thrown away rather than mended.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roaring::RoaringBitmap;

use super::spaces::Shape;
use crate::app::Error;
use crate::embed::Fingerprint;
use crate::events::Log;
use crate::ids::{MailboxNo, Ordinal, Seq};
use crate::projections::ProjectionError;
use crate::projections::generation::{Generations, Trust};
use crate::projections::vectors::{self, Stored, VectorError, Vectors};

/// Indexes kept open.
const OPEN_MAX: usize = 64;
/// Messages put into an index together.
const REFILL_MESSAGES: usize = 1_024;

/// Open indexes.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    open: Mutex<HashMap<(MailboxNo, Fingerprint), Open>>,
    /// Held by whoever opens one.
    opening: Mutex<()>,
}

#[derive(Debug)]
struct Open {
    vectors: Arc<Vectors>,
    generations: Generations,
    path: PathBuf,
}

impl Open {
    /// Closes an index that nobody uses; another is filled anew at its next opening.
    fn close(self) {
        let Ok(vectors) = Arc::try_unwrap(self.vectors) else { return };
        if vectors.is_distrusted() {
            return;
        }
        let closed = vectors.close().map_err(failed);
        let marked = closed.and_then(|()| Ok(self.generations.mark(&self.path, Seq::ZERO)?));
        if let Err(error) = marked {
            tracing::warn!("closing vectors: {error}");
        }
    }
}

pub(super) fn failed(error: VectorError) -> Error {
    Error::Projection(ProjectionError::from(error))
}

fn kind(space: Fingerprint) -> String {
    format!("vectors-{space}")
}

pub(super) fn generations(dir: &Path, space: Fingerprint) -> Generations {
    Generations::new(dir, kind(space), vectors::LAYOUT)
}

/// The index of a mailbox in a directory that nobody has open.
pub(super) fn read_only(dir: &Path, shape: Shape) -> Option<Vectors> {
    let generations = generations(dir, shape.fingerprint);
    let path = generations.current().ok()??;
    let trust = generations.trust(&path).ok()?.0;
    if trust != Trust::Clean {
        return None;
    }
    Vectors::open_read_only(&path, shape.dimensions).ok()
}

impl Indexes {
    fn open(&self) -> MutexGuard<'_, HashMap<(MailboxNo, Fingerprint), Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is one: told without opening it.
    pub(super) fn exists(&self, mailbox: MailboxNo, dir: &Path, shape: Shape) -> bool {
        self.open().contains_key(&(mailbox, shape.fingerprint))
            || matches!(generations(dir, shape.fingerprint).current(), Ok(Some(_)))
    }

    /// The index of a mailbox in a space; one that cannot be trusted gives way to an empty one.
    pub(super) fn get(
        &self,
        mailbox: MailboxNo,
        dir: &Path,
        shape: Shape,
    ) -> Result<Arc<Vectors>, Error> {
        let key = (mailbox, shape.fingerprint);
        if let Some(known) = self.known(key) {
            return Ok(known);
        }
        // Reading one through must not keep searches of the others waiting.
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.known(key) {
            return Ok(known);
        }
        self.open().retain(|_, index| !index.vectors.is_distrusted());
        let idle: Vec<Open> = {
            let mut open = self.open();
            let room = open.len() < OPEN_MAX;
            let is_idle = |index: &Open| !room && Arc::strong_count(&index.vectors) == 1;
            open.extract_if(|_, index| is_idle(index)).map(|(_, index)| index).collect()
        };
        idle.into_iter().for_each(Open::close);
        let generations = generations(dir, shape.fingerprint);
        let opened = match generations.current()? {
            Some(path) => trusted(&generations, &path, shape).map(|vectors| (vectors, path)),
            None => Err("there is none"),
        };
        let (vectors, path) = match opened {
            Ok(opened) => opened,
            Err(reason) => {
                tracing::debug!(mailbox = mailbox.0, "vectors begin anew: {reason}");
                begin(&generations, shape)?
            }
        };
        let vectors = Arc::new(vectors);
        self.open().insert(key, Open { vectors: Arc::clone(&vectors), generations, path });
        Ok(vectors)
    }

    fn known(&self, key: (MailboxNo, Fingerprint)) -> Option<Arc<Vectors>> {
        let open = self.open();
        let known = open.get(&key).filter(|index| !index.vectors.is_distrusted())?;
        Some(Arc::clone(&known.vectors))
    }

    /// Lets go of every index of a mailbox that is not one of these, and removes it from disk.
    pub(super) fn keep_only(
        &self,
        mailbox: MailboxNo,
        dir: &Path,
        kept: &[Shape],
    ) -> Result<u64, Error> {
        let is_kept = |space: Fingerprint| kept.iter().any(|shape| shape.fingerprint == space);
        self.open().retain(|(of, space), _| *of != mailbox || is_kept(*space));
        let kinds: Vec<String> =
            kept.iter().map(|shape| format!("{}-f", kind(shape.fingerprint))).collect();
        let mut removed = 0;
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            let bare = name.strip_prefix("previous-").unwrap_or(&name);
            if !bare.starts_with("vectors-") || kinds.iter().any(|kind| bare.starts_with(kind)) {
                continue;
            }
            let io = |source| Error::Io { path: path.clone(), source };
            if path.is_dir() {
                std::fs::remove_dir_all(&path).map_err(io)?;
                removed += 1;
            } else {
                std::fs::remove_file(&path).map_err(io)?;
            }
        }
        Ok(removed)
    }

    /// Takes erased messages out of an index: one without a trace of them takes its place. Tells
    /// how many of them it still holds.
    pub(super) fn purge(
        &self,
        log: &Log,
        mailbox: MailboxNo,
        dir: &Path,
        shape: Shape,
        gone: &RoaringBitmap,
    ) -> Result<u64, Error> {
        if !self.exists(mailbox, dir, shape) {
            return Ok(0);
        }
        let old = self.get(mailbox, dir, shape)?;
        if old.has_bytes_of().is_disjoint(gone) {
            return old.held(gone).map_err(failed);
        }
        let kept = old.covered() - gone;
        // From here on the old one is nobody's: when this fails, the next to ask begins anew. What
        // its readers still hold shows nothing that the catalog does not.
        self.open().remove(&(mailbox, shape.fingerprint));
        drop(old);
        let generations = generations(dir, shape.fingerprint);
        let (fresh, path) = begin(&generations, shape)?;
        refill(log, shape, mailbox, &kept, &fresh)?;
        let left = fresh.held(gone).map_err(failed)?;
        let vectors = Arc::new(fresh);
        self.open().insert((mailbox, shape.fingerprint), Open { vectors, generations, path });
        Ok(left)
    }

    /// Lets go of every index of a mailbox.
    pub(super) fn forget(&self, mailbox: MailboxNo) {
        self.open().retain(|(of, _), _| *of != mailbox);
    }

    /// Closes every index.
    pub(super) fn close(&self) {
        self.open().drain().for_each(|(_, index)| index.close());
    }
}

fn trusted(generations: &Generations, path: &Path, shape: Shape) -> Result<Vectors, &'static str> {
    let open = || Vectors::open(path, shape.dimensions).map_err(|_| "it cannot be opened");
    match generations.trust(path).map(|(trust, _)| trust) {
        Ok(Trust::Clean) => {
            // From here on only a good close makes it clean.
            generations.unmark(path).map_err(|_| "its mark cannot be removed")?;
            open()
        }
        Ok(Trust::Unclosed) if generations.check_died(path) => {
            Err("the process that checked it died")
        }
        Ok(Trust::Unclosed) => {
            let noted = "its check cannot be noted";
            generations.begin_check(path).map_err(|_| noted)?;
            let checked = open()
                .and_then(|vectors| vectors.check().map_err(|_| "it is damaged").map(|()| vectors));
            generations.end_check(path).map_err(|_| noted)?;
            checked
        }
        Ok(Trust::Foreign) => Err("it was changed since it was closed"),
        Err(_) => Err("it cannot be read"),
    }
}

/// An empty index; those before it go.
fn begin(generations: &Generations, shape: Shape) -> Result<(Vectors, PathBuf), Error> {
    let path = generations.finish(&generations.begin()?)?;
    let vectors = Vectors::open(&path, shape.dimensions).map_err(failed)?;
    generations.keep_only(&path)?;
    Ok((vectors, path))
}

/// Fills an index with what is kept in the log.
fn refill(
    log: &Log,
    shape: Shape,
    mailbox: MailboxNo,
    messages: &RoaringBitmap,
    index: &Vectors,
) -> Result<(), Error> {
    let mut batch = Vec::new();
    for ordinal in messages {
        let ordinal = Ordinal(ordinal);
        if let Some(bytes) = log.embedding(shape.fingerprint.0, mailbox, ordinal)?
            && let Some(stored) = Stored::decode(&bytes, shape.dimensions as usize)
        {
            batch.push((ordinal, stored));
        }
        if batch.len() >= REFILL_MESSAGES {
            index.add(&batch).map_err(failed)?;
            batch.clear();
        }
    }
    index.add(&batch).map_err(failed)
}
