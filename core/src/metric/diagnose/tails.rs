//! Tails: what does the density do where there are no data?
//!
//! Points come from the fitted mixture 2, 3 and 5 times as wide as the data, and from a box five times as wide as all of them. Those count that
//! the mixture itself finds less likely than every row. There a density must be below the largest that the data have, and must fall on the way
//! out. Nothing that is noised by gamma has a density above `(2 pi gamma^2)^(-d/2)`, that of one repeated row.

use serde::{Deserialize, Serialize};

use super::noised::Noised;
use super::reference::{Reference, ceiling};
use super::remedy::Remedy;
use super::{Check, Subject, Verdict, check_finite};
use crate::Result;
use crate::rng::{Purpose, Stream};

/// Widths of the draws, in those of the data.
const INFLATIONS: [f64; 3] = [2.0, 3.0, 5.0];
/// Half the width of the box, in that of the data.
const BOX: f64 = 5.0;
/// Points of each kind.
const POINTS: usize = 1024;

/// Points away from the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shell {
    /// Width of the draws, in those of the data; absent for the box.
    pub inflation: Option<f64>,
    /// Points that are less likely than every row by the mixture.
    pub points: usize,
    /// Largest log-density there.
    pub largest: f64,
    /// Median log-density there.
    pub median: f64,
    /// Median log-density of the fitted mixture there.
    pub mixture: f64,
}

/// Figures of the check; log-densities are those of the data's coordinates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tails {
    /// The smallest time.
    pub time: f64,
    /// Log-density of noised rows: lowest, 1 % quantile, median and largest.
    pub data: [f64; 4],
    /// The largest log-density that noised rows can have.
    pub ceiling: f64,
    /// Points away from the data; those of a kind of which there are none are left out.
    pub shells: Vec<Shell>,
    /// Why there are none.
    pub problem: Option<String>,
}

