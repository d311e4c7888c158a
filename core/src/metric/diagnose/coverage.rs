//! Coverage of the time grid: is its first level next to the data, and its last one pure noise?
//!
//! At the first level, the share of the noise in a direction of variance v is `gamma^2 / (alpha^2 v + gamma^2)`: near 0 nothing of the data
//! is blurred, 1 means structure below the first level. Variances are those of the mixture fitted to the data, averaged over its components: the
//! mean over all directions, and the narrowest, which shows columns that are functions of others. The model has no say in it.
//! At the last level of a diffusion, the data can be told from noise by at most d/2 log(1 + S^2 sd^2 / gamma^2) nats (the capacity of a
//! Gaussian channel), with S^2 sd^2 the variance of the signal.

use serde::{Deserialize, Serialize};

use super::reference::Reference;
use super::{Check, Subject, Verdict};

/// Figures of the check.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// First and last time.
    pub times: [f64; 2],
    /// Share of the noise in the variances at the first level, on average over directions; absent where no mixture could be fitted.
    pub blur: Option<f64>,
    /// The same in the narrowest direction.
    pub finest: Option<f64>,
    /// The share at the last level, which is data too for an interpolant: the mean, and the narrowest direction.
    pub end_blur: Option<[f64; 2]>,
    /// Nats by which data can be told from noise at the last level of a diffusion.
    pub memory: Option<f64>,
}

impl Coverage {
    /// Looks at both ends.
    pub(super) fn of(subject: &Subject<'_>, reference: &Result<Reference, String>) -> Self {
        let (first, last) = (subject.grid.t_min(), subject.grid.t_max());
        let process = subject.process;
        let dim = subject.energy.dim();
        let reference = reference.as_ref().ok();
        let blur = reference.map(|found| found.blur(first, false));
        let interpolant = process.is_interpolant();
        let memory = (!interpolant).then(|| {
            let rows = subject.rows.start.chunks_exact(dim);
            let n = rows.len() as f64;
            let mut moments = vec![(0.0, 0.0); dim];
            for row in rows {
                for ((sum, squares), x) in moments.iter_mut().zip(row) {
                    *sum += x;
                    *squares += x * x;
                }
            }
            let variance = moments
                .iter()
                .map(|(sum, squares)| squares / n - (sum / n).powi(2))
                .sum::<f64>()
                / dim as f64;
            let signal = process.scale(last).powi(2) * variance;
            0.5 * dim as f64 * (signal / process.noise(last).powi(2)).ln_1p()
        });
        Self {
            times: [first, last],
            blur: blur.map(|[_, mean]| mean),
            finest: blur.map(|[finest, _]| finest),
            end_blur: reference.filter(|_| interpolant).map(|found| {
                let [finest, mean] = found.blur(last, true);
                [mean, finest]
            }),
            memory,
        }
    }

    /// The verdict.
    pub fn check(&self) -> Check {
        let [end, end_finest] = self.end_blur.unwrap_or([0.0; 2]);
        let blur = self.blur.unwrap_or(0.0).max(end);
        let finest = self.finest.unwrap_or(0.0).max(end_finest);
        let memory = self.memory.unwrap_or(0.0);
        let verdict = if blur > 0.5 || memory > 0.5 {
            Verdict::Fail
        } else if blur > 0.1 || finest > 0.5 || memory > 0.05 {
            Verdict::Warn
        } else {
            Verdict::Pass
        };
        let mut finding = match (self.blur, self.finest) {
            (Some(blur), Some(finest)) => format!(
                "at the first level (time {:.1e}) noise makes up {:.1} % of the variance, {:.1} % in the narrowest direction of the data",
                self.times[0],
                100.0 * blur,
                100.0 * finest
            ),
            _ => "no mixture could be fitted to the data, so the blur at the first level is not known".into(),
        };
        if let Some([mean, finest]) = self.end_blur {
            finding += &format!(
                ", at the last {:.1} and {:.1} %",
                100.0 * mean,
                100.0 * finest
            );
        }
        if let Some(memory) = self.memory {
            finding += &format!(
                "; at the last (time {}) the data can be told from noise by {memory:.1e} nats",
                self.times[1]
            );
        }
        let meaning = match (verdict, memory > 0.05) {
            (Verdict::Pass, _) => "the levels reach from the data to pure noise.",
            (_, true) => {
                "the last level still remembers the data, so its normalisation is not known and samples start from the wrong place: \
                 raise t_max, or beta_max or sigma_max of the process."
            }
            (_, false) => {
                "the data have structure as fine as the noise of the first level, which the model cannot show: lower t_min. If a column is a \
                 function of others or values repeat, no time is small enough: there the density is that of the noise; leave the column out."
            }
        };
        Check {
            name: "coverage of the time grid".into(),
            verdict,
            finding,
            meaning: meaning.into(),
            limits: "warn beyond 10 % of blur, 50 % in the narrowest direction or 0.05 nats, fail beyond 50 % of blur or 0.5 nats".into(),
        }
    }
}
