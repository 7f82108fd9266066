//! The entries of one mbox stream, in every dialect, one at a time.
//!
//! ```text
//! mbox  = [BOM] [preamble] *(separator message [blank line])
//! ```
//! An entry ends where its `Content-Length` points, if that is the end of the stream or a
//! separator (mboxcl, mboxcl2), else at the next separator line (mboxo, mboxrd, pipermail). The
//! line end is LF (or CRLF) unless the head of the stream has CR only. Blocks are searched for
//! `\nFrom ` by SIMD; only header blocks and candidate lines are looked at line by line.
//!
//! Memory: one message and one block. A message above the cap is read past, never kept. Reads from
//! any [`Read`]; knows nothing of files, folders or labels.

use std::io::Read;

use memchr::memmem::Finder;

use super::failure::FailureReason;
use super::header::{self, Facts};
use super::quoting;
use super::separator::{self, Before, Dateless, Separator};
use super::window::Window;

/// Longest header block that is searched for its end before the search for a separator begins.
const HEADER_BYTES_MAX: usize = 1 << 20;

/// Bytes looked at for the kind of line ends.
const EOL_SAMPLE_BYTES: usize = 64 << 10;

/// Bytes kept before the search position in a message that is read past: enough for a blank line.
const CONTEXT_BYTES: usize = 8;

/// `\nFrom `
const NEEDLE_BYTES: usize = 6;

/// One entry, or what stood in place of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Entry { offset: u64, separator_ms: Option<i64>, raw: Vec<u8>, facts: Box<Facts> },
    Failure { offset: u64, reason: FailureReason },
}

/// Position in the stream.
enum State {
    Head,
    /// Behind a separator line.
    Entry {
        offset: u64,
        separator_ms: Option<i64>,
    },
    Ended,
}

pub(super) struct Scanner<R> {
    window: Window<R>,
    state: State,
    eol: u8,
    finder: Finder<'static>,
    dateless: Option<Dateless>,
    message_bytes_max: usize,
    block_bytes: usize,
}

/// Where a message ends and what follows.
struct End {
    /// Length of the message in view, the blank line behind it not counted.
    message: usize,
    /// Length up to the first byte behind the next separator line.
    consumed: usize,
    /// The next entry.
    next: State,
    /// Bytes of the message that were dropped before the view.
    dropped: u64,
}

impl<R: Read> Scanner<R> {
    pub(super) fn new(source: R, block_bytes: usize, message_bytes_max: usize) -> Self {
        Self {
            window: Window::new(source, block_bytes),
            state: State::Head,
            eol: b'\n',
            finder: Finder::new(b"\nFrom "),
            dateless: None,
            message_bytes_max,
            block_bytes: block_bytes.max(1),
        }
    }

    /// The source of the bytes.
    pub(super) fn source(&self) -> &R {
        self.window.source()
    }

    /// What ended the stream early, if the system did, and where.
    pub(super) fn take_error(&mut self) -> Option<(u64, std::io::Error)> {
        let offset = self.window.offset();
        self.window.take_error().map(|error| (offset, error))
    }

