//! Mode-weight audit: how much probability each basin holds in the data, in the model's density and in generated samples.
//!
//! Scores do not see these shares, so a model can draw fine pictures with densities that are wrong by orders of
//! magnitude between basins. Shares of data and samples are counted. The share of the density,
//! the integral of p(t, y) over the basin, is a self-normalised importance sum over draws y_i of a known density q that
//! covers all basins: sum_i w_i 1(y_i in basin) / sum_i w_i with w = p/q. All at the smallest time of the model.

use serde::{Deserialize, Serialize};

use super::basins::Basins;
use super::noised::Noised;
use super::proposal::Proposal;
use super::remedy::Remedy;
use super::{Check, SIGNIFICANT, Subject, Verdict, check_finite};
use crate::Result;
use crate::metric::{Estimate, effective_sample_size};

/// With fewer effective draws than this, the density's shares are not measured.
const FEWEST_EFFECTIVE: f64 = 50.0;

/// One basin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Basin {
    /// Where its points are, in the model's coordinates.
    pub centre: Vec<f64>,
    /// Share of the data.
    pub data: Estimate,
    /// Share of the model's density; absent where it could not be measured.
    pub density: Option<Estimate>,
    /// Share of generated samples, if there are any.
    pub generated: Option<Estimate>,
}

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeAudit {
    /// The smallest time, at which all is compared.
    pub time: f64,
    /// Basins, the fullest first.
    pub basins: Vec<Basin>,
    /// Effective share of the draws by which the density was measured.
    pub ess: f64,
    /// Effective number of these draws.
    pub effective: f64,
    /// Half the sum of |density - data| over the basins.
    pub density_distance: Option<Estimate>,
    /// Half the sum of |generated - data| over the basins.
    pub generated_distance: Option<Estimate>,
}

impl ModeAudit {
    /// Finds the basins in up to `count` noised rows and measures the shares.
    pub fn of(subject: &Subject<'_>, count: usize, seed: u64) -> Result<Self> {
        let (dim, time) = (subject.energy.dim(), subject.grid.t_min());
        let count = count.min(subject.rows.len());
        let noised = Noised::new(subject.rows, subject.process, seed);
        let (points, rows) = noised.points_and_rows(time, count);
        let basins = Basins::of(&points, dim);
        let mut data = shares(basins.labels(), basins.count());
        // Rows that hang together stay in a basin together.
        for (basin, share) in data.iter_mut().enumerate() {
            let inside = basins
                .labels()
                .iter()
                .map(|label| f64::from(u8::from(*label == basin)));
            let together = noised.estimate(&inside.collect::<Vec<_>>(), &rows).error;
            share.error = share.error.max(together);
        }
        let least = subject.process.noise(time).powi(2);
        let draws = count.max(1000);
        let (drawn, log_proposal) = Proposal::of(&basins, dim, least)?.draw(draws, seed);
        let mut log_weights = vec![0.0; draws];
        subject
            .energy
            .log_density(&[time], &drawn, &mut log_weights);
        check_finite("log-density", time, &log_weights)?;
        for (weight, proposal) in log_weights.iter_mut().zip(&log_proposal) {
            *weight -= proposal;
        }
        let ess = effective_sample_size(&log_weights);
        let effective = ess * draws as f64;
        let density = (effective >= FEWEST_EFFECTIVE)
            .then(|| weighted_shares(&basins, &drawn, dim, &log_weights));
        let generated = subject.generated.map(|points| {
            let labels: Vec<usize> = points
                .chunks_exact(dim)
                .map(|point| basins.of_point(point))
                .collect();
            shares(&labels, basins.count())
        });
        let centres = centres(&basins, dim);
        Ok(Self {
            time,
            ess,
            effective,
            density_distance: density.as_ref().map(|shares| distance(shares, &data)),
            generated_distance: generated.as_ref().map(|shares| distance(shares, &data)),
            basins: centres
                .into_iter()
                .enumerate()
                .map(|(k, centre)| Basin {
                    centre,
                    data: data[k],
                    density: density.as_ref().map(|shares| shares[k]),
                    generated: generated.as_ref().map(|shares| shares[k]),
                })
                .collect(),
        })
    }

