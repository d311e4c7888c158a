//! Calibration of p(t | y): are the model's guesses of the noise level as certain as they claim to be?
//!
//! A point y is made by noising a row to a level drawn at random; the model's posterior over levels is
//! p(j | y) = softmax_j(-U(t_j, y) + F(t_j)). Where it is the true posterior, three things hold, whatever the density:
//! the mean of -log p(level | y) equals the mean entropy of p(. | y); among points with confidence c a share c is
//! guessed right; and every level is predicted as often as it occurs. Each is compared with its own sampling error.

use serde::{Deserialize, Serialize};

use super::noised::Noised;
use super::remedy::Remedy;
use super::{ByLevel, Check, SIGNIFICANT, Verdict, check_finite};
use crate::Result;
use crate::metric::Estimate;
use crate::rng::{Purpose, Stream};

/// Levels are shown in so many bands of neighbours at most: single levels of a fine grid cannot be told apart.
const BANDS: usize = 16;
/// Bins of confidence.
const BINS: usize = 10;
/// Draws of the calibration error that chance alone gives.
const REPLICAS: u64 = 200;
/// Points evaluated at once.
const BLOCK: usize = 512;

/// A band of neighbouring levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// Smallest and largest time in it.
    pub times: [f64; 2],
    /// Share of the points that came from it.
    pub observed: f64,
    /// Mean probability the model gave it, minus the share that came from it.
    pub excess: Estimate,
}

/// Points of similar confidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Number of points.
    pub count: usize,
    /// Their mean confidence: the probability of the band they most probably came from.
    pub predicted: f64,
    /// The share that did come from it.
    pub observed: f64,
    /// Standard deviation of that share if the confidence is right.
    pub error: f64,
}

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Number of levels, all of which are classes.
    pub levels: usize,
    /// Mean of -log p(level | y), in nats.
    pub loss: Estimate,
    /// Mean entropy of p(. | y): the loss the model expects of itself.
    pub entropy: Estimate,
    /// Loss minus entropy: 0 for a calibrated model, positive for one that is too sure.
    pub overconfidence: Estimate,
    /// Mean distance between confidence and share of right guesses (expected calibration error).
    pub error: f64,
    /// The same by chance, for a calibrated model: mean and standard deviation.
    pub error_by_chance: [f64; 2],
    /// Points by confidence; empty bins are left out.
    pub bins: Vec<Bin>,
    /// Levels by band.
    pub bands: Vec<Band>,
    /// Mean probability of band j for points of band i, row by row: how much the bands overlap.
    pub overlap: Vec<f64>,
}

impl Calibration {
    /// Classifies `count` noised points among all levels.
    pub fn of(subject: &dyn ByLevel, count: usize, seed: u64) -> Result<Self> {
        let (times, data) = (subject.times(), subject.rows());
        let (levels, dim) = (times.len(), data.dim);
        let bands = levels.min(BANDS);
        let band_of = |level: usize| level * bands / levels;
        let noised = Noised::new(data, subject.noise(), seed);

        let (mut losses, mut entropies) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut own, mut rows) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut shares = vec![0.0; count * bands];
        // Sum of the variances of -log p(level | y) that the posteriors themselves call for.
        let mut scatter = 0.0;
        let mut points = vec![0.0; BLOCK * dim];
        let mut grid = vec![0.0; BLOCK * levels];
        let mut drawn = [0; BLOCK];
        for first in (0..count).step_by(BLOCK) {
            let block = BLOCK.min(count - first);
            let points = &mut points[..block * dim];
            let grid = &mut grid[..block * levels];
            for (i, point) in points.chunks_exact_mut(dim).enumerate() {
                let number = (first + i) as u64;
                let mut stream = Stream::new(seed, Purpose::Calibrate, 0, number);
                drawn[i] = stream.below(levels as u64) as usize;
                rows.push(noised.point(times[drawn[i]], number, point));
            }
            subject.log_density_grid(times, points, grid);
            for (i, row) in grid.chunks_exact_mut(levels).enumerate() {
                check_finite("log-density", times[drawn[i]], row)?;
                let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = row.iter().map(|value| (value - largest).exp()).sum();
                let total = largest + sum.ln();
                losses.push(total - row[drawn[i]]);
                let share = &mut shares[(first + i) * bands..][..bands];
                let (mut entropy, mut square) = (0.0, 0.0);
                for (level, value) in row.iter().enumerate() {
                    let probability = (value - total).exp();
                    let surprise = total - value;
                    // What has no probability has no part, however surprising.
                    if probability > 0.0 {
                        entropy += probability * surprise;
                        square += probability * surprise * surprise;
                    }
                    share[band_of(level)] += probability;
                }
                entropies.push(entropy);
                scatter += (square - entropy * entropy).max(0.0);
                own.push(band_of(drawn[i]));
            }
        }

