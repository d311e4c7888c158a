//! Errors of estimates whose samples share rows: how much each row of the data moves the estimate, summed over all samples made of it.
//!
//! An estimate is, to first order, the truth plus a sum of influences, one per sample. Samples along a path are made of the same rows over
//! and over, a row of each end and fresh noise, so that influences of samples with a row in common vary together. With `A_i` and `B_j` the sums
//! over the samples of row i of one end and of row j of the other (and what the rows contribute by themselves),
//! `variance = g_A sum A_i^2 + g_B sum B_j^2 - sum e_p^2`, where the last term, with `e_p` the sums over the samples of the same pair of rows, takes out what both count (Cameron, Gelbach and Miller
//! 2011), and g is the statistical inefficiency of the sums in the order of the file: neighbours in it may be correlated.

use super::correlation::statistical_inefficiency;
use crate::metric::student_factor;
use std::sync::Arc;

/// Which rows the samples of a path are made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sources {
    /// Rows of the ends; 0 for a second end that is not there.
    pub rows: [usize; 2],
    /// Row of each end, sample after sample.
    pub of: Vec<[u32; 2]>,
    /// Which pair of rows each sample is of, and how many there are.
    pairs: (Vec<u32>, usize),
}

impl Sources {
    /// Of ends with so many rows, and the rows of each sample.
    pub fn new(rows: [usize; 2], of: Vec<[u32; 2]>) -> Sources {
        let mut order: Vec<u32> = (0..of.len() as u32).collect();
        order.sort_unstable_by_key(|n| of[*n as usize]);
        let (mut numbers, mut count) = (vec![0; of.len()], 0);
        for (k, &n) in order.iter().enumerate() {
            if k > 0 && of[order[k - 1] as usize] != of[n as usize] {
                count += 1;
            }
            numbers[n as usize] = count;
        }
        Sources {
            rows,
            pairs: (numbers, count as usize + 1),
            of,
        }
    }
}

/// See the module's text.
#[derive(Debug, Clone)]
pub(crate) struct Influence {
    sources: Arc<Sources>,
    /// Of every sample of the path.
    samples: Vec<f64>,
    /// Of the rows by themselves.
    rows: [Vec<f64>; 2],
}

impl Influence {
    /// Of samples of the path; what is not given is 0.
    pub fn of_samples(sources: &Arc<Sources>, samples: Vec<f64>) -> Influence {
        Influence {
            sources: sources.clone(),
            samples,
            rows: sources.rows.map(|rows| vec![0.0; rows]),
        }
    }

    /// None at all.
    pub fn none(sources: &Arc<Sources>) -> Influence {
        Influence::of_samples(sources, vec![0.0; sources.of.len()])
    }

    /// With `factor` times that of the rows of one end.
    pub fn with_rows(mut self, end: usize, factor: f64, influence: &[f64]) -> Influence {
        for (sum, e) in self.rows[end].iter_mut().zip(influence) {
            *sum += factor * e;
        }
        self
    }

    /// With `factor` times another, of samples of the same rows.
    pub fn with(mut self, factor: f64, other: &Influence) -> Influence {
        let add = |to: &mut [f64], from: &[f64]| {
            to.iter_mut().zip(from).for_each(|(a, b)| *a += factor * b);
        };
        if self.sources == other.sources {
            add(&mut self.samples, &other.samples);
        } else {
            let of = [self.sources.of.as_slice(), &other.sources.of].concat();
            self.sources = Arc::new(Sources::new(self.sources.rows, of));
            self.samples
                .extend(other.samples.iter().map(|e| factor * e));
        }
        for end in 0..2 {
            add(&mut self.rows[end], &other.rows[end]);
        }
        self
    }

