//! The block bootstrap: error bars from resampling, for series whose neighbours are correlated.

use crate::metric::Estimate;
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

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

/// Mean and standard deviation over `replicas` of an estimate that depends on one series through its samples' weights.
///
/// # Errors
/// [`Error::Value`] for fewer than two replicas or a block of no samples, and what `estimate` returns.
pub fn bootstrap(
    samples: usize,
    block: usize,
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
        resample(&mut stream, block, &mut weights)?;
        values.push(estimate(&weights)?);
    }
    let mean = Estimate::of(&values);
    Ok(Estimate {
        mean: mean.mean,
        error: mean.error * (replicas as f64).sqrt(),
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

    /// The mean of an autoregressive series of coefficient a has the variance (1 + a) / (1 - a) / n times that of a value.
    #[test]
    fn blocks_see_the_correlation() {
        let (a, n) = (0.8_f64, 20_000);
        let mut stream = Stream::new(3, Purpose::Test, 0, 1);
        let mut x = 0.0;
        let series: Vec<f64> = (0..n)
            .map(|_| {
                x = a * x + (1.0 - a * a).sqrt() * stream.normal();
                x
            })
            .collect();
        let spread = |block| {
            let mut mean = |weights: &[f64]| {
                Ok(weights.iter().zip(&series).map(|(w, x)| w * x).sum::<f64>() / n as f64)
            };
            bootstrap(n, block, 200, 5, &mut mean).unwrap().error
        };
        let exact = (9.0 / n as f64).sqrt();
        // 200 replicas: the standard deviation is known to 5 %; blocks of 100 miss about 4 % of the variance; the series'
        // own variance and correlation are known to about 5 %.
        assert!((spread(100) / exact - 1.0).abs() < 0.25);
        assert!((spread(1) * 3.0 / exact - 1.0).abs() < 0.25);
        assert!(bootstrap(3, 1, 1, 0, &mut |_| Ok(0.0)).is_err());
    }
}
