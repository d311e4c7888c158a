//! The learned F(t) against MBAR: is it the normaliser that the model's own energies call for?
//!
//! With points of every level and the learned energies at all of them, MBAR gives log Z_t of the energies up to one constant
//! (Shirts and Chodera 2008); log p = -U + F is normalised alike at all levels if F(t) = -log Z_t + constant. The gap
//! log Z_t + F(t), relative to the reference level where F is pinned, is by how much log-densities of that level are off.

use serde::{Deserialize, Serialize};

use super::remedy::Remedy;
use super::{Check, SIGNIFICANT, Subject, Verdict};
use crate::Result;
use crate::free_energy::{MbarSettings, PathEstimate, PathSamples};
use crate::metric::Estimate;

/// Levels that are compared.
const LEVELS: usize = 24;

/// F(t) at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NormaliserLevel {
    /// Its time.
    pub time: f64,
    /// What the model learned.
    pub learned: f64,
    /// log Z + F relative to the first level: 0 if F is right.
    pub gap: Estimate,
}

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normaliser {
    /// Levels by time; empty where MBAR found no connection between them.
    pub levels: Vec<NormaliserLevel>,
    /// Why there are none.
    pub problem: Option<String>,
}

impl Normaliser {
    /// Solves MBAR over a selection of levels with `count` points each.
    pub fn of(subject: &Subject<'_>, count: usize, seed: u64) -> Result<Self> {
        let grid = subject.grid.times();
        let last = grid.len() - 1;
        let levels = LEVELS.min(grid.len());
        let mut times: Vec<f64> = (0..levels)
            .map(|k| grid[k * last / (levels - 1).max(1)])
            .collect();
        times.dedup();
        let rows = subject.rows;
        let samples = PathSamples::new(
            subject.process,
            rows.dim,
            &times,
            (rows.start, rows.end),
            count,
            seed,
        )?;
        match PathEstimate::new(subject.energy, &samples, &MbarSettings::default()) {
            Ok(found) => Ok(Self {
                levels: found
                    .times
                    .iter()
                    .zip(&found.gaps)
                    .map(|(time, gap)| NormaliserLevel {
                        time: *time,
                        learned: subject.energy.free_energy(*time),
                        gap: *gap,
                    })
                    .collect(),
                problem: None,
            }),
            // Levels that do not overlap are a finding, not a failure of the diagnosis.
            Err(
                error @ (crate::Error::Disconnected { .. } | crate::Error::NotConverged { .. }),
            ) => Ok(Self {
                levels: Vec::new(),
                problem: Some(error.to_string()),
            }),
            Err(error) => Err(error),
        }
    }

    /// The level that weighs most: the one furthest off of those that are off by more than chance, or else of all.
    pub fn worst(&self) -> Option<&NormaliserLevel> {
        let weight = |level: &NormaliserLevel| {
            let size = level.gap.mean.abs();
            (size > SIGNIFICANT * level.gap.error, size)
        };
        self.levels.iter().skip(1).max_by(|a, b| {
            let (a, b) = (weight(a), weight(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }

    /// The verdict; `levelled` is how much F was moved when the training ended. Such an F is the one that the energies call for, but it does not make energies
    /// right that called for another than they had learned.
    pub(super) fn check(&self, remedy: &Remedy, levelled: Option<Estimate>) -> Check {
        let name = "learned F(t) against MBAR".to_string();
        let limits =
            "warn beyond 0.25 nats at any level, fail beyond 1 nat, if more than four standard errors"
                .into();
        let Some(worst) = self.worst() else {
            let problem = self
                .problem
                .clone()
                .unwrap_or("there is a single level".into());
            return Check {
                name,
                verdict: if self.problem.is_some() {
                    Verdict::Warn
                } else {
                    Verdict::Skipped
                },
                finding: format!("MBAR gave no answer: {problem}"),
                meaning: "the levels do not hold together well enough to compare normalisers: see the overlap of neighbouring levels.".into(),
                limits,
            };
        };
        let judged = |gap: Estimate| {
            let certain = gap.mean.abs() > SIGNIFICANT * gap.error;
            match gap.mean.abs() {
                size if certain && size > 1.0 => Verdict::Fail,
                size if certain && size > 0.25 => Verdict::Warn,
                _ => Verdict::Pass,
            }
        };
        let gap = worst.gap;
        if let (Verdict::Pass, Some(moved)) = (judged(gap), levelled)
            && judged(moved) > Verdict::Pass
        {
            return Check {
                name,
                verdict: judged(moved),
                finding: format!(
                    "the levels are normalised alike, but F had to be moved by {moved:.3} nats when the training ended"
                ),
                meaning: format!(
                    "densities of neighbouring times do not fit together, which no F(t) can mend: {}.",
                    remedy.levels()
                ),
                limits,
            };
        }
        let verdict = judged(gap);
        Check {
            name,
            verdict,
            finding: format!(
                "largest gap between F and what the energies call for: {gap:.3} nats at time {:.4}, relative to time {:.4}",
                worst.time, self.levels[0].time
            ),
            meaning: match verdict {
                Verdict::Pass => {
                    "the levels are normalised alike: log-densities can be compared between times."
                        .into()
                }
                Verdict::Warn => format!(
                    "log-densities of different times are off against each other by that much: {}.",
                    remedy.levels()
                ),
                _ => format!(
                    "F(t) is not right: log-densities must not be compared between times; {}.",
                    remedy.levels()
                ),
            },
            limits,
        }
    }
}
