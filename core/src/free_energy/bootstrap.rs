//! The block bootstrap: error bars from resampling, for series whose neighbours are correlated.

use super::correlation::statistical_inefficiency;
use crate::metric::Estimate;
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};
use serde::Serialize;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["politis1992circular"];

/// Adds to `weights` how often each sample occurs in one resampled series of the same length: blocks of `block` consecutive
/// samples from uniform starts, wrapped around the end (circular block bootstrap, Politis and Romano 1992). The last block is
/// cut so that the weights sum to the number of samples.
///
/// # Errors
/// [`Error::Value`] for a block of no samples.
pub fn resample(stream: &mut Stream, block: usize, weights: &mut [f64]) -> Result<()> {
    if block == 0 {
        return Err(Error::Value {
            name: "block length",
            found: "0".into(),
            expected: "at least 1".into(),
        });
    }
    let count = weights.len();
    let block = block.min(count.max(1));
    let mut left = count;
    while left > 0 {
        let start = stream.below(count as u64) as usize;
        for i in 0..block.min(left) {
            weights[(start + i) % count] += 1.0;
        }
        left -= block.min(left);
    }
    Ok(())
}

/// How a series is cut for resampling: blocks long enough to hold its correlation, and the share of the variance they miss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Blocks {
    /// Consecutive samples that stay together.
    pub length: usize,
    /// What a standard deviation over replicas is multiplied by, since blocks miss the correlation across their borders.
    pub widening: f64,
}

impl Blocks {
    /// Samples that are independent of each other.
    pub const SINGLE: Blocks = Blocks {
        length: 1,
        widening: 1.0,
    };

    /// Blocks for a series of statistical inefficiency `g`.
    ///
    /// Blocks of length b see the share `1 - (g - 1/g) / (2 b)` of the variance of a mean (exact for a correlation that decays at
    /// one rate, `g = (1 + rho)/(1 - rho)`: blocks of length g see half of it), less `b/n` since replicas vary around the sample's own mean;
    /// their scatter grows as `4 b / (3 n)`. The length with the least mean squared error is `b^3 = 3 n (g - 1/g)^2 / 8`
    /// (Lahiri 2003), here at least 2 g and at most n/4; what is still missed goes into the widening. With fewer than about twenty
    /// g samples the inefficiency itself is not known, and no cut helps.
    pub fn of(samples: usize, inefficiency: f64) -> Blocks {
        let n = samples as f64;
        let g = if inefficiency.is_finite() {
            inefficiency.clamp(1.0, n.max(1.0))
        } else {
            n.max(1.0)
        };
        let memory = g - 1.0 / g;
        if memory == 0.0 {
            return Blocks::SINGLE;
        }
        let best = (0.375 * n * memory * memory).cbrt();
        let length = best.max(2.0 * g).min(0.25 * n).ceil().max(1.0);
        let seen = 1.0 - memory / (2.0 * length) - length / n;
        Blocks {
            length: length as usize,
            widening: seen.max(0.2).sqrt().recip(),
        }
    }

    /// Blocks for this series, by its own statistical inefficiency.
    pub fn of_series(series: &[f64]) -> Blocks {
        Blocks::of(series.len(), statistical_inefficiency(series))
    }
}

