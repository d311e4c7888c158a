//! The asymptotic covariance of MBAR, for the states themselves and for any further column of weights.

use super::pass::Sums;
use crate::system::matrix::inverse_and_log_det;

/// The quadratic form `Theta(x, y) = x^T (1 - W N W^T)^+ y` over columns of weights.
///
/// Shirts and Chodera (J. Chem. Phys. 129, 124105 (2008), equation 8 and appendix D) write the covariance of the log
/// normalisers as `Theta = W^T (1 - W N W^T)^+ W`. With `B = W N^(1/2)` over the sampled states, whose columns satisfy
/// `B q = 1 / sqrt(N)` and `B^T 1 = sqrt(N) q` for `q_k = sqrt(N_k / N)`, the pseudo-inverse is
/// `(1 - B B^T)^+ = 1 - 1 1^T / N + B C B^T` with `C = (1 - B^T B + q q^T)^-1 - q q^T`: a K x K matrix, one Cholesky
/// factorisation, no decomposition of anything that has the length of the samples, and valid for every further column.
pub(super) struct Covariance {
    /// C, row-major.
    inverse: Vec<f64>,
    /// Square roots of the counts.
    roots: Vec<f64>,
    samples: f64,
}

/// What the form needs to know of a column: its scalar products with the rows of `p = N W`, and its sum.
pub(super) struct Projection {
    along: Vec<f64>,
    total: f64,
}

impl Covariance {
    /// From the Gram matrix of the sampled states (leading block of `sums`); `None` if they do not hang together.
    pub fn new(sums: &Sums, counts: &[f64]) -> Option<Self> {
        let (states, all) = (counts.len(), sums.totals.len());
        let roots: Vec<f64> = counts.iter().map(|n| n.sqrt()).collect();
        let samples: f64 = counts.iter().sum();
        let q: Vec<f64> = roots.iter().map(|root| root / samples.sqrt()).collect();
        let mut matrix = vec![0.0; states * states];
        for i in 0..states {
            for j in 0..states {
                let own = if i == j { 1.0 } else { 0.0 };
                // The upper and the lower half differ by rounding when samples carry weights.
                let product = 0.5 * (sums.gram[i * all + j] + sums.gram[j * all + i]);
                matrix[i * states + j] = own - product / (roots[i] * roots[j]) + q[i] * q[j];
            }
        }
        let (mut inverse, _) = inverse_and_log_det(&matrix, states)?;
        for i in 0..states {
            for j in 0..states {
                inverse[i * states + j] -= q[i] * q[j];
            }
        }
        Some(Self {
            inverse,
            roots,
            samples,
        })
    }

    /// The projection of column `x = sum_c coefficient_c column_c`, where column numbers are those of `sums`.
    pub fn project(&self, sums: &Sums, combination: &[(usize, f64)]) -> Projection {
        let all = sums.totals.len();
        let along = (0..self.roots.len())
            .map(|k| {
                let sum: f64 = combination
                    .iter()
                    .map(|&(c, factor)| factor * sums.gram[k * all + c])
                    .sum();
                sum / self.roots[k]
            })
            .collect();
        let total = combination
            .iter()
            .map(|&(c, factor)| factor * sums.totals[c])
            .sum();
        Projection { along, total }
    }

    /// Theta(x, y), given the scalar product of x and y.
    pub fn form(&self, product: f64, x: &Projection, y: &Projection) -> f64 {
        let states = self.roots.len();
        let mut sum = product - x.total * y.total / self.samples;
        for (row, a) in self.inverse.chunks_exact(states).zip(&x.along) {
            sum += a * row.iter().zip(&y.along).map(|(c, b)| c * b).sum::<f64>();
        }
        sum
    }

    /// Theta over a list of columns, each a combination of columns of `sums`; row-major.
    pub fn matrix(&self, sums: &Sums, columns: &[Vec<(usize, f64)>]) -> Vec<f64> {
        let all = sums.totals.len();
        let projections: Vec<Projection> = columns.iter().map(|c| self.project(sums, c)).collect();
        let mut theta = vec![0.0; columns.len() * columns.len()];
        for i in 0..columns.len() {
            for j in 0..=i {
                let product: f64 = columns[i]
                    .iter()
                    .flat_map(|&(a, fa)| columns[j].iter().map(move |&(b, fb)| (a, b, fa * fb)))
                    .map(|(a, b, factor)| factor * sums.gram[a * all + b])
                    .sum();
                let value = self.form(product, &projections[i], &projections[j]);
                theta[i * columns.len() + j] = value;
                theta[j * columns.len() + i] = value;
            }
        }
        theta
    }
}

/// Standard deviation of the difference of entries i and j; rounding below zero is zero.
pub(super) fn difference_error(theta: &[f64], size: usize, i: usize, j: usize) -> f64 {
    let variance = theta[i * size + i] + theta[j * size + j] - 2.0 * theta[i * size + j];
    variance.max(0.0).sqrt()
}
