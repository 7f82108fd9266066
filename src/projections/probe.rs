//! The byte probe: proof that words which only erased messages held are nowhere on disk any more.
//!
//! A token is a word of ASCII letters and digits. It is *distinctive* when nothing that is left
//! holds it; then any place where it still stands is a leak. The walk reads every file as it is
//! (LMDB's free pages included), every zstd frame in them, and the term dictionaries of the text
//! index, whose files do not hold terms in clear. What is sealed shows no words.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::ProjectionError;
use super::catalog::prepared::Prepared;
use super::text::TextReader;
use super::text::analysis::{TokenKind, Tokens as Words};
use super::view::View;
use crate::compress;
use crate::mail::Message;

/// Shortest token: shorter ones stand in binary data by chance.
const TOKEN_BYTES_MIN: usize = 8;
/// Longest token.
const TOKEN_BYTES_MAX: usize = 40;
/// Tokens taken of one message.
const TOKENS_PER_MESSAGE: usize = 24;
/// Tokens of one erasure.
pub const TOKENS_MAX: usize = 20_000;
/// Bytes of a file looked at together, and how far two of them overlap: a frame that crosses the
/// end of one lies whole in the next when it is not larger.
const WINDOW_BYTES: usize = 16 << 20;
const OVERLAP_BYTES: usize = 2 << 20;
/// No frame of ours opens to more.
const FRAME_BYTES_MAX: usize = 64 << 20;
/// First bytes of a zstd frame (RFC 8878 §3.1.1).
const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Words to look for, in lower case.
pub type Tokens = HashSet<Vec<u8>>;

/// What a walk met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Walked {
    /// Places where a token stands.
    pub hits: u64,
    /// Files read.
    pub files: u64,
    /// Bytes read, what was unpacked included.
    pub bytes: u64,
}

/// Words of a message by which it could be recognised, longest first.
#[must_use]
pub fn candidates(message: &Message) -> Vec<Vec<u8>> {
    let new_text = message.new_text();
    let mut found: Vec<Vec<u8>> = Vec::new();
    let people = message.from.iter().chain(&message.to).map(|p| p.address.as_str());
    for text in [message.subject.as_str(), &new_text].into_iter().chain(people) {
        let mut words = Words::new(text);
        while words.advance() {
            let word = words.token();
            let bytes = word.text.as_bytes();
            // As it is written, apart from case: folding may have changed it.
            let plain = text[word.start..word.end].eq_ignore_ascii_case(&word.text);
            if word.kind == TokenKind::Word && plain && is_token(bytes) {
                found.push(bytes.to_vec());
            }
        }
    }
    found.sort();
    found.dedup();
    found.sort_by_key(|word| std::cmp::Reverse(word.len()));
    found.truncate(TOKENS_PER_MESSAGE);
    found
}

fn is_token(bytes: &[u8]) -> bool {
    (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&bytes.len())
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && bytes.iter().any(u8::is_ascii_alphabetic)
}

/// Words of stores themselves: names of tables, fields and settings, which stand on every disk.
const OWN_WORDS: &str = "attachments checkpoint compression directory identities keyspaces \
                         mailboxes participants postrider positions registry requires_columnar \
                         searchable segments settings tokenizer withfreqs withfreqsandpositions \
                         docstore_blocksize fieldnorms indexing index_settings max_doc opstamp \
                         schema deletes include_temp_doc_store segment_id payload truth createdb \
                         created tenants addresses own_addresses next_ordinal next_person \
                         message_ids raw_digests person_texts thread_of europe";

/// Takes the words of some stored value out of `tokens`.
pub fn take_out(bytes: &[u8], tokens: &mut Tokens) {
    let mut found = Vec::new();
    each_hit(bytes, tokens, |token| found.push(token.to_vec()));
    for token in found {
        tokens.remove(&token);
    }
}

/// Those of `candidates` that nothing in the view holds, and that are no words of the stores.
///
/// # Errors
/// [`ProjectionError`].
pub fn distinctive(view: &View, candidates: Tokens) -> Result<Tokens, ProjectionError> {
    let mut left = candidates;
    take_out(OWN_WORDS.as_bytes(), &mut left);
    view.text.retain_unheld(&mut left)?;
    view.catalog.each_prepared(|prepared: &Prepared| {
        let mut text = Vec::new();
        super::catalog::write_prepared(prepared, &mut text)?;
        take_out(&text, &mut left);
        Ok(())
    })?;
    // Names of folders and labels, addresses of the owner, reasons of holds.
    view.catalog.each_entry(|bytes| take_out(bytes, &mut left))?;
    Ok(left)
}

