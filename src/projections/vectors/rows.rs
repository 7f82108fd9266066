//! What a scan asks of every row: whose it is, and whether that message is wanted.

use roaring::RoaringBitmap;

/// Bytes of a row's place.
pub(super) const PLACE_BYTES: usize = 16;
/// Ordinal of a row that is taken out.
pub(super) const NOBODY: u32 = u32::MAX;

/// A set of ordinals that answers in one look-up: a scan asks for every row.
pub(super) struct Members(Vec<u64>);

impl Members {
    pub(super) fn new(ordinals: &RoaringBitmap) -> Self {
        let mut words = vec![0; ordinals.max().map_or(0, |most| most as usize / 64 + 1)];
        for ordinal in ordinals {
            words[ordinal as usize / 64] |= 1_u64 << (ordinal % 64);
        }
        Self(words)
    }

    #[inline]
    pub(super) fn hold(&self, ordinal: u32) -> bool {
        self.0.get(ordinal as usize / 64).is_some_and(|word| word & (1 << (ordinal % 64)) != 0)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) ordinal: u32,
    pub(super) passage: (u32, u32),
    pub(super) step: f32,
}

impl Place {
    pub(super) const NONE: Self = Self { ordinal: NOBODY, passage: (0, 0), step: 0.0 };

    /// Whose row it is, alone: what a scan asks of every row.
    #[inline]
    pub(super) fn ordinal(bytes: &[u8; PLACE_BYTES]) -> u32 {
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    #[inline]
    pub(super) fn read(bytes: &[u8; PLACE_BYTES]) -> Self {
        let at = |n: usize| [bytes[n * 4], bytes[n * 4 + 1], bytes[n * 4 + 2], bytes[n * 4 + 3]];
        Self {
            ordinal: u32::from_le_bytes(at(0)),
            passage: (u32::from_le_bytes(at(1)), u32::from_le_bytes(at(2))),
            step: f32::from_le_bytes(at(3)),
        }
    }

    pub(super) fn write(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..4].copy_from_slice(&self.ordinal.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.passage.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.passage.1.to_le_bytes());
        bytes[12..].copy_from_slice(&self.step.to_le_bytes());
        bytes
    }
}
