//! The projections of one mailbox as their projector holds them: opened, caught up, applied to,
//! committed together, rebuilt, closed.
//!
//! Both commit at the same positions, so that a view of them is coherent. What cannot be opened
//! or trusted is set aside and begins again at zero; the log gives the rest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::catalog::{self, Catalog, Writing};
use super::generation::{Generations, Trust};
use super::text::{self, TextIndex};
use super::view::View;
use super::{Applicable, ProjectionError, feed};
use crate::events::event::Event;
use crate::events::{Log, LogError};
use crate::ids::{MailboxNo, Seq};

/// Events applied before a commit is due, whoever waits.
const COMMIT_EVENTS: usize = 8_192;
/// Raw bytes of messages applied before a commit is due.
const COMMIT_BYTES: u64 = 48 << 20;

/// Both projections of one mailbox.
pub struct ProjectionSet {
    mailbox: MailboxNo,
    catalogs: Generations,
    texts: Generations,
    catalog: Option<Catalog>,
    text: Option<TextIndex>,
    catalog_path: PathBuf,
    text_path: PathBuf,
    /// What was applied and is not committed yet.
    uncommitted: Option<Uncommitted>,
}

/// Applied to both projections since the last commit.
struct Uncommitted {
    catalog: Writing,
    last: Seq,
    events: usize,
    bytes: u64,
}

/// What a purge took away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// Documents dropped from the text index.
    pub text_documents: u64,
    /// Generations and set-aside directories removed.
    pub directories: u64,
}

/// Why a projection was begun anew instead of opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// `catalog` or `text`.
    pub projection: &'static str,
    /// What did not hold; no personal data.
    pub reason: String,
}

impl ProjectionSet {
    /// Generations of the catalog and of the text index in a mailbox's directory.
    #[must_use]
    pub fn generations(dir: &Path) -> (Generations, Generations) {
        (
            Generations::new(dir, "catalog", catalog::FINGERPRINT),
            Generations::new(dir, "text", text::schema::FINGERPRINT),
        )
    }

    /// Opens what is there and catches up with the log.
    ///
    /// # Errors
    /// [`ProjectionError`] when even a fresh generation cannot be made, or the log is damaged.
    pub fn open(
        dir: &Path,
        log: &Log,
        mailbox: MailboxNo,
    ) -> Result<(Self, Vec<SetAside>), ProjectionError> {
        let (catalogs, texts) = Self::generations(dir);
        let head = log.head(mailbox)?;
        let mut aside = Vec::new();
        let (catalog, catalog_path) = open_one(
            &catalogs,
            "catalog",
            &mut aside,
            |path, check| Ok(Catalog::open(path, check)?),
            |opened| opened.checkpoint() <= head,
        )?;
        let (text, text_path) = open_one(
            &texts,
            "text",
            &mut aside,
            |path, check| Ok(TextIndex::open(path, check)?),
            |opened| opened.checkpoint() <= head,
        )?;
        let mut set = Self {
            mailbox,
            catalogs,
            texts,
            catalog: Some(catalog),
            text: Some(text),
            catalog_path,
            text_path,
            uncommitted: None,
        };
        set.catch_up(log)?;
        Ok((set, aside))
    }

    fn catalog(&mut self) -> Result<&mut Catalog, ProjectionError> {
        self.catalog.as_mut().ok_or(catalog::CatalogError::Damaged("closed").into())
    }

    fn text(&mut self) -> Result<&mut TextIndex, ProjectionError> {
        self.text.as_mut().ok_or(text::TextError::Damaged("closed").into())
    }

    /// Position up to which both projections have committed.
    #[must_use]
    pub fn checkpoint(&self) -> Seq {
        let catalog = self.catalog.as_ref().map_or(Seq::ZERO, Catalog::checkpoint);
        let text = self.text.as_ref().map_or(Seq::ZERO, TextIndex::checkpoint);
        catalog.min(text)
    }

    fn catch_up(&mut self, log: &Log) -> Result<(), ProjectionError> {
        let from = self.checkpoint();
        if log.head(self.mailbox)? > from {
            feed::replay(log, self.mailbox, from, |events| self.apply(events).map(drop))?;
            self.commit()?;
            self.text()?.close_writer()?;
        }
        Ok(())
    }

