//! The probability flow: the ordinary differential equation whose solutions carry the marginals of a process from one time to
//! another, with the log-density along the way (Song et al. 2021; Chen et al. 2018).
//!
//! `dy/dt = b(t, y)` with `b = f y - g^2/2 score` for a diffusion and `b = v - gamma gamma' score` for an interpolant;
//! `d/dt log p_t(y_t) = -div b`. Deterministic: a particle depends on where it starts, and on nothing else.

use serde::{Deserialize, Serialize};

use crate::energy::{Energy, Velocity, slope_along};
use crate::process::Process;
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["song2021score", "chen2018neural"];

/// Steps an adaptive particle may take.
const MOST_STEPS: usize = 100_000;

/// How the equation is solved.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Solver {
    /// Heun's method on the given times: second order, two evaluations a step.
    #[default]
    Heun,
    /// Bogacki and Shampine 1989: third order with steps chosen for each particle, from the first time to the last.
    Adaptive {
        /// Error allowed in a step, relative to 1 + |y|, and in the log-density of a step where that is asked for.
        tolerance: f64,
    },
}

/// How the divergence is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Divergence {
    /// Along every axis: exact, `d` evaluations.
    Exact,
    /// Along random signs (Hutchinson 1990), the same on the whole way of a particle: unbiased, `probes` evaluations.
    Hutchinson {
        /// Number of random directions.
        probes: usize,
    },
}

/// The field of the flow.
#[derive(Clone, Copy)]
pub struct Flow<'a> {
    /// Its score.
    pub energy: &'a dyn Energy,
    /// The process.
    pub process: &'a Process,
    /// The velocity, needed for interpolants.
    pub velocity: Option<&'a dyn Velocity>,
    /// How to solve.
    pub solver: Solver,
    /// How to take the divergence; `None` leaves the log-density out.
    pub divergence: Option<Divergence>,
    /// Seed of random directions.
    pub seed: u64,
}

