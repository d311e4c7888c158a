//! Works of a driven process in both directions, with a known free-energy difference: Gaussian and exponential.

use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// Distributions of works (kT) that satisfy Crooks' relation `P_F(w) / P_R(-w) = exp(w + delta)` exactly, with
/// `delta = log(Z_B / Z_A)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WorkDistribution {
    /// Forward works are normal with this standard deviation and mean `sigma^2 / 2 - delta`; reverse works have the same
    /// deviation and mean `sigma^2 / 2 + delta`.
    Gaussian {
        /// log(Z_B / Z_A).
        delta: f64,
        /// Standard deviation.
        sigma: f64,
    },
    /// Two exponential distributions on x > 0 with these rates, u_A = a x and u_B = b x: forward works `(b - a) x` with x
    /// from A, reverse works `(a - b) x` with x from B, `delta = log(a / b)`. The works are skewed, and the exponential
    /// average of the forward ones has no variance when `2 b <= a`.
    Exponential {
        /// Rate of A.
        a: f64,
        /// Rate of B.
        b: f64,
    },
}

impl WorkDistribution {
    /// Refuses what is no distribution.
    pub fn validate(&self) -> Result<()> {
        let (name, value) = match *self {
            WorkDistribution::Gaussian { sigma, .. } => ("standard deviation of the works", sigma),
            WorkDistribution::Exponential { a, b } => {
                ("rate of an exponential distribution", a.min(b))
            }
        };
        if value > 0.0 && value.is_finite() {
            return Ok(());
        }
        Err(Error::Value {
            name,
            found: value.to_string(),
            expected: "a positive number".into(),
        })
    }

    /// log(Z_B / Z_A), exact.
    pub fn delta(&self) -> f64 {
        match *self {
            WorkDistribution::Gaussian { delta, .. } => delta,
            WorkDistribution::Exponential { a, b } => (a / b).ln(),
        }
    }

    /// Forward works (from samples of A).
    pub fn forward(&self, count: usize, seed: u64) -> Vec<f64> {
        self.works(count, seed, Purpose::Data, |stream| match *self {
            WorkDistribution::Gaussian { delta, sigma } => {
                0.5 * sigma * sigma - delta + sigma * stream.normal()
            }
            WorkDistribution::Exponential { a, b } => -(b - a) / a * stream.uniform().ln(),
        })
    }

    /// Reverse works (from samples of B).
    pub fn reverse(&self, count: usize, seed: u64) -> Vec<f64> {
        self.works(count, seed, Purpose::End, |stream| match *self {
            WorkDistribution::Gaussian { delta, sigma } => {
                0.5 * sigma * sigma + delta + sigma * stream.normal()
            }
            WorkDistribution::Exponential { a, b } => -(a - b) / b * stream.uniform().ln(),
        })
    }

    fn works(
        &self,
        count: usize,
        seed: u64,
        purpose: Purpose,
        draw: impl Fn(&mut Stream) -> f64,
    ) -> Vec<f64> {
        (0..count)
            .map(|row| draw(&mut Stream::new(seed, purpose, 0, row as u64)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `<exp(-w)> = exp(delta)` in both directions; the errors are those of the sample itself.
    #[test]
    fn exponential_averages_are_exact_in_both_directions() {
        for works in [
            WorkDistribution::Gaussian {
                delta: 1.3,
                sigma: 0.8,
            },
            WorkDistribution::Exponential { a: 1.0, b: 1.7 },
            WorkDistribution::Exponential { a: 1.5, b: 1.0 },
        ] {
            works.validate().unwrap();
            for (sign, values) in [
                (1.0, works.forward(50_000, 2)),
                (-1.0, works.reverse(50_000, 2)),
            ] {
                let weights: Vec<f64> = values.iter().map(|w| (-w).exp()).collect();
                let mean = crate::metric::Estimate::of(&weights);
                let exact = (sign * works.delta()).exp();
                assert!(
                    (mean.mean - exact).abs() < 4.0 * mean.error,
                    "{works:?} {mean:?} {exact}"
                );
            }
        }
        assert!(
            WorkDistribution::Gaussian {
                delta: 0.0,
                sigma: 0.0
            }
            .validate()
            .is_err()
        );
        assert!(
            WorkDistribution::Exponential { a: 1.0, b: -1.0 }
                .validate()
                .is_err()
        );
    }
}
