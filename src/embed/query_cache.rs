//! Vectors of the last queries: paging, narrowing and hybrid searches ask for the same one again.
//! Pylota Mail search §8 keeps 256 for ten minutes. Queries are kept as digests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

const QUERIES_MAX: usize = 256;
const KEPT: Duration = Duration::from_secs(600);

/// By digest of the query: when it was asked, and its vector.
type Vectors = HashMap<[u8; 32], (Instant, Vec<f32>)>;

#[derive(Debug, Default)]
pub(super) struct QueryCache {
    vectors: Mutex<Vectors>,
}

impl QueryCache {
    pub(super) fn get(&self, text: &str) -> Option<Vec<f32>> {
        let vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, vector) = vectors.get(&<[u8; 32]>::from(Sha256::digest(text)))?;
        (at.elapsed() < KEPT).then(|| vector.clone())
    }

    pub(super) fn put(&self, text: &str, vector: &[f32]) {
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if vectors.len() >= QUERIES_MAX {
            let oldest = vectors.iter().min_by_key(|(_, (at, _))| *at).map(|(key, _)| *key);
            oldest.and_then(|key| vectors.remove(&key));
        }
        vectors.insert(Sha256::digest(text).into(), (Instant::now(), vector.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept() {
        let cache = QueryCache::default();
        for n in 0..300_u16 {
            cache.put(&n.to_string(), &[f32::from(n)]);
        }
        assert_eq!(cache.get("299"), Some(vec![299.0]));
        assert_eq!(cache.get("44"), Some(vec![44.0]));
        assert_eq!(cache.get("43"), None);
    }
}
