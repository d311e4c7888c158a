//! Over-fitting: rows that were trained on must not be more likely than rows that were not.
//!
//! At the small noise levels a model can memorise its rows. The gap is the mean log-density of noised training rows minus
//! that of noised other rows, in nats, with the error of a difference of means; it is 0 for every model that has not
//! seen the difference, right or wrong. Rows that are copies of trained ones were not held out at all; they are counted and left out.

use serde::{Deserialize, Serialize};

use super::noised::{Data, Noised, key};
use super::{ByLevel, Check, SIGNIFICANT, Verdict, check_finite};
use crate::Result;
use crate::metric::Estimate;
use std::collections::HashSet;

/// Levels looked at.
const LEVELS: usize = 6;
/// With fewer rows that are no copies, nothing is compared.
const FEWEST: usize = 20;
/// A rise of the held-out loss by a smaller share of it is none.
const MATTERS: f64 = 0.02;
/// A larger share of copies is a finding.
const COPIES: f64 = 0.1;

/// Losses during the last stage of training, as its log tells them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Step of the smallest held-out loss.
    pub best_step: u64,
    /// That loss.
    pub best: f64,
    /// Held-out loss at the end of the stage.
    pub last: f64,
    /// Spread of the held-out loss in the course of the stage: largest minus smallest.
    pub range: f64,
    /// Standard deviation of one held-out loss around its course; `None` if there are too few to tell, and then no rise is judged.
    #[serde(default)]
    pub noise: Option<f64>,
}

impl History {
    /// From steps and held-out losses in their order; `None` without any.
    ///
    /// The noise is that of `x_k - (x_(k-1) + x_(k+1)) / 2`, whose variance is 3/2 of a loss's own where the course is straight, by its median.
    pub fn of(losses: &[(u64, f64)]) -> Option<History> {
        let (_, last) = *losses.last()?;
        let (best_step, best) = *losses.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let largest = losses.iter().map(|loss| loss.1).fold(best, f64::max);
        let bend = |w: &[(u64, f64)]| (w[1].1 - 0.5 * (w[0].1 + w[2].1)).abs();
        let mut bends: Vec<f64> = losses.windows(3).map(bend).collect();
        bends.sort_by(f64::total_cmp);
        let noise = bends
            .get(bends.len() / 2)
            .map(|median| 1.4826 * median / 1.5_f64.sqrt());
        Some(History {
            best_step,
            best,
            last,
            range: largest - best,
            noise: noise.filter(|_| bends.len() >= 5),
        })
    }
}

/// Trained rows against others at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Time of the level.
    pub time: f64,
    /// Mean log-density of trained rows minus that of others.
    pub gap: Estimate,
}

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverFitting {
    /// Gaps from the smallest level upwards; empty where it is not known which rows were trained on.
    pub gaps: Vec<Gap>,
    /// Share of the rows judged by that are copies of trained ones.
    #[serde(default)]
    pub copies: f64,
    /// The held-out loss during training.
    pub history: Option<History>,
}