    /// Applies events in order; commits by itself when enough gathered, and says so. Events that
    /// are already in are passed over.
    ///
    /// # Errors
    /// [`ProjectionError`]; reopen and catch up.
    pub fn apply(&mut self, events: Vec<Applicable>) -> Result<bool, ProjectionError> {
        let applied = self.uncommitted.as_ref().map_or(Seq::ZERO, |u| u.last);
        let mut last = applied.max(self.checkpoint());
        let mut fresh = Vec::with_capacity(events.len());
        let mut bytes = 0;
        for event in events {
            if event.seq <= last {
                continue;
            }
            if event.seq != last.next() {
                return Err(LogError::DamagedEvent {
                    mailbox: self.mailbox,
                    seq: event.seq,
                    what: "an event before it was not applied",
                }
                .into());
            }
            last = event.seq;
            if let (Event::MessageIngested(ingested), Some(message)) =
                (&event.event, &event.message)
            {
                let text = self.text()?;
                if event.seq > text.checkpoint() {
                    text.add(ingested.ordinal, message)?;
                }
                bytes += message.raw_bytes;
            }
            if let Event::MessagesErased(erased) = &event.event {
                let text = self.text()?;
                if event.seq > text.checkpoint() {
                    text.erase(&erased.ordinals)?;
                }
            }
            fresh.push(event);
        }
        if fresh.is_empty() {
            return Ok(false);
        }
        let mut uncommitted = match self.uncommitted.take() {
            Some(uncommitted) => uncommitted,
            None => Uncommitted { catalog: self.catalog()?.begin()?, last, events: 0, bytes: 0 },
        };
        uncommitted.last = last;
        uncommitted.events += fresh.len();
        uncommitted.bytes += bytes;
        uncommitted.catalog.apply(fresh);
        let due = uncommitted.events >= COMMIT_EVENTS || uncommitted.bytes >= COMMIT_BYTES;
        self.uncommitted = Some(uncommitted);
        if due {
            self.commit()?;
        }
        Ok(due)
    }

