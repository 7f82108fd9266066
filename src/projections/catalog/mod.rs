//! The `catalog` projection: everything about messages except the words in their text.
//!
//! One LMDB environment per mailbox and generation; layout in [`tables`]. The checkpoint commits
//! in the same transaction as the data. Written by the projector only; read through immutable
//! [`CatalogView`]s.

mod apply;
pub mod bitmaps;
mod blocks;
mod check;
mod dump;
mod erase;
mod filing;
mod holds;
pub mod people;
pub mod prepared;
mod purge;
mod ranges;
mod recount;
pub mod tables;
pub mod threads;
mod view;
mod writing;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use heed::{
    CompactionOption, Env, EnvClosingEvent, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls,
};
use roaring::RoaringBitmap;

pub(super) use self::dump::message as write_prepared;
use self::people::PeopleText;
pub use self::recount::Miscounted;
use self::tables::{Table, Tables, from_be_u32};
pub use self::view::CatalogView;
pub(super) use self::writing::Writing;
use crate::events::codec;
use crate::ids::Seq;

/// Address space reserved per catalog: about 20 million messages. The file grows as needed.
const MAP_BYTES: usize = 32 << 30;
/// Concurrent readers of one catalog.
const READERS_MAX: u32 = 512;

/// A closed catalog is rewritten when less than so many tenths of its pages are in use.
const FREE_TENTHS_KEPT: usize = 9;

/// How long an opening waits for readers of an earlier one.
const CLOSING_WAIT: Duration = Duration::from_secs(10);

/// Part of the generation's name: changes whenever stored shapes or derivation rules change.
pub const FINGERPRINT: u32 = 2;

/// Comes when an environment is closed.
pub(super) type Closing = EnvClosingEvent;

/// Failure of the catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// LMDB said so.
    #[error(transparent)]
    Store(#[from] heed::Error),
    /// A file could not be prepared.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A reader still holds the environment as it was opened before.
    #[error("somebody still reads it as it was opened before; try again")]
    StillOpen,
    /// A stored value does not decode.
    #[error("damaged: {0}")]
    Damaged(&'static str),
}

/// The writable catalog of one mailbox.
pub struct Catalog {
    env: Env<WithoutTls>,
    tables: Tables,
    people: Arc<PeopleText>,
    counters: Counters,
}

/// What the catalog knows about itself; stored in `meta`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Position of the last event applied.
    pub(crate) checkpoint: Seq,
    /// The ordinal of the next message.
    pub(crate) next_ordinal: u32,
    /// The number of the next person.
    pub(crate) next_person: u32,
    /// The owner's addresses.
    pub(crate) own_addresses: Vec<String>,
    /// Ordinals of messages that were erased: whatever later events say of them is passed over.
    pub(crate) erased: RoaringBitmap,
}

impl Counters {
    fn load(tables: &Tables, rtxn: &RoTxn<'_, WithoutTls>) -> Result<Self, CatalogError> {
        let meta = tables.of(Table::Meta);
        let number = |name: &str| -> Result<u32, CatalogError> {
            Ok(meta.get(rtxn, name.as_bytes())?.and_then(from_be_u32).unwrap_or(0))
        };
        let checkpoint = match meta.get(rtxn, b"checkpoint")? {
            Some(bytes) => bytes
                .try_into()
                .map(|b| Seq(u64::from_be_bytes(b)))
                .map_err(|_| CatalogError::Damaged("checkpoint"))?,
            None => Seq::ZERO,
        };
        let own_addresses = match meta.get(rtxn, b"own_addresses")? {
            Some(bytes) => codec::decode(bytes).ok_or(CatalogError::Damaged("own addresses"))?,
            None => Vec::new(),
        };
        let erased = match meta.get(rtxn, b"erased")? {
            Some(bytes) => RoaringBitmap::deserialize_from(bytes)
                .map_err(|_| CatalogError::Damaged("erased ordinals"))?,
            None => RoaringBitmap::new(),
        };
        Ok(Self {
            checkpoint,
            next_ordinal: number("next_ordinal")?,
            next_person: number("next_person")?,
            own_addresses,
            erased,
        })
    }

    fn store(&self, tables: &Tables, wtxn: &mut RwTxn<'_>) -> Result<(), CatalogError> {
        let Self { checkpoint, next_ordinal, next_person, own_addresses, erased } = self;
        let mut erased_bytes = Vec::with_capacity(erased.serialized_size());
        erased.serialize_into(&mut erased_bytes)?;
        let meta = tables.of(Table::Meta);
        meta.put(wtxn, b"checkpoint", &checkpoint.0.to_be_bytes())?;
        meta.put(wtxn, b"next_ordinal", &next_ordinal.to_be_bytes())?;
        meta.put(wtxn, b"next_person", &next_person.to_be_bytes())?;
        meta.put(wtxn, b"erased", &erased_bytes)?;
        Ok(meta.put(wtxn, b"own_addresses", &codec::encode(own_addresses))?)
    }
}

