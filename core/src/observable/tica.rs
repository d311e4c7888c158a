//! Time-lagged independent component analysis (Molgedey and Schuster 1994; Perez-Hernandez et al. 2013): the slowest linear
//! combinations of features, with the scale of the kinetic map (Noe and Clementi 2015).

use crate::system::matrix::symmetric_eigen;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Directions of the features' covariance below this share of the largest are left out.
const EPSILON: f64 = 1e-6;

/// How the components are found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TicaSettings {
    /// Lag, in frames.
    pub lag: usize,
    /// Components kept.
    pub components: usize,
    /// Scale components by their eigenvalues, so that distances are kinetic ones.
    pub kinetic_map: bool,
}

/// Slow coordinates: `(features - mean) . coefficients`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tica {
    /// Mean of the features.
    pub mean: Vec<f64>,
    /// One row of as many numbers as there are components for each feature.
    pub coefficients: Vec<f64>,
    /// Eigenvalues, the components' autocorrelations at the lag; empty for given components.
    pub eigenvalues: Vec<f64>,
    /// Components.
    pub components: usize,
}

impl Tica {
    /// Given components.
    pub fn given(mean: Vec<f64>, coefficients: Vec<f64>) -> Result<Tica> {
        let features = mean.len();
        if features == 0 || coefficients.is_empty() || !coefficients.len().is_multiple_of(features)
        {
            return Err(Error::Shape {
                what: "the coefficients of the slow coordinates".into(),
                found: format!("{} numbers", coefficients.len()),
                expected: format!("a row for each of {features} features"),
            });
        }
        Ok(Tica {
            components: coefficients.len() / features,
            mean,
            coefficients,
            eigenvalues: Vec::new(),
        })
    }

    /// Fits the components to features of chains, each `frames` rows of `width` numbers, by the reversible estimate: both ends of every
    /// pair `(x_t, x_{t+lag})` count for the mean and the covariance `C_0`, and `C_lag` is symmetric. Then `C_lag v = lambda C_0 v`.
    /// Signs are such that the largest coefficient of a component is positive.
    pub fn fit(chains: &[&[f64]], width: usize, settings: TicaSettings) -> Result<Tica> {
        let TicaSettings {
            lag,
            components,
            kinetic_map,
        } = settings;
        let frames = |chain: &[f64]| chain.len() / width.max(1);
        let pairs: usize = chains.iter().map(|c| frames(c).saturating_sub(lag)).sum();
        if lag == 0 || components == 0 || width == 0 || components > width || pairs < width + 2 {
            return Err(Error::Value {
                name: "lag or components of the slow coordinates",
                found: format!("lag {lag}, {components} components, {pairs} pairs of frames, {width} features"),
                expected: "at least 1 of each, no more components than features, and more pairs than features".into(),
            });
        }
        let ends = |chain: &'_ [f64], k: usize| {
            (
                k * width..(k + 1) * width,
                (k + lag) * width..(k + lag + 1) * width,
                chain.len(),
            )
        };
        let mut mean = vec![0.0; width];
        for chain in chains {
            for k in 0..frames(chain).saturating_sub(lag) {
                let (a, b, _) = ends(chain, k);
                for (mean, (x, y)) in mean.iter_mut().zip(chain[a].iter().zip(&chain[b])) {
                    *mean += 0.5 * (x + y) / pairs as f64;
                }
            }
        }
        let (mut now, mut later) = (vec![0.0; width * width], vec![0.0; width * width]);
        let (mut x, mut y) = (vec![0.0; width], vec![0.0; width]);
        for chain in chains {
            for k in 0..frames(chain).saturating_sub(lag) {
                let (a, b, _) = ends(chain, k);
                for i in 0..width {
                    x[i] = chain[a.start + i] - mean[i];
                    y[i] = chain[b.start + i] - mean[i];
                }
                for i in 0..width {
                    for j in 0..=i {
                        now[i * width + j] += 0.5 * (x[i] * x[j] + y[i] * y[j]);
                        later[i * width + j] += 0.5 * (x[i] * y[j] + y[i] * x[j]);
                    }
                }
            }
        }
        for matrix in [&mut now, &mut later] {
            for i in 0..width {
                for j in 0..=i {
                    matrix[i * width + j] /= pairs as f64;
                    matrix[j * width + i] = matrix[i * width + j];
                }
            }
        }
        // White features: rows of `white` are eigenvectors of C_0 over the roots of their eigenvalues.
        let (values, vectors) = symmetric_eigen(&now, width);
        let largest = values.iter().fold(0.0_f64, |m, v| m.max(*v));
        let mut white: Vec<f64> = Vec::new();
        for (value, vector) in values.iter().zip(vectors.chunks_exact(width)) {
            if *value > EPSILON * largest {
                white.extend(vector.iter().map(|v| v / value.sqrt()));
            }
        }
        let rank = white.len() / width;
        if rank < components || !largest.is_finite() {
            return Err(Error::Value {
                name: "components of the slow coordinates",
                found: components.to_string(),
                expected: format!("at most {rank}, the number of independent features"),
            });
        }
        let mut inner = vec![0.0; rank * rank];
        for i in 0..rank {
            let image: Vec<f64> = (0..width)
                .map(|c| {
                    (0..width)
                        .map(|r| white[i * width + r] * later[r * width + c])
                        .sum()
                })
                .collect();
            for j in 0..rank {
                inner[i * rank + j] = (0..width).map(|c| image[c] * white[j * width + c]).sum();
            }
        }
        for i in 0..rank {
            for j in 0..i {
                let mean = 0.5 * (inner[i * rank + j] + inner[j * rank + i]);
                (inner[i * rank + j], inner[j * rank + i]) = (mean, mean);
            }
        }
        let (values, vectors) = symmetric_eigen(&inner, rank);
        let mut order: Vec<usize> = (0..rank).collect();
        order.sort_by(|a, b| values[*b].abs().total_cmp(&values[*a].abs()));
        let mut coefficients = vec![0.0; width * components];
        for (k, &which) in order.iter().take(components).enumerate() {
            let vector = &vectors[which * rank..][..rank];
            let mut column: Vec<f64> = (0..width)
                .map(|c| (0..rank).map(|r| vector[r] * white[r * width + c]).sum())
                .collect();
            let extreme = column
                .iter()
                .fold(0.0_f64, |m, v| if v.abs() > m.abs() { *v } else { m });
            let scale = if kinetic_map { values[which] } else { 1.0 } * extreme.signum();
            column.iter_mut().for_each(|v| *v *= scale);
            for (i, value) in column.iter().enumerate() {
                coefficients[i * components + k] = *value;
            }
        }
        Ok(Tica {
            mean,
            coefficients,
            eigenvalues: order.iter().take(components).map(|k| values[*k]).collect(),
            components,
        })
    }

    /// Features it takes.
    pub fn features(&self) -> usize {
        self.mean.len()
    }

    /// The slow coordinates of one frame's features.
    pub fn project(&self, features: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let rows = self.coefficients.chunks_exact(self.components);
        for ((feature, mean), row) in features.iter().zip(&self.mean).zip(rows) {
            for (out, c) in out.iter_mut().zip(row) {
                *out += (feature - mean) * c;
            }
        }
    }

    /// Implied timescales `-lag / ln |lambda|`, in frames.
    pub fn timescales(&self, lag: usize) -> Vec<f64> {
        self.eigenvalues
            .iter()
            .map(|value| -(lag as f64) / value.abs().ln())
            .collect()
    }
}

#[cfg(test)]
mod tests;
