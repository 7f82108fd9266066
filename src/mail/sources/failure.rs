//! What can go wrong on the way from disk to raw message, by whom it concerns.
//!
//! [`SourceError`]: nothing can be read, the caller must act. [`Failure`]: one place could not be
//! read, the walk went on. [`Skipped`]: a file that is no mail, listed so that nobody wonders.
//! Each message names the remedy. Never carries content of a message.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Place;

/// Why nothing at all can be read from a path.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The path does not exist or its metadata cannot be read.
    #[error("cannot look at {}: {cause}; check the path and its permissions", path.display())]
    Unreachable {
        /// The path given.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A device, fifo or socket.
    #[error("{} is neither file nor directory; give a mailbox file or a directory", path.display())]
    SpecialFile {
        /// The path given.
        path: PathBuf,
    },
    /// A zip or tar archive.
    #[error("{} is a {format} archive; unpack it first and give the directory", path.display())]
    Archive {
        /// The path given.
        path: PathBuf,
        /// `zip` or `tar`.
        format: &'static str,
    },
    /// The file given holds no mail.
    #[error("{} is not a mailbox: {reason}", path.display())]
    NotMail {
        /// The path given.
        path: PathBuf,
        /// What it is instead.
        reason: SkipReason,
    },
}

/// A file or directory left out by the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// What was left out.
    pub path: PathBuf,
    /// Why.
    pub reason: SkipReason,
}

/// Why a file holds nothing to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// No bytes, or only white space.
    #[error("it is empty")]
    Empty,
    /// Neither header fields nor separator lines at its head.
    #[error("its head looks neither like a message nor like an mbox")]
    NotMail,
    /// Zip or tar.
    #[error("it is a {0} archive; unpack it first")]
    Archive(&'static str),
    /// A symbolic link below the root.
    #[error("it is a symbolic link; give its target as a source of its own")]
    SymbolicLink,
    /// Device, fifo or socket.
    #[error("it is a device, fifo or socket")]
    SpecialFile,
    /// Mail in delivery.
    #[error("deliveries under way in a Maildir's tmp are not mail yet; import again later")]
    MaildirTmp,
    /// More than [`super::plan`]'s depth of directories.
    #[error("it lies more than {0} directories deep; give a deeper directory as the source")]
    TooDeep(usize),
    /// The system refused.
    #[error("it cannot be read ({0}); check its permissions")]
    Unreadable(String),
}

/// One place that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Where.
    pub place: Place,
    /// Why, and what to do.
    pub reason: FailureReason,
}

impl Failure {
    pub(super) fn new(path: &Arc<Path>, offset: u64, reason: FailureReason) -> Self {
        Self { place: Place { path: Arc::clone(path), offset }, reason }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

/// Why a place could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailureReason {
    /// Bytes before the first separator line of an mbox.
    #[error(
        "{bytes} bytes before the first separator line were left out; \
             if they are a message, cut them into a file of their own"
    )]
    Preamble {
        /// How many.
        bytes: u64,
    },
    /// A separator line with nothing behind it.
    #[error("the entry is empty; nothing to import")]
    EmptyEntry,
    /// A message above the cap.
    #[error(
        "the message has {bytes} bytes, above the limit of {bytes_max}; \
             raise the limit of message size and import again"
    )]
    TooLarge {
        /// Its size, separator line not counted.
        bytes: u64,
        /// [`super::Options::message_bytes_max`].
        bytes_max: u64,
    },
    /// A gzip stream that breaks off or does not unpack.
    #[error(
        "the gzip stream is damaged at packed byte {packed_offset} ({cause}); what came before \
             was read; fetch the file again"
    )]
    GzipDamaged {
        /// Offset in the packed file, as near as the unpacker tells.
        packed_offset: u64,
        /// What the unpacker said.
        cause: String,
    },
    /// Bytes behind the last gzip member.
    #[error(
        "bytes that are no gzip follow at packed byte {packed_offset}; \
             they were left out; fetch the file again"
    )]
    GzipTrailing {
        /// Offset in the packed file.
        packed_offset: u64,
    },
    /// The system stopped in the middle of a file.
    #[error("reading stopped ({0}); check the disk and import again")]
    Read(String),
    /// A file of the plan cannot be opened.
    #[error("cannot be opened ({0}); check its permissions and import again")]
    Open(String),
    /// A file of the plan is gone: a mail program moved or renamed it.
    #[error("vanished since the directory was listed; import again when no mail program runs")]
    Vanished,
    /// A message file that is empty.
    #[error("the file is empty; nothing to import")]
    EmptyFile,
}

impl FailureReason {
    /// From an error on opening.
    pub(super) fn open(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            Self::Vanished
        } else {
            Self::Open(error.to_string())
        }
    }
}