    /// The next entry; `None` at the end of the stream.
    pub(super) fn next(&mut self) -> Option<Found> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return None,
                State::Head => {
                    if let Some(failure) = self.head() {
                        return Some(failure);
                    }
                }
                State::Entry { offset, separator_ms } => {
                    return Some(self.entry(offset, separator_ms));
                }
            }
        }
    }

    /// Up to the first separator line; what stands before it is a preamble.
    fn head(&mut self) -> Option<Found> {
        self.window.fill_to(EOL_SAMPLE_BYTES.max(separator::VIEW_BYTES));
        if self.window.bytes().starts_with(b"\xef\xbb\xbf") {
            self.window.consume(3);
        }
        let sample = &self.window.bytes()[..self.window.bytes().len().min(EOL_SAMPLE_BYTES)];
        if memchr::memchr(b'\n', sample).is_none() && memchr::memchr(b'\r', sample).is_some() {
            self.eol = b'\r';
            self.finder = Finder::new(b"\rFrom ");
        }
        let start = self.window.offset();
        if let Some(first) = separator::read(self.window.bytes(), self.eol, Before::Start, None) {
            self.dateless = first.dateless;
            self.state = State::Entry { offset: start, separator_ms: first.ms };
            self.window.consume(first.bytes);
            return None;
        }
        let mut blank = true;
        let end = self.search(0, |part| blank &= part.trim_ascii().is_empty());
        blank &= self.window.bytes()[..end.message].trim_ascii().is_empty();
        let bytes = end.dropped + end.message as u64;
        self.proceed(end);
        let reason = FailureReason::Preamble { bytes };
        (!blank).then_some(Found::Failure { offset: start, reason })
    }

    fn entry(&mut self, offset: u64, separator_ms: Option<i64>) -> Found {
        let body_at = self.header_end();
        let block = &self.window.bytes()[..body_at.unwrap_or(self.window.bytes().len())];
        let mut facts = Box::new(header::scan(block, self.eol));
        let measured = match (body_at, facts.content_length) {
            (Some(body_at), Some(length)) => self.measured(body_at, length),
            _ => None,
        };
        let by_length = measured.is_some();
        // The line end of the header's blank line may be the one before the next separator.
        let end = measured.unwrap_or_else(|| self.search(0, |_| ()));
        if body_at.is_none_or(|body_at| body_at > end.message) && end.dropped == 0 {
            // The view held more than this entry when its header was scanned.
            facts = Box::new(header::scan(&self.window.bytes()[..end.message], self.eol));
        }
        let found = self.found(offset, separator_ms, &end, body_at, facts, by_length);
        self.proceed(end);
        found
    }

    fn found(
        &self,
        offset: u64,
        separator_ms: Option<i64>,
        end: &End,
        body_at: Option<usize>,
        facts: Box<Facts>,
        by_length: bool,
    ) -> Found {
        let bytes = end.dropped + end.message as u64;
        let bytes_max = self.message_bytes_max as u64;
        if bytes > bytes_max {
            return Found::Failure { offset, reason: FailureReason::TooLarge { bytes, bytes_max } };
        }
        let raw = &self.window.bytes()[..end.message];
        if raw.trim_ascii().is_empty() {
            return Found::Failure { offset, reason: FailureReason::EmptyEntry };
        }
        let body_at = body_at.unwrap_or(raw.len()).min(raw.len());
        let raw = if by_length && quoting::has_bare_from(&raw[body_at..], self.eol) {
            raw.to_vec()
        } else {
            quoting::undo(raw, body_at, self.eol)
        };
        Found::Entry { offset, separator_ms, raw, facts }
    }

    fn proceed(&mut self, end: End) {
        self.window.consume(end.consumed);
        self.window.relax(4 * self.block_bytes.max(EOL_SAMPLE_BYTES));
        self.state = end.next;
    }

    /// Where the body begins; `None` when no blank line ends the header block.
    fn header_end(&mut self) -> Option<usize> {
        let mut from = 0;
        loop {
            if let Some(end) = header::end(self.window.bytes(), self.eol, &mut from) {
                return Some(end);
            }
            if self.window.bytes().len() > HEADER_BYTES_MAX || !self.window.fill() {
                return None;
            }
        }
    }

    /// The end by Content-Length, if end of stream or a separator stands there. A length above the
    /// cap is not followed: its bytes would have to be kept until the place is seen to be right.
    fn measured(&mut self, body_at: usize, length: usize) -> Option<End> {
        let message = body_at.checked_add(length).filter(|end| *end <= self.message_bytes_max)?;
        self.window.fill_to(message + 4 + separator::VIEW_BYTES);
        let rest = self.window.bytes().get(message..)?;
        // The body may lack its own line end, and a blank line may follow.
        let mut gap = 0;
        for _ in 0..2 {
            match &rest[gap..] {
                [first, ..] if *first == self.eol => gap += 1,
                [b'\r', b'\n', ..] => gap += 2,
                _ => {}
            }
        }
        if let Some(next) = separator::read(&rest[gap..], self.eol, Before::Blank, self.dateless) {
            return Some(self.end_at(message, message + gap, next, 0));
        }
        let ends = self.window.ended() && rest.trim_ascii().is_empty();
        ends.then(|| End {
            message,
            consumed: message + rest.len(),
            next: State::Ended,
            dropped: 0,
        })
    }

    fn end_at(&self, message: usize, line: usize, next: Separator, dropped: u64) -> End {
        End {
            message,
            consumed: line + next.bytes,
            next: State::Entry {
                offset: self.window.offset() + line as u64,
                separator_ms: next.ms,
            },
            dropped,
        }
    }

    /// The end by the next separator line, searched from `from` on. Bytes above the cap are
    /// dropped on the way, each run of them shown to `drop_seen`.
    fn search(&mut self, mut from: usize, mut drop_seen: impl FnMut(&[u8])) -> End {
        let mut dropped = 0;
        // A separator may stand at the very start: the line end before it is already consumed.
        let mut at_start = true;
        loop {
            let line = if at_start {
                at_start = false;
                Some(0)
            } else {
                let view = &self.window.bytes()[from..];
                self.finder.find(view).map(|found| from + found + 1)
            };
            if let Some(line) = line {
                self.window.fill_to(line + separator::VIEW_BYTES);
                let view = self.window.bytes();
                let before = self.before(&view[..line]);
                if let Some(next) = separator::read(&view[line..], self.eol, before, self.dateless)
                {
                    let message = line - blank_line_bytes(&view[..line], self.eol);
                    return self.end_at(message, line, next, dropped);
                }
                from = line;
                continue;
            }
            let len = self.window.bytes().len();
            from = from.max((len + 1).saturating_sub(NEEDLE_BYTES));
            if len > self.message_bytes_max + CONTEXT_BYTES + NEEDLE_BYTES {
                let surplus = from.saturating_sub(CONTEXT_BYTES);
                drop_seen(&self.window.bytes()[..surplus]);
                self.window.consume(surplus);
                dropped += surplus as u64;
                from -= surplus;
            }
            if !self.window.fill() {
                let view = self.window.bytes();
                let message = view.len() - blank_line_bytes(view, self.eol);
                return End { message, consumed: view.len(), next: State::Ended, dropped };
            }
        }
    }

    fn before(&self, text: &[u8]) -> Before {
        let blank = text == [self.eol] || text == b"\r\n" || blank_line_bytes(text, self.eol) > 0;
        if blank { Before::Blank } else { Before::Text }
    }
}

/// Length of the blank line that ends `text`: 0, 1 or 2 bytes.
fn blank_line_bytes(text: &[u8], eol: u8) -> usize {
    match text {
        [.., b'\n', b'\r', b'\n'] => 2,
        [.., first, second] if *first == eol && *second == eol => 1,
        _ => 0,
    }
}

impl Scanner<super::input::Input> {
    /// Damage of the packed file that ended the stream early, with the offset in unpacked bytes.
    pub(super) fn damage(&self) -> Option<(u64, FailureReason)> {
        self.source().damage().map(|damage| (self.window.offset(), damage))
    }
}

#[cfg(test)]
#[path = "mbox_test.rs"]
mod tests;
