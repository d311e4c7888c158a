//! Components that are diagonal in axes fixed for all times: diagonal covariances, and full ones under a diffusion.
//!
//! S^2 Sigma + gamma^2 I has the eigenvectors of Sigma at every time, so one eigendecomposition per component serves all times:
//! a point is turned into each component's axes once, and a time costs O(dim) per component.

use super::buffer::Buffer;
use super::{AnySlice, Coefficients, Family, NEGLIGIBLE, Pairs, Slice};
use crate::system::GaussianMixture;
use crate::system::matrix::{add_transposed, multiply};
use std::f64::consts::TAU;

/// Means and variances along the axes.
pub(super) struct Diagonal {
    pairs: Pairs,
    /// For full covariances (diffusions only): the axes of every start component.
    axes: Option<Vec<f64>>,
    /// Means of the start components in their axes.
    start_means: Vec<f64>,
    start_variances: Vec<f64>,
    end_variances: Vec<f64>,
}

impl Diagonal {
    pub(super) fn new(
        pairs: Pairs,
        start: &GaussianMixture,
        end: Option<&GaussianMixture>,
    ) -> Self {
        let dim = pairs.dim;
        let variances = |mixture: &GaussianMixture| -> Vec<f64> {
            (0..mixture.components())
                .flat_map(|k| mixture.component_variances(k))
                .copied()
                .collect()
        };
        let axes: Option<Vec<f64>> = (0..pairs.starts)
            .map(|n| start.component_axes(n))
            .collect::<Option<Vec<_>>>()
            .map(|axes| axes.concat());
        let mut start_means = pairs.start_means.clone();
        if let Some(axes) = &axes {
            for (n, mean) in start_means.chunks_exact_mut(dim).enumerate() {
                multiply(
                    &axes[n * dim * dim..][..dim * dim],
                    pairs.start_mean(n),
                    mean,
                );
            }
        }
        Self {
            axes,
            start_means,
            start_variances: variances(start),
            end_variances: end.map_or(vec![0.0; dim], variances),
            pairs,
        }
    }

    fn axes_of(&self, n: usize) -> Option<&[f64]> {
        let size = self.pairs.dim * self.pairs.dim;
        self.axes.as_ref().map(|axes| &axes[n * size..][..size])
    }
}

impl Family for Diagonal {
    fn slice(&self, c: Coefficients) -> AnySlice<'_> {
        let Pairs {
            dim,
            starts,
            ends,
            log_weights,
            ..
        } = &self.pairs;
        let size = self.pairs.len();
        let (mut means, mut precisions) = (
            Buffer::with_capacity(size * dim),
            Buffer::with_capacity(size * dim),
        );
        let (mut offsets, mut traces) = (Buffer::with_capacity(size), Buffer::with_capacity(size));
        for n in 0..*starts {
            for m in 0..*ends {
                let (mut log_det, mut trace) = (0.0, 0.0);
                for i in 0..*dim {
                    let (start, end) = (
                        self.start_variances[n * dim + i],
                        self.end_variances[m * dim + i],
                    );
                    let variance = c.variance(start, end);
                    means.push(
                        c.alpha * self.start_means[n * dim + i]
                            + c.beta * self.pairs.end_means[m * dim + i],
                    );
                    precisions.push(1.0 / variance);
                    log_det += (TAU * variance).ln();
                    trace += c.variance_rate(start, end) / variance;
                }
                offsets.push(log_weights[n * ends + m] - 0.5 * log_det);
                traces.push(trace);
            }
        }
        AnySlice::Diagonal(DiagonalSlice {
            family: self,
            c,
            means,
            precisions,
            offsets,
            traces,
        })
    }

    fn prepared_len(&self) -> usize {
        if self.axes.is_some() {
            self.pairs.starts * self.pairs.dim
        } else {
            0
        }
    }

    fn prepare(&self, point: &[f64], prepared: &mut [f64]) {
        for (n, turned) in prepared.chunks_exact_mut(self.pairs.dim).enumerate() {
            if let Some(axes) = self.axes_of(n) {
                multiply(axes, point, turned);
            }
        }
    }

    fn slice_len(&self) -> usize {
        2 * self.pairs.len() * (self.pairs.dim + 1)
    }
}