impl Flow<'_> {
    fn validate(&self, times: &[f64], points: &[f64]) -> Result<()> {
        let wrong = |name, found: String, expected: String| {
            Err(Error::Value {
                name,
                found,
                expected,
            })
        };
        let dim = self.energy.dim();
        if self.process.is_interpolant() && self.velocity.is_none() {
            return wrong(
                "velocity of the flow",
                "none".into(),
                format!(
                    "a velocity: the {} process joins two data sets",
                    self.process.name()
                ),
            );
        }
        let one_way = times.windows(2).all(|pair| pair[0] > pair[1])
            || times.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = |t: &f64| (0.0..=self.process.horizon()).contains(t);
        if times.len() < 2 || !one_way || !times.iter().all(inside) {
            return wrong(
                "times of the flow",
                format!(
                    "{} times, {:?} to {:?}",
                    times.len(),
                    times.first(),
                    times.last()
                ),
                format!(
                    "at least two, all rising or all falling, within [0, {}]",
                    self.process.horizon()
                ),
            );
        }
        if let Solver::Adaptive { tolerance } = self.solver
            && !(1e-12..=0.1).contains(&tolerance)
        {
            return wrong(
                "tolerance of the flow",
                tolerance.to_string(),
                "1e-12 to 0.1".into(),
            );
        }
        if self.divergence == Some(Divergence::Hutchinson { probes: 0 }) {
            return wrong("probes of the flow", "0".into(), "at least 1".into());
        }
        if !points.len().is_multiple_of(dim) {
            return Err(Error::Shape {
                what: "the points of the flow".into(),
                found: format!("{} numbers", points.len()),
                expected: format!("rows of {dim}"),
            });
        }
        Ok(())
    }

    /// Carries points of the marginal at the first time to the last, in place. The particles' numbers begin at `first`. Returns,
    /// if a divergence is asked for, by how much the log-density of each particle has grown: `-int div b dt`. `progress` is told
    /// the share that is done.
    pub fn carry(
        &self,
        times: &[f64],
        first: u64,
        points: &mut [f64],
        progress: &mut dyn FnMut(f64),
    ) -> Result<Option<Vec<f64>>> {
        self.validate(times, points)?;
        let rows = points.len() / self.energy.dim();
        let mut growth = vec![0.0; if self.divergence.is_some() { rows } else { 0 }];
        let directions = self.directions(first, rows);
        match self.solver {
            Solver::Heun => self.heun(times, &directions, points, &mut growth, progress),
            Solver::Adaptive { tolerance } => {
                let ends = (times[0], times[times.len() - 1]);
                self.adaptive(ends, tolerance, &directions, points, &mut growth, progress)?;
            }
        }
        match points.iter().position(|y| !y.is_finite()) {
            Some(lost) => Err(Error::Diverged {
                sampler: "flow",
                time: times[0],
                particle: first + (lost / self.energy.dim()) as u64,
            }),
            None => Ok(self.divergence.map(|_| growth)),
        }
    }

    /// The directions of the divergence, one block of rows after the other; their squares sum to the identity in the mean.
    fn directions(&self, first: u64, rows: usize) -> Vec<Vec<f64>> {
        let dim = self.energy.dim();
        match self.divergence {
            None => Vec::new(),
            Some(Divergence::Exact) => (0..dim)
                .map(|i| {
                    let mut all = vec![0.0; rows * dim];
                    all.iter_mut().skip(i).step_by(dim).for_each(|x| *x = 1.0);
                    all
                })
                .collect(),
            Some(Divergence::Hutchinson { probes }) => {
                let size = 1.0 / (probes as f64).sqrt();
                let sign = |bit: u32| if bit & 1 == 1 { size } else { -size };
                (0..probes as u64)
                    .map(|probe| {
                        (0..rows as u64)
                            .flat_map(|row| {
                                let mut stream =
                                    Stream::new(self.seed, Purpose::Divergence, probe, first + row);
                                (0..dim).map(move |_| sign(stream.next_u32() >> 31))
                            })
                            .collect()
                    })
                    .collect()
            }
        }
    }

    /// Writes `b` and, where directions are given, `div b`.
    fn field(
        &self,
        times: &[f64],
        points: &[f64],
        directions: &[Vec<f64>],
        drift: &mut [f64],
        divergence: &mut [f64],
    ) {
        let dim = self.energy.dim();
        let time = |row: usize| {
            if times.len() == 1 {
                times[0]
            } else {
                times[row]
            }
        };
        // b = linear y + velocity + pull score.
        let parts = |row: usize| {
            let t = time(row);
            if self.process.is_interpolant() {
                (0.0, -self.process.noise_times_rate(t))
            } else {
                (
                    self.process.drift(t),
                    -0.5 * self.process.diffusion_squared(t),
                )
            }
        };
        self.energy.score(times, points, drift);
        let moved = self.velocity.filter(|_| self.process.is_interpolant());
        let mut velocity = vec![0.0; if moved.is_some() { points.len() } else { 0 }];
        if let Some(field) = moved {
            field.velocity(times, points, &mut velocity);
        }
        for (row, (b, y)) in drift
            .chunks_exact_mut(dim)
            .zip(points.chunks_exact(dim))
            .enumerate()
        {
            let (linear, pull) = parts(row);
            for (i, (b, y)) in b.iter_mut().zip(y).enumerate() {
                *b = linear * y + pull * *b + velocity.get(row * dim + i).unwrap_or(&0.0);
            }
        }
        if directions.is_empty() {
            return;
        }
        for (row, out) in divergence.iter_mut().enumerate() {
            *out = parts(row).0 * dim as f64;
        }
        let mut curvature = vec![0.0; divergence.len()];
        for direction in directions {
            self.energy
                .curvature(times, points, direction, &mut curvature);
            for (row, (out, curvature)) in divergence.iter_mut().zip(&curvature).enumerate() {
                *out += parts(row).1 * curvature;
            }
            if let Some(field) = moved {
                let field = |points: &[f64], out: &mut [f64]| field.velocity(times, points, out);
                slope_along(&field, dim, points, direction, &mut curvature);
                for (out, slope) in divergence.iter_mut().zip(&curvature) {
                    *out += slope;
                }
            }
        }
    }

    fn heun(
        &self,
        times: &[f64],
        directions: &[Vec<f64>],
        points: &mut [f64],
        growth: &mut [f64],
        progress: &mut dyn FnMut(f64),
    ) {
        let (mut b, mut ahead) = (vec![0.0; points.len()], vec![0.0; points.len()]);
        let mut trial = vec![0.0; points.len()];
        let (mut div, mut div_ahead) = (vec![0.0; growth.len()], vec![0.0; growth.len()]);
        for (k, pair) in times.windows(2).enumerate() {
            let h = pair[1] - pair[0];
            self.field(&pair[..1], points, directions, &mut b, &mut div);
            for ((trial, y), b) in trial.iter_mut().zip(&*points).zip(&b) {
                *trial = y + h * b;
            }
            self.field(&pair[1..], &trial, directions, &mut ahead, &mut div_ahead);
            for ((y, b), ahead) in points.iter_mut().zip(&b).zip(&ahead) {
                *y += 0.5 * h * (b + ahead);
            }
            for ((growth, a), b) in growth.iter_mut().zip(&div).zip(&div_ahead) {
                *growth -= 0.5 * h * (a + b);
            }
            progress((k + 1) as f64 / (times.len() - 1) as f64);
        }
    }

    /// Every particle has its own time and step; those that have arrived leave the batch.
    fn adaptive(
        &self,
        (begin, end): (f64, f64),
        tolerance: f64,
        directions: &[Vec<f64>],
        points: &mut [f64],
        growth: &mut [f64],
        progress: &mut dyn FnMut(f64),
    ) -> Result<()> {
        let dim = self.energy.dim();
        let rows = points.len() / dim;
        let whole = end - begin;
        let (mut time, mut step) = (vec![begin; rows], vec![0.01 * whole; rows]);
        let mut active: Vec<usize> = (0..rows).collect();
        for _ in 0..MOST_STEPS {
            if active.is_empty() {
                return Ok(());
            }
            let n = active.len();
            let take = |from: &[f64], width: usize| -> Vec<f64> {
                let rows = active
                    .iter()
                    .flat_map(|&i| &from[i * width..(i + 1) * width]);
                rows.copied().collect()
            };
            let (y, t, h) = (take(points, dim), take(&time, 1), take(&step, 1));
            let along: Vec<Vec<f64>> = directions.iter().map(|all| take(all, dim)).collect();
            let mut slopes = [(); 4].map(|()| vec![0.0; n * dim]);
            let mut divs = [(); 4].map(|()| vec![0.0; if along.is_empty() { 0 } else { n }]);
            // Stages at t, t + h/2, t + 3h/4, t + h, each from the last slope or the sum of all.
            let mut trial = y.clone();
            for (stage, (at, weights)) in [
                (0.0, [0.0, 0.0, 0.0]),
                (0.5, [0.5, 0.0, 0.0]),
                (0.75, [0.0, 0.75, 0.0]),
                (1.0, [2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0]),
            ]
            .into_iter()
            .enumerate()
            {
                for (i, trial) in trial.iter_mut().enumerate() {
                    let sum: f64 = (0..stage).map(|s| weights[s] * slopes[s][i]).sum();
                    *trial = y[i] + h[i / dim] * sum;
                }
                let times: Vec<f64> = t.iter().zip(&h).map(|(t, h)| t + at * h).collect();
                self.field(&times, &trial, &along, &mut slopes[stage], &mut divs[stage]);
            }
            let mut arrived = false;
            for (k, &row) in active.iter().enumerate() {
                // Third order minus second order.
                let mut worst: f64 = 0.0;
                for i in k * dim..(k + 1) * dim {
                    let error = h[k]
                        * (-5.0 / 72.0 * slopes[0][i] + slopes[1][i] / 12.0 + slopes[2][i] / 9.0
                            - slopes[3][i] / 8.0);
                    let relative = error.abs() / (tolerance * (1.0 + trial[i].abs()));
                    // A slope that is not a number asks for a smaller step.
                    worst = if relative.is_nan() {
                        f64::INFINITY
                    } else {
                        worst.max(relative)
                    };
                }
                // The log-density too, whose own size is of no account.
                if let Some(first) = divs[0].get(k) {
                    let error = h[k]
                        * (-5.0 / 72.0 * first + divs[1][k] / 12.0 + divs[2][k] / 9.0
                            - divs[3][k] / 8.0);
                    let relative = error.abs() / tolerance;
                    worst = if relative.is_nan() {
                        f64::INFINITY
                    } else {
                        worst.max(relative)
                    };
                }
                if worst <= 1.0 {
                    points[row * dim..(row + 1) * dim]
                        .copy_from_slice(&trial[k * dim..(k + 1) * dim]);
                    if let Some(growth) = growth.get_mut(row) {
                        let mean =
                            2.0 / 9.0 * divs[0][k] + divs[1][k] / 3.0 + 4.0 / 9.0 * divs[2][k];
                        *growth -= h[k] * mean;
                    }
                    let last = t[k] + h[k] == end || (end - t[k] - h[k]) * whole <= 0.0;
                    time[row] = if last { end } else { t[k] + h[k] };
                    arrived |= last;
                }
                let factor = (0.9 * worst.powf(-1.0 / 3.0)).clamp(0.2, 4.0);
                let left = end - time[row];
                let next = h[k] * factor;
                step[row] = if next.abs() >= left.abs() { left } else { next };
                if step[row].abs() < 1e-12 * whole.abs() && left != 0.0 {
                    return Err(Error::Diverged {
                        sampler: "flow",
                        time: time[row],
                        particle: row as u64,
                    });
                }
            }
            if arrived {
                active.retain(|&row| time[row] != end);
            }
            let done: f64 = time.iter().map(|t| (t - begin) / whole).sum();
            progress(done / rows as f64);
        }
        Err(Error::Diverged {
            sampler: "flow",
            time: time[active[0]],
            particle: active[0] as u64,
        })
    }
}

#[cfg(test)]
mod tests;
