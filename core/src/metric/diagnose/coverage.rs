//! Coverage of the time grid: is its first level next to the data, and its last one pure noise?
//!
//! At the first level, b = gamma^2 E|score|^2 / d is the share of the noise in the finest structure: for a Gaussian of
//! variance s^2 under noise gamma^2 it is gamma^2 / (s^2 + gamma^2), and for anything else the average of that over
//! directions and places. Near 0 nothing of the data is blurred; 1 means structure below the first level.
//! At the last level of a diffusion, the data can be told from noise by at most d/2 log(1 + S^2 sd^2 / gamma^2) nats (the capacity of a
//! Gaussian channel), with S^2 sd^2 the variance of the signal.

use serde::{Deserialize, Serialize};

use super::noised::Noised;
use super::{Check, Subject, Verdict, check_finite};
use crate::Result;

/// Figures of the check.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// First and last time.
    pub times: [f64; 2],
    /// Share of the noise in the finest structure at the first level.
    pub blur: f64,
    /// The same at the last level, which is data too for an interpolant.
    pub end_blur: Option<f64>,
    /// Nats by which data can be told from noise at the last level of a diffusion.
    pub memory: Option<f64>,
}

impl Coverage {
    /// Looks at both ends with `count` points.
    pub fn of(subject: &Subject<'_>, count: usize, seed: u64) -> Result<Self> {
        let (first, last) = (subject.grid.t_min(), subject.grid.t_max());
        let process = subject.process;
        let dim = subject.energy.dim();
        let noised = Noised::new(subject.rows, process, seed);
        let blur = |time: f64| -> Result<f64> {
            let points = noised.points(time, count);
            let mut score = vec![0.0; points.len()];
            subject.energy.score(&[time], &points, &mut score);
            check_finite("score", time, &score)?;
            let mean = score.iter().map(|s| s * s).sum::<f64>() / score.len() as f64;
            Ok(process.noise(time).powi(2) * mean)
        };
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
        Ok(Self {
            times: [first, last],
            blur: blur(first)?,
            end_blur: if interpolant { Some(blur(last)?) } else { None },
            memory,
        })
    }

    /// The verdict.
    pub fn check(&self) -> Check {
        let blur = self.blur.max(self.end_blur.unwrap_or(0.0));
        let memory = self.memory.unwrap_or(0.0);
        let verdict = if blur > 0.5 || memory > 0.5 {
            Verdict::Fail
        } else if blur > 0.1 || memory > 0.05 {
            Verdict::Warn
        } else {
            Verdict::Pass
        };
        let mut finding = format!(
            "at the first level (time {:.1e}) noise makes up {:.1} % of the finest structure",
            self.times[0],
            100.0 * self.blur
        );
        if let Some(end) = self.end_blur {
            finding += &format!(", at the last {:.1} %", 100.0 * end);
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
                 raise --t-max, or beta_max or sigma_max of the process."
            }
            (_, false) => {
                "the data have structure as fine as the noise of the first level, which the model cannot show: lower --t-min; if that \
                 does not help, the data repeat values, lie on a surface, or are memorised."
            }
        };
        Check {
            name: "coverage of the time grid".into(),
            verdict,
            finding,
            meaning: meaning.into(),
            limits: "warn beyond 10 % of blur or 0.05 nats, fail beyond 50 % or 0.5 nats".into(),
        }
    }
}
