//! The directory tree below a root, as parts.
//!
//! A directory is a Maildir folder when it has `cur`, or `new` and `tmp`; every other file in it is
//! sniffed. Files of one message each become one part per directory, mboxes one part each. A file
//! that is an mbox of one stands with the loose messages when its name says so, when loose messages
//! lie beside it, or when the directory holds at least 64 such files and no larger mbox; else it is
//! a mailbox of its own. Entries are taken in order of their names. Symbolic links and special
//! files are listed as skipped, never followed or opened; depth is bounded.

use std::ffi::OsString;
use std::fs::{self, DirEntry, FileType};
use std::path::{Path, PathBuf};

use super::Kind;
use super::failure::{SkipReason, Skipped};
use super::plan::{Content, Part};
use super::sniff::{Sniffed, sniff};
use super::{folder, maildir};

/// Deepest directory below the root.
const DEPTH_MAX: usize = 64;

/// Mboxes of one in a directory that are taken for loose messages by their number alone.
const LOOSE_COUNT_MIN: usize = 64;

/// Skipped files listed; the rest are counted.
const SKIPPED_LISTED_MAX: usize = 10_000;

/// A file with its size.
#[derive(Debug, Clone)]
pub(super) struct Loose {
    pub(super) name: OsString,
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) struct Survey {
    root_name: String,
    pub(super) parts: Vec<Part>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) skipped_count: u64,
}

impl Survey {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root_name: folder::root_name(root),
            parts: Vec::new(),
            skipped: Vec::new(),
            skipped_count: 0,
        }
    }

    fn skip(&mut self, path: PathBuf, reason: SkipReason) {
        self.skipped_count += 1;
        if self.skipped.len() < SKIPPED_LISTED_MAX {
            self.skipped.push(Skipped { path, reason });
        }
    }

    /// Surveys one directory and those below; `levels` is its folder name so far.
    pub(super) fn directory(&mut self, path: &Path, levels: &mut Vec<String>, depth: usize) {
        if depth > DEPTH_MAX {
            return self.skip(path.to_owned(), SkipReason::TooDeep(DEPTH_MAX));
        }
        let entries = match sorted(path) {
            Ok(entries) => entries,
            Err(error) => {
                return self.skip(path.to_owned(), SkipReason::Unreadable(error.to_string()));
            }
        };
        let has =
            |name: &str| entries.iter().any(|(e, kind)| kind.is_dir() && e.file_name() == name);
        let is_maildir = has("cur") || (has("new") && has("tmp"));
        if is_maildir {
            self.maildir(path, levels);
        }
        let mut files = Vec::new();
        let mut directories = Vec::new();
        for (entry, kind) in entries {
            let name = entry.file_name();
            if kind.is_symlink() {
                self.skip(entry.path(), SkipReason::SymbolicLink);
            } else if kind.is_file() {
                files.push(entry);
            } else if !kind.is_dir() {
                self.skip(entry.path(), SkipReason::SpecialFile);
            } else if is_maildir && name == "tmp" {
                if fs::read_dir(entry.path()).is_ok_and(|mut tmp| tmp.next().is_some()) {
                    self.skip(entry.path(), SkipReason::MaildirTmp);
                }
            } else if !(is_maildir && (name == "cur" || name == "new")) {
                directories.push(entry);
            }
        }
        self.files(path, files, levels);
        for entry in directories {
            let below = entry.path();
            let name = entry.file_name();
            let kept = levels.len();
            let hidden = name.as_encoded_bytes().starts_with(b".");
            if below.join("cur").is_dir() && (hidden || is_maildir) {
                levels.extend(folder::maildir_levels(&name));
            } else {
                levels.extend(folder::directory_level(&name));
            }
            self.directory(&below, levels, depth + 1);
            levels.truncate(kept);
        }
    }

    fn maildir(&mut self, path: &Path, levels: &[String]) {
        let files = maildir::list(path, &mut |skipped| self.skip(skipped.path, skipped.reason));
        self.parts.push(Part {
            path: path.to_owned(),
            kind: Kind::Maildir,
            folder: folder::join(levels, "INBOX"),
            bytes: files.iter().map(|file| file.bytes).sum(),
            files: files.len() as u64,
            content: Content::Maildir { files, keywords: maildir::keywords(path) },
        });
    }

    fn files(&mut self, directory: &Path, entries: Vec<DirEntry>, levels: &[String]) {
        let mut loose = Vec::new();
        let mut ones = Vec::new();
        let mut mboxes = Vec::new();
        for entry in entries {
            let sniffed = entry.metadata().and_then(|m| Ok((m.len(), sniff(&entry.path())?)));
            let (bytes, sniffed) = match sniffed {
                Ok(seen) => seen,
                Err(error) => {
                    self.skip(entry.path(), SkipReason::Unreadable(error.to_string()));
                    continue;
                }
            };
            let file = Loose { name: entry.file_name(), bytes };
            match sniffed {
                Sniffed::Message => loose.push(file),
                Sniffed::MboxOfOne => ones.push(file),
                Sniffed::Mbox => mboxes.push((file, Kind::Mbox)),
                Sniffed::Takeout => mboxes.push((file, Kind::Takeout)),
                Sniffed::Skip(reason) => self.skip(entry.path(), reason),
            }
        }
        let all_loose = !loose.is_empty() || (mboxes.is_empty() && ones.len() >= LOOSE_COUNT_MIN);
        for file in ones {
            if all_loose || folder::names_one_message(&file.name) {
                loose.push(file);
            } else {
                mboxes.push((file, Kind::Mbox));
            }
        }
        if !loose.is_empty() {
            loose.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            self.parts.push(Part {
                path: directory.to_owned(),
                kind: Kind::EmlFolder,
                folder: folder::join(levels, &self.root_name),
                bytes: loose.iter().map(|file| file.bytes).sum(),
                files: loose.len() as u64,
                content: Content::Loose(loose),
            });
        }
        mboxes.sort_unstable_by(|a, b| a.0.name.cmp(&b.0.name));
        for (file, kind) in mboxes {
            let mut levels = levels.to_vec();
            levels.extend(folder::file_level(&file.name));
            self.parts.push(Part {
                path: directory.join(&file.name),
                kind,
                folder: folder::join(&levels, &self.root_name),
                bytes: file.bytes,
                files: 1,
                content: Content::File,
            });
        }
    }
}

fn sorted(path: &Path) -> std::io::Result<Vec<(DirEntry, FileType)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        entries.push((entry, kind));
    }
    entries.sort_by_cached_key(|(entry, _)| entry.file_name());
    Ok(entries)
}
