//! Canonical text of the index: equal for equal content, however it is cut into segments.

use std::collections::BTreeMap;
use std::io::Write;

use tantivy::postings::Postings as _;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet as _, TERMINATED};

use super::{TextError, TextReader};

impl TextReader {
    /// Writes every field, term and posting as `field term ordinal:positions …`, in order.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn dump(&self, out: &mut dyn Write) -> Result<(), TextError> {
        writeln!(out, "text messages={}", self.messages())?;
        let fields = &self.fields;
        for (name, field, option) in [
            ("subject", fields.subject, IndexRecordOption::WithFreqsAndPositions),
            ("participants", fields.participants, IndexRecordOption::WithFreqsAndPositions),
            ("new", fields.new, IndexRecordOption::WithFreqsAndPositions),
            ("quoted", fields.quoted, IndexRecordOption::WithFreqsAndPositions),
            ("attachments", fields.attachments, IndexRecordOption::WithFreqsAndPositions),
            ("stem", fields.stem, IndexRecordOption::WithFreqs),
        ] {
            for (term, postings) in self.terms(field, option)? {
                write!(out, "{name} {}", term.escape_ascii())?;
                for (ordinal, detail) in postings {
                    write!(out, " {ordinal}:{detail}")?;
                }
                writeln!(out)?;
            }
        }
        let mut dates = BTreeMap::new();
        for segment in self.searcher.segment_readers() {
            let ordinals = segment.fast_fields().u64("ordinal")?;
            let column = segment.fast_fields().i64("date")?;
            for doc in segment.doc_ids_alive() {
                dates.insert(ordinals.first(doc), column.first(doc));
            }
        }
        for (ordinal, date) in dates {
            writeln!(out, "date {}:{}", ordinal.unwrap_or_default(), date.unwrap_or_default())?;
        }
        Ok(())
    }

    fn terms(
        &self,
        field: Field,
        option: IndexRecordOption,
    ) -> Result<BTreeMap<Vec<u8>, BTreeMap<u64, String>>, TextError> {
        let mut terms: BTreeMap<Vec<u8>, BTreeMap<u64, String>> = BTreeMap::new();
        for segment in self.searcher.segment_readers() {
            let ordinals = segment.fast_fields().u64("ordinal")?;
            let inverted = segment.inverted_index(field)?;
            let mut stream = inverted.terms().stream()?;
            let mut positions = Vec::new();
            while let Some((term, info)) = stream.next() {
                let mut postings = inverted.read_postings_from_terminfo(info, option)?;
                let mut doc = postings.doc();
                while doc != TERMINATED {
                    if !segment.is_deleted(doc) {
                        let detail = if option == IndexRecordOption::WithFreqs {
                            postings.term_freq().to_string()
                        } else {
                            postings.positions(&mut positions);
                            positions.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
                        };
                        let ordinal = ordinals.first(doc).unwrap_or_default();
                        terms.entry(term.to_vec()).or_default().insert(ordinal, detail);
                    }
                    doc = postings.advance();
                }
            }
        }
        Ok(terms)
    }
}
