//! What can go wrong with the truth, sorted by what the caller may do about it.

use std::path::PathBuf;

use crate::ids::{MailboxNo, Ordinal, Seq};

/// Failure of the log, the content store or the key store.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another process holds the directory.
    #[error("{0} is in use by another process; stop it or talk to it over HTTP")]
    InUse(PathBuf),
    /// The event store failed; a failed write poisons it until the process is restarted.
    #[error("event log: {0}; no further write is accepted until a restart")]
    Store(#[from] fjall::Error),
    /// The key store failed.
    #[error("key store: {0}")]
    Keys(#[from] heed::Error),
    /// The key store could not be opened again after it was compacted.
    #[error("the key store is closed; restart")]
    KeysClosed,
    /// The directory of a backup holds something else.
    #[error("{0} holds no earlier backup of this data directory; name another directory")]
    ForeignBackup(PathBuf),
    /// A directory or file could not be prepared.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The key that would open this value is gone: it was erased.
    #[error("mailbox {} ordinal {ordinal}: erased", mailbox.0)]
    Erased {
        /// Whose.
        mailbox: MailboxNo,
        /// Which.
        ordinal: Ordinal,
    },
    /// The mailbox's own key is gone or was never there.
    #[error("mailbox {}: its key is gone, nothing in it can be read", .0.0)]
    MailboxKeyGone(MailboxNo),
    /// A stored value does not open or decode: damage or tampering.
    #[error(
        "mailbox {}: event {seq} is damaged ({what}); restore the directory from a backup",
        mailbox.0
    )]
    DamagedEvent {
        /// Whose.
        mailbox: MailboxNo,
        /// Which event.
        seq: Seq,
        /// What did not hold.
        what: &'static str,
    },
    /// Stored content does not open or decompress.
    #[error("mailbox {}: content of ordinal {ordinal} is damaged ({what})", mailbox.0)]
    DamagedContent {
        /// Whose.
        mailbox: MailboxNo,
        /// Which message.
        ordinal: Ordinal,
        /// What did not hold.
        what: &'static str,
    },
    /// A registry record does not decode.
    #[error("registry record is damaged: {0}")]
    DamagedRegistry(&'static str),
    /// The cipher refuses values beyond 256 GiB.
    #[error("a value is too large to be sealed")]
    TooLargeToSeal,
    /// The operating system gave no random bytes for a key.
    #[error("no random bytes for a key: {0}")]
    NoRandomness(getrandom::Error),
}
