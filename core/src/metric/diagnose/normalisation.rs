//! Normalisation: does exp(log p) integrate to one, away from the data too?
//!
//! The integral of p_t is the mean of `w = p_t / q` over draws of a known density q. Draws come from the mixture fitted to the data,
//! noised to the level, as wide as the data and 1.5, 2 and 3 times as wide. With all of them together, q is the average of the four
//! (half of the draws as wide as the data), so that no weight of a right model is much larger than 2, and a model that explodes away
//! from the data shows in the wider ones. For a density, Markov's inequality says that the mean weight is above c with
//! a probability of 1/c at most, however uneven the weights are.

use serde::{Deserialize, Serialize};

use super::path_overlap::log_mean_exp;
use super::reference::Reference;
use super::remedy::Remedy;
use super::{Check, SIGNIFICANT, Subject, Verdict};
use crate::metric::effective_sample_size;
use crate::system::log_sum::log_sum_exp;

/// Widths of the draws, in those of the data, and how many of six parts of the draws have them.
const INFLATIONS: [(f64, usize); 4] = [(1.0, 3), (1.5, 1), (2.0, 1), (3.0, 1)];
/// Levels besides the smallest time.
const OTHERS: usize = 3;
/// With fewer effective draws, the integral is not known.
const FEWEST_EFFECTIVE: f64 = 100.0;
/// Integrals above this are no accident, whatever their error.
const ABSURD: f64 = 20.0;

/// An integral, by its logarithm: it may be larger than any number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Integral {
    /// Width of the draws, in those of the data; absent where all are taken together.
    pub inflation: Option<f64>,
    /// Logarithm of the integral.
    pub log: f64,
    /// Its standard error, relative to the integral.
    pub error: f64,
    /// Effective number of draws.
    pub effective: f64,
}

impl Integral {
    fn of(inflation: Option<f64>, log_weights: &[f64]) -> Self {
        let found = log_mean_exp(log_weights);
        Self {
            inflation,
            log: found.mean,
            error: found.error,
            effective: effective_sample_size(log_weights) * log_weights.len() as f64,
        }
    }

    /// Judges the integral as a multiple of `exp(unit)`. The draws of one width alone may miss what lies outside them, so that too
    /// small an integral is no finding there.
    fn verdict(&self, unit: f64) -> Verdict {
        // 1 - 1/Z for an integral above one, 1 - Z below: the deviation, in units of what the relative error belongs to.
        let log = self.log - unit;
        let whole = self.inflation.is_none();
        let off = log.exp_m1().abs();
        let certain = off > SIGNIFICANT * self.error * log.exp();
        let known = self.effective >= FEWEST_EFFECTIVE && self.error < 0.05;
        // The error of few draws is itself not known.
        let reliable = self.effective >= 0.5 * FEWEST_EFFECTIVE;
        if log > ABSURD.ln() || (off > 0.1 && certain && reliable && (whole || log > 0.0)) {
            Verdict::Fail
        } else if whole && (!known || (off > 0.05 && certain)) {
            Verdict::Warn
        } else {
            Verdict::Pass
        }
    }
}

/// The integral of the density at one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntegralLevel {
    /// Its time.
    pub time: f64,
    /// From all draws.
    pub integral: Integral,
    /// From those of each width alone.
    pub by_width: Vec<Integral>,
}

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normalisation {
    /// Levels, the smallest time first; empty where nothing could be measured.
    pub levels: Vec<IntegralLevel>,
    /// Why there are none.
    pub problem: Option<String>,
    /// Logarithm of the integral that is expected: 0 for a diffusion. Densities of an interpolant share a constant that is not learned; it is
    /// taken from draws as wide as the data at the smallest time.
    pub unit: f64,
}

impl Normalisation {
    /// Integrates at four levels, with `count` draws for each of six parts.
    pub(super) fn of(
        subject: &Subject<'_>,
        reference: &Result<Reference, String>,
        count: usize,
        seed: u64,
    ) -> Self {
        let nothing = |problem: &str| Self {
            levels: Vec::new(),
            problem: Some(problem.into()),
            unit: 0.0,
        };
        let reference = match reference {
            Ok(reference) => reference,
            Err(problem) => return nothing(problem),
        };
        if subject.facts.endless {
            return nothing("the density does not change when all particles are moved together");
        }
        let levels: Vec<IntegralLevel> = times(subject)
            .into_iter()
            .enumerate()
            .map(|(k, time)| level(subject, reference, time, (count, seed, k as u64)))
            .collect();
        let unit = match levels.first() {
            Some(first) if subject.process.is_interpolant() => first.by_width[0].log,
            _ => 0.0,
        };
        Self {
            levels,
            problem: None,
            unit,
        }
    }

    /// The figure that weighs most, with its time: the worst verdict, and of these the furthest from one.
    fn worst(&self) -> Option<(f64, Integral, Verdict)> {
        let all = self.levels.iter().flat_map(|level| {
            let parts = level.by_width.iter().chain([&level.integral]);
            parts.map(|part| (level.time, *part, part.verdict(self.unit)))
        });
        // Widths alone count where they find something.
        let all =
            all.filter(|(_, part, verdict)| part.inflation.is_none() || *verdict > Verdict::Pass);
        all.max_by(|a, b| {
            let off = |part: &Integral| (part.log - self.unit).abs();
            a.2.cmp(&b.2).then(off(&a.1).total_cmp(&off(&b.1)))
        })
    }

