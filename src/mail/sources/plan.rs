//! What lies at a path, before anything of it is read as mail.
//!
//! [`plan`] looks at each file's head and lists parts (one mbox, one Maildir folder, the loose
//! messages of one directory), their sizes for a progress bar, and what it left out with the
//! reason. It keeps names and numbers, no contents. [`Plan::read`] starts the walk.

use std::fs;
use std::path::{Path, PathBuf};

use super::failure::{SkipReason, Skipped, SourceError};
use super::maildir::MaildirFile;
use super::reader::Reader;
use super::sniff::{Sniffed, sniff};
use super::survey::{Loose, Survey};
use super::{Kind, Options, folder};

/// One mailbox file or one directory's worth of message files.
#[derive(Debug, Clone)]
pub struct Part {
    /// File, or directory for [`Kind::Maildir`] and [`Kind::EmlFolder`].
    pub path: PathBuf,
    /// What it is, by content.
    pub kind: Kind,
    /// Folder of its entries (Takeout entries tell their own).
    pub folder: String,
    /// Size on disk, bytes; packed size when gzipped.
    pub bytes: u64,
    /// Files it consists of.
    pub files: u64,
    pub(super) content: Content,
}

/// What the walk needs to know of a part.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// One mbox.
    File,
    /// One message.
    One,
    Loose(Vec<Loose>),
    Maildir {
        files: Vec<MaildirFile>,
        keywords: Vec<String>,
    },
}

/// What would be read from a path.
#[derive(Debug)]
pub struct Plan {
    /// Parts in order of reading.
    pub parts: Vec<Part>,
    /// Files and directories left out, at most 10,000 of them.
    pub skipped: Vec<Skipped>,
    /// How many were left out in all.
    pub skipped_count: u64,
    options: Options,
}

/// Finds out what lies at a path.
///
/// A directory without any mail is a plan without parts. The path itself may be a symbolic link.
///
/// # Errors
/// [`SourceError`] when the path cannot be looked at, or is a file that is no mailbox.
pub fn plan(path: &Path, options: &Options) -> Result<Plan, SourceError> {
    let unreachable = |cause| SourceError::Unreachable { path: path.to_owned(), cause };
    let metadata = fs::metadata(path).map_err(unreachable)?;
    let mut plan =
        Plan { parts: Vec::new(), skipped: Vec::new(), skipped_count: 0, options: options.clone() };
    if metadata.is_dir() {
        let mut survey = Survey::new(path);
        survey.directory(path, &mut Vec::new(), 0);
        plan.parts = survey.parts;
        plan.skipped = survey.skipped;
        plan.skipped_count = survey.skipped_count;
        return Ok(plan);
    }
    if !metadata.is_file() {
        return Err(SourceError::SpecialFile { path: path.to_owned() });
    }
    let (kind, content) = match sniff(path).map_err(unreachable)? {
        Sniffed::Mbox | Sniffed::MboxOfOne => (Kind::Mbox, Content::File),
        Sniffed::Takeout => (Kind::Takeout, Content::File),
        Sniffed::Message => (Kind::Eml, Content::One),
        Sniffed::Skip(SkipReason::Archive(format)) => {
            return Err(SourceError::Archive { path: path.to_owned(), format });
        }
        Sniffed::Skip(reason) => {
            return Err(SourceError::NotMail { path: path.to_owned(), reason });
        }
    };
    let level = path.file_name().and_then(folder::file_level);
    let directory = || path.parent().map_or_else(String::new, folder::root_name);
    let levels = [level.unwrap_or_else(directory)];
    plan.parts.push(Part {
        path: path.to_owned(),
        kind,
        folder: folder::join(&levels, ""),
        bytes: metadata.len(),
        files: 1,
        content,
    });
    Ok(plan)
}

impl Plan {
    /// Size of all parts on disk, bytes.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Starts the walk.
    #[must_use]
    pub fn read(self) -> Reader {
        Reader::new(self.parts, self.options)
    }
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod tests;
