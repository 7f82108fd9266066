//! Fields of the text index and how a message fills them.
//!
//! | field | holds | positions | weight |
//! |---|---|---|---|
//! | `subject` | subject | yes | 8 |
//! | `participants` | names and addresses of everyone, delivered-to | yes | 4 |
//! | `new` | new text | yes | 3 |
//! | `quoted` | the rest of the text: quotes, signature | yes | 1 |
//! | `attachments` | file names, text of nested messages | yes | 1.5 |
//! | `stem` | stems of subject and new text that differ from the word | no | 1.5 |
//!
//! New and quoted text are disjoint: nothing is indexed twice (docs/adr/0005).

use tantivy::TantivyDocument;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};

use crate::ids::Ordinal;
use crate::mail::Message;

/// Name of the analyzer of [`super::analysis`].
pub(super) const WORDS: &str = "words";
/// Name of the analyzer of [`super::stem`].
pub(super) const STEMS: &str = "stems";

/// Handles of the fields.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the module's table says what each holds")]
pub struct Fields {
    pub ordinal: Field,
    pub date: Field,
    pub subject: Field,
    pub participants: Field,
    pub new: Field,
    pub quoted: Field,
    pub attachments: Field,
    pub stem: Field,
}

impl Fields {
    /// Fields of free text, each with its weight.
    #[must_use]
    pub fn weighted(&self) -> [(Field, f32); 5] {
        [
            (self.subject, 8.0),
            (self.participants, 4.0),
            (self.new, 3.0),
            (self.quoted, 1.0),
            (self.attachments, 1.5),
        ]
    }

    /// Weight of a match by stem.
    pub const STEM_WEIGHT: f32 = 1.5;
}

/// The schema and its handles.
#[must_use]
pub fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let text = |analyzer: &str, record| {
        TextOptions::default().set_indexing_options(
            TextFieldIndexing::default().set_tokenizer(analyzer).set_index_option(record),
        )
    };
    let words = text(WORDS, IndexRecordOption::WithFreqsAndPositions);
    let number = NumericOptions::default() | FAST;
    let fields = Fields {
        ordinal: builder.add_u64_field("ordinal", number.clone() | INDEXED),
        date: builder.add_i64_field("date", number),
        subject: builder.add_text_field("subject", words.clone()),
        participants: builder.add_text_field("participants", words.clone()),
        new: builder.add_text_field("new", words.clone()),
        quoted: builder.add_text_field("quoted", words.clone()),
        attachments: builder.add_text_field("attachments", words),
        stem: builder.add_text_field("stem", text(STEMS, IndexRecordOption::WithFreqs)),
    };
    (builder.build(), fields)
}

/// What makes an index of this program readable by it: part of the generation's name.
pub const FINGERPRINT: u32 = 1 + 16 * super::analysis::VERSION;

/// The document of a message.
#[must_use]
pub fn document(fields: &Fields, ordinal: Ordinal, message: &Message) -> TantivyDocument {
    let mut doc = TantivyDocument::new();
    doc.add_u64(fields.ordinal, u64::from(ordinal.0));
    doc.add_i64(fields.date, message.date_ms);
    if !message.subject.is_empty() {
        doc.add_text(fields.subject, &message.subject);
    }
    let people = message
        .from
        .iter()
        .chain(&message.sender)
        .chain(&message.reply_to)
        .chain(&message.to)
        .chain(&message.cc)
        .chain(&message.bcc);
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for person in people {
        let pair = (person.name.as_str(), person.address.as_str());
        if !seen.contains(&pair) {
            seen.push(pair);
            doc.add_text(fields.participants, format!("{} {}", person.name, person.address));
        }
    }
    for address in &message.delivered_to {
        if !seen.iter().any(|(_, known)| known == address) {
            doc.add_text(fields.participants, address);
        }
    }
    let new = message.new_text();
    let stems = super::stem::tagged(message.language, &message.subject, &new);
    if !new.is_empty() {
        doc.add_text(fields.new, new);
    }
    let quoted = message.quoted_text();
    if !quoted.trim().is_empty() {
        doc.add_text(fields.quoted, quoted);
    }
    for attachment in &message.attachments {
        if !attachment.filename.is_empty() {
            doc.add_text(fields.attachments, &attachment.filename);
        }
        if !attachment.text.is_empty() {
            doc.add_text(fields.attachments, &attachment.text);
        }
    }
    if let Some(stems) = stems {
        doc.add_text(fields.stem, stems);
    }
    doc
}
