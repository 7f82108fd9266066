//! What vectors come from: vectors of different profiles are never compared.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::chunk::{Limits, RULES};

/// A space of vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Who computes: `builtin`, `folder`, `endpoint`.
    pub provider: String,
    /// Name of the model.
    pub model: String,
    /// Digest of its files, hexadecimal; empty behind an address.
    pub version: String,
    /// Length of the vectors.
    pub dimensions: u32,
    /// Tokens of one text at most; longer ones are cut.
    pub tokens_max: u32,
    /// Put before a query.
    pub query_prefix: String,
    /// Put before a passage.
    pub passage_prefix: String,
}

/// Short name of a profile: equal for equal profiles and rules of cutting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "&str")]
pub struct Fingerprint(pub [u8; 8]);

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl TryFrom<&str> for Fingerprint {
    type Error = &'static str;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        let number = (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(|n| Self(n.to_be_bytes())).ok_or("must be 16 hexadecimal digits")
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Profile {
    /// Its short name. Vectors are of length 1 and compared by their cosine in every profile.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hash = Sha256::new();
        hash.update([1, RULES]);
        for text in
            [&self.provider, &self.model, &self.version, &self.query_prefix, &self.passage_prefix]
        {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        hash.update(self.dimensions.to_le_bytes());
        hash.update(self.tokens_max.to_le_bytes());
        let mut short = [0; 8];
        short.copy_from_slice(&hash.finalize()[..8]);
        Fingerprint(short)
    }

    /// Sizes of the passages it is given.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits::of_model(self.tokens_max)
    }
}
