//! Products of matrices: the one place where the `gemm` crate is called.

use gemm::Parallelism;

/// A view of a matrix inside a slice: element (r, c) lies at `r * row + c * column`.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) values: &'a [f32],
    pub(super) row: usize,
    pub(super) column: usize,
}

impl View<'_> {
    fn holds(&self, rows: usize, columns: usize) -> bool {
        rows == 0
            || columns == 0
            || (rows - 1) * self.row + (columns - 1) * self.column < self.values.len()
    }
}

/// `out = keep · out + scale · (left × right)`, `left` being `rows × inner`, `right`
/// `inner × columns`, and row r of `out` beginning at `r * out_row`. On the calling thread alone.
///
/// # Panics
/// When a view does not hold the matrix it should: a fault of ours, not of a file.
pub(super) fn multiply(
    (rows, inner, columns): (usize, usize, usize),
    out: &mut [f32],
    out_row: usize,
    (left, right): (View<'_>, View<'_>),
    (keep, scale): (bool, f32),
) {
    assert!(left.holds(rows, inner) && right.holds(inner, columns), "a factor is too small");
    assert!(
        rows == 0 || columns == 0 || (rows - 1) * out_row + columns <= out.len(),
        "the product does not fit"
    );
    assert!(columns <= out_row || rows <= 1, "rows of the product overlap");
    #[expect(unsafe_code, reason = "gemm takes pointers; every element it touches was checked")]
    // SAFETY: the asserts above bound every index that strides and sizes can give.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.as_mut_ptr(),
            1,
            out_row as isize,
            keep,
            left.values.as_ptr(),
            left.column as isize,
            left.row as isize,
            right.values.as_ptr(),
            right.column as isize,
            right.row as isize,
            1.0,
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        let (rows, inner, columns) = (3, 5, 4);
        let left: Vec<f32> = (0..rows * inner).map(|n| n as f32 - 7.0).collect();
        // Stored in columns.
        let right: Vec<f32> = (0..inner * columns).map(|n| 0.5 * n as f32).collect();
        let mut out = vec![1.0; rows * 6];
        multiply(
            (rows, inner, columns),
            &mut out,
            6,
            (
                View { values: &left, row: inner, column: 1 },
                View { values: &right, row: 1, column: inner },
            ),
            (true, 2.0),
        );
        for r in 0..rows {
            for c in 0..6 {
                let sum: f32 = if c < columns {
                    (0..inner).map(|k| left[r * inner + k] * right[c * inner + k]).sum()
                } else {
                    0.0
                };
                assert!((out[r * 6 + c] - (1.0 + 2.0 * sum)).abs() < 1e-3, "({r}, {c})");
            }
        }
    }
}