impl Tails {
    /// Looks around up to `count` noised rows.
    pub(super) fn of(
        subject: &Subject<'_>,
        reference: &std::result::Result<Reference, String>,
        count: usize,
        seed: u64,
    ) -> Result<Self> {
        let (time, dim) = (subject.grid.t_min(), subject.energy.dim());
        let volume = subject.facts.log_volume;
        let noised = Noised::new(subject.rows, subject.process, seed);
        let rows = noised.points(time, count.min(subject.rows.len()));
        let density = |points: &[f64]| {
            let mut out = vec![0.0; points.len() / dim];
            subject.energy.log_density(&[time], points, &mut out);
            out.iter_mut().for_each(|value| *value -= volume);
            out
        };
        let mut data = density(&rows);
        check_finite("log-density", time, &data)?;
        data.sort_by(f64::total_cmp);
        let at = |share: f64| data[((data.len() - 1) as f64 * share) as usize];
        let mut found = Self {
            time,
            data: [at(0.0), at(0.01), at(0.5), at(1.0)],
            ceiling: ceiling(subject.process, time, dim) - volume,
            shells: Vec::new(),
            problem: None,
        };
        let reference = match reference {
            Ok(_) if subject.facts.endless => {
                found.problem = Some(
                    "the density does not change when all particles are moved together".into(),
                );
                return Ok(found);
            }
            Ok(reference) => reference,
            Err(problem) => {
                found.problem = Some(problem.clone());
                return Ok(found);
            }
        };
        let lowest = [rows.as_slice(), &noised_fit(subject, reference, time, seed)]
            .iter()
            .flat_map(|rows| reference.log_density(time, 1.0, rows))
            .fold(f64::INFINITY, f64::min);
        for inflation in INFLATIONS.map(Some).into_iter().chain([None]) {
            let points = match inflation {
                Some(width) => {
                    reference.draw(time, width, POINTS, (seed, 200 + (10.0 * width) as u64))
                }
                None => in_box(&rows, dim, seed),
            };
            let base = reference.log_density(time, 1.0, &points);
            let away: Vec<(f64, f64)> = density(&points)
                .into_iter()
                .zip(base)
                .filter(|(_, base)| *base < lowest)
                // What is no number is no density.
                .map(|(model, base)| {
                    (
                        if model.is_nan() {
                            f64::MAX
                        } else {
                            model.clamp(-1e300, 1e300)
                        },
                        base - volume,
                    )
                })
                .collect();
            if away.is_empty() {
                continue;
            }
            let median = |mut values: Vec<f64>| {
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            found.shells.push(Shell {
                inflation,
                points: away.len(),
                largest: away
                    .iter()
                    .map(|pair| pair.0)
                    .fold(f64::NEG_INFINITY, f64::max),
                median: median(away.iter().map(|pair| pair.0).collect()),
                mixture: median(away.iter().map(|pair| pair.1.max(-1e300)).collect()),
            });
        }
        Ok(found)
    }

    /// The shell with the largest density.
    pub fn worst(&self) -> Option<&Shell> {
        self.shells
            .iter()
            .max_by(|a, b| a.largest.total_cmp(&b.largest))
    }

    /// The density does not fall: typical points of the outermost shell are as likely as rows.
    fn flat(&self) -> bool {
        self.shells
            .last()
            .is_some_and(|shell| shell.median >= self.data[1])
    }

    /// The verdict.
    pub(super) fn check(&self, remedy: &Remedy) -> Check {
        let name = "tails".to_string();
        let limits = "fail where the density away from the data exceeds the largest of the data, or typically that of the least likely 1 % of them; \
                      warn where it exceeds their median"
            .into();
        let Some(worst) = self.worst() else {
            let problem = self
                .problem
                .as_deref()
                .unwrap_or("the mixture reaches everywhere that was looked at");
            return Check {
                name,
                verdict: Verdict::Skipped,
                finding: format!("not measured: {problem}"),
                meaning: "what the density does away from the data is not known.".into(),
                limits,
            };
        };
        let [lowest, _, median, largest] = self.data;
        let verdict = if worst.largest > largest.min(self.ceiling) || self.flat() {
            Verdict::Fail
        } else if worst.largest > median {
            Verdict::Warn
        } else {
            Verdict::Pass
        };
        let place = |shell: &Shell| match shell.inflation {
            Some(width) => format!("{width} times as wide as the data"),
            None => "in a box far outside".into(),
        };
        let outer = self.shells.last().map_or(String::new(), |shell| {
            format!(
                "; typically {:.1} {}, where the mixture has {:.1}",
                shell.median,
                place(shell),
                shell.mixture
            )
        });
        Check {
            name,
            verdict,
            finding: format!(
                "log-densities of the data lie between {lowest:.1} and {largest:.1}; the largest of {} points away from them: {:.1}, {}{outer}",
                self.shells.iter().map(|shell| shell.points).sum::<usize>(),
                worst.largest,
                place(worst)
            ),
            meaning: match verdict {
                Verdict::Pass => "the density falls away from the data, as it must.".into(),
                Verdict::Warn => format!(
                    "some places without data are as likely as the data themselves: do not trust densities of rows that are unlike the training rows; {}.",
                    remedy.further()
                ),
                _ => format!(
                    "the density does not fall away from the data: rows unlike the training rows can get any value, and maxima of the density are not where \
                     data are; a larger t_min helps most, then {}.",
                    remedy.further()
                ),
            },
            limits,
        }
    }
}

/// Noised rows of the fit: the mixture's own, so that its far points are known.
fn noised_fit(subject: &Subject<'_>, reference: &Reference, time: f64, seed: u64) -> Vec<f64> {
    let rows = reference.fitted();
    Noised::of_set(1, rows, subject.process, seed).points(time, rows.len().min(4 * POINTS))
}

/// Points of a box around the rows.
fn in_box(rows: &[f64], dim: usize, seed: u64) -> Vec<f64> {
    let ends: Vec<(f64, f64)> = (0..dim)
        .map(|j| {
            let column = || rows.iter().skip(j).step_by(dim).copied();
            (
                column().fold(f64::INFINITY, f64::min),
                column().fold(f64::NEG_INFINITY, f64::max),
            )
        })
        .collect();
    let mut points = Vec::with_capacity(POINTS * dim);
    for row in 0..POINTS {
        let mut stream = Stream::new(seed, Purpose::Propose, 300, row as u64);
        points.extend(ends.iter().map(|(low, high)| {
            let half = 0.5 * (high - low);
            0.5 * (low + high) + BOX * half * (2.0 * stream.uniform() - 1.0)
        }));
    }
    points
}
