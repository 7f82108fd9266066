//! Sealing: authenticated encryption of events and content, so that losing a key is erasure.
//!
//! XChaCha20-Poly1305 (RustCrypto) with a random 24-byte nonce in front of the ciphertext. The
//! nonce is random, not derived from the position: a position can be written twice when a crash
//! or a restored backup throws away the first write, and a repeated nonce would leak both.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use sha2::{Digest as _, Sha256};

use super::LogError;

/// Bytes of the nonce in front of a sealed value.
pub const NONCE_BYTES: usize = 24;

/// A 32-byte sealing key. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SealingKey([u8; 32]);

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

impl SealingKey {
    /// A fresh key from the operating system's random source.
    ///
    /// # Errors
    /// [`LogError::NoRandomness`].
    pub fn random() -> Result<Self, LogError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(LogError::NoRandomness)?;
        Ok(Self(bytes))
    }

    /// A key as it lies in the key store; `None` when the length is wrong.
    #[must_use]
    pub fn from_stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The bytes for the key store.
    #[must_use]
    pub fn as_stored(&self) -> &[u8; 32] {
        &self.0
    }

    /// Keyed digest of a value of fixed length: tells equal values apart from others only to
    /// whoever holds the key.
    #[must_use]
    pub fn digest(&self, value: &[u8; 16]) -> [u8; 16] {
        let mut hasher = Sha256::new();
        hasher.update(b"postrider suppression\0");
        hasher.update(self.0);
        hasher.update(value);
        let mut first = [0; 16];
        first.copy_from_slice(&hasher.finalize()[..16]);
        first
    }

    /// Seals `plain`, bound to `place` (associated data): nonce ‖ ciphertext ‖ tag.
    ///
    /// # Errors
    /// [`LogError::NoRandomness`]; [`LogError::TooLargeToSeal`] beyond 256 GiB.
    pub fn seal(&self, plain: &[u8], place: &[u8]) -> Result<Vec<u8>, LogError> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(LogError::NoRandomness)?;
        let sealed = XChaCha20Poly1305::new(&self.0.into())
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: place })
            .map_err(|_| LogError::TooLargeToSeal)?;
        let mut out = Vec::with_capacity(NONCE_BYTES + sealed.len());
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        Ok(out)
    }

    /// Opens what [`SealingKey::seal`] made for the same place; `None` when the key, the place or
    /// a single bit differs.
    #[must_use]
    pub fn open(&self, sealed: &[u8], place: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        XChaCha20Poly1305::new(&self.0.into())
            .decrypt(&XNonce::from(*nonce), Payload { msg: body, aad: place })
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_with_same_key_place_and_bytes() {
        let key = SealingKey::random().expect("random");
        let sealed = key.seal(b"ahoy", b"1/7").expect("sealed");
        assert_eq!(key.open(&sealed, b"1/7").as_deref(), Some(&b"ahoy"[..]));
        assert_eq!(key.open(&sealed, b"1/8"), None);
        assert_eq!(SealingKey::random().expect("random").open(&sealed, b"1/7"), None);
        for at in 0..sealed.len() {
            let mut bent = sealed.clone();
            bent[at] ^= 1;
            assert_eq!(key.open(&bent, b"1/7"), None, "byte {at}");
        }
        assert_eq!(key.open(b"short", b"1/7"), None);
    }

    #[test]
    fn debug_shows_no_key() {
        let key = SealingKey::from_stored(&[7; 32]).expect("32 bytes");
        assert_eq!(format!("{key:?}"), "SealingKey(…)");
    }
}
