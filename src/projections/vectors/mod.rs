//! The `vectors` projection: the passages of one mailbox in one space of vectors.
//!
//! One LMDB environment per mailbox, space and generation. Rows lie in blocks of 256, so that a
//! scan runs over large stretches of memory in place; up to millions of rows an exact scan is
//! faster than any tree at the same recall, above trees stand beside it (`trees.rs`,
//! docs/adr/0022). What is not in it is found by comparing [`Vectors::covered`] with the catalog; it
//! commits with the rows.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name | rows, covered messages, those with a refused passage, those taken out |
//! | `bytes` | block u32 BE | 256 × dimensions signed bytes |
//! | `places` | block u32 BE | 256 × (ordinal u32, start u32, end u32, step f32), LE |
//! | `exact` | row u32 BE | dimensions × f16 |

mod nearest;
mod rows;
mod scan;
mod state;
mod stored;
mod trees;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls};
use roaring::RoaringBitmap;

pub use self::nearest::Near;
use self::rows::{NOBODY, PLACE_BYTES, Place};
use self::state::State;
pub use self::stored::Stored;
use self::trees::Trees;
use crate::ids::Ordinal;

/// Address space reserved per index. The file grows as needed.
const MAP_BYTES: usize = 256 << 30;
/// How long a closing waits for readers.
const CLOSING_WAIT: Duration = Duration::from_secs(10);
/// Rows from which on trees are built: below, a scan is as fast (docs/adr/0022).
const TREES_FROM: u32 = 4_000_000;
/// Version of what lies in an index.
pub const LAYOUT: u32 = 1;
/// Rows of a block.
const BLOCK_ROWS: usize = 256;