        let differences: Vec<f64> = losses.iter().zip(&entropies).map(|(l, e)| l - e).collect();
        let guesses: Vec<(f64, bool)> = shares
            .chunks_exact(bands)
            .zip(&own)
            .map(|(share, own)| {
                let best = (0..bands).max_by(|a, b| share[*a].total_cmp(&share[*b]));
                let best = best.unwrap_or(0);
                (share[best].min(1.0), best == *own)
            })
            .collect();
        let bins = bins(&guesses);
        let by_chance: Vec<f64> = (0..REPLICAS)
            .map(|replica| {
                let mut stream = Stream::new(seed, Purpose::Bootstrap, replica, 0);
                let drawn = guesses.iter().map(|(c, _)| (*c, stream.uniform() < *c));
                calibration_error(&self::bins(&drawn.collect::<Vec<_>>()))
            })
            .collect();
        let chance = Estimate::of(&by_chance);
        // Replicas are independent; rows may not be, and make chance larger.
        let misses: Vec<f64> = guesses
            .iter()
            .map(|(c, right)| f64::from(u8::from(*right)) - c)
            .collect();
        let (alone, together) = (
            Estimate::of(&misses).error,
            noised.estimate(&misses, &rows).error,
        );
        let wider = if alone > 0.0 {
            (together / alone).max(1.0)
        } else {
            1.0
        };
        // The spread that is found is too small where few points of a kind occurred; a calibrated model knows its own, and the larger counts.
        let at_least = |found: Estimate, variance: f64| Estimate {
            error: found.error.max(wider * variance.sqrt() / count as f64),
            ..found
        };
        let chance_mean = wider * chance.mean;
        let deviation = wider * chance.error * (REPLICAS as f64).sqrt();

