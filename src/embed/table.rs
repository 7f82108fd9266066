//! Static models: one vector a token, and a text is the weighted mean of its tokens'. Quick enough
//! for whole archives at once; the layout is that of model2vec (`embeddings`, `weights`).

use super::ModelError;
use super::activation::to_unit;
use super::weights::{Matrix, Weights};

/// A loaded table.
pub(super) struct Table {
    rows: Matrix,
    weights: Vec<f32>,
}

/// Longest vectors of a table that is loaded.
const DIMENSIONS_MAX: usize = 4_096;

impl Table {
    pub(super) fn load(file: &[u8]) -> Result<Self, ModelError> {
        let file = Weights::open(file)?;
        let rows = file.matrix("embeddings", None, None)?;
        if !(1..=DIMENSIONS_MAX).contains(&rows.columns) {
            let what = format!("a table must have 1 to {DIMENSIONS_MAX} columns");
            return Err(ModelError::File(what));
        }
        let weights = file.vector("weights", rows.rows).or_else(|error| {
            // Tables without weights count every token the same.
            if file.has("weights") { Err(error) } else { Ok(vec![1.0; rows.rows]) }
        })?;
        Ok(Self { rows, weights })
    }

    /// Different tokens it knows.
    pub(super) fn vocabulary(&self) -> usize {
        self.rows.rows
    }

    /// Length of the vectors.
    pub(super) fn dimensions(&self) -> usize {
        self.rows.columns
    }

    /// The vector of a text by its tokens.
    pub(super) fn vector(&self, tokens: &[u32]) -> Result<Vec<f32>, ModelError> {
        let mut sum = vec![0.0; self.rows.columns];
        for token in tokens {
            let at = *token as usize;
            let (Some(row), Some(weight)) = (self.rows.row(at), self.weights.get(at)) else {
                return Err(ModelError::Text("a token that the model does not know"));
            };
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
        if to_unit(&mut sum) {
            Ok(sum)
        } else {
            Err(ModelError::Text("a text without a word that the model knows"))
        }
    }
}
