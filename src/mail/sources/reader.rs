//! The walk over a plan's parts: an iterator of entries and failures.
//!
//! Reads in the thread that iterates, one part after the other, one message at a time. A part that
//! cannot be opened or breaks off is a [`Failure`] and the next part follows. [`Progress`] may be
//! read from another thread; it counts bytes on disk and reaches the plan's total at the end, also
//! when files were refused.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::failure::{Failure, FailureReason};
use super::header::Facts;
use super::input::Input;
use super::labels::Labels;
use super::maildir::MaildirFile;
use super::mbox::{Found, Scanner};
use super::plan::{Content, Part};
use super::single::{self, Single};
use super::survey::Loose;
use super::{Entry, Item, Kind, Options, Place, flags, gmail};

/// Bytes done, to be read from any thread.
#[derive(Debug, Clone)]
pub struct Progress {
    done: Arc<AtomicU64>,
    total: u64,
}

impl Progress {
    /// Bytes on disk consumed so far, at most [`Self::bytes_total`].
    #[must_use]
    pub fn bytes_done(&self) -> u64 {
        // A file that grew since it was planned counts no further than planned.
        self.done.load(Ordering::Relaxed).min(self.total)
    }

    /// Bytes on disk of the whole plan.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.total
    }
}

/// Iterator over everything in a plan.
pub struct Reader {
    parts: std::vec::IntoIter<Part>,
    walk: Option<Walk>,
    pending: VecDeque<Item>,
    options: Options,
    progress: Progress,
    /// Bytes of the parts before the present one, and of the present one up to its end.
    part_end: u64,
}

/// A part being read.
struct Walk {
    path: Arc<Path>,
    kind: Kind,
    folder: String,
    files: Files,
}

enum Files {
    Mbox(Box<Scanner<Input>>),
    One(Option<u64>),
    Loose(std::vec::IntoIter<Loose>),
    Maildir { files: std::vec::IntoIter<MaildirFile>, keywords: Vec<String> },
}

impl Reader {
    pub(super) fn new(parts: Vec<Part>, options: Options) -> Self {
        let total = parts.iter().map(|part| part.bytes).sum();
        Self {
            parts: parts.into_iter(),
            walk: None,
            pending: VecDeque::new(),
            options,
            progress: Progress { done: Arc::new(AtomicU64::new(0)), total },
            part_end: 0,
        }
    }

    /// Bytes on disk consumed so far.
    #[must_use]
    pub fn bytes_done(&self) -> u64 {
        self.progress.bytes_done()
    }

    /// A handle for another thread.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn open(&mut self, part: Part) {
        self.part_end += part.bytes;
        let path: Arc<Path> = part.path.into();
        let files = match part.content {
            Content::File => {
                let done = Arc::clone(&self.progress.done);
                match Input::open(&path, done) {
                    Ok(input) => Files::Mbox(Box::new(Scanner::new(
                        input,
                        self.options.block_bytes,
                        self.options.message_bytes_max,
                    ))),
                    Err(error) => {
                        let reason = FailureReason::open(&error);
                        self.pending.push_back(Item::Failure(Failure::new(&path, 0, reason)));
                        return self.close();
                    }
                }
            }
            Content::One => Files::One(Some(part.bytes)),
            Content::Loose(files) => Files::Loose(files.into_iter()),
            Content::Maildir { files, keywords } => {
                Files::Maildir { files: files.into_iter(), keywords }
            }
        };
        self.walk = Some(Walk { path, kind: part.kind, folder: part.folder, files });
    }

    /// Brings the progress to the end of the part.
    fn close(&mut self) {
        self.walk = None;
        self.progress.done.fetch_max(self.part_end, Ordering::Relaxed);
    }

    /// Puts the next items of the present part into `pending`; false at its end.
    fn step(&mut self) -> bool {
        let Some(walk) = &mut self.walk else {
            return false;
        };
        let mut read = |path: Arc<Path>, bytes: u64, labels: Labels, file_ms: Option<i64>| {
            let source = Source {
                path,
                kind: walk.kind,
                folder: &walk.folder,
                options: &self.options,
                file_ms,
            };
            source.read_single(labels, &mut self.pending);
            self.progress.done.fetch_add(bytes, Ordering::Relaxed);
        };
        match &mut walk.files {
            Files::Mbox(scanner) => {
                let source = Source {
                    path: Arc::clone(&walk.path),
                    kind: walk.kind,
                    folder: &walk.folder,
                    options: &self.options,
                    file_ms: None,
                };
                return source.read_mbox(scanner, &mut self.pending);
            }
            Files::One(bytes) => match bytes.take() {
                Some(bytes) => read(Arc::clone(&walk.path), bytes, Labels::default(), None),
                None => return false,
            },
            Files::Loose(files) => match files.next() {
                Some(file) => {
                    let path = walk.path.join(&file.name).into();
                    read(path, file.bytes, Labels::default(), None);
                }
                None => return false,
            },
            Files::Maildir { files, keywords } => match files.next() {
                Some(file) => {
                    let mut labels = Labels::default();
                    file.add_labels(keywords, &mut labels);
                    read(file.path(&walk.path).into(), file.bytes, labels, file.modified_ms);
                }
                None => return false,
            },
        }
        true
    }
}