    /// Whether something applied is not committed yet.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.uncommitted.is_some()
    }

    /// Commits both projections at the same position, side by side.
    ///
    /// # Errors
    /// [`ProjectionError`]; reopen and catch up.
    pub fn commit(&mut self) -> Result<(), ProjectionError> {
        let Some(Uncommitted { catalog: writing, last, .. }) = self.uncommitted.take() else {
            return Ok(());
        };
        writing.start_commit();
        let text = self.text()?;
        let committed = if text.checkpoint() < last { text.commit(last) } else { Ok(()) };
        self.catalog()?.commit(writing)?;
        Ok(committed?)
    }

    /// A view of the last commit.
    ///
    /// # Errors
    /// [`ProjectionError`].
    pub fn view(&mut self) -> Result<Arc<View>, ProjectionError> {
        let catalog = self.catalog()?.view()?;
        Ok(Arc::new(View { catalog, text: self.text()?.reader() }))
    }

    /// Whether a text writer is open.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.text.as_ref().is_some_and(TextIndex::is_writing)
    }

    /// Closes the text writer, which costs threads and memory while open.
    ///
    /// # Errors
    /// [`ProjectionError`].
    pub fn close_writer(&mut self) -> Result<(), ProjectionError> {
        self.commit()?;
        Ok(self.text()?.close_writer()?)
    }

    /// Builds both projections from zero beside the serving ones, then lets them serve. `progress`
    /// hears the position reached.
    ///
    /// # Errors
    /// [`ProjectionError`]; the serving generations are then untouched.
    pub fn rebuild(
        &mut self,
        log: &Log,
        mut progress: impl FnMut(Seq),
    ) -> Result<(), ProjectionError> {
        self.commit()?;
        let catalog_path = self.catalogs.begin()?;
        let text_path = self.texts.begin()?;
        let mut fresh = Self {
            mailbox: self.mailbox,
            catalogs: self.catalogs.clone(),
            texts: self.texts.clone(),
            catalog: Some(Catalog::open(&catalog_path, false)?),
            text: Some(TextIndex::open(&text_path, false)?),
            catalog_path,
            text_path,
            uncommitted: None,
        };
        feed::replay(log, fresh.mailbox, Seq::ZERO, |events| {
            let last = events.last().map_or(Seq::ZERO, |e| e.seq);
            fresh.apply(events)?;
            progress(last);
            Ok(())
        })?;
        fresh.commit()?;
        fresh.text()?.close_writer()?;
        // An environment must be closed before its directory is renamed.
        if let Some(catalog) = fresh.catalog.take() {
            catalog.close();
        }
        drop(fresh.text.take());
        self.shut()?;
        self.catalog_path = self.catalogs.finish(&fresh.catalog_path)?;
        self.text_path = self.texts.finish(&fresh.text_path)?;
        self.catalog = Some(Catalog::open(&self.catalog_path, false)?);
        self.text = Some(TextIndex::open(&self.text_path, false)?);
        self.catch_up(log)
    }

    /// Takes the bytes of erased messages off the disk: the text index merges what holds them, the
    /// catalog is written anew as a generation beside this one, everything else of both goes.
    /// Readers keep what they hold; when they are gone, [`ProjectionSet::collect_garbage`].
    ///
    /// # Errors
    /// [`ProjectionError`]; reopen and purge again.
    pub fn purge(&mut self) -> Result<Purged, ProjectionError> {
        self.commit()?;
        let text_documents = self.text()?.purge()?;
        let building = self.catalogs.begin()?;
        self.catalog()?.rewrite(&building)?;
        let mut directories = 1;
        self.catalog_path = self.catalogs.finish(&building)?;
        self.catalog = Some(Catalog::open(&self.catalog_path, false)?);
        directories += self.catalogs.keep_only(&self.catalog_path)?;
        directories += self.texts.keep_only(&self.text_path)?;
        Ok(Purged { text_documents, directories })
    }

    /// Removes files of the text index that nobody reads any more.
    ///
    /// # Errors
    /// [`ProjectionError`].
    pub fn collect_garbage(&mut self) -> Result<(), ProjectionError> {
        // Closing the writer would drop what is not committed.
        self.commit()?;
        Ok(self.text()?.collect_garbage()?)
    }

    /// Lets go of both. Readers may still hold views: their files stay until they are done.
    fn shut(&mut self) -> Result<(), ProjectionError> {
        if let Some(mut text) = self.text.take() {
            text.close_writer()?;
        }
        drop(self.catalog.take());
        Ok(())
    }

    /// Commits, closes and marks both as closed well, unless `distrusted`: somebody met damage.
    ///
    /// # Errors
    /// [`ProjectionError`]; the next opening then checks them.
    pub fn close(mut self, distrusted: bool) -> Result<(), ProjectionError> {
        self.commit()?;
        if distrusted {
            return self.shut();
        }
        let checkpoint = self.checkpoint();
        self.text()?.close_writer()?;
        if let Some(catalog) = self.catalog.take() {
            catalog.close_compacted(&self.catalog_path)?;
        }
        drop(self.text.take());
        self.catalogs.mark(&self.catalog_path, checkpoint)?;
        self.texts.mark(&self.text_path, checkpoint)
    }
}

fn open_one<T>(
    generations: &Generations,
    projection: &'static str,
    aside: &mut Vec<SetAside>,
    open: impl Fn(&Path, bool) -> Result<T, ProjectionError>,
    fits: impl Fn(&T) -> bool,
) -> Result<(T, PathBuf), ProjectionError> {
    if let Some(path) = generations.current()? {
        let trust = generations.trust(&path)?.0;
        let opened = match trust {
            Trust::Foreign => Err("changed since it was closed".to_owned()),
            Trust::Clean => {
                generations.unmark(&path)?;
                open(&path, false).map_err(|e| e.to_string())
            }
            Trust::Unclosed if generations.check_died(&path) => {
                Err("the process that checked it died".to_owned())
            }
            Trust::Unclosed => {
                generations.begin_check(&path)?;
                let opened = open(&path, true).map_err(|e| e.to_string());
                generations.end_check(&path)?;
                opened
            }
        };
        match opened {
            Ok(opened) if fits(&opened) => return Ok((opened, path)),
            Ok(_) => {
                let reason = "it is ahead of the log".to_owned();
                aside.push(SetAside { projection, reason });
            }
            Err(reason) => aside.push(SetAside { projection, reason }),
        }
        generations.end_check(&path)?;
        generations.set_aside(&path)?;
    }
    let building = generations.begin()?;
    let path = generations.finish(&building)?;
    Ok((open(&path, false)?, path))
}