    /// The verdict.
    pub(super) fn check(&self, remedy: &Remedy) -> Check {
        let name = "normalisation".to_string();
        let limits = "warn beyond 5 % at any level, fail beyond 10 %, if more than four standard errors; fail above 20 in any case; warn below 100 \
                      effective draws or with an error above 5 %"
            .into();
        let Some((time, worst, verdict)) = self.worst() else {
            let problem = self.problem.as_deref().unwrap_or("there are no levels");
            return Check {
                name,
                verdict: Verdict::Skipped,
                finding: format!("not measured: {problem}"),
                meaning: "whether the density integrates to one is not known.".into(),
                limits,
            };
        };
        let first = &self.levels[0];
        let mut finding = format!(
            "the density at time {:.1e} integrates to {}",
            first.time,
            self.text(&first.integral)
        );
        let widths: Vec<String> = first.by_width.iter().map(|part| self.text(part)).collect();
        finding += &format!(
            " (with draws 1, 1.5, 2 and 3 times as wide as the data alone: {})",
            widths.join(", ")
        );
        if time != first.time {
            finding += &format!("; furthest off: {} at time {time:.3}", self.text(&worst));
        }
        let log = worst.log - self.unit;
        let meaning = match verdict {
            Verdict::Pass => "it is a density, as far out as three times the width of the data.".into(),
            Verdict::Fail if log > 0.0 => format!(
                "this is no density: it puts more probability away from the data, or in all, than there is, so log-densities of rows have no meaning; \
                 a larger t_min helps most, then {}.",
                remedy.further()
            ),
            Verdict::Fail => format!(
                "probability is missing: log-densities are too low by {:.2} nats; {}.",
                -log,
                remedy.further()
            ),
            _ if worst.effective < FEWEST_EFFECTIVE || worst.error >= 0.05 => {
                "the integral is not known: the weights are too uneven. The model is far from the fitted mixture, either because it is wrong, or because \
                 no mixture is like these data; look at the held-out log-likelihood and the tails."
                    .into()
            }
            _ => format!("log-densities are off by about that much; {}.", remedy.further()),
        };
        Check {
            name,
            verdict,
            finding,
            meaning,
            limits,
        }
    }

    /// `1.02 ± 0.01`, or the logarithm of what is too large for that.
    pub fn text(&self, integral: &Integral) -> String {
        let log = integral.log - self.unit;
        let value = log.exp();
        if log < 9.0 {
            format!("{value:.3} ± {:.3}", value * integral.error)
        } else if log < 230.0 {
            format!("{value:.0e}")
        } else {
            format!("e^{log:.0}")
        }
    }
}

/// The smallest time and three others: of a diffusion evenly in the logarithm of the noise, of an interpolant evenly over the grid, its end included.
fn times(subject: &Subject<'_>) -> Vec<f64> {
    let grid = subject.grid.times();
    let last = grid.len() - 1;
    let noise = |time: f64| subject.process.noise(time).max(f64::MIN_POSITIVE).ln();
    let mut picks: Vec<usize> = (0..=OTHERS)
        .map(|k| {
            if subject.process.is_interpolant() {
                return k * last / OTHERS;
            }
            let share = k as f64 / (OTHERS + 1) as f64;
            let wanted = noise(grid[0]) + share * (noise(grid[last]) - noise(grid[0]));
            let above = grid.iter().position(|time| noise(*time) >= wanted);
            above.unwrap_or(last)
        })
        .collect();
    picks.dedup();
    picks.into_iter().map(|k| grid[k]).collect()
}

fn level(
    subject: &Subject<'_>,
    reference: &Reference,
    time: f64,
    (count, seed, number): (usize, u64, u64),
) -> IntegralLevel {
    let parts: usize = INFLATIONS.iter().map(|(_, parts)| parts).sum();
    let mut all = Vec::new();
    let mut by_width = Vec::new();
    for (k, (inflation, share)) in INFLATIONS.iter().enumerate() {
        let set = 100 + 10 * number + k as u64;
        let points = reference.draw(time, *inflation, share * count, (seed, set));
        let mut model = vec![0.0; share * count];
        subject.energy.log_density(&[time], &points, &mut model);
        // What is no number is no density: it weighs more than anything.
        for value in model.iter_mut().filter(|value| value.is_nan()) {
            *value = f64::MAX;
        }
        model
            .iter_mut()
            .for_each(|value| *value = value.clamp(-1e300, 1e300));
        let drawn = INFLATIONS.map(|(width, _)| reference.log_density(time, width, &points));
        let own: Vec<f64> = model.iter().zip(&drawn[k]).map(|(p, q)| p - q).collect();
        by_width.push(Integral::of(Some(*inflation), &own));
        all.extend(model.iter().enumerate().map(|(i, p)| {
            let mut terms = [0.0; INFLATIONS.len()];
            for ((term, drawn), (_, share)) in terms.iter_mut().zip(&drawn).zip(INFLATIONS) {
                *term = drawn[i] + (share as f64 / parts as f64).ln();
            }
            p - log_sum_exp(&mut terms)
        }));
    }
    IntegralLevel {
        time,
        integral: Integral::of(None, &all),
        by_width,
    }
}
