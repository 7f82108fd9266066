//! Compression of single values (zstd), with one context per thread instead of one per value.
//!
//! Never used on streams; values are capped by their callers, and a frame that claims to be
//! larger than the cap is refused before any memory is taken for it.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

/// How hard to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Level 1: for single messages, where level 3 saves one hundredth for a quarter more time.
    Little,
    /// Level 3: for many messages together, where it saves one in twenty-five.
    Usual,
}

thread_local! {
    static LITTLE: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static USUAL: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// One frame holding `plain`.
///
/// # Errors
/// Only when the library cannot get memory.
pub fn compress(plain: &[u8], effort: Effort) -> std::io::Result<Vec<u8>> {
    let (contexts, level) = match effort {
        Effort::Little => (&LITTLE, 1),
        Effort::Usual => (&USUAL, 3),
    };
    contexts.with_borrow_mut(|slot| match slot {
        Some(compressor) => compressor.compress(plain),
        None => slot.insert(Compressor::new(level)?).compress(plain),
    })
}

/// What [`compress`] was given.
///
/// # Errors
/// A damaged frame, or one that holds more than `bytes_max`.
pub fn decompress(frame: &[u8], bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let claimed = zstd::zstd_safe::get_frame_content_size(frame)
        .ok()
        .flatten()
        .and_then(|n| usize::try_from(n).ok())
        .filter(|n| *n <= bytes_max)
        .ok_or_else(|| std::io::Error::other("frame without a size, or over the cap"))?;
    DECOMPRESSOR.with_borrow_mut(|slot| match slot {
        Some(decompressor) => decompressor.decompress(frame, claimed),
        None => slot.insert(Decompressor::new()?).decompress(frame, claimed),
    })
}

/// What the frame at the start of `bytes` holds; `None` when no whole frame of [`compress`] stands
/// there, or one that holds more than `bytes_max`.
#[must_use]
pub fn open_frame(bytes: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let length = zstd::zstd_safe::find_frame_compressed_size(bytes).ok()?;
    decompress(bytes.get(..length)?, bytes_max).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_refuses_what_is_over_the_cap() {
        let plain = b"moin moin ".repeat(500);
        let frame = compress(&plain, Effort::Little).expect("compresses");
        assert!(frame.len() < 100);
        assert_eq!(decompress(&frame, 5_000).expect("fits"), plain);
        assert!(decompress(&frame, 4_999).is_err());
        assert!(decompress(&frame[..frame.len() - 1], 5_000).is_err());
        assert!(decompress(b"", 10).is_err());
        assert_eq!(
            decompress(&compress(b"", Effort::Usual).expect("empty"), 0).expect("empty"),
            b""
        );
    }
}
