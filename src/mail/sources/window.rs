//! A growing and shrinking view over a stream: what the mbox scanner looks at.
//!
//! ```text
//! buf: |  consumed  |  bytes()  |  free  |
//!      0          start       filled
//! ```
//! `offset()` is the stream position of `bytes()[0]`. Memory is the unconsumed part plus one
//! block; the consumed part is overwritten once it outweighs the rest, so that each byte is moved
//! at most once on average. Never reads ahead of what was asked by more than one block.

use std::io::{self, ErrorKind, Read};

pub(super) struct Window<R> {
    source: R,
    buf: Vec<u8>,
    start: usize,
    filled: usize,
    offset: u64,
    block_bytes: usize,
    ended: bool,
    error: Option<io::Error>,
}

impl<R: Read> Window<R> {
    pub(super) fn new(source: R, block_bytes: usize) -> Self {
        let block_bytes = block_bytes.max(1);
        Self {
            source,
            buf: Vec::new(),
            start: 0,
            filled: 0,
            offset: 0,
            block_bytes,
            ended: false,
            error: None,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buf[self.start..self.filled]
    }

    /// Stream position of the first byte of [`Self::bytes`].
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// No further byte will come.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    pub(super) fn consume(&mut self, count: usize) {
        let count = count.min(self.filled - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Reads once more; false at the end of the stream or on an error, which is kept.
    pub(super) fn fill(&mut self) -> bool {
        if self.ended {
            return false;
        }
        let live = self.filled - self.start;
        if self.start > 0 && self.start >= live {
            self.buf.copy_within(self.start..self.filled, 0);
            self.start = 0;
            self.filled = live;
        }
        let wanted = self.filled + self.block_bytes;
        if self.buf.len() < wanted {
            self.buf.resize(wanted, 0);
        }
        loop {
            match self.source.read(&mut self.buf[self.filled..wanted]) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.filled += count;
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.error = Some(error);
                    self.ended = true;
                }
            }
            return false;
        }
    }

    /// Reads until at least `count` bytes are in view or the stream ends.
    pub(super) fn fill_to(&mut self, count: usize) {
        while self.filled - self.start < count && self.fill() {}
    }

    /// Gives memory back after a large message, so that one does not fix the footprint.
    pub(super) fn relax(&mut self, bytes_max: usize) {
        if self.buf.len() > bytes_max && self.filled - self.start < bytes_max / 2 {
            let rest = self.bytes().to_vec();
            self.filled = rest.len();
            self.start = 0;
            self.buf = rest;
        }
    }

    /// Bytes of memory held.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buf.capacity()
    }

    pub(super) fn source(&self) -> &R {
        &self.source
    }

    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_bytes_hold_at_any_block_size() {
        let data: Vec<u8> = (0..=255u8).cycle().take(5_000).collect();
        for block in [1, 2, 7, 64, 4_096, 10_000] {
            let mut window = Window::new(data.as_slice(), block);
            let mut at = 0;
            for step in [0, 1, 3, 100, 900, 40].iter().cycle() {
                window.fill_to(step + 10);
                let seen = window.bytes();
                assert_eq!(seen, &data[at..at + seen.len()]);
                assert_eq!(window.offset(), at as u64);
                at += (*step).min(seen.len());
                window.consume(*step);
                if window.ended() && window.bytes().is_empty() {
                    break;
                }
            }
            assert_eq!(at, data.len());
            assert!(window.buf.len() <= 2 * (910 + block) + block, "block {block}");
        }
    }
}
