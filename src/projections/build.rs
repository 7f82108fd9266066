//! A generation under construction beside the one that serves: fed by replay, at a bounded rate,
//! paused and cancelled from outside, found again after a crash, and compared before it serves.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use tokio::sync::oneshot;

use super::catalog::Catalog;
use super::generation::Generations;
use super::pair::Pair;
use super::set::ProjectionSet;
use super::text::TextIndex;
use super::view::View;
use super::{ProjectionError, feed};
use crate::events::Log;
use crate::ids::{MailboxNo, Seq};

/// Time between two looks of a paused build.
const PAUSE_LOOK: Duration = Duration::from_millis(20);

/// How much a build gives way to searches and arrivals (nice(2)).
const GIVES_WAY: i32 = 10;

/// Runs the work of a build on a thread that gives way to all others; threads it starts do too.
///
/// # Errors
/// When no thread can be started; nobody hears of a panic but by its absence.
pub fn unhurried<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<oneshot::Receiver<T>> {
    let (give, done) = oneshot::channel();
    std::thread::Builder::new().name("rebuild".to_owned()).spawn(move || {
        // Where it is not allowed, a rebuild takes its full share.
        let _ = rustix::process::nice(GIVES_WAY);
        // Nobody listens any more when the caller has gone.
        let _ = give.send(work());
    })?;
    Ok(done)
}

/// Which projections are built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parts {
    /// Both.
    #[default]
    All,
    /// The catalog.
    Catalog,
    /// The text index.
    Text,
}

/// What the comparison with the serving generation said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// The same content, entry by entry.
    Equal,
    /// Not the same: the serving one was wrong, for the new one comes from the log.
    Different,
    /// Not compared: nobody wanted it, the serving one could not be read, or messages were erased
    /// all the time.
    Skipped,
}

/// Steers a build from outside; shared with whoever watches it.
#[derive(Default)]
pub struct Control {
    /// Ends the build; it leaves nothing behind.
    pub cancel: AtomicBool,
    /// Holds the build up.
    pub pause: AtomicBool,
    /// Events per second at most; 0: as fast as it goes.
    pub rate_max: AtomicU32,
    /// Do not compare with the serving generation: it takes about as long as the replay.
    pub unverified: bool,
    /// Hears positions reached.
    pub hear: Option<Arc<dyn Fn(Seq) + Send + Sync>>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// A pace that is kept over the whole of a build.
struct Pace {
    start: Instant,
    events: u64,
}

impl Pace {
    fn keep(&mut self, events: usize, control: &Control) -> Result<(), ProjectionError> {
        self.events += events as u64;
        loop {
            if control.cancel.load(Ordering::SeqCst) {
                return Err(ProjectionError::Cancelled);
            }
            let rate = control.rate_max.load(Ordering::Relaxed);
            let due = match rate {
                0 => Duration::ZERO,
                rate => Duration::from_secs_f64(self.events as f64 / f64::from(rate)),
            };
            let ahead = due.saturating_sub(self.start.elapsed());
            if control.pause.load(Ordering::Relaxed) {
                std::thread::park_timeout(PAUSE_LOOK);
            } else if ahead.is_zero() {
                return Ok(());
            } else {
                std::thread::park_timeout(ahead.min(PAUSE_LOOK));
            }
        }
    }
}

/// See the module.
pub struct Build {
    pair: Pair,
    /// Threads of its own, which give way as the one that made them does.
    readers: Option<ThreadPool>,
    catalog_path: Option<PathBuf>,
    text_path: Option<PathBuf>,
}

/// Opens what an interrupted build left, or begins anew.
fn resume<T>(
    generations: &Generations,
    head: Seq,
    open: impl Fn(&Path, bool) -> Result<T, ProjectionError>,
    checkpoint: impl Fn(&T) -> Seq,
) -> Result<(T, PathBuf), ProjectionError> {
    if let Some(path) = generations.unfinished()?
        && !generations.check_died(&path)
    {
        generations.begin_check(&path)?;
        let opened = open(&path, true);
        generations.end_check(&path)?;
        if let Some(opened) = opened.ok().filter(|opened| checkpoint(opened) <= head) {
            return Ok((opened, path));
        }
    }
    let path = generations.begin()?;
    Ok((open(&path, false)?, path))
}

impl Build {
    /// Begins a build in a mailbox's directory, or goes on with one that was interrupted.
    ///
    /// # Errors
    /// [`ProjectionError`].
    pub fn begin(
        dir: &Path,
        log: &Log,
        mailbox: MailboxNo,
        parts: Parts,
    ) -> Result<Self, ProjectionError> {
        let (catalogs, texts) = ProjectionSet::generations(dir);
        let head = log.head(mailbox)?;
        let (mut catalog, mut text) = (None, None);
        let (mut catalog_path, mut text_path) = (None, None);
        if parts != Parts::Text {
            let open = |path: &Path, check: bool| Ok(Catalog::open(path, check)?);
            let (opened, path) = resume(&catalogs, head, open, Catalog::checkpoint)?;
            (catalog, catalog_path) = (Some(opened), Some(path));
        }
        if parts != Parts::Catalog {
            let open = |path: &Path, check: bool| Ok(TextIndex::open(path, check)?);
            let (opened, path) = resume(&texts, head, open, TextIndex::checkpoint)?;
            (text, text_path) = (Some(opened), Some(path));
        }
        let readers = ThreadPoolBuilder::new().thread_name(|_| "rebuild".into()).build().ok();
        Ok(Self { pair: Pair::new(mailbox, catalog, text), readers, catalog_path, text_path })
    }