impl Catalog {
    /// Opens or creates the catalog in `dir`. With `check`, every page is read once.
    ///
    /// # Errors
    /// [`CatalogError`]: set the directory aside and replay.
    pub fn open(dir: &Path, check: bool) -> Result<Self, CatalogError> {
        std::fs::create_dir_all(dir)?;
        // A search may still hold a view of the environment as it was open before.
        let closing = heed::env_closing_event(dir.canonicalize()?);
        if closing.is_some_and(|closing| !closing.wait_timeout(CLOSING_WAIT)) {
            return Err(CatalogError::StillOpen);
        }
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_BYTES).max_dbs(Table::ALL.len() as u32).max_readers(READERS_MAX);
        #[expect(unsafe_code, reason = "LMDB maps a file: the directory lock keeps others out")]
        let env = unsafe { options.open(dir)? };
        let tables = Tables::create(&env)?;
        let counters = {
            let rtxn = env.read_txn()?;
            if check {
                check::read_everything(&tables, &rtxn)?;
            }
            Counters::load(&tables, &rtxn)?
        };
        Ok(Self { env, tables, people: Arc::default(), counters })
    }

    /// A view of a catalog that nobody writes, without changing a byte of it.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn open_read_only(dir: &Path) -> Result<CatalogView, CatalogError> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_BYTES).max_dbs(Table::ALL.len() as u32);
        #[expect(unsafe_code, reason = "LMDB maps a file: the directory lock keeps writers out")]
        let env = unsafe { options.flags(EnvFlags::READ_ONLY).open(dir)? };
        let tables = Tables::open(&env)?;
        let counters = Counters::load(&tables, &env.read_txn()?)?;
        CatalogView::new(&env, tables, Arc::default(), counters)
    }

    /// Position of the last event applied.
    #[must_use]
    pub fn checkpoint(&self) -> Seq {
        self.counters.checkpoint
    }

    /// Opens a transaction to apply events to; there must be no other. Events at or before the
    /// checkpoint are passed over.
    ///
    /// # Errors
    /// [`CatalogError`] when no thread can be started.
    pub(super) fn begin(&self) -> Result<Writing, CatalogError> {
        Writing::begin(self)
    }

    fn part(&self) -> writing::Part {
        let counters = self.counters.clone();
        writing::Part { env: self.env.clone(), tables: self.tables, counters }
    }

    /// Commits a transaction with the checkpoint of its last event.
    ///
    /// # Errors
    /// [`CatalogError`]; nothing of it is then applied.
    pub(super) fn commit(&mut self, writing: Writing) -> Result<(), CatalogError> {
        let erased_before = self.counters.erased.len();
        self.counters = writing.finish()?;
        if self.counters.erased.len() != erased_before {
            // Texts of people who are forgotten must not stay in memory.
            self.people = Arc::default();
        }
        Ok(())
    }

    /// The readable side as of the last commit.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn view(&self) -> Result<CatalogView, CatalogError> {
        CatalogView::new(&self.env, self.tables, Arc::clone(&self.people), self.counters.clone())
    }

    /// Lets go of the environment; the event comes when every view of it is gone.
    pub(super) fn let_go(self) -> Closing {
        self.env.prepare_for_closing()
    }

    /// Closes the environment; waits until every view of it is gone.
    pub fn close(self) {
        let closing = self.env.prepare_for_closing();
        closing.wait();
    }

    /// Closes the environment in `dir` and drops its free pages when they are many: a copy without
    /// them takes the file's place. Skipped while somebody still reads.
    ///
    /// # Errors
    /// [`CatalogError`]; the file is then as it was.
    pub fn close_compacted(self, dir: &Path) -> Result<(), CatalogError> {
        let rtxn = self.env.read_txn()?;
        let mut used_pages = 0;
        for table in Table::ALL {
            let stat = self.tables.of(table).stat(&rtxn)?;
            used_pages += stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
        }
        drop(rtxn);
        let all_pages = self.env.info().last_page_number;
        if used_pages * 10 >= all_pages * FREE_TENTHS_KEPT {
            return Ok(());
        }
        let copy = dir.join("data.mdb.copy");
        self.env.copy_to_path(&copy, CompactionOption::Enabled)?.sync_all()?;
        let closing = self.env.prepare_for_closing();
        if closing.wait_timeout(CLOSING_WAIT) {
            std::fs::rename(copy, dir.join("data.mdb"))?;
        } else {
            std::fs::remove_file(copy)?;
        }
        Ok(())
    }
}