/// Looks for tokens in all files below `dir`, those in `apart` left out.
///
/// # Errors
/// [`ProjectionError::Io`] when a file cannot be read; one that vanishes meanwhile is gone, which
/// is what was wanted.
pub fn walk(dir: &Path, apart: &[PathBuf], tokens: &Tokens) -> Result<Walked, ProjectionError> {
    let mut walked = Walked::default();
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        let io = |source| ProjectionError::Io { path: path.clone(), source };
        let kind = match std::fs::symlink_metadata(&path) {
            Ok(meta) => meta.file_type(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(io(e)),
        };
        if kind.is_dir() {
            for entry in std::fs::read_dir(&path).map_err(io)? {
                let inner = entry.map_err(io)?.path();
                if !apart.contains(&inner) {
                    waiting.push(inner);
                }
            }
        } else if kind.is_file() {
            walked.files += 1;
            file(&path, tokens, &mut walked).map_err(io)?;
        }
    }
    Ok(walked)
}

fn file(path: &Path, tokens: &Tokens, walked: &mut Walked) -> std::io::Result<()> {
    let mut file = std::fs::File::open(path)?;
    let mut window = Vec::new();
    loop {
        let kept = window.len().min(OVERLAP_BYTES);
        window.drain(..window.len() - kept);
        let read = file.by_ref().take((WINDOW_BYTES - kept) as u64).read_to_end(&mut window)?;
        if read == 0 {
            return Ok(());
        }
        walked.bytes += read as u64;
        each_hit(&window, tokens, |_| walked.hits += 1);
        for at in memchr::memmem::find_iter(&window, &FRAME_MAGIC) {
            if let Some(plain) = compress::open_frame(&window[at..], FRAME_BYTES_MAX) {
                walked.bytes += plain.len() as u64;
                each_hit(&plain, tokens, |_| walked.hits += 1);
            }
        }
        if window.len() < WINDOW_BYTES {
            return Ok(());
        }
    }
}

/// Tokens in the term dictionaries of all segments, erased documents' included.
///
/// # Errors
/// [`ProjectionError`].
pub fn dictionaries(text: &TextReader, tokens: &Tokens) -> Result<u64, ProjectionError> {
    let mut hits = 0;
    text.each_term(|term| hits += u64::from(tokens.contains(term)))?;
    Ok(hits)
}

/// Calls `hit` for every token that stands in `bytes` as a whole word.
fn each_hit(bytes: &[u8], tokens: &Tokens, mut hit: impl FnMut(&[u8])) {
    let mut at = 0;
    let mut lower = [0; TOKEN_BYTES_MAX];
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
            at += 1;
        }
        // A length byte in front of a text may look like one letter more.
        for word in [&bytes[start..at], &bytes[start + 1..at]] {
            if (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&word.len()) {
                let lower = &mut lower[..word.len()];
                lower.copy_from_slice(word);
                lower.make_ascii_lowercase();
                if tokens.contains(&*lower) {
                    hit(lower);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> Tokens {
        words.iter().map(|w| w.as_bytes().to_vec()).collect()
    }

    #[test]
    fn whole_words_are_found_whatever_their_case_or_length_byte() {
        let tokens = set(&["foundation"]);
        let count = |bytes: &[u8]| {
            let mut hits = 0;
            each_hit(bytes, &tokens, |_| hits += 1);
            hits
        };
        assert_eq!(count(b"a Foundation, FOUNDATION\0foundation"), 3);
        assert_eq!(count(b"Afoundation"), 1, "a length byte in front");
        assert_eq!(count(b"foundations refoundation foundatio"), 0);
    }

    #[test]
    fn the_walk_reads_plain_bytes_and_frames_and_leaves_out_what_is_apart() {
        let dir = tempfile::tempdir().expect("temp dir");
        let text = b"nothing but the Foundation of it".repeat(9);
        let frame = compress::compress(&text, compress::Effort::Usual).expect("compresses");
        std::fs::create_dir(dir.path().join("in")).expect("made");
        std::fs::write(dir.path().join("in/frame"), [b"xx", &frame[..], b"trailing"].concat())
            .expect("written");
        std::fs::write(dir.path().join("plain"), b"the foundation").expect("written");
        let tokens = set(&["foundation"]);
        let walked = walk(dir.path(), &[], &tokens).expect("walks");
        // In a frame, literals may also stand in clear.
        assert!(walked.hits >= 10, "{walked:?}");
        assert_eq!(walked.files, 2);
        let apart = [dir.path().join("in"), dir.path().join("plain")];
        assert_eq!(walk(dir.path(), &apart, &tokens).expect("walks"), Walked::default());
    }
}
