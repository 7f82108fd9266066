//! Opening, writing and reading the text index.
//!
//! The writer is opened when there is something to write and closed by the caller when idle: an
//! open one costs threads and memory. Every commit carries the checkpoint in its payload.

use std::collections::HashSet;
use std::path::Path;

use roaring::RoaringBitmap;
use tantivy::directory::Directory as _;
use tantivy::directory::error::DeleteError;
use tantivy::index::SegmentId;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher, Term};

use super::TextError;
use super::directory::UnsyncedDirectory;
use super::schema::{self, Fields};
use super::tokenizer::{StemWords, Words};
use crate::crash_point;
use crate::ids::{Ordinal, Seq};
use crate::mail::Message;

/// Memory of an open writer before it writes a segment, bytes. Measured: 15 MB doubles the CPU
/// time of a large import, 50 MB saves a tenth and takes 60 MB more at the peak.
const WRITER_BYTES: usize = 40 << 20;

/// Segments of about one size that are merged into one. A search over a dozen segments costs
/// little; merging earlier makes every import wait for one more pass over its postings.
const SEGMENTS_MERGED: usize = 12;

/// One text index.
pub struct TextIndex {
    index: Index,
    fields: Fields,
    reader: IndexReader,
    writer: Option<IndexWriter>,
    checkpoint: Seq,
}

/// The readable side at one checkpoint.
#[derive(Clone)]
pub struct TextReader {
    pub(super) searcher: Searcher,
    pub(super) fields: Fields,
}

impl TextIndex {
    /// Opens or creates the index in `dir`. With `validate`, every file is checked against its
    /// checksum first.
    ///
    /// # Errors
    /// [`TextError`]: set the directory aside and replay.
    pub fn open(dir: &Path, validate: bool) -> Result<Self, TextError> {
        std::fs::create_dir_all(dir)?;
        let directory = UnsyncedDirectory::open(dir)?;
        let (schema, fields) = schema::schema();
        let index = if Index::exists(&directory).map_err(tantivy::TantivyError::from)? {
            let index = Index::open(directory)?;
            if index.schema() != schema {
                return Err(TextError::Damaged("schema of another program"));
            }
            index
        } else {
            Index::create(directory, schema, IndexSettings::default())?
        };
        if validate && !index.validate_checksum()?.is_empty() {
            return Err(TextError::Damaged("a file does not match its checksum"));
        }
        index.tokenizers().register(schema::WORDS, TextAnalyzer::from(Words));
        index.tokenizers().register(schema::STEMS, TextAnalyzer::from(StemWords::default()));
        let checkpoint = match index.load_metas()?.payload {
            Some(payload) => parse_payload(&payload)?,
            None => Seq::ZERO,
        };
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { index, fields, reader, writer: None, checkpoint })
    }

    /// Position of the last event in the committed index.
    #[must_use]
    pub fn checkpoint(&self) -> Seq {
        self.checkpoint
    }

    /// Adds a message; not seen before [`TextIndex::commit`].
    ///
    /// # Errors
    /// [`TextError`].
    pub fn add(&mut self, ordinal: Ordinal, message: &Message) -> Result<(), TextError> {
        let document = schema::document(&self.fields, ordinal, message);
        self.writer()?.add_document(document)?;
        Ok(())
    }

    /// Takes messages out; seen until [`TextIndex::commit`]. Their bytes stay in segments until
    /// [`TextIndex::purge`].
    ///
    /// # Errors
    /// [`TextError`].
    pub fn erase(&mut self, ordinals: &RoaringBitmap) -> Result<(), TextError> {
        let field = self.fields.ordinal;
        let writer = self.writer()?;
        for ordinal in ordinals {
            writer.delete_term(Term::from_field_u64(field, u64::from(ordinal)));
        }
        Ok(())
    }

    /// Rewrites every segment that holds documents taken out, and tells how many there were. Files
    /// of the old ones go when no reader holds them any more ([`TextIndex::collect_garbage`]).
    ///
    /// # Errors
    /// [`TextError`]; the index stays readable.
    pub fn purge(&mut self) -> Result<u64, TextError> {
        // A merge on its way may bring documents back that were taken out meanwhile.
        self.close_writer()?;
        let metas = self.index.searchable_segment_metas()?;
        let dirty: Vec<_> = metas.iter().filter(|meta| meta.has_deletes()).collect();
        let dropped = dirty.iter().map(|meta| u64::from(meta.num_deleted_docs())).sum();
        let ids: Vec<_> = dirty.iter().map(|meta| meta.id()).collect();
        drop(metas);
        if !ids.is_empty() {
            self.writer()?.merge(&ids).wait()?;
        }
        self.close_writer()?;
        self.reader.reload()?;
        Ok(dropped)
    }

    /// Removes files of segments that nobody reads any more, and tells how many old segments are
    /// left because somebody does.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn collect_garbage(&mut self, dir: &Path) -> Result<u64, TextError> {
        self.writer()?.garbage_collect_files().wait()?;
        self.close_writer()?;
        let living: HashSet<String> =
            self.index.searchable_segment_ids()?.iter().map(SegmentId::uuid_string).collect();
        let mut left = 0;
        for entry in std::fs::read_dir(dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let segment = name.strip_suffix(".term").map(str::to_owned);
            left += u64::from(segment.is_some_and(|segment| !living.contains(&segment)));
        }
        Ok(left)
    }

    fn writer(&mut self) -> Result<&mut IndexWriter, TextError> {
        if self.writer.is_none() {
            self.remove_unfinished_deletes()?;
            let options = IndexWriterOptions::builder()
                .num_worker_threads(1)
                .memory_budget_per_thread(WRITER_BYTES)
                .num_merge_threads(1)
                .build();
            let writer: IndexWriter = self.index.writer_with_options(options)?;
            let mut policy = LogMergePolicy::default();
            policy.set_del_docs_ratio_before_merge(0.2);
            policy.set_min_num_segments(SEGMENTS_MERGED);
            writer.set_merge_policy(Box::new(policy));
            self.writer = Some(writer);
        }
        self.writer.as_mut().ok_or(TextError::Damaged("no writer"))
    }

    /// Removes bitmaps of deletions that no segment names. A process that died between writing one
    /// and committing leaves it, and the replay would write a file of the same name again, which
    /// Tantivy refuses.
    fn remove_unfinished_deletes(&self) -> Result<(), TextError> {
        let named: HashSet<String> = self
            .index
            .searchable_segment_metas()?
            .iter()
            .filter_map(|meta| {
                Some(format!("{}.{}.del", meta.id().uuid_string(), meta.delete_opstamp()?))
            })
            .collect();
        let directory = self.index.directory();
        for file in directory.list_managed_files() {
            let name = file.to_string_lossy();
            if name.ends_with(".del") && !named.contains(&*name) {
                match directory.delete(&file) {
                    Ok(()) | Err(DeleteError::FileDoesNotExist(_)) => {}
                    Err(other) => return Err(std::io::Error::other(other).into()),
                }
            }
        }
        Ok(())
    }

    /// Makes everything added visible, with `checkpoint` as the position of the last event.
    ///
    /// # Errors
    /// [`TextError`]; what was added since the last commit is then replayed.
    pub fn commit(&mut self, checkpoint: Seq) -> Result<(), TextError> {
        let mut prepared = self.writer()?.prepare_commit()?;
        prepared.set_payload(&format!("{{\"seq\":{checkpoint}}}"));
        prepared.commit()?;
        crash_point::reach("text committed");
        self.reader.reload()?;
        self.checkpoint = checkpoint;
        Ok(())
    }

    /// Closes the writer after its merges.
    ///
    /// # Errors
    /// [`TextError`] when a merge failed; the index stays readable.
    pub fn close_writer(&mut self) -> Result<(), TextError> {
        if let Some(writer) = self.writer.take() {
            writer.wait_merging_threads()?;
            self.reader.reload()?;
        }
        Ok(())
    }

    /// The readable side as of the last commit.
    #[must_use]
    pub fn reader(&self) -> TextReader {
        TextReader { searcher: self.reader.searcher(), fields: self.fields }
    }
}

