//! Mail on disk → raw messages, one after the other.
//!
//! [`plan`] finds out by content what lies at a path (mbox, Maildir, loose messages, Takeout, each
//! also gzipped) and lists it in parts with their sizes; [`Plan::read`] walks those parts and
//! yields each message with its place, folder and labels. It runs in the thread that iterates,
//! wakes for nothing, and holds one message and one read block in memory, whatever the size of
//! the file.
//!
//! Never: modifies, locks or renames what it reads; follows symbolic links below the given path;
//! opens a fifo, device or socket; interprets a message beyond the few header fields that carry
//! labels; drops anything silently (it is an [`Entry`], a [`Failure`] or a [`Skipped`]).

mod emlx;
mod encoded_word;
mod failure;
mod flags;
mod folder;
mod gmail;
mod gmail_names;
mod header;
mod input;
mod labels;
mod maildir;
mod mbox;
mod plan;
mod quoting;
mod reader;
mod separator;
mod single;
mod sniff;
mod survey;
mod utf7;
mod when;
mod window;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use failure::{Failure, FailureReason, SkipReason, Skipped, SourceError};
pub use plan::{Part, Plan, plan};
pub use reader::{Progress, Reader};

/// Where something lies on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file (or folder, when a whole folder is meant).
    pub path: Arc<Path>,
    /// 0-based byte offset in the file; in the unpacked bytes when the file is gzipped. For an
    /// mbox entry that of its separator line.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.path.display(), self.offset)
    }
}

/// One message as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it was found in.
    pub kind: Kind,
    /// The message: no separator line, mbox quoting undone, otherwise the bytes on disk.
    pub raw: Vec<u8>,
    /// Where it lay.
    pub place: Place,
    /// Folder name, levels parted by `/`: `INBOX`, `Lists/rust`.
    pub folder: String,
    /// Further folders (Takeout: one message may stand in several).
    pub more_folders: Vec<String>,
    /// Labels, `^[a-z0-9][a-z0-9_:-]{0,63}$` each, ≤ 64, no repetition, in order of discovery.
    pub labels: Vec<String>,
    /// Time in the mbox separator line, unix ms; a time without a zone is taken as UTC.
    pub separator_ms: Option<i64>,
    /// Modification time of a Maildir file (or Apple Mail's `date-received`), unix ms.
    pub file_ms: Option<i64>,
}

/// What the walk yields.
#[derive(Debug)]
pub enum Item {
    /// A message.
    Entry(Entry),
    /// Something that could not be read; the walk goes on after it.
    Failure(Failure),
}

/// What a part is, told by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// One file of many messages with `From ` lines between them (RFC 4155 and older dialects).
    Mbox,
    /// An mbox whose entries carry `X-Gmail-Labels`: folders come from there.
    Takeout,
    /// One folder of a Maildir (`cur` and `new`).
    Maildir,
    /// One file that is one message.
    Eml,
    /// The loose messages of one directory, one file each.
    EmlFolder,
}

impl Kind {
    /// Name of the source in placements and for `source:`.
    #[must_use]
    pub fn source_name(self) -> &'static str {
        match self {
            Self::Mbox => "mbox",
            Self::Takeout => "takeout",
            Self::Maildir => "maildir",
            Self::Eml | Self::EmlFolder => "eml",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mbox => "mbox",
            Self::Takeout => "Gmail Takeout mbox",
            Self::Maildir => "Maildir folder",
            Self::Eml => "message file",
            Self::EmlFolder => "folder of message files",
        })
    }
}

/// Settings of a walk.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of every entry, in place of the one told by the path or by Gmail's labels.
    pub folder: Option<String>,
    /// Largest message, bytes; a larger one is a [`Failure`]. Default 64 MiB; 0 refuses all.
    pub message_bytes_max: usize,
    /// Bytes asked of the file at once. Default 512 KiB; 0 means 1.
    pub block_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { folder: None, message_bytes_max: 64 << 20, block_bytes: 512 << 10 }
    }
}
