//! Leading eigenvectors of a symmetric matrix by subspace iteration: quick when the axes of the step before are the start.

use super::super::mixture::symmetrise;
use crate::system::matrix::{add, dot, multiply, symmetric_eigen};

/// Turns `axes` (orthonormal rows) towards the leading eigenvectors of a symmetric matrix: `axes <- orthonormal(matrix axes)`, then the
/// eigenvectors within their span. Gives the variances along them.
pub(super) fn leading_axes(matrix: &[f64], dim: usize, axes: &mut [f64], steps: usize) -> Vec<f64> {
    let rank = axes.len() / dim;
    let mut moved = vec![0.0; axes.len()];
    for _ in 0..steps {
        for (axis, out) in axes.chunks_exact(dim).zip(moved.chunks_exact_mut(dim)) {
            multiply(matrix, axis, out);
        }
        axes.copy_from_slice(&moved);
        orthonormalise(axes, dim);
    }
    for (axis, out) in axes.chunks_exact(dim).zip(moved.chunks_exact_mut(dim)) {
        multiply(matrix, axis, out);
    }
    let mut small = vec![0.0; rank * rank];
    for i in 0..rank {
        for j in 0..rank {
            small[i * rank + j] = dot(&axes[i * dim..][..dim], &moved[j * dim..][..dim]);
        }
    }
    symmetrise(&mut small, rank);
    let (values, vectors) = symmetric_eigen(&small, rank);
    moved.fill(0.0);
    for (out, vector) in moved.chunks_exact_mut(dim).zip(vectors.chunks_exact(rank)) {
        for (factor, axis) in vector.iter().zip(axes.chunks_exact(dim)) {
            add(*factor, axis, out);
        }
    }
    axes.copy_from_slice(&moved);
    orthonormalise(axes, dim);
    values
}

/// Gram and Schmidt, twice: once is not enough for rows that are nearly parallel. A row that vanishes becomes a coordinate axis.
fn orthonormalise(rows: &mut [f64], dim: usize) {
    for i in 0..rows.len() / dim {
        let (before, rest) = rows.split_at_mut(i * dim);
        let row = &mut rest[..dim];
        for attempt in 0..=dim {
            for _ in 0..2 {
                for other in before.chunks_exact(dim) {
                    add(-dot(other, row), other, row);
                }
                let norm = dot(row, row).sqrt();
                row.iter_mut().for_each(|x| *x /= norm.max(1e-200));
            }
            if (dot(row, row) - 1.0).abs() < 1e-6 {
                break;
            }
            row.fill(0.0);
            row[attempt.min(dim - 1)] = 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::matrix::tests::random_covariance;

    #[test]
    fn leading_axes_are_eigenvectors() {
        let dim = 9;
        let matrix = random_covariance(dim, 3);
        let mut values = symmetric_eigen(&matrix, dim).0;
        values.sort_by(|a, b| b.total_cmp(a));
        let mut axes = vec![0.0; 3 * dim];
        for i in 0..3 {
            axes[i * dim + i] = 1.0;
        }
        let mut found = leading_axes(&matrix, dim, &mut axes, 500);
        for (axis, value) in axes.chunks_exact(dim).zip(&found) {
            let mut image = vec![0.0; dim];
            multiply(&matrix, axis, &mut image);
            add(-value, axis, &mut image);
            assert!(dot(&image, &image).sqrt() < 1e-6);
        }
        found.sort_by(|a, b| b.total_cmp(a));
        for (a, b) in found.iter().zip(&values) {
            assert!((a - b).abs() < 1e-9, "{found:?} {values:?}");
        }
        // Rows that vanish or repeat are replaced: the axes stay orthonormal.
        let mut flat = vec![0.0; dim * dim];
        flat[0] = 2.0;
        let mut axes = vec![0.0; 2 * dim];
        axes[0] = 1.0;
        axes[dim] = 1.0;
        leading_axes(&flat, dim, &mut axes, 3);
        assert!(dot(&axes[..dim], &axes[dim..]).abs() < 1e-12);
        assert!((dot(&axes[dim..], &axes[dim..]) - 1.0).abs() < 1e-12);
    }
}
