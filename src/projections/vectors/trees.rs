//! Trees (arroy) over the rows of a very large index, in an environment of their own.
//!
//! A scan costs what the index is large; trees cost what they are asked for. They are built as a
//! whole beside whatever goes on, in `trees-<rows>`, over the rows there were then; rows that came
//! later are scanned. A row never changes what it stands for: a row that was taken out is passed over
//! by whoever asks, and a purge throws the whole index away with its trees, whose split planes
//! remember what they were made of. Trees that are damaged or missing are built again.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use arroy::distances::Cosine;
use arroy::internals::{KeyCodec, NodeCodec};
use arroy::{Reader, Writer};
use heed::{CommitOrAbort, Env, EnvOpenOptions, WithoutTls};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::{MAP_BYTES, VectorError, Vectors, stored};

/// Rows above those of the trees, as a share of them, after which they are built again: one in so
/// many.
const GROWN: u32 = 8;
/// Nodes looked at for each row wanted and tree; measured, docs/adr/0022.
const THOROUGHNESS: usize = 5;
/// Memory of a build, bytes.
const BUILD_BYTES: usize = 512 << 20;
/// The same rows give the same trees.
const SEED: u64 = 1;

type Nodes = heed::Database<'static, KeyCodec, NodeCodec<Cosine>>;

/// Trees over the first rows of an index.
pub(super) struct Trees {
    env: Env<WithoutTls>,
    nodes: Nodes,
    rows: u32,
}

fn path(dir: &Path, rows: u32) -> PathBuf {
    dir.join(format!("trees-{rows:010}"))
}

fn failed(error: arroy::Error) -> VectorError {
    match error {
        arroy::Error::Heed(error) => VectorError::Store(error),
        arroy::Error::Io(error) => VectorError::Io(error),
        arroy::Error::BuildCancelled => VectorError::Damaged("building of trees was stopped"),
        _ => VectorError::Damaged("trees"),
    }
}

impl Trees {
    fn open(dir: &Path, rows: u32) -> Result<Self, VectorError> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_BYTES).max_dbs(1);
        #[expect(unsafe_code, reason = "LMDB maps a file: the directory lock keeps others out")]
        let env = unsafe { options.open(dir)? };
        let wtxn = env.write_txn()?;
        let nodes = env
            .clone()
            .create_databases_and_commit(wtxn, |opener, wtxn| {
                let nodes = opener.create_database::<KeyCodec, NodeCodec<Cosine>>(wtxn, None)?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(nodes))
            })?
            .unwrap_commit();
        Ok(Self { env, nodes, rows })
    }

    /// The trees of an index that was closed well; none when there are none that can be used.
    pub(super) fn open_last(dir: &Path, dimensions: usize) -> Option<Self> {
        let rows = std::fs::read_dir(dir).ok()?.flatten().filter_map(|entry| {
            entry.file_name().to_str()?.strip_prefix("trees-")?.parse::<u32>().ok()
        });
        let rows = rows.max()?;
        let trees = Self::open(&path(dir, rows), rows).ok()?;
        let rtxn = trees.env.read_txn().ok()?;
        let fits = Reader::<Cosine>::open(&rtxn, 0, trees.nodes)
            .is_ok_and(|reader| reader.dimensions() == dimensions);
        drop(rtxn);
        fits.then_some(trees)
    }

    /// Rows they were built over.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    /// About the nearest `count` rows, in no order.
    pub(super) fn nearest(&self, query: &[f32], count: usize) -> Result<Vec<u32>, VectorError> {
        let rtxn = self.env.read_txn()?;
        let reader = Reader::<Cosine>::open(&rtxn, 0, self.nodes).map_err(failed)?;
        let looked_at = NonZeroUsize::new(count * reader.n_trees() * THOROUGHNESS);
        let mut asked = reader.nns(count);
        if let Some(looked_at) = looked_at {
            asked.search_k(looked_at);
        }
        let found = asked.by_vector(&rtxn, query).map_err(failed)?;
        Ok(found.into_iter().map(|(row, _)| row).collect())
    }
}

impl Vectors {
    pub(super) fn trees(&self) -> Option<Arc<Trees>> {
        self.trees.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there are rows enough for trees, or enough that came since they were built.
    #[must_use]
    pub fn wants_trees(&self) -> bool {
        let rows = self.rows();
        let built = self.trees().map_or(0, |trees| trees.rows());
        rows >= self.trees_from && rows - built.min(rows) > built / GROWN
    }

    /// Builds trees over the rows there are now. Searches and additions go on meanwhile. Takes
    /// minutes for a million rows; ends early, with nothing changed, when `stop` says so.
    ///
    /// # Errors
    /// [`VectorError`]; the trees that were there go on to serve.
    pub fn build_trees(&self, stop: impl Fn() -> bool + Sync + Send) -> Result<(), VectorError> {
        let rows = self.rows();
        let building = self.dir.join("trees.building");
        if building.exists() {
            std::fs::remove_dir_all(&building)?;
        }
        std::fs::create_dir_all(&building)?;
        let trees = Trees::open(&building, rows)?;
        let rtxn = self.env.read_txn()?;
        let mut wtxn = trees.env.write_txn()?;
        let mut writer = Writer::<Cosine>::new(trees.nodes, 0, self.dimensions);
        writer.set_tmpdir(&building);
        // Rows that were taken out have no vector any more.
        for entry in self.tables.exact.iter(&rtxn)? {
            let (key, halves) = entry?;
            let row = super::block_number(key)?;
            if row < rows {
                writer.append_item(&mut wtxn, row, &stored::vector(halves)).map_err(failed)?;
            }
        }
        drop(rtxn);
        let mut random = StdRng::seed_from_u64(SEED);
        writer
            .builder(&mut random)
            .available_memory(BUILD_BYTES)
            .cancel(stop)
            .build(&mut wtxn)
            .map_err(failed)?;
        wtxn.commit()?;
        let Trees { env, .. } = trees;
        // LMDB must not have one file open twice in a process.
        env.prepare_for_closing().wait();
        let place = path(&self.dir, rows);
        std::fs::rename(&building, &place)?;
        let built = Arc::new(Trees::open(&place, rows)?);
        let old = {
            let mut trees = self.trees.write().unwrap_or_else(PoisonError::into_inner);
            trees.replace(built)
        };
        if let Some(old) = old {
            // Whoever still reads them keeps what it holds.
            std::fs::remove_dir_all(path(&self.dir, old.rows))?;
        }
        Ok(())
    }
}