pub(super) struct DiagonalSlice<'a> {
    family: &'a Diagonal,
    c: Coefficients,
    /// Means and inverse variances along the axes, `dim` per pair.
    means: Buffer,
    precisions: Buffer,
    /// log weight minus the Gaussian's log-normaliser.
    offsets: Buffer,
    /// tr(C^-1 C').
    traces: Buffer,
}

impl DiagonalSlice<'_> {
    /// The point in the axes of pair (n, m).
    fn turned<'a>(&self, point: &'a [f64], prepared: &'a [f64], n: usize) -> &'a [f64] {
        if self.family.axes.is_some() {
            &prepared[n * point.len()..][..point.len()]
        } else {
            point
        }
    }

    /// Adds `share` times a vector given along the axes of start component n.
    fn add_turned(&self, n: usize, share: f64, vector: &[f64], out: &mut [f64]) {
        match self.family.axes_of(n) {
            Some(axes) => add_transposed(axes, share, vector, out),
            None => out
                .iter_mut()
                .zip(vector)
                .for_each(|(value, v)| *value += share * v),
        }
    }

    /// Calls `visit` with (n, m, pair, C^-1 (y - mean) along the axes) for every pair that counts.
    fn for_pairs(
        &self,
        point: &[f64],
        prepared: &[f64],
        shares: &[f64],
        mut visit: impl FnMut(usize, usize, usize, &[f64]),
    ) {
        let Pairs { dim, ends, .. } = self.family.pairs;
        let mut pull = Buffer::zeros(dim);
        for (pair, share) in shares.iter().enumerate() {
            if *share < NEGLIGIBLE {
                continue;
            }
            let (n, m) = (pair / ends, pair % ends);
            let (means, precisions) = (
                &self.means[pair * dim..][..dim],
                &self.precisions[pair * dim..][..dim],
            );
            for (i, y) in self.turned(point, prepared, n).iter().enumerate() {
                pull[i] = precisions[i] * (y - means[i]);
            }
            visit(n, m, pair, &pull);
        }
    }
}

impl Slice for DiagonalSlice<'_> {
    fn log_components(&self, point: &[f64], prepared: &[f64], out: &mut [f64]) {
        let Pairs { dim, ends, .. } = self.family.pairs;
        for (pair, value) in out.iter_mut().enumerate() {
            let (means, precisions) = (
                &self.means[pair * dim..][..dim],
                &self.precisions[pair * dim..][..dim],
            );
            let turned = self.turned(point, prepared, pair / ends);
            let square: f64 = turned
                .iter()
                .zip(means)
                .zip(precisions)
                .map(|((y, m), p)| p * (y - m) * (y - m))
                .sum();
            *value = self.offsets[pair] - 0.5 * square;
        }
    }

    fn score(&self, point: &[f64], prepared: &[f64], shares: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        self.for_pairs(point, prepared, shares, |n, _, pair, pull| {
            self.add_turned(n, -shares[pair], pull, out)
        });
    }

    fn time_score(&self, point: &[f64], prepared: &[f64], shares: &[f64]) -> f64 {
        let (family, c) = (self.family, &self.c);
        let dim = family.pairs.dim;
        let mut total = 0.0;
        self.for_pairs(point, prepared, shares, |n, m, pair, pull| {
            let mut sum = -0.5 * self.traces[pair];
            for (i, u) in pull.iter().enumerate() {
                let (start, end) = (n * dim + i, m * dim + i);
                let mean_rate = c.alpha_rate * family.start_means[start]
                    + c.beta_rate * family.pairs.end_means[end];
                let rate =
                    c.variance_rate(family.start_variances[start], family.end_variances[end]);
                sum += u * (mean_rate + 0.5 * rate * u);
            }
            total += shares[pair] * sum;
        });
        total
    }

    fn velocity(&self, point: &[f64], prepared: &[f64], shares: &[f64], out: &mut [f64]) {
        let (family, c) = (self.family, &self.c);
        let dim = family.pairs.dim;
        let mut mean = Buffer::zeros(dim);
        out.fill(0.0);
        self.for_pairs(point, prepared, shares, |n, m, pair, pull| {
            for (i, u) in pull.iter().enumerate() {
                let (start, end) = (n * dim + i, m * dim + i);
                mean[i] = c.alpha_rate
                    * (family.start_means[start] + c.alpha * family.start_variances[start] * u)
                    + c.beta_rate
                        * (family.pairs.end_means[end] + c.beta * family.end_variances[end] * u);
            }
            self.add_turned(n, shares[pair], &mean, out);
        });
    }
}