    /// The verdict.
    pub(super) fn check(&self, remedy: &Remedy) -> Check {
        let judge = |distance: Option<Estimate>| match distance {
            None => Verdict::Skipped,
            Some(found) if found.mean <= SIGNIFICANT * found.error || found.mean < 0.05 => {
                Verdict::Pass
            }
            Some(found) if found.mean < 0.15 => Verdict::Warn,
            Some(_) => Verdict::Fail,
        };
        let (density, generated) = (judge(self.density_distance), judge(self.generated_distance));
        let single = self.basins.len() == 1;
        let verdict = if single {
            Verdict::Pass
        } else if density == Verdict::Skipped {
            generated.max(Verdict::Warn)
        } else {
            density.max(generated)
        };
        let misplaced = |distance: Option<Estimate>| {
            distance.map_or("not measured".into(), |d| {
                format!("{:.1} % ± {:.1}", 100.0 * d.mean, 100.0 * d.error)
            })
        };
        let finding = if single {
            "the data form a single basin".to_string()
        } else {
            format!(
                "{} basins; probability on the wrong basin in the density: {}, in generated samples: {}",
                self.basins.len(),
                misplaced(self.density_distance),
                misplaced(self.generated_distance)
            )
        };
        let meaning = if single {
            "there are no mode weights to get wrong.".to_string()
        } else if density == Verdict::Skipped {
            "the density's shares could not be measured: too few draws of the points' own shape fall where the model puts its \
             density. Either the model is far off, or basins of this shape and dimension are beyond this check; judge by the \
             calibration."
                .into()
        } else {
            match (density, generated) {
                (Verdict::Pass, Verdict::Pass | Verdict::Skipped) => {
                    "the model shares probability between the basins as the data do.".into()
                }
                (Verdict::Pass, _) => {
                    "the density is right but the sampler loses some of it on the way: take more steps, or correct samples by their \
                     density."
                        .into()
                }
                _ => format!(
                    "samples may look right, but densities must not be compared between basins: {}.",
                    remedy.levels()
                ),
            }
        };
        Check {
            name: "mode weights".into(),
            verdict,
            finding,
            meaning,
            limits: "warn beyond 5 % of misplaced probability, fail beyond 15 %, if more than four standard errors".into(),
        }
    }
}

/// Shares of labels, with binomial errors (of Laplace's estimate, so that an empty basin has an error too).
fn shares(labels: &[usize], basins: usize) -> Vec<Estimate> {
    let n = labels.len() as f64;
    let mut counts = vec![0.0; basins];
    for label in labels {
        counts[*label] += 1.0;
    }
    counts
        .iter()
        .map(|count| {
            let smooth = (count + 1.0) / (n + 2.0);
            Estimate {
                mean: count / n,
                error: (smooth * (1.0 - smooth) / n).sqrt(),
            }
        })
        .collect()
}

/// Shares under weights; the error is that of a ratio, sqrt(sum_i w_i^2 (1_i - share)^2) / sum_i w_i.
fn weighted_shares(
    basins: &Basins,
    points: &[f64],
    dim: usize,
    log_weights: &[f64],
) -> Vec<Estimate> {
    let largest = log_weights
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log_weights.iter().map(|w| (w - largest).exp()).collect();
    let labels: Vec<usize> = points
        .chunks_exact(dim)
        .map(|point| basins.of_point(point))
        .collect();
    let sum: f64 = weights.iter().sum();
    (0..basins.count())
        .map(|basin| {
            let inside = |label: usize| f64::from(u8::from(label == basin));
            let pairs = || weights.iter().zip(&labels);
            let mean = pairs().map(|(w, l)| w * inside(*l)).sum::<f64>() / sum;
            let squares: f64 = pairs()
                .map(|(w, l)| (w * (inside(*l) - mean)).powi(2))
                .sum();
            // As if one more draw of mean weight had missed: no share is known without error.
            let floor = sum / weights.len() as f64 * (mean * (1.0 - mean) + 1.0 / sum).sqrt();
            let floor = floor.min(sum / weights.len() as f64);
            Estimate {
                mean,
                error: (squares + floor * floor).sqrt() / sum,
            }
        })
        .collect()
}

/// Total variation between shares. Chance makes it positive, by about half the sum of the mean absolute errors,
/// sqrt(2/pi) each; that is taken off.
fn distance(shares: &[Estimate], data: &[Estimate]) -> Estimate {
    let (mut sum, mut chance, mut variance) = (0.0, 0.0, 0.0);
    for (a, b) in shares.iter().zip(data) {
        let error = a.error.hypot(b.error);
        sum += (a.mean - b.mean).abs();
        chance += (2.0 / std::f64::consts::PI).sqrt() * error;
        variance += error * error;
    }
    Estimate {
        mean: (0.5 * (sum - chance)).max(0.0),
        error: 0.5 * variance.sqrt(),
    }
}

fn centres(basins: &Basins, dim: usize) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![0.0; dim]; basins.count()];
    let mut counts = vec![0.0; basins.count()];
    for (point, label) in basins.points().chunks_exact(dim).zip(basins.labels()) {
        counts[*label] += 1.0;
        sums[*label]
            .iter_mut()
            .zip(point)
            .for_each(|(s, x)| *s += x);
    }
    for (sum, count) in sums.iter_mut().zip(&counts) {
        sum.iter_mut().for_each(|s| *s /= count);
    }
    sums
}