/// Failure of an index of vectors.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// LMDB said so.
    #[error(transparent)]
    Store(#[from] heed::Error),
    /// A file could not be prepared.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A stored value does not decode.
    #[error("damaged: {0}")]
    Damaged(&'static str),
}

type Table = Database<'static, Bytes, Bytes>;

const TABLES: [&str; 4] = ["meta", "bytes", "places", "exact"];

#[derive(Clone, Copy)]
struct Tables {
    meta: Table,
    bytes: Table,
    places: Table,
    exact: Table,
}

impl From<[Table; TABLES.len()]> for Tables {
    fn from([meta, bytes, places, exact]: [Table; TABLES.len()]) -> Self {
        Self { meta, bytes, places, exact }
    }
}

/// An index of vectors. Shared by readers and its one writer.
pub struct Vectors {
    env: Env<WithoutTls>,
    tables: Tables,
    dimensions: usize,
    dir: PathBuf,
    /// Rows and messages as of the last commit.
    state: RwLock<Arc<State>>,
    /// Keeps writers one behind the other; searches do not wait for them.
    writing: Mutex<()>,
    /// Somebody met damage.
    distrusted: AtomicBool,
    /// What finds the nearest of very many rows; none below [`TREES_FROM`].
    trees: RwLock<Option<Arc<Trees>>>,
    trees_from: u32,
}

impl Vectors {
    /// Opens or creates the index in `dir`. LMDB has no checksums: reading a damaged file can end
    /// the process, so the caller must know that it was closed well.
    ///
    /// # Errors
    /// [`VectorError`]: throw the directory away and fill a new one.
    pub fn open(dir: &Path, dimensions: u32) -> Result<Self, VectorError> {
        std::fs::create_dir_all(dir)?;
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_BYTES).max_dbs(4).max_readers(512);
        #[expect(unsafe_code, reason = "LMDB maps a file: the directory lock keeps others out")]
        let env = unsafe { options.open(dir)? };
        let wtxn = env.write_txn()?;
        let tables = env
            .clone()
            .create_databases_and_commit(wtxn, |opener, wtxn| {
                let mut table = |name| opener.create_database::<Bytes, Bytes>(wtxn, Some(name));
                let [meta, bytes, places, exact] = TABLES;
                let tables = [table(meta)?, table(bytes)?, table(places)?, table(exact)?];
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(tables))
            })
            .map(|done| Tables::from(done.unwrap_commit()))?;
        let state = State::load(tables, &env.read_txn()?)?;
        let trees = Trees::open_last(dir, dimensions as usize);
        Ok(Self::opened(env, tables, dimensions, dir, state, trees))
    }

    /// Opens an index that nobody writes and that was closed well, without changing a byte of it.
    ///
    /// # Errors
    /// [`VectorError`].
    pub fn open_read_only(dir: &Path, dimensions: u32) -> Result<Self, VectorError> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_BYTES).max_dbs(4);
        #[expect(unsafe_code, reason = "LMDB maps a file: the directory lock keeps writers out")]
        let env = unsafe { options.flags(EnvFlags::READ_ONLY).open(dir)? };
        let rtxn = env.read_txn()?;
        let tables = env
            .clone()
            .open_databases_and_commit(rtxn, |opener, rtxn| {
                let table = |name| {
                    opener
                        .open_database::<Bytes, Bytes>(rtxn, Some(name))?
                        .ok_or_else(|| heed::Error::Io(std::io::Error::other("a table is missing")))
                };
                let [meta, bytes, places, exact] = TABLES;
                let tables = [table(meta)?, table(bytes)?, table(places)?, table(exact)?];
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(tables))
            })
            .map(|done| Tables::from(done.unwrap_commit()))?;
        let state = State::load(tables, &env.read_txn()?)?;
        // A search that comes once scans, rather than open another environment for writing.
        Ok(Self::opened(env, tables, dimensions, dir, state, None))
    }

    fn opened(
        env: Env<WithoutTls>,
        tables: Tables,
        dimensions: u32,
        dir: &Path,
        state: State,
        trees: Option<Trees>,
    ) -> Self {
        let dimensions = dimensions as usize;
        Self {
            env,
            tables,
            dimensions,
            dir: dir.to_owned(),
            state: RwLock::new(Arc::new(state)),
            writing: Mutex::default(),
            distrusted: AtomicBool::new(false),
            trees: RwLock::new(trees.map(Arc::new)),
            trees_from: TREES_FROM,
        }
    }

    /// With trees from so many rows on.
    #[must_use]
    pub fn with_trees_from(mut self, rows: u32) -> Self {
        self.trees_from = rows;
        self
    }

    /// Closes the index; waits for whoever still reads.
    ///
    /// # Errors
    /// [`VectorError`]: it must not be taken for closed well.
    pub fn close(self) -> Result<(), VectorError> {
        drop(self.trees);
        if !self.env.prepare_for_closing().wait_timeout(CLOSING_WAIT) {
            return Err(VectorError::Damaged("somebody still reads it"));
        }
        Ok(())
    }

    /// Reads everything through: whether what belongs together is there, in its size. For an index
    /// that was not closed.
    ///
    /// # Errors
    /// [`VectorError`]: throw it away. Damage may also end the process (LMDB maps its file).
    pub fn check(&self) -> Result<(), VectorError> {
        let rtxn = self.env.read_txn()?;
        let state = State::load(self.tables, &rtxn)?;
        let wrong =
            |holds: bool, what| if holds { Ok(()) } else { Err(VectorError::Damaged(what)) };
        let (mut rows, mut next, mut found) = (0_u64, 0, RoaringBitmap::new());
        for entry in self.tables.places.iter(&rtxn)? {
            let (key, places) = entry?;
            let number = block_number(key)?;
            wrong(number == next && places.len() % PLACE_BYTES == 0, "places")?;
            next += 1;
            let places = places.as_chunks::<PLACE_BYTES>().0;
            let bytes = self.tables.bytes.get(&rtxn, key)?.unwrap_or_default();
            wrong(bytes.len() == places.len() * self.dimensions, "block")?;
            for (place, row) in places.iter().zip(number * BLOCK_ROWS as u32..) {
                let ordinal = Place::ordinal(place);
                let exact = self.tables.exact.get(&rtxn, &row.to_be_bytes())?;
                if ordinal == NOBODY {
                    wrong(exact.is_none(), "a vector of nobody")?;
                } else {
                    let whole = exact.is_some_and(|halves| halves.len() == self.dimensions * 2);
                    wrong(whole, "exact vector")?;
                    found.insert(ordinal);
                }
            }
            rows += places.len() as u64;
        }
        wrong(rows == u64::from(state.rows), "rows")?;
        wrong(found.is_subset(&state.covered) && state.failed.is_subset(&state.covered), "messages")
    }

    /// Where it lies.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn put_state(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    /// Takes note that somebody met damage: it is thrown away when it is asked for next.
    pub fn distrust(&self) {
        self.distrusted.store(true, Ordering::Relaxed);
    }

    /// Whether somebody met damage.
    #[must_use]
    pub fn is_distrusted(&self) -> bool {
        self.distrusted.load(Ordering::Relaxed)
    }

    /// Messages of which there are bytes in the file, those taken out included.
    #[must_use]
    pub fn has_bytes_of(&self) -> RoaringBitmap {
        let state = self.state();
        &state.covered | &state.removed
    }

    /// Messages that are in it, those without any passage included.
    #[must_use]
    pub fn covered(&self) -> RoaringBitmap {
        self.state().covered.clone()
    }

    /// Those of them with a passage that the model refused.
    #[must_use]
    pub fn failed(&self) -> RoaringBitmap {
        self.state().failed.clone()
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.state().covered.is_empty()
    }

    /// How many of these messages have all their vectors.
    #[must_use]
    pub fn whole_among(&self, messages: &RoaringBitmap) -> u64 {
        let state = self.state();
        state.covered.intersection_len(messages) - state.failed.intersection_len(messages)
    }

    fn messages(&self) -> u64 {
        self.state().covered.len()
    }

    /// Passages in it.
    #[must_use]
    pub fn passages(&self) -> u32 {
        let state = self.state();
        state.rows - state.dead.min(state.rows)
    }

    /// Rows written, those taken out included.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.state().rows
    }

    /// Adds messages; those that are in it already are passed over. All or none.
    ///
    /// # Errors
    /// [`VectorError`]; nothing is then added.
    pub fn add(&self, messages: &[(Ordinal, Stored)]) -> Result<(), VectorError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = self.state().as_ref().clone();
        let mut wtxn = self.env.write_txn()?;
        let mut block = Block::load(self, &wtxn, next.rows)?;
        for (ordinal, stored) in messages {
            if !next.covered.insert(ordinal.0) {
                continue;
            }
            if stored.failed > 0 {
                next.failed.insert(ordinal.0);
            }
            for (passage, halves) in stored.passages.iter().zip(stored.vectors(self.dimensions)) {
                if block.is_full() {
                    block.store(self, &mut wtxn)?;
                    block = Block::begin(next.rows);
                }
                let (bytes, step) = scan::quantise(&stored::vector(halves));
                block.push(*ordinal, *passage, &bytes, step);
                self.tables.exact.put(&mut wtxn, &next.rows.to_be_bytes(), halves)?;
                next.rows += 1;
            }
        }
        block.store(self, &mut wtxn)?;
        next.store(self.tables, &mut wtxn)?;
        wtxn.commit()?;
        self.put_state(next);
        Ok(())
    }

    /// Takes messages out: no search finds them any more. Their bytes stay on disk until the index
    /// is filled anew.
    ///
    /// # Errors
    /// [`VectorError`]; nothing is then taken out.
    pub fn remove(&self, ordinals: &RoaringBitmap) -> Result<(), VectorError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = self.state().as_ref().clone();
        let gone = &next.covered & ordinals;
        if gone.is_empty() {
            return Ok(());
        }
        next.removed |= &gone;
        next.covered -= &gone;
        next.failed -= &gone;
        let mut wtxn = self.env.write_txn()?;
        let mut blocks = Vec::new();
        for entry in self.tables.places.iter(&wtxn)? {
            let (key, places) = entry?;
            let mut places = places.to_vec();
            let mut rows = Vec::new();
            for (at, place) in places.as_chunks_mut::<PLACE_BYTES>().0.iter_mut().enumerate() {
                if gone.contains(Place::ordinal(place)) {
                    *place = Place::NONE.write();
                    rows.push(at);
                }
            }
            if !rows.is_empty() {
                blocks.push((key.to_vec(), places, rows));
            }
        }
        for (key, places, rows) in blocks {
            next.dead += rows.len() as u32;
            self.tables.places.put(&mut wtxn, &key, &places)?;
            let mut bytes =
                self.tables.bytes.get(&wtxn, &key)?.ok_or(VectorError::Damaged("block"))?.to_vec();
            let first = block_number(&key)? * BLOCK_ROWS as u32;
            for at in rows {
                bytes[at * self.dimensions..(at + 1) * self.dimensions].fill(0);
                self.tables.exact.delete(&mut wtxn, &(first + at as u32).to_be_bytes())?;
            }
            self.tables.bytes.put(&mut wtxn, &key, &bytes)?;
        }
        next.store(self.tables, &mut wtxn)?;
        wtxn.commit()?;
        self.put_state(next);
        Ok(())
    }

    /// How many messages of these it still holds: for probes after an erasure.
    ///
    /// # Errors
    /// [`VectorError`].
    pub fn held(&self, ordinals: &RoaringBitmap) -> Result<u64, VectorError> {
        let rtxn = self.env.read_txn()?;
        let mut held = RoaringBitmap::new();
        for entry in self.tables.places.iter(&rtxn)? {
            for place in entry?.1.as_chunks::<PLACE_BYTES>().0 {
                let ordinal = Place::ordinal(place);
                if ordinal != NOBODY && ordinals.contains(ordinal) {
                    held.insert(ordinal);
                }
            }
        }
        Ok(held.len())
    }
}

