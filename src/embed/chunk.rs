//! Cutting a message into passages for a model.
//!
//! A passage is a run of the author's new text; quotes stay out. The first one is preceded by the
//! subject. Segments are cut at blank lines, then at ends of sentences, then at white space, then
//! between characters, and packed as long as they fit; each passage begins with the end of the one
//! before it (Pylota Mail search §6.2). A change of any rule here changes [`RULES`].

use sha2::{Digest as _, Sha256};

use super::estimate::Estimate;

/// Version of the rules, part of every digest.
pub const RULES: u8 = 1;
/// Passages of one message; what is behind them stays findable by its words.
pub const CHUNKS_MAX: usize = 64;

/// Fewest tokens a model must read.
pub const MODEL_TOKENS_MIN: u32 = 64;

/// Sizes of passages, estimated tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// No segment is larger.
    target: u32,
    /// No passage is larger, its subject included.
    max: u32,
    /// Repeated from the passage before.
    overlap: u32,
}

impl Limits {
    /// For a model that reads so many tokens ([`MODEL_TOKENS_MIN`] at least): 480, 500 and 64 of
    /// 512, in proportion below.
    #[must_use]
    pub fn of_model(tokens_max: u32) -> Self {
        let of = |part: u32| part * tokens_max.clamp(MODEL_TOKENS_MIN, 512) / 512;
        Self { target: of(480), max: of(500), overlap: of(64) }
    }
}

/// One passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Where it begins in the new text, bytes.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
}

/// The passages of a message, in order. They cover `text` without a gap, unless there are more
/// than [`CHUNKS_MAX`]; none when subject and text are blank. A message that has only a subject is
/// one empty passage.
#[must_use]
pub fn chunks(subject: &str, text: &str, limits: Limits) -> Vec<Chunk> {
    if text.trim().is_empty() {
        return if subject.trim().is_empty() {
            Vec::new()
        } else {
            vec![Chunk { start: 0, end: 0 }]
        };
    }
    let mut segments = Vec::new();
    let max = Estimate::tokens(limits.max);
    let before = Estimate::of(&prefix(subject, limits));
    // So that the first segment has room behind the subject.
    let target = Estimate::tokens(limits.target).min(max.minus(before));
    segment(text, 0, Cut::BlankLine, target, &mut segments);
    let mut packed: Vec<Chunk> = Vec::new();
    let mut start = 0;
    let mut end = 0;
    let mut size = before;
    for next in segments {
        let weight = Estimate::of(&text[next.0..next.1]);
        if end > start && size.plus(weight) > max {
            packed.push(Chunk { start: start as u32, end: end as u32 });
            if packed.len() == CHUNKS_MAX {
                return packed;
            }
            let room = max.minus(weight).min(Estimate::tokens(limits.overlap));
            start = overlap(text, start, end, room);
            size = Estimate::of(&text[start..end]);
        }
        end = next.1;
        size = size.plus(weight);
    }
    packed.push(Chunk { start: start as u32, end: end as u32 });
    packed
}

/// Tokens that a text is likely to have.
#[must_use]
pub fn tokens(text: &str) -> u64 {
    Estimate::of(text).rounded_up()
}

/// What a model is given for a passage: the first one with the subject before it.
#[must_use]
pub fn passage(subject: &str, text: &str, chunk: &Chunk, limits: Limits) -> String {
    let own = &text[chunk.start as usize..chunk.end as usize];
    if chunk.start == 0 { prefix(subject, limits) + own } else { own.to_owned() }
}

/// Digest of everything the passages of a message come from: the same digest, the same passages.
#[must_use]
pub fn digest(subject: &str, text: &str, limits: Limits) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update([RULES]);
    for size in [limits.target, limits.max, limits.overlap] {
        hash.update(size.to_le_bytes());
    }
    hash.update((subject.len() as u64).to_le_bytes());
    hash.update(subject);
    hash.update(text);
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.finalize()[..16]);
    digest
}

/// The subject as it stands before the first passage, at most half of its room.
fn prefix(subject: &str, limits: Limits) -> String {
    let subject = subject.trim();
    if subject.is_empty() {
        return String::new();
    }
    let half = Estimate::tokens(limits.max / 2);
    let mut size = Estimate::default();
    let cut = subject.char_indices().find(|(_, c)| {
        size = size.plus(Estimate::of_char(*c));
        size > half
    });
    let kept = cut.map_or(subject, |(at, _)| &subject[..at]);
    format!("Subject: {kept}\n\n")
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    BlankLine,
    Sentence,
    Blank,
    Character,
}

impl Cut {
    fn finer(self) -> Self {
        match self {
            Self::BlankLine => Self::Sentence,
            Self::Sentence => Self::Blank,
            Self::Blank | Self::Character => Self::Character,
        }
    }

    /// Whether a segment may end behind `c`, which `next` follows.
    fn ends(self, before: Option<char>, c: char, next: char) -> bool {
        match self {
            Self::BlankLine => c == '\n' && before == Some('\n') && next != '\n',
            Self::Sentence => {
                c == '\n' || c == '。' || (matches!(c, '.' | '?' | '!') && next.is_whitespace())
            }
            Self::Blank => c.is_whitespace() && !next.is_whitespace(),
            Self::Character => true,
        }
    }
}

/// Cuts `text`, which stands at `offset`, into segments of at most `target`.
fn segment(
    text: &str,
    offset: usize,
    cut: Cut,
    target: Estimate,
    segments: &mut Vec<(usize, usize)>,
) {
    let mut add = |start: usize, end: usize, size: Estimate| {
        if size > target && !matches!(cut, Cut::Character) {
            segment(&text[start..end], offset + start, cut.finer(), target, segments);
        } else if end > start {
            segments.push((offset + start, offset + end));
        }
    };
    let (mut start, mut size) = (0, Estimate::default());
    let (mut before, mut at) = (None, 0);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        size = size.plus(Estimate::of_char(c));
        at += c.len_utf8();
        let Some(next) = chars.peek().copied() else { break };
        let full = size.plus(Estimate::of_char(next)) > target;
        if cut.ends(before, c, next) && (full || !matches!(cut, Cut::Character)) {
            add(start, at, size);
            (start, size) = (at, Estimate::default());
        }
        before = Some(c);
    }
    add(start, text.len(), size);
}

/// Where the next passage begins: as much of the end of `start..end` as has room, from a white
/// space on where there is one.
fn overlap(text: &str, start: usize, end: usize, room: Estimate) -> usize {
    let mut size = Estimate::default();
    let mut from = end;
    let mut at_blank = None;
    for (at, c) in text[start..end].char_indices().rev() {
        size = size.plus(Estimate::of_char(c));
        if size > room {
            return at_blank.unwrap_or(from);
        }
        if c.is_whitespace() && start + at + c.len_utf8() < end {
            at_blank = Some(start + at + c.len_utf8());
        }
        from = start + at;
    }
    // The whole passage would be repeated: then nothing is.
    end
}

#[cfg(test)]
#[path = "chunk_test.rs"]
mod chunk_test;
