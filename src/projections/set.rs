//! The projections of one mailbox as their projector holds them: opened, caught up, applied to,
//! committed together, rebuilt, closed.
//!
//! Both commit at the same positions, so that a view of them is coherent. What cannot be opened
//! or trusted is set aside and begins again at zero; the log gives the rest.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::build::{Build, Control, Parts};
use super::catalog::{self, Catalog, CatalogError};
use super::generation::{self, Generations, Trust};
use super::pair::Pair;
use super::text::{self, TextIndex};
use super::view::View;
use super::{Applicable, ProjectionError, feed};
use crate::crash_point;
use crate::events::Log;
use crate::ids::{MailboxNo, Seq};

/// How long going back waits for readers of the generation it goes back to.
const READERS_WAIT: Duration = Duration::from_secs(10);

/// Both projections of one mailbox.
pub struct ProjectionSet {
    pair: Pair,
    catalogs: Generations,
    texts: Generations,
    catalog_path: PathBuf,
    text_path: PathBuf,
    /// Comes when nobody reads the catalog any more that served before the last swap.
    swapped_out: Option<catalog::Closing>,
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
        let mut aside = Vec::new();
        let first = Self::open_once(dir, log, mailbox, &mut aside);
        let (projection, generations) = match (&first, Self::generations(dir)) {
            (Err(ProjectionError::Catalog(CatalogError::StillOpen)), _) => ("", None),
            (Err(ProjectionError::Catalog(_)), (catalogs, _)) => ("catalog", Some(catalogs)),
            (Err(ProjectionError::Text(_)), (_, texts)) => ("text", Some(texts)),
            _ => ("", None),
        };
        // What opens but cannot be brought up to date would fail at every opening.
        if let (Err(error), Some(generations)) = (&first, generations)
            && let Some(path) = generations.current()?
        {
            aside.push(SetAside { projection, reason: format!("it cannot catch up: {error}") });
            generations.set_aside(&path)?;
            return Ok((Self::open_once(dir, log, mailbox, &mut aside)?, aside));
        }
        Ok((first?, aside))
    }

    fn open_once(
        dir: &Path,
        log: &Log,
        mailbox: MailboxNo,
        aside: &mut Vec<SetAside>,
    ) -> Result<Self, ProjectionError> {
        let (catalogs, texts) = Self::generations(dir);
        let head = log.head(mailbox)?;
        let (catalog, catalog_path) = open_one(
            &catalogs,
            "catalog",
            aside,
            |path, check| Ok(Catalog::open(path, check)?),
            |opened| opened.checkpoint() <= head,
        )?;
        let (text, text_path) = open_one(
            &texts,
            "text",
            aside,
            |path, check| Ok(TextIndex::open(path, check)?),
            |opened| opened.checkpoint() <= head,
        )?;
        let pair = Pair::new(mailbox, Some(catalog), Some(text));
        let mut set = Self { pair, catalogs, texts, catalog_path, text_path, swapped_out: None };
        set.catch_up(log)?;
        Ok(set)
    }

    fn catalog(&mut self) -> Result<&mut Catalog, ProjectionError> {
        self.pair.catalog.as_mut().ok_or(CatalogError::Damaged("closed").into())
    }

    fn text(&mut self) -> Result<&mut TextIndex, ProjectionError> {
        self.pair.text.as_mut().ok_or(text::TextError::Damaged("closed").into())
    }

    /// Position up to which both projections have committed.
    #[must_use]
    pub fn checkpoint(&self) -> Seq {
        self.pair.checkpoint()
    }

    fn catch_up(&mut self, log: &Log) -> Result<(), ProjectionError> {
        let (mailbox, from) = (self.pair.mailbox, self.checkpoint());
        let head = log.head(mailbox)?;
        if head > from {
            feed::replay(log, mailbox, from, head, None, |events| self.apply(events).map(drop))?;
            self.pair.close_writer()?;
        }
        Ok(())
    }

    /// Applies events in order; commits by itself when enough gathered, and says so. Events that
    /// are already in are passed over.
    ///
    /// # Errors
    /// [`ProjectionError`]; reopen and catch up.
    pub fn apply(&mut self, events: Vec<Applicable>) -> Result<bool, ProjectionError> {
        self.pair.apply(events)
    }

    /// Whether something applied is not committed yet.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.pair.is_dirty()
    }

    /// Commits both projections at the same position, side by side.
    ///
    /// # Errors
    /// [`ProjectionError`]; reopen and catch up.
    pub fn commit(&mut self) -> Result<(), ProjectionError> {
        self.pair.commit()
    }

    /// A view of the last commit.
    ///
    /// # Errors
    /// [`ProjectionError`].
    pub fn view(&mut self) -> Result<Arc<View>, ProjectionError> {
        let catalog = self.catalog()?.view()?;
        Ok(Arc::new(View { catalog, text: self.text()?.reader() }))
    }

    /// Closes the text writer, which costs threads and memory while open.
    ///
    /// # Errors
    /// [`ProjectionError`].
    pub fn close_writer(&mut self) -> Result<(), ProjectionError> {
        self.pair.close_writer()
    }

    /// Lets a build serve: brings it up to the head, moves it into place, and keeps what served
    /// before for [`ProjectionSet::roll_back`]. Readers keep what they hold.
    ///
    /// # Errors
    /// [`ProjectionError`]; reopen: whole generations lie in their places, old or new.
    pub fn swap(&mut self, log: &Log, mut build: Build) -> Result<(), ProjectionError> {
        self.commit()?;
        build.advance(log, log.head(self.pair.mailbox)?, &Control::default())?;
        let (catalog, text) = build.close()?;
        crash_point::reach("rebuild built");
        if let Some(building) = catalog {
            self.swapped_out = self.pair.catalog.take().map(Catalog::let_go);
            self.catalog_path = self.catalogs.finish(&building)?;
            self.pair.catalog = Some(Catalog::open(&self.catalog_path, false)?);
            crash_point::reach("rebuild catalog swapped");
        }
        if let Some(building) = text {
            if let Some(mut text) = self.pair.text.take() {
                text.close_writer()?;
            }
            self.text_path = self.texts.finish(&building)?;
            self.pair.text = Some(TextIndex::open(&self.text_path, false)?);
            crash_point::reach("rebuild text swapped");
        }
        self.catch_up(log)
    }

    /// Lets the generations of these parts from before the last swap serve again, brought up to
    /// the head.
    ///
    /// # Errors
    /// [`ProjectionError::NothingToRollBack`] when none is kept; otherwise reopen.
    pub fn roll_back(&mut self, log: &Log, parts: Parts) -> Result<(), ProjectionError> {
        self.commit()?;
        let wanted = |part| parts == Parts::All || parts == part;
        let catalog = self.catalogs.previous()?.filter(|_| wanted(Parts::Catalog));
        let text = self.texts.previous()?.filter(|_| wanted(Parts::Text));
        if catalog.is_none() && text.is_none() {
            return Err(ProjectionError::NothingToRollBack);
        }
        if let Some(previous) = catalog {
            // LMDB must not have one file open twice in a process.
            if self.swapped_out.take().is_some_and(|closing| !closing.wait_timeout(READERS_WAIT)) {
                return Err(CatalogError::StillOpen.into());
            }
            drop(self.pair.catalog.take());
            self.catalog_path = self.catalogs.roll_back(&previous)?;
            self.pair.catalog = Some(Catalog::open(&self.catalog_path, true)?);
        }
        if let Some(previous) = text {
            if let Some(mut text) = self.pair.text.take() {
                text.close_writer()?;
            }
            self.text_path = self.texts.roll_back(&previous)?;
            self.pair.text = Some(TextIndex::open(&self.text_path, true)?);
        }
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
        crash_point::reach("purge text merged");
        let building = self.catalogs.begin_copy()?;
        self.catalog()?.rewrite(&building)?;
        crash_point::reach("purge catalog written");
        let mut directories = 0;
        self.catalog_path = self.catalogs.finish(&building)?;
        crash_point::reach("purge catalog renamed");
        self.pair.catalog = Some(Catalog::open(&self.catalog_path, false)?);
        directories += self.catalogs.keep_only(&self.catalog_path)?;
        directories += self.texts.keep_only(&self.text_path)?;
        // Else a power cut could bring back what the receipt says is gone.
        generation::sync(&self.text_path)
            .map_err(|source| ProjectionError::Io { path: self.text_path.clone(), source })?;
        Ok(Purged { text_documents, directories })
    }

    /// Removes files of the text index that nobody reads any more, and tells how many old segments
    /// are left because somebody does.
    ///
    /// # Errors
    /// [`ProjectionError`].
    pub fn collect_garbage(&mut self) -> Result<u64, ProjectionError> {
        self.commit()?;
        let dir = self.text_path.clone();
        Ok(self.text()?.collect_garbage(&dir)?)
    }

    /// Lets go of both. Readers may still hold views: their files stay until they are done.
    fn shut(&mut self) -> Result<(), ProjectionError> {
        if let Some(mut text) = self.pair.text.take() {
            text.close_writer()?;
        }
        drop(self.pair.catalog.take());
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
        if let Some(catalog) = self.pair.catalog.take() {
            catalog.close_compacted(&self.catalog_path)?;
        }
        drop(self.pair.text.take());
        self.catalogs.mark(&self.catalog_path, checkpoint)?;
        self.texts.mark(&self.text_path, checkpoint)
    }
}

/// What an opening says about the files; being still open says nothing about them.
fn believed<T>(opened: Result<T, ProjectionError>) -> Result<Result<T, String>, ProjectionError> {
    match opened {
        Err(ProjectionError::Catalog(CatalogError::StillOpen)) => {
            Err(CatalogError::StillOpen.into())
        }
        other => Ok(other.map_err(|e| e.to_string())),
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
                let opened = believed(open(&path, false))?;
                generations.unmark(&path)?;
                opened
            }
            Trust::Unclosed if generations.check_died(&path) => {
                Err("the process that checked it died".to_owned())
            }
            Trust::Unclosed => {
                generations.begin_check(&path)?;
                let opened = open(&path, true);
                generations.end_check(&path)?;
                believed(opened)?
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
