//! Interpolants with a full covariance: alpha^2 Sigma + beta^2 Lambda + gamma^2 I has no fixed axes, so every time and pair is inverted.

use super::buffer::Buffer;
use super::{AnySlice, Coefficients, Family, NEGLIGIBLE, Pairs, Slice};
use crate::system::matrix::{add, dot, inverse_and_log_det, multiply};
use crate::system::{Covariance, GaussianMixture};
use std::f64::consts::TAU;

/// The covariances as dense matrices.
pub(super) struct Dense {
    pairs: Pairs,
    start_covariances: Vec<f64>,
    end_covariances: Vec<f64>,
}

impl Dense {
    /// From the mixtures of start and end, in this order.
    pub(super) fn new<'a>(
        pairs: Pairs,
        mixtures: impl Iterator<Item = &'a GaussianMixture>,
    ) -> Self {
        let mut matrices = mixtures.map(dense_covariances);
        let mut next = || matrices.next().unwrap_or_default();
        Self {
            start_covariances: next(),
            end_covariances: next(),
            pairs,
        }
    }

    fn start_covariance(&self, n: usize) -> &[f64] {
        let size = self.pairs.dim * self.pairs.dim;
        &self.start_covariances[n * size..][..size]
    }

    fn end_covariance(&self, m: usize) -> &[f64] {
        let size = self.pairs.dim * self.pairs.dim;
        &self.end_covariances[m * size..][..size]
    }
}

/// All covariances of a mixture as full matrices.
fn dense_covariances(mixture: &GaussianMixture) -> Vec<f64> {
    let dim = mixture.dim();
    if let Covariance::Full(values) = mixture.covariance() {
        return values.clone();
    }
    let mut out = vec![0.0; mixture.components() * dim * dim];
    for (k, matrix) in out.chunks_exact_mut(dim * dim).enumerate() {
        for (i, variance) in mixture.component_variances(k).iter().enumerate() {
            matrix[i * dim + i] = *variance;
        }
    }
    out
}

impl Family for Dense {
    fn slice(&self, c: Coefficients) -> AnySlice<'_> {
        let Pairs {
            dim,
            starts,
            ends,
            log_weights,
            ..
        } = &self.pairs;
        let dim = *dim;
        let count = self.pairs.len();
        let mut slice = DenseSlice {
            family: self,
            c,
            precisions: Buffer::with_capacity(count * dim * dim),
            means: Buffer::with_capacity(count * dim),
            offsets: Buffer::with_capacity(count),
            traces: Buffer::with_capacity(count),
        };
        let mut covariance = vec![0.0; dim * dim];
        for n in 0..*starts {
            for m in 0..*ends {
                let (start, end) = (self.start_covariance(n), self.end_covariance(m));
                for (entry, (s, e)) in covariance.iter_mut().zip(start.iter().zip(end)) {
                    *entry = c.alpha * c.alpha * s + c.beta * c.beta * e;
                }
                for i in 0..dim {
                    covariance[i * dim + i] += c.gamma_squared;
                }
                let (precision, log_det) = inverse_and_log_det(&covariance, dim).expect(
                    "a sum of positive definite matrices, checked when the mixtures were made",
                );
                let trace_identity: f64 = (0..dim).map(|i| precision[i * dim + i]).sum();
                slice.traces.push(
                    2.0 * c.alpha * c.alpha_rate * dot(&precision, start)
                        + 2.0 * c.beta * c.beta_rate * dot(&precision, end)
                        + c.gamma_squared_rate * trace_identity,
                );
                slice
                    .offsets
                    .push(log_weights[n * ends + m] - 0.5 * (dim as f64 * TAU.ln() + log_det));
                let means = self.pairs.start_mean(n).iter().zip(self.pairs.end_mean(m));
                slice
                    .means
                    .extend(means.map(|(mu, nu)| c.alpha * mu + c.beta * nu));
                slice.precisions.extend(precision);
            }
        }
        AnySlice::Dense(slice)
    }

    fn prepared_len(&self) -> usize {
        0
    }

    fn prepare(&self, _point: &[f64], _prepared: &mut [f64]) {}

    fn slice_len(&self) -> usize {
        self.pairs.len() * (self.pairs.dim + 1) * (self.pairs.dim + 1)
    }
}

