//! Terms of the index as the byte probe looks at them: which are still held by a message, and which
//! stand in a dictionary at all.

use std::collections::HashSet;

use roaring::RoaringBitmap;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet as _, TERMINATED, Term};

use super::{TextError, TextReader};
use crate::ids::Ordinal;

impl TextReader {
    fn text_fields(&self) -> [Field; 5] {
        self.fields.weighted().map(|(field, _)| field)
    }

    /// Keeps the terms that no message holds in any field.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn retain_unheld(&self, terms: &mut HashSet<Vec<u8>>) -> Result<(), TextError> {
        for segment in self.searcher.segment_readers() {
            for field in self.text_fields() {
                let inverted = segment.inverted_index(field)?;
                let mut held = Vec::new();
                for term in terms.iter() {
                    let Ok(text) = std::str::from_utf8(term) else { continue };
                    let term_in_field = Term::from_field_text(field, text);
                    let postings =
                        inverted.read_postings(&term_in_field, IndexRecordOption::Basic)?;
                    let Some(mut postings) = postings else { continue };
                    let mut doc = postings.doc();
                    while doc != TERMINATED && segment.is_deleted(doc) {
                        doc = postings.advance();
                    }
                    if doc != TERMINATED {
                        held.push(term.clone());
                    }
                }
                for term in held {
                    terms.remove(&term);
                }
            }
        }
        Ok(())
    }

    /// Hands every term of every segment to `take`, also those only erased documents hold.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn each_term(&self, mut take: impl FnMut(&[u8])) -> Result<(), TextError> {
        for segment in self.searcher.segment_readers() {
            for field in self.text_fields() {
                let inverted = segment.inverted_index(field)?;
                let mut stream = inverted.terms().stream()?;
                while let Some((term, _)) = stream.next() {
                    take(term);
                }
            }
        }
        Ok(())
    }

    /// Ordinals of all messages in the index.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn ordinals(&self) -> Result<RoaringBitmap, TextError> {
        let mut ordinals = RoaringBitmap::new();
        for segment in self.searcher.segment_readers() {
            let column = segment.fast_fields().u64("ordinal")?;
            for doc in segment.doc_ids_alive() {
                ordinals.extend(column.first(doc).and_then(|o| u32::try_from(o).ok()));
            }
        }
        Ok(ordinals)
    }

    /// Whether a message is in the index.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn holds(&self, ordinal: Ordinal) -> Result<bool, TextError> {
        let term = Term::from_field_u64(self.fields.ordinal, u64::from(ordinal.0));
        for segment in self.searcher.segment_readers() {
            let inverted = segment.inverted_index(self.fields.ordinal)?;
            let postings = inverted.read_postings(&term, IndexRecordOption::Basic)?;
            let Some(mut postings) = postings else { continue };
            let mut doc = postings.doc();
            while doc != TERMINATED {
                if !segment.is_deleted(doc) {
                    return Ok(true);
                }
                doc = postings.advance();
            }
        }
        Ok(false)
    }
}