impl Iterator for Reader {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.pending.pop_front() {
                return Some(item);
            }
            if self.walk.is_none() {
                let part = self.parts.next()?;
                self.open(part);
            } else if !self.step() {
                self.close();
            }
        }
    }
}

/// One file and what is known of its entries beforehand.
struct Source<'r> {
    path: Arc<Path>,
    kind: Kind,
    folder: &'r str,
    options: &'r Options,
    file_ms: Option<i64>,
}

impl Source<'_> {
    /// The next entry of an mbox; at its end what broke it off. False when nothing came.
    fn read_mbox(&self, scanner: &mut Scanner<Input>, pending: &mut VecDeque<Item>) -> bool {
        match scanner.next() {
            Some(Found::Entry { offset, separator_ms, raw, facts }) => {
                let entry = self.entry(offset, raw, separator_ms, &facts, Labels::default());
                pending.push_back(Item::Entry(entry));
                true
            }
            Some(Found::Failure { offset, reason }) => {
                pending.push_back(self.failure(offset, reason));
                true
            }
            None => {
                if let Some((offset, error)) = scanner.take_error() {
                    pending.push_back(self.failure(offset, FailureReason::Read(error.to_string())));
                }
                if let Some((offset, damage)) = scanner.damage() {
                    pending.push_back(self.failure(offset, damage));
                }
                false
            }
        }
    }

    fn read_single(&self, labels: Labels, pending: &mut VecDeque<Item>) {
        let mut known = Some(labels);
        for found in single::read(&self.path, self.options) {
            pending.push_back(match found {
                Ok(single) => self.single_entry(single, known.take().unwrap_or_default()),
                Err((offset, reason)) => self.failure(offset, reason),
            });
        }
    }

    fn single_entry(&self, single: Single, known: Labels) -> Item {
        let Single { offset, raw, separator_ms, received_ms, facts, labels } = single;
        let labels = if self.kind == Kind::Maildir { known } else { labels };
        let mut entry = self.entry(offset, raw, separator_ms, &facts, labels);
        entry.file_ms = self.file_ms.or(received_ms);
        Item::Entry(entry)
    }

    fn failure(&self, offset: u64, reason: FailureReason) -> Item {
        Item::Failure(Failure::new(&self.path, offset, reason))
    }

    fn entry(
        &self,
        offset: u64,
        raw: Vec<u8>,
        separator_ms: Option<i64>,
        facts: &Facts,
        mut labels: Labels,
    ) -> Entry {
        // In a Maildir the file name is the authority; a header is what a sender may have written.
        if self.kind != Kind::Maildir {
            flags::from_header(facts, &mut labels);
        }
        let mut folders = Vec::new();
        if self.kind != Kind::Maildir
            && let Some(value) = &facts.gmail_labels
        {
            folders = gmail::read(value, &mut labels);
        }
        let mut folders = folders.into_iter().map(str::to_owned);
        let (folder, more_folders) = match (&self.options.folder, self.kind) {
            (Some(folder), _) => (folder.clone(), Vec::new()),
            (None, Kind::Takeout) => {
                let first = folders.next().unwrap_or_else(|| gmail::ARCHIVE.to_owned());
                (first, folders.collect())
            }
            (None, _) => (self.folder.to_owned(), Vec::new()),
        };
        Entry {
            raw,
            place: Place { path: Arc::clone(&self.path), offset },
            folder,
            more_folders,
            kind: self.kind,
            labels: labels.into_vec(),
            separator_ms,
            file_ms: self.file_ms,
        }
    }
}