/// Mean and standard deviation over `replicas` of an estimate that depends on one series through its samples' weights.
///
/// # Errors
/// [`Error::Value`] for fewer than two replicas or a block of no samples, and what `estimate` returns.
pub fn bootstrap(
    samples: usize,
    blocks: Blocks,
    replicas: usize,
    seed: u64,
    estimate: &mut dyn FnMut(&[f64]) -> Result<f64>,
) -> Result<Estimate> {
    if replicas < 2 {
        return Err(Error::Value {
            name: "bootstrap replicas",
            found: replicas.to_string(),
            expected: "at least 2".into(),
        });
    }
    let mut weights = vec![0.0; samples];
    let mut values = Vec::with_capacity(replicas);
    for replica in 0..replicas {
        weights.fill(0.0);
        let mut stream = Stream::new(seed, Purpose::Bootstrap, replica as u64, 0);
        resample(&mut stream, blocks.length, &mut weights)?;
        values.push(estimate(&weights)?);
    }
    let mean = Estimate::of(&values);
    Ok(Estimate {
        mean: mean.mean,
        error: mean.error * (replicas as f64).sqrt() * blocks.widening,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_whole_and_blocks_hang_together() {
        let mut weights = vec![0.0; 1000];
        resample(&mut Stream::new(1, Purpose::Test, 0, 0), 7, &mut weights).unwrap();
        assert_eq!(weights.iter().sum::<f64>(), 1000.0);
        // 143 blocks: the number of places where the weight changes is at most two per block.
        let changes = (0..1000)
            .filter(|i| weights[*i] != weights[(i + 1) % 1000])
            .count();
        assert!(changes > 100 && changes <= 286, "{changes}");
        assert!(resample(&mut Stream::new(1, Purpose::Test, 0, 0), 0, &mut weights).is_err());
        resample(&mut Stream::new(1, Purpose::Test, 0, 0), 5, &mut []).unwrap();
    }

    /// The mean of an autoregressive series of coefficient rho has the variance (1 + rho) / (1 - rho) / n times that of a value. Blocks of
    /// one statistical inefficiency miss more than 30 % of it; the chosen ones catch all of it, on average over 40 series.
    #[test]
    fn blocks_catch_the_variance_of_correlated_series() {
        let n = 20_000;
        for rho in [0.0, 0.8, 0.95_f64] {
            let exact = (1.0 + rho) / (1.0 - rho) / n as f64;
            let (series_count, replicas) = (40, 100);
            let (mut chosen, mut short, mut length) = (0.0, 0.0, 0);
            for row in 0..series_count {
                let mut stream = Stream::new(3, Purpose::Test, 0, row);
                let mut x = stream.normal();
                let series: Vec<f64> = (0..n)
                    .map(|_| {
                        x = rho * x + (1.0 - rho * rho).sqrt() * stream.normal();
                        x
                    })
                    .collect();
                let spread = |blocks: Blocks| {
                    let mut mean = |weights: &[f64]| {
                        Ok(weights.iter().zip(&series).map(|(w, x)| w * x).sum::<f64>() / n as f64)
                    };
                    let found = bootstrap(n, blocks, replicas, row, &mut mean).unwrap();
                    found.error.powi(2) / exact / series_count as f64
                };
                let blocks = Blocks::of_series(&series);
                chosen += spread(blocks);
                length = blocks.length;
                let g = statistical_inefficiency(&series).ceil() as usize;
                short += spread(Blocks {
                    length: g,
                    widening: 1.0,
                });
            }
            // A series' variance is known to sqrt(4 b / 3 n + 2 / replicas): 0.16 at rho = 0.8 (b = 85) and 0.19 at 0.95 (b = 224); over 40
            // series 4 sigma are 0.12. The estimated inefficiency is low by up to 2 (2 m + 1) / n at m = 200 lags, 0.04.
            assert!(
                (chosen - 1.0).abs() < 0.16,
                "{rho}: {chosen} with blocks of {length}"
            );
            assert!(rho == 0.0 || short < 0.7, "{rho}: {short}");
        }
        assert!(bootstrap(3, Blocks::SINGLE, 1, 0, &mut |_| Ok(0.0)).is_err());
    }

    #[test]
    fn blocks_fit_the_series() {
        assert_eq!(Blocks::of(1000, 1.0), Blocks::SINGLE);
        assert_eq!(Blocks::of(0, f64::NAN).length, 1);
        assert_eq!(Blocks::of(1000, f64::INFINITY).length, 250);
        let blocks = Blocks::of(20_000, 9.0);
        assert!((80..=90).contains(&blocks.length) && (1.0..1.1).contains(&blocks.widening));
    }
}