    /// The standard error, widened by Student's factor for the number of independent rows, so that 1.96 of it cover 95 %; and how many
    /// independent rows each end is worth (NaN where it has no influence).
    pub fn error(&self) -> (f64, [f64; 2]) {
        let mut sums = self.rows.clone();
        for (e, rows) in self.samples.iter().zip(&self.sources.of) {
            for end in 0..2 {
                if self.sources.rows[end] > 0 {
                    sums[end][rows[end] as usize] += e;
                }
            }
        }
        let mut of_pairs = vec![0.0; self.sources.pairs.1];
        for (e, pair) in self.samples.iter().zip(&self.sources.pairs.0) {
            of_pairs[*pair as usize] += e;
        }
        let twice: f64 = of_pairs.iter().map(|e| e * e).sum();
        let (mut variance, mut worth, mut counted) = (0.0, [f64::NAN; 2], 0);
        for (sums, worth) in sums.iter().zip(&mut worth) {
            let squares: f64 = sums.iter().map(|s| s * s).sum();
            if squares > 0.0 {
                let g = statistical_inefficiency(sums);
                variance += g * squares;
                *worth = sums.len() as f64 / g;
                counted += 1;
            }
        }
        if counted == 2 {
            variance = (variance - twice).max(twice);
        }
        let least = worth[0].min(worth[1]);
        let factor = if least.is_nan() {
            1.0
        } else {
            student_factor(least.round() as usize)
        };
        (variance.sqrt() * factor, worth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    /// The mean over pairs of `x_i + 2 y_j + z`: its variance is var x / n + 4 var y / m + (what drawing the pairs adds), with rows that come
    /// one by one or each five times in a row.
    #[test]
    fn shared_rows_are_seen() {
        for copies in [1, 5] {
            let (n, m, pairs, sets) = (400, 300, 2000, 400);
            let (mut values, mut variance) = (Vec::new(), 0.0);
            for set in 0..sets {
                let mut stream = Stream::new(4, Purpose::Test, copies as u64, set);
                let mut rows = |count: usize| -> Vec<f64> {
                    let distinct: Vec<f64> = (0..count / copies).map(|_| stream.normal()).collect();
                    (0..count).map(|i| distinct[i / copies]).collect()
                };
                let (x, y) = (rows(n), rows(m));
                let mut of = Vec::new();
                let samples: Vec<f64> = (0..pairs)
                    .map(|_| {
                        let (i, j) = (stream.below(n as u64), stream.below(m as u64));
                        of.push([i as u32, j as u32]);
                        x[i as usize] + 2.0 * y[j as usize] + stream.normal()
                    })
                    .collect();
                let mean = samples.iter().sum::<f64>() / pairs as f64;
                let sources = Arc::new(Sources::new([n, m], of));
                let e = samples.iter().map(|s| (s - mean) / pairs as f64).collect();
                values.push(mean);
                let (error, worth) = Influence::of_samples(&sources, e).error();
                variance += error.powi(2) / sets as f64;
                assert!(worth[1] <= m as f64);
            }
            let spread = values.iter().map(|v| v * v).sum::<f64>() / sets as f64;
            // The spread of 400 sets is known to 7 %; Student's factor adds 2 % (80 rows: 5 %), and inefficiencies of 60 to 80 distinct rows
            // that are cut at the first negative correlation are off by about 10 %.
            let ratio = variance / spread;
            assert!((0.68..1.45).contains(&ratio), "{copies}: {ratio}");
        }
    }

    /// Rows that come in fixed pairs, each many times: the mean over samples of `x_p + noise` is the mean over pairs.
    #[test]
    fn fixed_pairs_count_once() {
        let (pairs, each, sets) = (200, 30, 300);
        let (mut values, mut variance) = (Vec::new(), 0.0);
        for set in 0..sets {
            let mut stream = Stream::new(6, Purpose::Test, 0, set);
            let x: Vec<f64> = (0..pairs).map(|_| stream.normal()).collect();
            let of: Vec<[u32; 2]> = (0..pairs * each)
                .map(|n| [(n % pairs) as u32, (n % pairs * 7 % pairs) as u32])
                .collect();
            let samples: Vec<f64> = of
                .iter()
                .map(|of| x[of[0] as usize] + stream.normal())
                .collect();
            let mean = samples.iter().sum::<f64>() / samples.len() as f64;
            let e = samples
                .iter()
                .map(|s| (s - mean) / samples.len() as f64)
                .collect();
            let sources = Arc::new(Sources::new([pairs, pairs], of));
            values.push(mean);
            variance += Influence::of_samples(&sources, e).error().0.powi(2) / sets as f64;
        }
        let spread = values.iter().map(|v| v * v).sum::<f64>() / sets as f64;
        // The spread of 300 sets is known to 8 %, inefficiencies to 10 %; counted twice it would be 2.
        let ratio = variance / spread;
        assert!((0.7..1.4).contains(&ratio), "{ratio}");
    }

    /// Two means over different samples of the same rows: what the rows move in both alike drops out of their difference.
    #[test]
    fn samples_of_two_kinds_share_their_rows() {
        let (rows, sets) = (300, 300);
        let (mut values, mut variance) = (Vec::new(), 0.0);
        for set in 0..sets {
            let mut stream = Stream::new(7, Purpose::Test, 0, set);
            let x: Vec<f64> = (0..rows).map(|_| 5.0 * stream.normal()).collect();
            let mut mean = |each: usize| {
                let of: Vec<[u32; 2]> = (0..rows * each).map(|n| [(n % rows) as u32, 0]).collect();
                let samples: Vec<f64> = of
                    .iter()
                    .map(|of| x[of[0] as usize] + stream.normal())
                    .collect();
                let n = samples.len() as f64;
                let mean = samples.iter().sum::<f64>() / n;
                let e = samples.iter().map(|s| (s - mean) / n).collect();
                let sources = Arc::new(Sources::new([rows, 0], of));
                (mean, Influence::of_samples(&sources, e))
            };
            let (few, many) = (mean(2), mean(7));
            values.push(few.0 - many.0);
            variance += few.1.with(-1.0, &many.1).error().0.powi(2) / sets as f64;
        }
        let spread = values.iter().map(|v| v * v).sum::<f64>() / sets as f64;
        let ratio = variance / spread;
        assert!((0.7..1.4).contains(&ratio), "{ratio}");
    }
}
