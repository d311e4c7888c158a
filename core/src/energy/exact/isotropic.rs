//! Isotropic components: |y - alpha mu - beta nu|^2 from scalar products, so a time costs O(1) per component and point.

use super::buffer::Buffer;
use super::{AnySlice, Coefficients, Family, NEGLIGIBLE, Pairs, Slice};
use crate::system::GaussianMixture;
use crate::system::matrix::{add, dot};
use std::f64::consts::TAU;

/// Variances, and the scalar products of all means.
pub(super) struct Isotropic {
    pairs: Pairs,
    start_variances: Vec<f64>,
    end_variances: Vec<f64>,
    /// |mu_n|^2.
    start_squares: Vec<f64>,
    /// |nu_m|^2.
    end_squares: Vec<f64>,
    /// mu_n . nu_m, m fastest.
    products: Vec<f64>,
}

impl Isotropic {
    pub(super) fn new(
        pairs: Pairs,
        start: &GaussianMixture,
        end: Option<&GaussianMixture>,
    ) -> Self {
        let variances = |mixture: &GaussianMixture| {
            (0..mixture.components())
                .map(|k| mixture.component_variances(k)[0])
                .collect()
        };
        let squares = |means: &[f64]| {
            means
                .chunks_exact(pairs.dim)
                .map(|mean| dot(mean, mean))
                .collect()
        };
        Self {
            start_variances: variances(start),
            end_variances: end.map_or(vec![0.0], variances),
            start_squares: squares(&pairs.start_means),
            end_squares: squares(&pairs.end_means),
            products: (0..pairs.starts)
                .flat_map(|n| (0..pairs.ends).map(move |m| (n, m)))
                .map(|(n, m)| dot(pairs.start_mean(n), pairs.end_mean(m)))
                .collect(),
            pairs,
        }
    }
}

impl Family for Isotropic {
    fn slice(&self, c: Coefficients) -> AnySlice<'_> {
        let Pairs {
            dim,
            starts,
            ends,
            log_weights,
            ..
        } = &self.pairs;
        let count = starts * ends;
        let mut slice = IsotropicSlice {
            family: self,
            c,
            precisions: Buffer::with_capacity(count),
            offsets: Buffer::with_capacity(count),
            squares: Buffer::with_capacity(count),
        };
        for n in 0..*starts {
            for m in 0..*ends {
                let variance = c.variance(self.start_variances[n], self.end_variances[m]);
                let pair = n * ends + m;
                slice.precisions.push(1.0 / variance);
                slice
                    .offsets
                    .push(log_weights[pair] - 0.5 * *dim as f64 * (TAU * variance).ln());
                slice.squares.push(
                    c.alpha * c.alpha * self.start_squares[n]
                        + c.beta * c.beta * self.end_squares[m]
                        + 2.0 * c.alpha * c.beta * self.products[pair],
                );
            }
        }
        AnySlice::Isotropic(slice)
    }

    /// |y|^2, then y . mu_n, then y . nu_m.
    fn prepared_len(&self) -> usize {
        1 + self.pairs.starts + self.pairs.ends
    }

    fn prepare(&self, point: &[f64], prepared: &mut [f64]) {
        prepared[0] = dot(point, point);
        let means = self
            .pairs
            .start_means
            .chunks_exact(self.pairs.dim)
            .chain(self.pairs.end_means.chunks_exact(self.pairs.dim));
        for (value, mean) in prepared[1..].iter_mut().zip(means) {
            *value = dot(point, mean);
        }
    }

    fn slice_len(&self) -> usize {
        3 * self.pairs.len()
    }
}

pub(super) struct IsotropicSlice<'a> {
    family: &'a Isotropic,
    c: Coefficients,
    /// 1 / variance.
    precisions: Buffer,
    /// log weight minus the Gaussian's log-normaliser.
    offsets: Buffer,
    /// |alpha mu + beta nu|^2.
    squares: Buffer,
}

