//! Small symmetric matrices in row-major order: eigenvectors by Jacobi rotations, inverse and determinant by Cholesky.

/// Eigenvalues and eigenvectors of a symmetric matrix: row i of the second result is the unit eigenvector of value i.
///
/// Cyclic Jacobi (Golub and Van Loan, section 8.5): accurate to rounding for every symmetric matrix, and simple.
pub(crate) fn symmetric_eigen(matrix: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut vectors = vec![0.0; dim * dim];
    for i in 0..dim {
        vectors[i * dim + i] = 1.0;
    }
    let norm: f64 = a.iter().map(|x| x * x).sum();
    // Convergence is quadratic: a matrix of a few hundred rows needs about ten sweeps, so the bound is never met.
    for _ in 0..64 {
        let off: f64 = (0..dim)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| a[i * dim + j].powi(2))
            .sum();
        if off <= 1e-32 * norm {
            break;
        }
        for p in 0..dim {
            for q in p + 1..dim {
                rotate(&mut a, &mut vectors, dim, p, q);
            }
        }
    }
    ((0..dim).map(|i| a[i * dim + i]).collect(), vectors)
}

/// One Jacobi rotation: makes entry (p, q) zero and turns the eigenvectors along.
fn rotate(a: &mut [f64], vectors: &mut [f64], dim: usize, p: usize, q: usize) {
    let off = a[p * dim + q];
    if off == 0.0 {
        return;
    }
    let theta = (a[q * dim + q] - a[p * dim + p]) / (2.0 * off);
    let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = t * c;
    for k in 0..dim {
        let (x, y) = (a[k * dim + p], a[k * dim + q]);
        (a[k * dim + p], a[k * dim + q]) = (c * x - s * y, s * x + c * y);
    }
    for k in 0..dim {
        let (x, y) = (a[p * dim + k], a[q * dim + k]);
        (a[p * dim + k], a[q * dim + k]) = (c * x - s * y, s * x + c * y);
        let (x, y) = (vectors[p * dim + k], vectors[q * dim + k]);
        (vectors[p * dim + k], vectors[q * dim + k]) = (c * x - s * y, s * x + c * y);
    }
}

/// Inverse and log-determinant of a symmetric positive definite matrix; `None` when it is not positive definite.
pub(crate) fn inverse_and_log_det(matrix: &[f64], dim: usize) -> Option<(Vec<f64>, f64)> {
    let factor = cholesky(matrix, dim)?;
    let log_det = (0..dim).map(|i| 2.0 * factor[i * dim + i].ln()).sum();
    // M = L^-1 by forward substitution, column by column; then A^-1 = M^T M.
    let mut lower = vec![0.0; dim * dim];
    for j in 0..dim {
        lower[j * dim + j] = 1.0 / factor[j * dim + j];
        for i in j + 1..dim {
            let sum: f64 = (j..i)
                .map(|k| factor[i * dim + k] * lower[k * dim + j])
                .sum();
            lower[i * dim + j] = -sum / factor[i * dim + i];
        }
    }
    let mut inverse = vec![0.0; dim * dim];
    for row in lower.chunks_exact(dim) {
        for (i, x) in row.iter().enumerate() {
            for (entry, y) in inverse[i * dim..][..dim].iter_mut().zip(row) {
                *entry += x * y;
            }
        }
    }
    Some((inverse, log_det))
}

/// The lower triangular L with L L^T = A; `None` when A is not positive definite.
pub(crate) fn cholesky(matrix: &[f64], dim: usize) -> Option<Vec<f64>> {
    let mut l = vec![0.0; dim * dim];
    for i in 0..dim {
        for j in 0..=i {
            let sum: f64 = dot(&l[i * dim..][..j], &l[j * dim..][..j]);
            let rest = matrix[i * dim + j] - sum;
            if i != j {
                l[i * dim + j] = rest / l[j * dim + j];
            } else if rest > 0.0 && rest.is_finite() {
                l[i * dim + i] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(l)
}

/// Scalar product.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// `out = matrix * x`.
pub(crate) fn multiply(matrix: &[f64], x: &[f64], out: &mut [f64]) {
    for (value, row) in out.iter_mut().zip(matrix.chunks_exact(x.len())) {
        *value = dot(row, x);
    }
}

/// `out += factor * matrix^T x`.
pub(crate) fn add_transposed(matrix: &[f64], factor: f64, x: &[f64], out: &mut [f64]) {
    for (row, value) in matrix.chunks_exact(out.len()).zip(x) {
        add(factor * value, row, out);
    }
}

/// `out += factor * x`.
pub(crate) fn add(factor: f64, x: &[f64], out: &mut [f64]) {
    for (value, x) in out.iter_mut().zip(x) {
        *value += factor * x;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    /// A random positive definite matrix with eigenvalues of very different sizes.
    pub(crate) fn random_covariance(dim: usize, row: u64) -> Vec<f64> {
        let mut stream = Stream::new(1, Purpose::Test, 77, row);
        let mut root = vec![0.0; dim * dim];
        stream.fill_normal_f64(&mut root);
        let mut matrix = vec![0.0; dim * dim];
        for (i, row) in root.chunks(dim).enumerate() {
            for (j, other) in root.chunks(dim).enumerate() {
                matrix[i * dim + j] =
                    dot(row, other) / dim as f64 + if i == j { 0.02 * (i + 1) as f64 } else { 0.0 };
            }
        }
        matrix
    }

    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        for dim in [1, 2, 5, 24] {
            let matrix = random_covariance(dim, dim as u64);
            let (values, vectors) = symmetric_eigen(&matrix, dim);
            for i in 0..dim {
                for j in 0..dim {
                    let rebuilt: f64 = (0..dim)
                        .map(|k| values[k] * vectors[k * dim + i] * vectors[k * dim + j])
                        .sum();
                    assert!((rebuilt - matrix[i * dim + j]).abs() < 1e-12, "{dim}");
                    let product = dot(&vectors[i * dim..][..dim], &vectors[j * dim..][..dim]);
                    assert!((product - f64::from(u8::from(i == j))).abs() < 1e-13);
                }
            }
        }
    }

    #[test]
    fn inverse_and_determinant_agree_with_the_spectrum() {
        for dim in [1, 3, 16] {
            let matrix = random_covariance(dim, 100 + dim as u64);
            let (inverse, log_det) = inverse_and_log_det(&matrix, dim).unwrap();
            let values = symmetric_eigen(&matrix, dim).0;
            assert!((log_det - values.iter().map(|x| x.ln()).sum::<f64>()).abs() < 1e-10);
            for i in 0..dim {
                for j in 0..dim {
                    let product: f64 = (0..dim)
                        .map(|k| inverse[i * dim + k] * matrix[k * dim + j])
                        .sum();
                    assert!((product - f64::from(u8::from(i == j))).abs() < 1e-9);
                }
            }
        }
        assert!(inverse_and_log_det(&[1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(inverse_and_log_det(&[f64::NAN], 1).is_none());
    }
}