    /// Whose.
    #[must_use]
    pub fn mailbox(&self) -> MailboxNo {
        self.pair.mailbox
    }

    /// Position reached.
    #[must_use]
    pub fn checkpoint(&self) -> Seq {
        self.pair.checkpoint()
    }

    /// Replays up to a position and commits there.
    ///
    /// # Errors
    /// [`ProjectionError::Cancelled`] when it was cancelled.
    pub fn advance(
        &mut self,
        log: &Log,
        through: Seq,
        control: &Control,
    ) -> Result<(), ProjectionError> {
        let from = self.checkpoint();
        if through <= from {
            return Ok(());
        }
        let mut pace = Pace { start: Instant::now(), events: 0 };
        feed::replay(log, self.pair.mailbox, from, through, self.readers.as_ref(), |events| {
            let (count, last) = (events.len(), events.last().map_or(from, |e| e.seq));
            self.pair.apply(events)?;
            if let Some(hear) = &control.hear {
                hear(last);
            }
            pace.keep(count, control)
        })?;
        self.pair.close_writer()
    }

    /// Compares the content with that of a view at the same position.
    ///
    /// # Errors
    /// [`ProjectionError`] when this build cannot be read.
    pub fn compare(&self, view: &View, control: &Control) -> Result<Compared, ProjectionError> {
        if view.seq() != self.checkpoint() {
            return Ok(Compared::Skipped);
        }
        let mut equal = true;
        if let Some(catalog) = &self.pair.catalog {
            let mine = digest(control, |out| Ok(catalog.view()?.dump(out)?))?;
            let Ok(theirs) = digest(control, |out| Ok(view.catalog.dump(out)?)) else {
                return Ok(Compared::Skipped);
            };
            equal &= mine == theirs;
        }
        if let Some(text) = &self.pair.text {
            let mine = digest(control, |out| Ok(text.reader().dump(out)?))?;
            let Ok(theirs) = digest(control, |out| Ok(view.text.dump(out)?)) else {
                return Ok(Compared::Skipped);
            };
            equal &= mine == theirs;
        }
        Ok(if equal { Compared::Equal } else { Compared::Different })
    }

    /// Closes what was built, so that it can be moved into place.
    pub(super) fn close(mut self) -> Result<(Option<PathBuf>, Option<PathBuf>), ProjectionError> {
        self.pair.close_writer()?;
        if let Some(catalog) = self.pair.catalog.take() {
            catalog.close();
        }
        drop(self.pair.text.take());
        Ok((self.catalog_path, self.text_path))
    }

    /// Removes what was built.
    ///
    /// # Errors
    /// [`ProjectionError::Io`].
    pub fn discard(mut self) -> Result<(), ProjectionError> {
        self.pair.abandon();
        drop(self.pair.text.take());
        if let Some(catalog) = self.pair.catalog.take() {
            catalog.close();
        }
        for path in self.catalog_path.iter().chain(&self.text_path) {
            std::fs::remove_dir_all(path)
                .map_err(|source| ProjectionError::Io { path: path.clone(), source })?;
        }
        Ok(())
    }
}

struct Hashing<'c>(Sha256, &'c Control);

impl std::io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.1.cancel.load(Ordering::SeqCst) {
            return Err(std::io::Error::other("cancelled"));
        }
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn digest(
    control: &Control,
    dump: impl FnOnce(&mut dyn std::io::Write) -> Result<(), ProjectionError>,
) -> Result<[u8; 32], ProjectionError> {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, Hashing(Sha256::new(), control));
    dump(&mut out)?;
    let hashing = out.into_inner().map_err(|e| ProjectionError::Write(e.into_error()))?;
    Ok(hashing.0.finalize().into())
}
