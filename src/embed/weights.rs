//! Tensors of a model file (safetensors) as matrices of f32.
//!
//! A matrix may be stored as f32, f16, or as signed bytes with one f16 scale a row under
//! `<name>.scale`. Files are read by the `safetensors` crate, which checks every offset; shapes are
//! checked here, so that a damaged or foreign file is refused before anything is computed from it.

use half::f16;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::ModelError;

/// A matrix in rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) values: Vec<f32>,
}

impl Matrix {
    /// Row `at`.
    pub(super) fn row(&self, at: usize) -> Option<&[f32]> {
        self.values.get(at * self.columns..(at + 1) * self.columns)
    }
}

/// An opened file.
pub(super) struct Weights<'f> {
    file: SafeTensors<'f>,
    /// What stands before every name: cross-encoders and some exports say `bert.`.
    prefix: &'static str,
}

impl<'f> Weights<'f> {
    pub(super) fn open(bytes: &'f [u8]) -> Result<Self, ModelError> {
        let file = SafeTensors::deserialize(bytes)
            .map_err(|e| ModelError::File(format!("no safetensors file: {e}")))?;
        let known = |prefix: &str| {
            file.tensor(&format!("{prefix}embeddings.word_embeddings.weight")).is_ok()
        };
        let prefix = ["bert.", "roberta."].into_iter().find(|prefix| known(prefix)).unwrap_or("");
        Ok(Self { file, prefix })
    }

    /// The same file with names as they stand.
    pub(super) fn unprefixed(self) -> Self {
        Self { prefix: "", ..self }
    }

    /// Whether there is such a tensor.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tensor(name).is_ok()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, ModelError> {
        self.file
            .tensor(&format!("{}{name}", self.prefix))
            .map_err(|_| ModelError::File(format!("the tensor {name} is missing")))
    }

    /// A vector of `length` values.
    pub(super) fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        let tensor = self.tensor(name)?;
        let values = plain(name, &tensor)?;
        if tensor.shape() == [length] {
            return Ok(values);
        }
        Err(wrong_shape(name, tensor.shape(), &[length]))
    }

    /// A matrix; `rows` and `columns` where they are known.
    pub(super) fn matrix(
        &self,
        name: &str,
        rows: Option<usize>,
        columns: Option<usize>,
    ) -> Result<Matrix, ModelError> {
        let tensor = self.tensor(name)?;
        let [has_rows, has_columns] = *tensor.shape() else {
            return Err(ModelError::File(format!("the tensor {name} is no matrix")));
        };
        if rows.is_some_and(|n| n != has_rows) || columns.is_some_and(|n| n != has_columns) {
            let wanted = [rows.unwrap_or(has_rows), columns.unwrap_or(has_columns)];
            return Err(wrong_shape(name, tensor.shape(), &wanted));
        }
        let values = if tensor.dtype() == Dtype::I8 {
            let scales = self.file.tensor(&format!("{}{name}.scale", self.prefix)).ok();
            scaled(name, &tensor, scales.as_ref(), has_rows, has_columns)?
        } else {
            plain(name, &tensor)?
        };
        if values.iter().all(|value| value.is_finite()) {
            return Ok(Matrix { rows: has_rows, columns: has_columns, values });
        }
        Err(ModelError::File(format!("the tensor {name} holds values that are no numbers")))
    }
}

fn plain(name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>, ModelError> {
    let data = tensor.data();
    match tensor.dtype() {
        Dtype::F32 => Ok(data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
        Dtype::F16 => Ok(halves(data)),
        other => {
            Err(ModelError::File(format!("the tensor {name} is of the unknown kind {other:?}")))
        }
    }
}

fn halves(data: &[u8]) -> Vec<f32> {
    data.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect()
}

/// Bytes times the scale of their row; 1 without scales.
fn scaled(
    name: &str,
    tensor: &TensorView<'_>,
    scales: Option<&TensorView<'_>>,
    rows: usize,
    columns: usize,
) -> Result<Vec<f32>, ModelError> {
    let scales = match scales {
        None => vec![1.0; rows],
        Some(scales) if scales.dtype() == Dtype::F16 && scales.shape() == [rows] => {
            halves(scales.data())
        }
        Some(scales) => {
            return Err(wrong_shape(&format!("{name}.scale"), scales.shape(), &[rows]));
        }
    };
    let mut values = Vec::with_capacity(rows * columns);
    for (row, scale) in tensor.data().chunks_exact(columns.max(1)).zip(scales) {
        values.extend(row.iter().map(|byte| f32::from(byte.cast_signed()) * scale));
    }
    Ok(values)
}

fn wrong_shape(name: &str, has: &[usize], wanted: &[usize]) -> ModelError {
    ModelError::File(format!("the tensor {name} has the shape {has:?}, not {wanted:?}"))
}
