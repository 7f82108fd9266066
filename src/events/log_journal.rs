//! Letting go of fjall's journal when a directory is closed.
//!
//! fjall drops a journal once everything in it is in tables, but begins a new one only behind
//! 64 MB: until then up to that much sealed mail lies on disk twice. A closed log whose tables hold
//! everything is therefore opened once more with an empty journal behind the old one. fjall then
//! takes the old one for a full one, checks itself that its tables are as far, and removes it at
//! the next flush; where they are not, it stays.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use fjall::PersistMode;

use super::{Log, LogError, LogOptions, SETTLE_WAIT};
use crate::crash_point;

/// Journals that take less on disk are not worth an opening, bytes; in debug builds nearly every
/// one is, so that tests pass here.
const KEPT_BYTES: u64 = if cfg!(debug_assertions) { 64 << 10 } else { 4 << 20 };
/// A key that no record has; removing it is a write that changes nothing.
const NO_RECORD: &[u8] = b"journal";

impl Log {
    /// Removes what the journal of the truth at `dir` holds twice; nobody may have it open. Tells
    /// whether there was enough to do so.
    ///
    /// # Errors
    /// [`LogError::Io`] and what the stores say. Whatever happens, nothing is lost by it.
    pub fn retire_journal(dir: &Path) -> Result<bool, LogError> {
        let log_dir = dir.join("log");
        let io = |source| LogError::Io { path: log_dir.clone(), source };
        let mut last = None;
        let mut bytes = 0;
        for entry in std::fs::read_dir(&log_dir).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".jnl"));
            let Some(number) = number.and_then(|number| number.parse::<u64>().ok()) else {
                continue;
            };
            last = last.max(Some(number));
            bytes += entry.metadata().map_err(io)?.blocks() * 512;
        }
        let Some(last) = last.filter(|_| bytes > KEPT_BYTES) else { return Ok(false) };
        File::create_new(log_dir.join(format!("{}.jnl", last + 1)))
            .and_then(|journal| journal.sync_all())
            .and_then(|()| File::open(&log_dir)?.sync_all())
            .map_err(io)?;
        crash_point::reach("journal begun");
        let log = Self::open(dir, LogOptions::default())?;
        let mut batch = log.db.batch().durability(Some(PersistMode::SyncAll));
        batch.remove(&log.registry, NO_RECORD);
        batch.commit()?;
        log.settle()?;
        let deadline = Instant::now() + SETTLE_WAIT;
        while log.db.journal_count() > 1 && Instant::now() < deadline {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        Ok(true)
    }
}