impl IsotropicSlice<'_> {
    /// Writes total y + sum_n starts_n mu_n + sum_m ends_m nu_m, given per pair what y - mean, mu and nu are multiplied with.
    fn combine(
        &self,
        point: &[f64],
        out: &mut [f64],
        coefficients: impl Fn(usize, usize, usize) -> (f64, f64, f64),
    ) {
        let Pairs { starts, ends, .. } = self.family.pairs;
        out.fill(0.0);
        let mut total = 0.0;
        let mut of_end = Buffer::zeros(ends);
        for n in 0..starts {
            let mut of_start = 0.0;
            for (m, of_end) in of_end.iter_mut().enumerate() {
                let (rest, mu, nu) = coefficients(n, m, n * ends + m);
                total += rest;
                of_start += mu - self.c.alpha * rest;
                *of_end += nu - self.c.beta * rest;
            }
            if of_start != 0.0 {
                add(of_start, self.family.pairs.start_mean(n), out);
            }
        }
        for (m, &of_end) in of_end.iter().enumerate() {
            if of_end != 0.0 {
                add(of_end, self.family.pairs.end_mean(m), out);
            }
        }
        add(total, point, out);
    }

    /// |y - alpha mu - beta nu|^2.
    fn distance_squared(&self, prepared: &[f64], n: usize, m: usize) -> f64 {
        let Pairs { starts, ends, .. } = self.family.pairs;
        let cross = self.c.alpha * prepared[1 + n] + self.c.beta * prepared[1 + starts + m];
        (prepared[0] - 2.0 * cross + self.squares[n * ends + m]).max(0.0)
    }
}

impl Slice for IsotropicSlice<'_> {
    fn log_components(&self, _point: &[f64], prepared: &[f64], out: &mut [f64]) {
        // The loop that a whole grid of times spends its time in: plain slices, so that the compiler vectorises it.
        let Pairs { starts, ends, .. } = self.family.pairs;
        let (with_start, with_end) = prepared[1..].split_at(starts);
        let constants = self
            .offsets
            .iter()
            .zip(&*self.precisions)
            .zip(&*self.squares);
        let term = |start: f64, end: f64, ((offset, precision), square): ((&f64, &f64), &f64)| {
            let distance = prepared[0] - 2.0 * (self.c.alpha * start + self.c.beta * end) + square;
            offset - 0.5 * precision * if distance > 0.0 { distance } else { 0.0 }
        };
        if let [end] = *with_end {
            for ((value, start), constants) in out.iter_mut().zip(with_start).zip(constants) {
                *value = term(*start, end, constants);
            }
        } else {
            let products = with_start
                .iter()
                .flat_map(|start| with_end.iter().map(move |end| (*start, *end)));
            for ((value, (start, end)), constants) in out.iter_mut().zip(products).zip(constants) {
                *value = term(start, end, constants);
            }
        }
        debug_assert_eq!(out.len(), starts * ends);
    }

    fn score(&self, point: &[f64], _prepared: &[f64], shares: &[f64], out: &mut [f64]) {
        self.combine(point, out, |_, _, pair| {
            (-shares[pair] * self.precisions[pair], 0.0, 0.0)
        });
    }

    fn time_score(&self, _point: &[f64], prepared: &[f64], shares: &[f64]) -> f64 {
        let family = self.family;
        let (
            c,
            Pairs {
                dim, starts, ends, ..
            },
        ) = (&self.c, &family.pairs);
        let mut total = 0.0;
        for n in 0..*starts {
            for m in 0..*ends {
                let pair = n * ends + m;
                if shares[pair] < NEGLIGIBLE {
                    continue;
                }
                let product = family.products[pair];
                let along_mu =
                    prepared[1 + n] - c.alpha * family.start_squares[n] - c.beta * product;
                let along_nu =
                    prepared[1 + starts + m] - c.alpha * product - c.beta * family.end_squares[m];
                let precision = self.precisions[pair];
                let rate =
                    c.variance_rate(family.start_variances[n], family.end_variances[m]) * precision;
                let square = self.distance_squared(prepared, n, m) * precision;
                let drift = (c.alpha_rate * along_mu + c.beta_rate * along_nu) * precision;
                total += shares[pair] * (0.5 * rate * (square - *dim as f64) + drift);
            }
        }
        total
    }

    fn velocity(&self, point: &[f64], _prepared: &[f64], shares: &[f64], out: &mut [f64]) {
        let (c, family) = (&self.c, self.family);
        self.combine(point, out, |n, m, pair| {
            let gain = c.alpha_rate * c.alpha * family.start_variances[n]
                + c.beta_rate * c.beta * family.end_variances[m];
            let share = shares[pair];
            (
                share * gain * self.precisions[pair],
                share * c.alpha_rate,
                share * c.beta_rate,
            )
        });
    }
}
