//! What is kept of a message in a space of vectors: where its passages lie, and their vectors as
//! f16. The same bytes feed every index, so that indexes built at different times are equal.

use half::f16;
use half::slice::HalfFloatSliceExt as _;
use serde::{Deserialize, Serialize};

use crate::events::codec;

/// The vectors of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Digest of everything the passages come from.
    pub digest: [u8; 16],
    /// Start and end of each passage in the new text, bytes.
    pub passages: Vec<(u32, u32)>,
    /// Further passages that the model refused.
    pub failed: u32,
    /// Passages that were longer than the model reads: their ends count nothing.
    pub cut: u32,
    /// Their vectors one behind the other, f16 little-endian.
    halves: Vec<u8>,
}

impl Stored {
    /// From vectors of length 1.
    #[must_use]
    pub fn new(digest: [u8; 16], passages: Vec<(u32, u32)>, vectors: &[Vec<f32>]) -> Self {
        let mut halves = Vec::with_capacity(vectors.iter().map(Vec::len).sum::<usize>() * 2);
        for vector in vectors {
            let mut one = vec![f16::ZERO; vector.len()];
            one.convert_from_f32_slice(vector);
            halves.extend(one.iter().flat_map(|half| half.to_le_bytes()));
        }
        Self { digest, passages, failed: 0, cut: 0, halves }
    }

    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// From bytes; `None` when they hold anything but whole vectors of so many dimensions.
    #[must_use]
    pub fn decode(bytes: &[u8], dimensions: usize) -> Option<Self> {
        let stored: Self = codec::decode(bytes)?;
        let whole = stored.halves.len() == stored.passages.len() * dimensions * 2;
        (whole && stored.passages.iter().all(|(start, end)| start <= end)).then_some(stored)
    }

    /// Bytes of the vector of each passage.
    pub(super) fn vectors(&self, dimensions: usize) -> impl Iterator<Item = &[u8]> {
        self.halves.chunks_exact(dimensions * 2)
    }
}

/// A vector out of its bytes. As a whole: the processor converts eight values at a time, one by one
/// they cost most of a search.
pub(super) fn vector(halves: &[u8]) -> Vec<f32> {
    let halves: Vec<f16> =
        halves.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes)).collect();
    let mut values = vec![0.0; halves.len()];
    halves.convert_to_f32_slice(&mut values);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_it_went_and_torn_ones_are_none() {
        let vectors = [vec![0.5, -0.25, 0.125], vec![0.0, 1.0, -1.0]];
        let stored = Stored::new([7; 16], vec![(0, 4), (3, 9)], &vectors);
        let bytes = stored.encode();
        let back = Stored::decode(&bytes, 3).expect("whole");
        assert_eq!(back, stored);
        let plain: Vec<Vec<f32>> = back.vectors(3).map(vector).collect();
        assert_eq!(plain, vectors);
        assert_eq!(Stored::decode(&bytes, 4), None);
        assert_eq!(Stored::decode(&bytes[..bytes.len() - 1], 3), None);
    }
}
