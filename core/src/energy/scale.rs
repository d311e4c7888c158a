//! `Scale`: what a coordinate is divided by, one number for all columns, one for each, or a lower triangular matrix that mixes them.

use serde::{Deserialize, Serialize};

use crate::system::Covariance;
use crate::system::matrix::{cholesky, dot};

/// Most columns that a matrix may mix: a row must fit in memory that is not allocated.
pub const MOST_WHITENED: usize = 256;

/// A linear map S of positive determinant. In files a number, a list, or a list of lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scale {
    /// The same number for all.
    Common(f64),
    /// One for each.
    Columns(Vec<f64>),
    /// A lower triangular matrix with a positive diagonal, row by row, each up to its diagonal.
    Matrix(Vec<Vec<f64>>),
}

impl Scale {
    /// The Cholesky factor of a covariance matrix of at most [`MOST_WHITENED`] columns, in row-major order; none if it is not positive
    /// definite.
    pub fn of_covariance(covariance: &[f64], dim: usize) -> Option<Scale> {
        let factor = cholesky(covariance, dim).filter(|_| dim <= MOST_WHITENED)?;
        let row = |i: usize| factor[i * dim..][..=i].to_vec();
        Some(Scale::Matrix((0..dim).map(row).collect()))
    }

    /// Entry of the diagonal.
    pub fn diagonal(&self, column: usize) -> f64 {
        match self {
            Scale::Common(scale) => *scale,
            Scale::Columns(scales) => scales[column],
            Scale::Matrix(rows) => rows[column][column],
        }
    }

    /// Positive finite numbers, one or one for each of `dim` columns, or a matrix of so many.
    pub fn fits(&self, dim: usize) -> bool {
        let sane = |scale: f64| scale.is_finite() && scale > 0.0;
        let whole = match self {
            Scale::Common(scale) => return sane(*scale),
            Scale::Columns(scales) => scales.len() == dim,
            Scale::Matrix(rows) => {
                let fits = |(i, row): (usize, &Vec<f64>)| {
                    row.len() == i + 1 && row.iter().all(|x| x.is_finite())
                };
                rows.len() == dim && dim <= MOST_WHITENED && rows.iter().enumerate().all(fits)
            }
        };
        whole && (0..dim).all(|i| sane(self.diagonal(i)))
    }

    /// `log det S` for so many columns.
    pub fn log_volume(&self, dim: usize) -> f64 {
        match self {
            Scale::Common(scale) => dim as f64 * scale.ln(),
            _ => (0..dim).map(|i| self.diagonal(i).ln()).sum(),
        }
    }

    /// `row = S row`.
    pub fn multiply(&self, row: &mut [f64]) {
        match self {
            Scale::Common(scale) => row.iter_mut().for_each(|x| *x *= scale),
            Scale::Columns(scales) => row.iter_mut().zip(scales).for_each(|(x, s)| *x *= s),
            Scale::Matrix(rows) => {
                for (i, factors) in rows.iter().enumerate().rev() {
                    row[i] = dot(factors, &row[..=i]);
                }
            }
        }
    }

    /// `row = S^-1 row`.
    pub fn solve(&self, row: &mut [f64]) {
        match self {
            Scale::Common(scale) => row.iter_mut().for_each(|x| *x /= scale),
            Scale::Columns(scales) => row.iter_mut().zip(scales).for_each(|(x, s)| *x /= s),
            Scale::Matrix(rows) => {
                for (i, factors) in rows.iter().enumerate() {
                    row[i] = (row[i] - dot(&factors[..i], &row[..i])) / factors[i];
                }
            }
        }
    }

    /// `row = S^-T row`.
    pub fn solve_transposed(&self, row: &mut [f64]) {
        let Scale::Matrix(rows) = self else {
            return self.solve(row);
        };
        for (i, factors) in rows.iter().enumerate().rev() {
            row[i] /= factors[i];
            let solved = row[i];
            for (x, factor) in row[..i].iter_mut().zip(factors) {
                *x -= factor * solved;
            }
        }
    }

    /// `S^-1` of the columns from `first` on, rounded; a matrix takes the whole row at once. Allocates nothing.
    pub(super) fn solve_part(
        &self,
        first: usize,
        part: impl Iterator<Item = f64>,
        out: &mut [f32],
    ) {
        match self {
            Scale::Matrix(rows) => {
                assert!(first == 0 && out.len() == rows.len(), "a part of a row");
                let mut row = [0.0; MOST_WHITENED];
                let row = &mut row[..out.len()];
                row.iter_mut().zip(part).for_each(|(to, x)| *to = x);
                self.solve(row);
                for (out, x) in out.iter_mut().zip(row) {
                    *out = *x as f32;
                }
            }
            Scale::Common(scale) => {
                for (out, x) in out.iter_mut().zip(part) {
                    *out = (x / scale) as f32;
                }
            }
            Scale::Columns(scales) => {
                for ((out, x), scale) in out.iter_mut().zip(part).zip(&scales[first..]) {
                    *out = (x / scale) as f32;
                }
            }
        }
    }