        let mut overlap = vec![0.0; bands * bands];
        let mut counts = vec![0.0; bands];
        for (share, own) in shares.chunks_exact(bands).zip(&own) {
            counts[*own] += 1.0;
            for (sum, share) in overlap[own * bands..][..bands].iter_mut().zip(share) {
                *sum += share;
            }
        }
        for (row, count) in overlap.chunks_exact_mut(bands).zip(&counts) {
            row.iter_mut().for_each(|sum| *sum /= f64::max(1.0, *count));
        }
        let band_count = bands;
        let bands = (0..bands)
            .map(|band| {
                let excess: Vec<f64> = shares
                    .chunks_exact(bands)
                    .zip(&own)
                    .map(|(share, own)| share[band] - f64::from(u8::from(*own == band)))
                    .collect();
                let own_shares = shares.chunks_exact(band_count).map(|share| share[band]);
                let scatter = own_shares.map(|p| (p * (1.0 - p)).max(0.0)).sum();
                let inside = || (0..levels).filter(|level| band_of(*level) == band);
                let ends = [inside().min(), inside().max()].map(|level| times[level.unwrap_or(0)]);
                Band {
                    times: ends,
                    observed: counts[band] / count as f64,
                    excess: at_least(noised.estimate(&excess, &rows), scatter),
                }
            })
            .collect();
        Ok(Self {
            levels,
            loss: noised.estimate(&losses, &rows),
            entropy: noised.estimate(&entropies, &rows),
            overconfidence: at_least(noised.estimate(&differences, &rows), scatter),
            error: calibration_error(&bins),
            error_by_chance: [chance_mean, deviation],
            bins,
            bands,
            overlap,
        })
    }

    /// The calibration error beyond chance, and whether it is more than chance.
    fn excess_error(&self) -> (f64, bool) {
        let [mean, deviation] = self.error_by_chance;
        let excess = self.error - mean;
        (excess.max(0.0), excess > SIGNIFICANT * deviation)
    }

    /// Of the bands whose prediction is off by more than chance and by a tenth of what occurs (or is predicted, if that is more), the one that is off most.
    fn skewed_band(&self) -> Option<&Band> {
        let size = |band: &&Band| band.excess.mean.abs();
        let share = |band: &&Band| {
            let expected = band.observed.max(band.observed + band.excess.mean);
            size(band) / expected.max(f64::MIN_POSITIVE)
        };
        let off = |band: &&Band| size(band) > SIGNIFICANT * band.excess.error && share(band) > 0.1;
        self.bands
            .iter()
            .filter(|band| band.excess.error > 0.0 && off(band))
            .max_by(|a, b| share(a).total_cmp(&share(b)))
    }

    /// The verdict.
    pub(crate) fn check(&self, remedy: &Remedy) -> Check {
        let (excess, significant) = self.excess_error();
        let over = self.overconfidence;
        let certain = over.mean.abs() > SIGNIFICANT * over.error;
        let skewed = self.skewed_band();
        let fail = (certain && over.mean.abs() > 0.3) || (significant && excess > 0.1);
        let warn = (certain && over.mean.abs() > 0.03)
            || (significant && excess > 0.03)
            || skewed.is_some();
        let verdict = if fail {
            Verdict::Fail
        } else if warn {
            Verdict::Warn
        } else {
            Verdict::Pass
        };
        let mut finding = format!(
            "classification loss {:.3} over {} levels, the model expects {:.3} of itself: {:+.3} ± {:.3} nats; calibration \
             error {:.3}, by chance {:.3} ± {:.3}",
            self.loss,
            self.levels,
            self.entropy.mean,
            over.mean,
            over.error,
            self.error,
            self.error_by_chance[0],
            self.error_by_chance[1]
        );
        if let Some(band) = skewed {
            finding += &format!(
                "; times {:.3} to {:.3} are predicted {:.1} % {} often than they occur",
                band.times[0],
                band.times[1],
                100.0 * (band.excess.mean / band.observed).abs(),
                if band.excess.mean > 0.0 {
                    "more"
                } else {
                    "less"
                }
            );
        }
        let meaning = match verdict {
            Verdict::Pass => {
                "the model knows how the densities of the noise levels relate, as far as these points can tell.".into()
            }
            Verdict::Warn => format!(
                "the levels' densities fit together only roughly: log-densities are good to about that many nats; {}.",
                remedy.levels()
            ),
            _ => format!(
                "the densities of the levels do not fit together, so log-densities and mode weights mean nothing yet: {}.",
                remedy.levels()
            ),
        };
        Check {
            name: "calibration of the noise level".into(),
            verdict,
            finding,
            meaning,
            limits: "warn beyond 0.03 nats, 0.03 of calibration error or 10 % of a band's frequency, fail beyond 0.3 nats or 0.1, \
                     if more than four standard errors"
                .into(),
        }
    }
}

/// Sorts guesses by confidence.
fn bins(guesses: &[(f64, bool)]) -> Vec<Bin> {
    let mut sums = [(0_usize, 0.0, 0.0, 0.0); BINS];
    for (confidence, right) in guesses {
        let bin = ((confidence * BINS as f64) as usize).min(BINS - 1);
        let (count, predicted, observed, variance) = &mut sums[bin];
        *count += 1;
        *predicted += confidence;
        *observed += f64::from(u8::from(*right));
        *variance += confidence * (1.0 - confidence);
    }
    sums.iter()
        .filter(|sum| sum.0 > 0)
        .map(|(count, predicted, observed, variance)| {
            let n = *count as f64;
            Bin {
                count: *count,
                predicted: predicted / n,
                observed: observed / n,
                error: variance.sqrt() / n,
            }
        })
        .collect()
}

/// Mean of |confidence - share of right guesses| over the points.
fn calibration_error(bins: &[Bin]) -> f64 {
    let (sum, count) = bins.iter().fold((0.0, 0), |(sum, count), bin| {
        let distance = (bin.predicted - bin.observed).abs();
        (sum + bin.count as f64 * distance, count + bin.count)
    });
    sum / count.max(1) as f64
}