impl std::fmt::Debug for Vectors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vectors({} rows)", self.rows())
    }
}

fn block_number(key: &[u8]) -> Result<u32, VectorError> {
    key.try_into().map(u32::from_be_bytes).map_err(|_| VectorError::Damaged("block key"))
}

/// The block that rows are added to.
struct Block {
    number: u32,
    bytes: Vec<u8>,
    places: Vec<u8>,
}

impl Block {
    fn begin(row: u32) -> Self {
        Self { number: row / BLOCK_ROWS as u32, bytes: Vec::new(), places: Vec::new() }
    }

    /// The block of row `next`, with what is in it.
    fn load(index: &Vectors, rtxn: &RoTxn<'_, WithoutTls>, next: u32) -> Result<Self, VectorError> {
        let mut block = Self::begin(next);
        if !next.is_multiple_of(BLOCK_ROWS as u32) {
            let key = block.number.to_be_bytes();
            let bytes = index.tables.bytes.get(rtxn, &key)?;
            let places = index.tables.places.get(rtxn, &key)?;
            block.bytes.extend(bytes.ok_or(VectorError::Damaged("block"))?);
            block.places.extend(places.ok_or(VectorError::Damaged("places"))?);
        }
        Ok(block)
    }

    fn is_full(&self) -> bool {
        self.places.len() >= BLOCK_ROWS * PLACE_BYTES
    }

    fn push(&mut self, ordinal: Ordinal, passage: (u32, u32), bytes: &[i8], step: f32) {
        self.bytes.extend(bytes.iter().map(|byte| byte.cast_unsigned()));
        self.places.extend(Place { ordinal: ordinal.0, passage, step }.write());
    }

    fn store(&self, index: &Vectors, wtxn: &mut heed::RwTxn<'_>) -> Result<(), VectorError> {
        if !self.places.is_empty() {
            let key = self.number.to_be_bytes();
            index.tables.bytes.put(wtxn, &key, &self.bytes)?;
            index.tables.places.put(wtxn, &key, &self.places)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod vectors_test;
