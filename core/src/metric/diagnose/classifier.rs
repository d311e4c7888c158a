//! A classifier between data and generated samples: if it guesses unseen points right more often than a coin, they differ.
//!
//! Logistic regression on the coordinates, their squares and products, with a ridge. A bond length is such a feature of particles' coordinates, a
//! wrong width or correlation of any others. Each half of the points is guessed by what the other half taught, so that equal laws give a share of
//! right guesses of 1/2 with standard deviation 1/(2 sqrt n). A share a means a total variation of at least 2a - 1 between the laws (Lopez-Paz
//! and Oquab 2017).

use crate::metric::Estimate;
use crate::system::matrix::{cholesky, dot};

/// Columns up to which products of different ones are features.
const MOST_CROSSED: usize = 20;
/// Columns that are looked at.
const MOST_COLUMNS: usize = 128;
/// Newton steps.
const STEPS: usize = 8;
/// Weight of the ridge, in points.
const RIDGE: f64 = 2.0;
/// Features beyond so many standard deviations are cut.
const CUT: f64 = 5.0;

/// The share of right guesses between two samples of equal size, with its error by chance.
pub(super) fn accuracy(a: &[f64], b: &[f64], dim: usize) -> Estimate {
    let n = a.len() / dim;
    let half = n / 2;
    let folds = [0..half, half..n];
    let rows = |range: &std::ops::Range<usize>| -> Vec<(Vec<f64>, f64)> {
        range
            .clone()
            .flat_map(|i| [(&a[i * dim..][..dim], 1.0), (&b[i * dim..][..dim], 0.0)])
            .map(|(row, label)| (features(row), label))
            .collect()
    };
    let sides = folds.each_ref().map(rows);
    let mut right = 0.0;
    for (taught, asked) in [(0, 1), (1, 0)] {
        let Some(model) = Logistic::fit(&sides[taught]) else {
            // Nothing was learned: a coin.
            right += 0.5 * sides[asked].len() as f64;
            continue;
        };
        for (row, label) in &sides[asked] {
            let guess = model.score(row);
            right += if guess == 0.0 {
                0.5
            } else {
                f64::from(u8::from((guess > 0.0) == (*label > 0.5)))
            };
        }
    }
    let count = 2.0 * n as f64;
    Estimate {
        mean: right / count,
        error: 0.5 / count.sqrt(),
    }
}

fn features(row: &[f64]) -> Vec<f64> {
    let row = &row[..row.len().min(MOST_COLUMNS)];
    let mut out = row.to_vec();
    for (i, x) in row.iter().enumerate() {
        if row.len() <= MOST_CROSSED {
            out.extend(row[..=i].iter().map(|y| x * y));
        } else {
            out.push(x * x);
        }
    }
    out
}

struct Logistic {
    /// Mean and standard deviation of each feature.
    scales: Vec<(f64, f64)>,
    /// The constant last.
    weights: Vec<f64>,
}

impl Logistic {
    fn fit(rows: &[(Vec<f64>, f64)]) -> Option<Self> {
        let width = rows.first()?.0.len();
        let n = rows.len() as f64;
        let scales: Vec<(f64, f64)> = (0..width)
            .map(|j| {
                let mean = rows.iter().map(|(row, _)| row[j]).sum::<f64>() / n;
                let square = rows
                    .iter()
                    .map(|(row, _)| (row[j] - mean).powi(2))
                    .sum::<f64>()
                    / n;
                (mean, square.sqrt())
            })
            .collect();
        let mut model = Self {
            scales,
            weights: vec![0.0; width + 1],
        };
        let inputs: Vec<Vec<f64>> = rows.iter().map(|(row, _)| model.input(row)).collect();
        let size = width + 1;
        for _ in 0..STEPS {
            let mut matrix = vec![0.0; size * size];
            let mut slope = vec![0.0; size];
            for (input, (_, label)) in inputs.iter().zip(rows) {
                let guess = 1.0 / (1.0 + (-dot(input, &model.weights)).exp());
                let weight = (guess * (1.0 - guess)).max(1e-6);
                for (i, x) in input.iter().enumerate() {
                    slope[i] += (label - guess) * x;
                    let line = &mut matrix[i * size..][..=i];
                    line.iter_mut()
                        .zip(input)
                        .for_each(|(m, y)| *m += weight * x * y);
                }
            }
            for i in 0..size {
                matrix[i * size + i] += RIDGE;
                slope[i] -= RIDGE * model.weights[i];
                for j in 0..i {
                    matrix[j * size + i] = matrix[i * size + j];
                }
            }
            let step = solve(&matrix, slope)?;
            model
                .weights
                .iter_mut()
                .zip(&step)
                .for_each(|(w, s)| *w += s);
        }
        model.weights.iter().all(|w| w.is_finite()).then_some(model)
    }

    fn input(&self, row: &[f64]) -> Vec<f64> {
        let scaled = row.iter().zip(&self.scales).map(|(x, (mean, deviation))| {
            if *deviation > 0.0 {
                ((x - mean) / deviation).clamp(-CUT, CUT)
            } else {
                0.0
            }
        });
        scaled.chain([1.0]).collect()
    }

    fn score(&self, row: &[f64]) -> f64 {
        dot(&self.input(row), &self.weights)
    }
}

/// x with matrix x = right, for a positive definite matrix.
fn solve(matrix: &[f64], mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    let factor = cholesky(matrix, size)?;
    super::proposal::solve_lower(&factor, &mut right);
    for i in (0..size).rev() {
        let later: f64 = (i + 1..size).map(|k| factor[k * size + i] * right[k]).sum();
        right[i] = (right[i] - later) / factor[i * size + i];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    fn normals(n: usize, dim: usize, seed: u64) -> Vec<f64> {
        let mut out = vec![0.0; dim * n];
        Stream::new(seed, Purpose::Test, 0, 0).fill_normal_f64(&mut out);
        out
    }

    #[test]
    fn equal_laws_are_a_coin() {
        let z: Vec<f64> = (0..20)
            .map(|seed| {
                let found = accuracy(
                    &normals(200, 3, 2 * seed),
                    &normals(200, 3, 2 * seed + 1),
                    3,
                );
                (found.mean - 0.5) / found.error
            })
            .collect();
        let mean = z.iter().sum::<f64>() / 20.0;
        assert!(mean.abs() < 4.0 / 20f64.sqrt(), "{mean}");
        assert!(z.iter().all(|z| z.abs() < 4.0), "{z:?}");
    }

    #[test]
    fn a_correlation_and_a_distance_are_seen() {
        let (a, mut b) = (normals(400, 4, 1), normals(400, 4, 2));
        // Each column alone is the same: only the product of two tells.
        b.chunks_exact_mut(4)
            .for_each(|row| row[1] = 0.8 * row[0] + 0.6 * row[1]);
        let found = accuracy(&a, &b, 4);
        assert!(found.mean > 0.6, "{found}");
        // Two particles in the plane at distance 1 or 2, turned at random: columns have mean 0 and are uncorrelated.
        let pairs = |length: f64, seed: u64| -> Vec<f64> {
            let turned = normals(400, 2, seed);
            turned
                .chunks_exact(2)
                .flat_map(|z| {
                    let size = z[0].hypot(z[1]);
                    let (x, y) = (length * z[0] / size, length * z[1] / size);
                    [x, y, -x, -y]
                })
                .collect()
        };
        assert!(accuracy(&pairs(1.0, 3), &pairs(2.0, 4), 4).mean > 0.99);
    }
}
