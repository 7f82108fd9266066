//! Indexing with Tantivy and nothing else: the bound that a replay is measured by.
//!
//! Messages are read beforehand and held in memory. One writer thread with 50 MB, one commit at the
//! end; the time includes making each document, and ends with the commit. Waiting for merges, as a
//! rebuild does, is told apart.

use std::path::{Path, PathBuf};
use std::time::Instant;

use postrider::ids::Ordinal;
use postrider::mail::Message;
use postrider::projections::text::schema::{Fields, document, schema};
use tantivy::indexer::IndexWriterOptions;
use tantivy::schema::{Field, FieldType, Schema};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Index, IndexWriter};

use crate::Fallible;
use crate::corpus::{self, Seen};
use crate::results::{Figures, peak_rss_bytes, rounded};
use crate::tokenizers::{StemWords, Words};

/// Memory of the writer, bytes.
const WRITER_BYTES: usize = 50 << 20;

/// Indexes a source; the index is made below `TMPDIR` and removed again.
pub(crate) fn run(source: &Path) -> Fallible<Figures> {
    let (mut messages, mut seen) = (Vec::new(), Seen::default());
    corpus::each(source, |entry| {
        let message = corpus::message(&entry);
        if seen.is_new(&message) {
            messages.push(message);
        }
        Ok(true)
    })?;
    drop(seen);
    let scratch = Scratch::new()?;
    let (committed, merged) = index(&scratch.0, &messages)?;
    let mut figures = Figures::new();
    figures.insert("messages".into(), messages.len().into());
    figures.insert("seconds".into(), rounded(committed).into());
    figures.insert("seconds_with_merges".into(), rounded(merged).into());
    figures.insert("peak_rss_bytes".into(), peak_rss_bytes()?.into());
    let bytes = postrider::projections::generation::disk_bytes(&scratch.0);
    figures.insert("disk_bytes".into(), bytes.into());
    Ok(figures)
}

/// Seconds up to the commit, and up to the end of the merges.
fn index(dir: &Path, messages: &[Message]) -> Fallible<(f64, f64)> {
    let (schema, fields) = schema();
    let index = create(dir, &schema, &fields)?;
    let began = Instant::now();
    let options = IndexWriterOptions::builder()
        .num_worker_threads(1)
        .memory_budget_per_thread(WRITER_BYTES)
        .num_merge_threads(1)
        .build();
    let mut writer: IndexWriter = index.writer_with_options(options)?;
    for (ordinal, message) in (1..).zip(messages) {
        writer.add_document(document(&fields, Ordinal(ordinal), message))?;
    }
    writer.commit()?;
    let committed = began.elapsed().as_secs_f64();
    writer.wait_merging_threads()?;
    Ok((committed, began.elapsed().as_secs_f64()))
}

fn create(dir: &Path, schema: &Schema, fields: &Fields) -> Fallible<Index> {
    let index = Index::create_in_dir(dir, schema.clone())?;
    let words = TextAnalyzer::from(Words);
    index.tokenizers().register(analyzer(schema, fields.subject)?, words);
    let stems = TextAnalyzer::from(StemWords::default());
    index.tokenizers().register(analyzer(schema, fields.stem)?, stems);
    Ok(index)
}

/// Name of the analyser that a field of text wants.
fn analyzer(schema: &Schema, field: Field) -> Fallible<&str> {
    let FieldType::Str(options) = schema.get_field_entry(field).field_type() else {
        return Err("no field of text".into());
    };
    Ok(options.get_indexing_options().ok_or("a field that is not indexed")?.tokenizer())
}

/// A directory that goes with its owner; below `TMPDIR`.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Fallible<Self> {
        let name = format!("postrider-bench-tantivy-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use postrider::projections::text::{TextIndex, TextReader};

    use super::*;

    fn dump(reader: &TextReader) -> String {
        let mut out = Vec::new();
        reader.dump(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_bare_index_holds_byte_for_byte_what_postriders_holds() {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
        let mut messages = Vec::new();
        corpus::each(&samples, |entry| {
            messages.push(corpus::message(&entry));
            Ok(true)
        })
        .unwrap();
        assert!(messages.len() > 50, "{}", messages.len());
        let (bare, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        index(bare.path(), &messages).unwrap();
        let mut text = TextIndex::open(own.path(), false).unwrap();
        for (ordinal, message) in (1..).zip(&messages) {
            text.add(Ordinal(ordinal), message).unwrap();
        }
        text.commit(postrider::ids::Seq(1)).unwrap();
        let bare = dump(&TextIndex::open(bare.path(), true).unwrap().reader());
        assert!(bare.contains("stem en:"));
        assert!(bare == dump(&text.reader()), "tokens differ");
    }
}