pub(super) struct DenseSlice<'a> {
    family: &'a Dense,
    c: Coefficients,
    /// Inverse covariance of every pair.
    precisions: Buffer,
    means: Buffer,
    /// log weight minus the Gaussian's log-normaliser.
    offsets: Buffer,
    /// tr(C^-1 C').
    traces: Buffer,
}

impl DenseSlice<'_> {
    /// Calls `visit` with (n, m, pair, y - mean, C^-1 (y - mean)) for every pair that `counts`.
    fn for_pairs(
        &self,
        point: &[f64],
        counts: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, usize, usize, &[f64], &[f64]),
    ) {
        let Pairs { dim, ends, .. } = self.family.pairs;
        let (mut rest, mut pull) = (Buffer::zeros(dim), Buffer::zeros(dim));
        for pair in (0..self.family.pairs.len()).filter(|&pair| counts(pair)) {
            for (i, value) in rest.iter_mut().enumerate() {
                *value = point[i] - self.means[pair * dim + i];
            }
            multiply(
                &self.precisions[pair * dim * dim..][..dim * dim],
                &rest,
                &mut pull,
            );
            visit(pair / ends, pair % ends, pair, &rest, &pull);
        }
    }
}

impl Slice for DenseSlice<'_> {
    fn log_components(&self, point: &[f64], _prepared: &[f64], out: &mut [f64]) {
        self.for_pairs(
            point,
            |_| true,
            |_, _, pair, rest, pull| out[pair] = self.offsets[pair] - 0.5 * dot(rest, pull),
        );
    }

    fn score(&self, point: &[f64], _prepared: &[f64], shares: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        self.for_pairs(
            point,
            |pair| shares[pair] >= NEGLIGIBLE,
            |_, _, pair, _, pull| add(-shares[pair], pull, out),
        );
    }

    fn time_score(&self, point: &[f64], _prepared: &[f64], shares: &[f64]) -> f64 {
        let (family, c) = (self.family, &self.c);
        let mut product = Buffer::zeros(point.len());
        let mut total = 0.0;
        self.for_pairs(
            point,
            |pair| shares[pair] >= NEGLIGIBLE,
            |n, m, pair, _, pull| {
                multiply(family.start_covariance(n), pull, &mut product);
                let start = dot(&product, pull);
                multiply(family.end_covariance(m), pull, &mut product);
                let end = dot(&product, pull);
                let spread = c.alpha * c.alpha_rate * start
                    + c.beta * c.beta_rate * end
                    + 0.5 * c.gamma_squared_rate * dot(pull, pull);
                let drift = c.alpha_rate * dot(pull, family.pairs.start_mean(n))
                    + c.beta_rate * dot(pull, family.pairs.end_mean(m));
                total += shares[pair] * (spread + drift - 0.5 * self.traces[pair]);
            },
        );
        total
    }

    fn velocity(&self, point: &[f64], _prepared: &[f64], shares: &[f64], out: &mut [f64]) {
        let (family, c) = (self.family, &self.c);
        let mut product = Buffer::zeros(point.len());
        out.fill(0.0);
        self.for_pairs(
            point,
            |pair| shares[pair] >= NEGLIGIBLE,
            |n, m, pair, _, pull| {
                let share = shares[pair];
                add(share * c.alpha_rate, family.pairs.start_mean(n), out);
                multiply(family.start_covariance(n), pull, &mut product);
                add(share * c.alpha_rate * c.alpha, &product, out);
                add(share * c.beta_rate, family.pairs.end_mean(m), out);
                multiply(family.end_covariance(m), pull, &mut product);
                add(share * c.beta_rate * c.beta, &product, out);
            },
        );
    }
}