    /// `S S^T` for so many columns.
    pub fn covariance(&self, dim: usize) -> Covariance {
        match self {
            Scale::Common(scale) => Covariance::Isotropic(vec![scale * scale]),
            Scale::Columns(scales) => Covariance::Diagonal(scales.iter().map(|s| s * s).collect()),
            Scale::Matrix(rows) => {
                let entry = |at: usize| {
                    let (i, j) = (at / dim, at % dim);
                    let shared = i.min(j) + 1;
                    dot(&rows[i][..shared], &rows[j][..shared])
                };
                Covariance::Full((0..dim * dim).map(entry).collect())
            }
        }
    }

    /// The product S T of two scales.
    pub fn times(&self, other: &Scale) -> Scale {
        match (self, other) {
            (Scale::Common(a), Scale::Common(b)) => Scale::Common(a * b),
            (Scale::Matrix(a), Scale::Matrix(b)) => {
                let entry = |i: usize, j: usize| (j..=i).map(|k| a[i][k] * b[k][j]).sum();
                let row = |i: usize| (0..=i).map(|j| entry(i, j)).collect();
                Scale::Matrix((0..a.len()).map(row).collect())
            }
            (Scale::Matrix(rows), scale) => {
                let times = |row: &Vec<f64>| {
                    let columns = row.iter().enumerate();
                    columns.map(|(j, x)| x * scale.diagonal(j)).collect()
                };
                Scale::Matrix(rows.iter().map(times).collect())
            }
            (scale, Scale::Matrix(rows)) => {
                let times = |(i, row): (usize, &Vec<f64>)| {
                    row.iter().map(|x| scale.diagonal(i) * x).collect()
                };
                Scale::Matrix(rows.iter().enumerate().map(times).collect())
            }
            (Scale::Columns(a), b) | (b, Scale::Columns(a)) => {
                let columns = a.iter().enumerate();
                Scale::Columns(columns.map(|(i, a)| a * b.diagonal(i)).collect())
            }
        }
    }
}

impl From<f64> for Scale {
    fn from(scale: f64) -> Self {
        Scale::Common(scale)
    }
}

impl From<Vec<f64>> for Scale {
    fn from(scales: Vec<f64>) -> Self {
        Scale::Columns(scales)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scales() -> [Scale; 3] {
        let matrix = vec![vec![2.5], vec![-0.4, 0.3], vec![0.7, 1.1, 1.7]];
        [
            Scale::Common(2.5),
            Scale::Columns(vec![2.5, 0.3, 1.7]),
            Scale::Matrix(matrix),
        ]
    }

    /// The matrix of a scale, column by column, through `multiply`.
    fn dense(scale: &Scale) -> [[f64; 3]; 3] {
        let mut matrix = [[0.0; 3]; 3];
        for j in 0..3 {
            let mut unit = [0.0; 3];
            unit[j] = 1.0;
            scale.multiply(&mut unit);
            (0..3).for_each(|i| matrix[i][j] = unit[i]);
        }
        matrix
    }

    #[test]
    fn scales_are_matrices() {
        let x = [0.3, -1.2, 0.8];
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
        for scale in scales() {
            let matrix = dense(&scale);
            let (mut there, mut turned) = (x, x);
            scale.solve(&mut there);
            scale.solve_transposed(&mut turned);
            for i in 0..3 {
                close((0..3).map(|j| matrix[i][j] * there[j]).sum(), x[i]);
                close((0..3).map(|j| matrix[j][i] * turned[j]).sum(), x[i]);
            }
            let mut rounded = [0f32; 3];
            scale.solve_part(0, x.into_iter(), &mut rounded);
            assert_eq!(rounded, there.map(|x| x as f32));
            let diagonal: f64 = (0..3).map(|i| matrix[i][i].ln()).sum();
            close(scale.log_volume(3), diagonal);
            let square =
                |i: usize, j: usize| (0..3).map(|k| matrix[i][k] * matrix[j][k]).sum::<f64>();
            match scale.covariance(3) {
                Covariance::Isotropic(c) => close(c[0], square(1, 1)),
                Covariance::Diagonal(c) => (0..3).for_each(|i| close(c[i], square(i, i))),
                Covariance::Full(c) => {
                    (0..9).for_each(|at| close(c[at], square(at / 3, at % 3)));
                    assert_eq!(Scale::of_covariance(&c, 3).map(|s| s.fits(3)), Some(true));
                }
            }
            for other in scales() {
                let (product, right) = (dense(&scale.times(&other)), dense(&other));
                for i in 0..3 {
                    for j in 0..3 {
                        let entry = (0..3).map(|k| matrix[i][k] * right[k][j]).sum();
                        close(product[i][j], entry);
                    }
                }
            }
            assert!(scale.fits(3));
        }
        for matrix in [
            vec![vec![1.0], vec![0.0, -1.0]],
            vec![vec![1.0], vec![1.0]],
            vec![vec![1.0], vec![f64::NAN, 1.0]],
        ] {
            assert!(!Scale::Matrix(matrix).fits(2));
        }
        assert_eq!(Scale::of_covariance(&[1.0, 2.0, 2.0, 1.0], 2), None);
    }
}