impl OverFitting {
    /// Compares up to `count` rows of each kind.
    pub fn of(subject: &dyn ByLevel, count: usize, seed: u64) -> Result<Self> {
        let history = subject.history();
        let Some(trained) = subject.trained() else {
            return Ok(Self {
                gaps: Vec::new(),
                copies: 0.0,
                history,
            });
        };
        let judged = subject.rows();
        let dim = judged.dim;
        let known: HashSet<Vec<u64>> = if subject.noise().rows_repeat() {
            HashSet::new()
        } else {
            trained.start.chunks_exact(dim).map(key).collect()
        };
        let rows = judged.start.chunks_exact(dim);
        let fresh: Vec<f64> = rows
            .filter(|row| !known.contains(&key(row)))
            .flatten()
            .copied()
            .collect();
        let copies = 1.0 - fresh.len() as f64 / judged.start.len() as f64;
        if fresh.len() < FEWEST * dim {
            return Ok(Self {
                gaps: Vec::new(),
                copies,
                history,
            });
        }
        let others = Data {
            start: &fresh,
            ..judged
        };
        let times = subject.times();
        let log_densities = |set: u32, data: Data<'_>, time: f64| -> Result<Estimate> {
            let count = count.min(data.len());
            let noised = Noised::of_set(set, data, subject.noise(), seed);
            let (points, rows) = noised.points_and_rows(time, count);
            let mut out = vec![0.0; count];
            subject.log_density(time, &points, &mut out);
            check_finite("log-density", time, &out)?;
            Ok(noised.estimate(&out, &rows))
        };
        // Levels 0, 1, 2, 4, 8, ...: memory sits at small times.
        let levels = std::iter::once(0).chain((0..).map(|k| 1 << k));
        let gaps = levels
            .take(LEVELS)
            .filter(|level| *level < times.len())
            .map(|level| {
                let time = times[level];
                let inside = log_densities(1, trained, time)?;
                let outside = log_densities(0, others, time)?;
                Ok(Gap {
                    time,
                    gap: Estimate {
                        mean: inside.mean - outside.mean,
                        error: inside.error.hypot(outside.error),
                    },
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            gaps,
            copies,
            history,
        })
    }

    /// The gap that weighs most: the largest of those that are more than chance, or else the largest.
    pub fn worst(&self) -> Option<&Gap> {
        let weight = |gap: &&Gap| (certain(&gap.gap), gap.gap.mean);
        let order = |a: &&Gap, b: &&Gap| {
            let (a, b) = (weight(a), weight(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        self.gaps.iter().max_by(order)
    }

    /// How much the held-out loss rose after its best, as a share of its whole fall; `None` if that is within four standard errors of the
    /// difference of two losses (the best of many is the lowest by chance as well), if it is tiny beside the loss, or if the noise is not known.
    fn rise(&self) -> Option<f64> {
        let history = self.history?;
        let rise = history.last - history.best;
        let chance = SIGNIFICANT * std::f64::consts::SQRT_2 * history.noise?;
        let matters = rise > MATTERS * history.best.abs();
        (history.range > 0.0 && rise > chance && matters).then(|| rise / history.range)
    }

    /// The verdict.
    pub fn check(&self) -> Check {
        let name = "over-fitting".to_string();
        let limits = "warn beyond 0.1 nats at any level if more than four standard errors, or if the held-out loss rose again by a quarter of \
                      its fall, 2 % and four standard errors, or if more than a tenth of the rows are copies of trained ones; fail beyond 1 nat"
            .into();
        let worst = self.worst();
        let rise = self.rise();
        let verdict = match worst.map(|gap| gap.gap) {
            Some(gap) if certain(&gap) && gap.mean > 1.0 => Verdict::Fail,
            Some(gap) if certain(&gap) && gap.mean > 0.1 => Verdict::Warn,
            _ if rise.is_some_and(|rise| rise > 0.25) || self.copies > COPIES => Verdict::Warn,
            None if self.history.is_none() => Verdict::Skipped,
            _ => Verdict::Pass,
        };
        let mut found = Vec::new();
        if self.copies > 0.01 {
            found.push(format!(
                "{:.1} % of the rows are copies of rows that were trained on",
                100.0 * self.copies
            ));
        }
        if let Some(Gap { time, gap }) = worst {
            found.push(format!(
                "trained rows are more likely than others by {gap:.3} nats at time {time:.1e}"
            ));
        }
        if let Some(history) = self.history {
            found.push(format!(
                "held-out loss {:.4} at the end, best {:.4} at step {}",
                history.last, history.best, history.best_step
            ));
        }
        if found.is_empty() {
            found.push(
                "no rows are known that were trained on, and no held-out loss was recorded".into(),
            );
        }
        Check {
            name,
            verdict,
            finding: found.join("; "),
            meaning: match verdict {
                Verdict::Skipped => "rows drawn afresh at every step cannot be learned by heart; for a file, give the one that was trained on, with rows held out.",
                Verdict::Warn if self.copies > COPIES => {
                    "copies were not held out, so these rows say little about others: remove repeated rows before training, or give rows from elsewhere."
                }
                Verdict::Pass => "no sign that rows were learned by heart.",
                Verdict::Warn => {
                    "the model begins to know its rows by heart: stop earlier (patience), take a smaller network, or more data."
                }
                Verdict::Fail => {
                    "the model has learned its rows by heart, its density is one of spikes: more data, a smaller network, fewer steps, or a \
                     larger t_min."
                }
            }
            .into(),
            limits,
        }
    }
}

/// More than chance.
fn certain(gap: &Estimate) -> bool {
    gap.mean > SIGNIFICANT * gap.error
}
