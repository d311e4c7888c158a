//! Overlap along the path: can points of one level be reweighted to the next, and do the densities fit?
//!
//! Points y of level k+1 with weights w = p(t_k, y) / p(t_{k+1}, y). Their effective sample size says how much of one
//! level is seen from the next: what a sampler that anneals along the levels works with. For a right model the mean
//! of w is 1 at every link; its logarithm is the step of log p(t) that the model gets wrong there.

use serde::{Deserialize, Serialize};

use super::noised::Noised;
use super::remedy::Remedy;
use super::{ByLevel, Check, Verdict, check_finite};
use crate::Result;
use crate::metric::{Estimate, effective_sample_size};

/// Links that are looked at; a finer grid is sampled, its first links always included.
const LINKS: usize = 128;

/// Two neighbouring levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Their times.
    pub times: [f64; 2],
    /// Effective sample size of the weights, between 0 and 1.
    pub ess: f64,
    /// log of the mean weight: 0 where the densities fit together.
    pub log_mean_weight: Estimate,
}

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathOverlap {
    /// Links of neighbouring levels, by time.
    pub links: Vec<Link>,
}

impl PathOverlap {
    /// Looks at the links between neighbouring levels with `count` points each.
    pub fn of(subject: &dyn ByLevel, count: usize, seed: u64) -> Result<Self> {
        let times = subject.times();
        let noised = Noised::new(subject.rows(), subject.noise(), seed);
        let (mut log_weights, mut from) = (vec![0.0; count], vec![0.0; count]);
        let mut links = Vec::new();
        for k in selection(times.len() - 1) {
            let (low, high) = (times[k], times[k + 1]);
            let (to, of) = if subject.seen_from_below() {
                (high, low)
            } else {
                (low, high)
            };
            let points = noised.points(of, count);
            subject.log_density(to, &points, &mut log_weights);
            subject.log_density(of, &points, &mut from);
            for (weight, from) in log_weights.iter_mut().zip(&from) {
                *weight -= from;
            }
            check_finite("log-density", low, &log_weights)?;
            links.push(Link {
                times: [low, high],
                ess: effective_sample_size(&log_weights),
                log_mean_weight: log_mean_exp(&log_weights),
            });
        }
        Ok(Self { links })
    }

    /// The link with the least overlap.
    pub fn worst(&self) -> Option<&Link> {
        self.links.iter().min_by(|a, b| a.ess.total_cmp(&b.ess))
    }

    /// The verdict.
    pub(crate) fn check(&self, remedy: &Remedy) -> Check {
        let name = "overlap of neighbouring levels".to_string();
        let limits =
            "warn below an effective sample size of 30 % at any link, fail below 5 %".into();
        let Some(worst) = self.worst() else {
            return Check {
                name,
                verdict: Verdict::Skipped,
                finding: "there is a single level".into(),
                meaning: "nothing to compare.".into(),
                limits,
            };
        };
        let mut sorted: Vec<f64> = self.links.iter().map(|link| link.ess).collect();
        sorted.sort_by(f64::total_cmp);
        let verdict = if worst.ess < 0.05 {
            Verdict::Fail
        } else if worst.ess < 0.3 {
            Verdict::Warn
        } else {
            Verdict::Pass
        };
        Check {
            name,
            verdict,
            finding: format!(
                "effective sample size from one level to the next: median {:.0} %, least {:.1} % between times {:.4} and {:.4}",
                100.0 * sorted[sorted.len() / 2],
                100.0 * worst.ess,
                worst.times[0],
                worst.times[1]
            ),
            meaning: match verdict {
                Verdict::Pass => "weights and samples can be carried along the whole path.".to_string(),
                Verdict::Warn => {
                    "one step of the path is steep: take more levels or a power spacing if you anneal, reweight or estimate free \
                     energies along it."
                        .into()
                }
                _ => format!(
                    "the path is cut there: either the grid has a gap (more levels, spacing = power, a larger t_min) or the model's \
                     densities of the two levels disagree ({}).",
                    remedy.levels()
                ),
            },
            limits,
        }
    }
}

/// Links that are looked at: all, or the first ones and an even selection of the rest.
fn selection(links: usize) -> Vec<usize> {
    if links <= LINKS {
        return (0..links).collect();
    }
    let first = LINKS / 4;
    let rest = LINKS - first;
    let span = links - first;
    (0..first)
        .chain((0..rest).map(|i| first + (i * span + span / 2) / rest))
        .collect()
}

/// log of the mean of exp, with the error of a ratio.
pub(crate) fn log_mean_exp(values: &[f64]) -> Estimate {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = values.iter().map(|value| (value - largest).exp()).collect();
    let mean = Estimate::of(&weights);
    Estimate {
        mean: largest + mean.mean.ln(),
        error: mean.error / mean.mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_holds_the_first_links_and_the_last_part() {
        assert_eq!(selection(5), [0, 1, 2, 3, 4]);
        let chosen = selection(511);
        assert_eq!(chosen.len(), LINKS);
        assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(chosen[..3], [0, 1, 2]);
        assert!(chosen[LINKS - 1] > 505 && chosen[LINKS - 1] < 511);
    }

    #[test]
    fn the_mean_weight_has_the_error_of_a_ratio() {
        let found = log_mean_exp(&[1000.0, 1000.0 + 3f64.ln()]);
        assert!((found.mean - 1000.0 - 2f64.ln()).abs() < 1e-12);
        // Values 1 and 3: mean 2, standard error sqrt(2 / 2) = 1.
        assert!((found.error - 0.5).abs() < 1e-12);
    }
}