impl TextReader {
    /// Number of messages in it.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.searcher.num_docs()
    }
}

impl std::fmt::Debug for TextReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TextReader({} messages)", self.messages())
    }
}

fn parse_payload(payload: &str) -> Result<Seq, TextError> {
    #[derive(serde::Deserialize)]
    struct Payload {
        seq: Seq,
    }
    serde_json::from_str::<Payload>(payload)
        .map(|p| p.seq)
        .map_err(|_| TextError::Damaged("checkpoint"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn erase_and_commit(dir: &Path, seq: u64) -> Result<u64, TextError> {
        let mut index = TextIndex::open(dir, true)?;
        index.erase(&RoaringBitmap::from([1]))?;
        index.commit(Seq(seq))?;
        index.close_writer()?;
        Ok(index.reader().messages())
    }

    #[test]
    fn deletions_that_a_crash_left_uncommitted_are_written_again() {
        let whole = tempfile::tempdir().expect("temp dir");
        let mut index = TextIndex::open(whole.path(), false).expect("opens");
        for n in 0..30 {
            let message = Message { subject: format!("number {n}"), ..Message::default() };
            index.add(Ordinal(n), &message).expect("added");
        }
        index.commit(Seq(30)).expect("committed");
        index.close_writer().expect("closed");
        drop(index);
        let died = tempfile::tempdir().expect("temp dir");
        let copy = |only: &dyn Fn(&str) -> bool| {
            for entry in std::fs::read_dir(whole.path()).expect("reads") {
                let entry = entry.expect("reads");
                let name = entry.file_name();
                if only(&name.to_string_lossy()) {
                    std::fs::copy(entry.path(), died.path().join(name)).expect("copied");
                }
            }
        };
        copy(&|_| true);
        assert_eq!(erase_and_commit(whole.path(), 31).expect("committed"), 29);
        // As if the process had died before the commit: the bitmap is there, nothing names it.
        copy(&|name| name.ends_with(".del") || name == ".managed.json");
        let left = std::fs::read_dir(died.path()).expect("reads");
        let left = left
            .filter(|e| e.as_ref().expect("reads").path().extension().is_some_and(|e| e == "del"));
        assert_eq!(left.count(), 1, "else this test shows nothing");
        assert_eq!(erase_and_commit(died.path(), 31).expect("written again"), 29);
    }
}
