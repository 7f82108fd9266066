//! One file that is one message: bare, with a separator line before it, or Apple's emlx.
//!
//! ```text
//! file = [BOM] (message | separator message | emlx)
//! ```
//! Reads the whole file into memory, at most the cap; a larger one is measured to its end and
//! never kept. The separator line makes it an mbox of one, read by [`super::mbox`], so that the
//! same file gives the same bytes whichever way it was found.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::failure::FailureReason;
use super::header::{self, Facts};
use super::input::Input;
use super::labels::Labels;
use super::mbox::{Found, Scanner};
use super::separator::{self, Before};
use super::{Options, emlx};

/// Bytes allowed above the cap for what is no part of the message: separator line, property list.
const AROUND_BYTES_MAX: usize = 64 << 10;

/// A message from a file of its own.
pub(super) struct Single {
    pub(super) offset: u64,
    pub(super) raw: Vec<u8>,
    pub(super) separator_ms: Option<i64>,
    pub(super) received_ms: Option<i64>,
    pub(super) facts: Box<Facts>,
    /// Labels of the file, those of the header not among them.
    pub(super) labels: Labels,
}

/// What the file held: usually one message, or one failure; a damaged gzip gives both.
pub(super) fn read(path: &Path, options: &Options) -> Vec<Result<Single, (u64, FailureReason)>> {
    let mut input = match Input::open(path, Arc::new(AtomicU64::new(0))) {
        Ok(input) => input,
        Err(error) => return vec![Err((0, FailureReason::open(&error)))],
    };
    let mut found = match bytes(&mut input, options.message_bytes_max) {
        Ok(file) => split(file, options),
        Err(reason) => vec![Err((0, reason))],
    };
    found.extend(input.damage().map(|damage| Err((0, damage))));
    found
}

fn bytes(input: &mut Input, message_bytes_max: usize) -> Result<Vec<u8>, FailureReason> {
    let stopped = |error: io::Error| FailureReason::Read(error.to_string());
    let bytes_max = message_bytes_max.saturating_add(AROUND_BYTES_MAX) as u64;
    let mut file = Vec::new();
    input.take(bytes_max + 1).read_to_end(&mut file).map_err(stopped)?;
    if file.len() as u64 <= bytes_max {
        return Ok(file);
    }
    let rest = io::copy(input, &mut io::sink()).map_err(stopped)?;
    Err(FailureReason::TooLarge {
        bytes: file.len() as u64 + rest,
        bytes_max: message_bytes_max as u64,
    })
}

fn split(mut file: Vec<u8>, options: &Options) -> Vec<Result<Single, (u64, FailureReason)>> {
    let start = if file.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let content = &file[start..];
    let eol = eol_of(content);
    if content.trim_ascii().is_empty() {
        return vec![Err((0, FailureReason::EmptyFile))];
    }
    if separator::read(content, eol, Before::Start, None).is_some() {
        return as_mbox(&file, options);
    }
    let mut labels = Labels::default();
    let (at, end, received_ms) = match emlx::extent(content) {
        Some((at, length)) if at < content.len() => {
            let end = at.saturating_add(length).min(content.len());
            (start + at, start + end, emlx::properties(&content[end..], &mut labels))
        }
        _ => (start, file.len(), None),
    };
    let offset = at as u64;
    if end - at > options.message_bytes_max {
        let bytes_max = options.message_bytes_max as u64;
        let reason = FailureReason::TooLarge { bytes: (end - at) as u64, bytes_max };
        return vec![Err((offset, reason))];
    }
    file.truncate(end);
    file.drain(..at);
    let mut from = 0;
    let block = header::end(&file, eol, &mut from).unwrap_or(file.len());
    let facts = Box::new(header::scan(&file[..block], eol));
    vec![Ok(Single { offset, raw: file, separator_ms: None, received_ms, facts, labels })]
}

fn as_mbox(file: &[u8], options: &Options) -> Vec<Result<Single, (u64, FailureReason)>> {
    // The file is in memory already: one block that holds all of it.
    let mut scanner = Scanner::new(file, file.len(), options.message_bytes_max);
    let mut all = Vec::new();
    while let Some(found) = scanner.next() {
        all.push(match found {
            Found::Entry { offset, separator_ms, raw, facts } => Ok(Single {
                offset,
                raw,
                separator_ms,
                received_ms: None,
                facts,
                labels: Labels::default(),
            }),
            Found::Failure { offset, reason } => Err((offset, reason)),
        });
    }
    all
}

/// LF, unless the head of the file has CR only.
pub(super) fn eol_of(content: &[u8]) -> u8 {
    let head = &content[..content.len().min(64 << 10)];
    let cr_only = memchr::memchr(b'\n', head).is_none() && memchr::memchr(b'\r', head).is_some();
    if cr_only { b'\r' } else { b'\n' }
}
