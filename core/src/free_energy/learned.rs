//! Free energies along a learned path: thermodynamic integration and MBAR over the energies U(t, y), and what ties the path's
//! ends to the states a user knows.
//!
//! With `Z_A`, `Z_B` of the user's states and `Z_0`, `Z_1` of the learned energies at the first and last time,
//! `log(Z_B/Z_A) = log(Z_0/Z_A) - integral of <dU/dt>_t dt + log(Z_B/Z_1)`; the outer terms are one-sided perturbations from
//! samples of A and B and need each state's energy at its own samples only.
//!
//! The samples at time t are those of the process, `Y_t = X_t + gamma Z`: they follow the exact marginal, not `exp(-U)`. For an
//! imperfect energy the three routes through the path (integration, MBAR, the learned F) err differently, so their
//! disagreement measures the error of the model, which no number of samples shows. What they share is a factor `exp(c(y))` of all
//! densities: it drops out of every comparison of times and spoils the ends alone. [`PathEstimate::blind`] looks for it by Stein's identity.
//!
//! Samples of all times are made of the same rows; every error here counts that (see `influence.rs`).

use super::influence::{Influence, Sources};
use super::{Matrix, Mbar, MbarSettings, Overlap, Perturbation, Rule, perturbation};
use crate::coupling::Pairs;
use crate::energy::Energy;
use crate::metric::Estimate;
use crate::process::Process;
use crate::rng::{Purpose, Stream};
use crate::system::matrix::{dot, inverse_and_log_det};
use crate::{Error, Result};
use serde::Serialize;
use std::sync::Arc;

/// Samples of the process at each of several times.
pub struct PathSamples {
    dim: usize,
    times: Vec<f64>,
    /// Time after time, row after row.
    points: Vec<f64>,
    /// dY/dt of every point.
    rates: Vec<f64>,
    sources: Arc<Sources>,
}

impl PathSamples {
    /// `count` samples at each time from rows of the data (and of the second endpoint, for an interpolant), drawn with
    /// replacement and paired at random.
    ///
    /// # Errors
    /// [`Error::Value`] for times that do not rise or an endpoint without rows, [`Error::Shape`] for one without whole rows.
    pub fn new(
        process: &Process,
        dim: usize,
        times: &[f64],
        (start, end): (&[f64], Option<&[f64]>),
        count: usize,
        seed: u64,
    ) -> Result<Self> {
        for rows in [Some(start), end].into_iter().flatten() {
            if rows.is_empty() || dim == 0 || !rows.len().is_multiple_of(dim) {
                return Err(Error::Shape {
                    what: "the rows of an endpoint".into(),
                    found: format!("{} numbers", rows.len()),
                    expected: format!("whole rows of {dim} numbers, at least one"),
                });
            }
        }
        if process.is_interpolant() != end.is_some() {
            return Err(Error::Value {
                name: "endpoints",
                found: if end.is_some() { "two" } else { "one" }.into(),
                expected: "one for a diffusion, two for an interpolant".into(),
            });
        }
        let rows = [start, end.unwrap_or(&[])].map(|rows| rows.len() / dim);
        Self::drawn(process, dim, times, (count, seed), rows, |stream| {
            let mut pick = |rows: &[f64]| stream.below((rows.len() / dim) as u64) as usize;
            let first = pick(start);
            let second = end.map(|end| (end, pick(end)));
            let other = second.map(|(end, row)| &end[row * dim..][..dim]);
            let of = [first, second.map_or(0, |(_, row)| row)];
            (of, &start[first * dim..][..dim], other)
        })
    }

    /// The same from rows of an interpolant that belong together, of ends with so many rows.
    ///
    /// # Errors
    /// As [`new`](PathSamples::new).
    pub fn of_pairs(
        process: &Process,
        dim: usize,
        times: &[f64],
        (pairs, rows): (&Pairs, [usize; 2]),
        count: usize,
        seed: u64,
    ) -> Result<Self> {
        let all = pairs.rows.len();
        let fits = dim > 0
            && [&pairs.start, &pairs.end]
                .iter()
                .all(|of| of.len() == all * dim);
        if all == 0 || !fits || !process.is_interpolant() {
            return Err(Error::Value {
                name: "pairs",
                found: format!("{all} pairs of {} numbers", pairs.start.len()),
                expected: format!("whole rows of {dim} numbers of both ends of an interpolant"),
            });
        }
        Self::drawn(process, dim, times, (count, seed), rows, |stream| {
            let pair = stream.below(all as u64) as usize;
            let at = pair * dim..(pair + 1) * dim;
            let of = pairs.rows[pair].map(|row| row as usize);
            (of, &pairs.start[at.clone()], Some(&pairs.end[at]))
        })
    }

    /// Samples of rows that `draw` gives: their numbers and values.
    fn drawn<'a>(
        process: &Process,
        dim: usize,
        times: &[f64],
        (count, seed): (usize, u64),
        rows: [usize; 2],
        draw: impl Fn(&mut Stream) -> ([usize; 2], &'a [f64], Option<&'a [f64]>),
    ) -> Result<Self> {
        if count < 2 || times.len() < 2 || !times.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(Error::Value {
                name: "path",
                found: format!("{count} samples at times {times:?}"),
                expected: "at least two samples at each of at least two rising times".into(),
            });
        }
        let mut points = vec![0.0; times.len() * count * dim];
        let mut rates = vec![0.0; points.len()];
        let mut of = Vec::with_capacity(times.len() * count);
        let levels = points.chunks_exact_mut(count * dim);
        for (level, (points, rates)) in levels.zip(rates.chunks_exact_mut(count * dim)).enumerate()
        {
            let time = times[level];
            let (a_rate, b_rate) = (process.x0_rate(time), process.x1_rate(time));
            // Infinite at the very ends of an interpolant, where there is no noise.
            let noise_rate = Some(process.noise_rate(time))
                .filter(|r| r.is_finite())
                .unwrap_or(0.0);
            let (a, b, noise) = (
                process.x0_scale(time),
                process.x1_scale(time),
                process.noise(time),
            );
            let both = points
                .chunks_exact_mut(dim)
                .zip(rates.chunks_exact_mut(dim));
            for (row, (point, rate)) in both.enumerate() {
                let mut stream = Stream::new(seed, Purpose::Path, level as u64, row as u64);
                let (numbers, start, end) = draw(&mut stream);
                of.push(numbers.map(|row| row as u32));
                for (i, (y, rate)) in point.iter_mut().zip(rate).enumerate() {
                    let other = end.map_or(0.0, |end| end[i]);
                    let z = stream.normal();
                    *y = a * start[i] + b * other + noise * z;
                    *rate = a_rate * start[i] + b_rate * other + noise_rate * z;
                }
            }
        }
        Ok(Self {
            dim,
            times: times.to_vec(),
            points,
            rates,
            sources: Arc::new(Sources::new(rows, of)),
        })
    }

    /// The times.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Samples at each time.
    pub fn count(&self) -> usize {
        self.points.len() / self.dim / self.times.len()
    }

    /// `-log p = U - F` of every sample at every time, time after time: states whose normalisers are all 1 if F is right.
    pub(super) fn reduced_energies(&self, energy: &dyn Energy) -> Vec<f64> {
        let (states, count) = (self.times.len(), self.count());
        let total = states * count;
        let mut reduced = vec![0.0; states * total];
        let mut grid = vec![0.0; count * states];
        for (level, points) in self.points.chunks_exact(count * self.dim).enumerate() {
            energy.log_density_grid(&self.times, points, &mut grid);
            for (n, row) in grid.chunks_exact(states).enumerate() {
                for (state, value) in row.iter().enumerate() {
                    reduced[state * total + level * count + n] = -value;
                }
            }
        }
        reduced
    }
}

/// The free energy between the first and the last time of a path, by every route. All errors hold for rows that are shared between times and
/// correlated in the order given; 1.96 of them cover 95 % if the energies are right.
#[derive(Debug, Clone, Serialize)]
pub struct PathEstimate {
    /// The times.
    pub times: Vec<f64>,
    /// The times of the integration, those or finer ones.
    pub slope_times: Vec<f64>,
    /// Mean of dU/dt at each of these: the integrand.
    pub slopes: Vec<Estimate>,
    /// `log(Z_1/Z_0)` by integration: trapezoid, Simpson, spline.
    pub integrals: Vec<(Rule, Estimate)>,
    /// `log(Z_1/Z_0)` by MBAR over the learned energies at all times.
    pub mbar: Estimate,
    /// `log(Z_1/Z_0) = F(0) - F(1)`, as the model learned it.
    pub learned: f64,
    /// `log Z_t + F(t)` at each time by MBAR, relative to the first time: what the learned F misses. Zero for a model that is
    /// right; the model's own error bar.
    pub gaps: Vec<Estimate>,
    /// What a factor `exp(c(y))` common to all times would change unseen: an estimate of `<c>_1 - <c>_0`, 0 for scores that are right.
    ///
    /// `d/dt <c>_t = <grad c . h>_t` with h the flow of the marginals, and `<grad c . h> = <score . h + div h>` by Stein's identity, where
    /// the exact score gives 0. Here h is the flow's best fit that is linear in each coordinate: a c that is linear, or a sum of squares of
    /// coordinates, is seen whole; one that rises and falls within the spread of the marginals may not be seen at all.
    pub blind: Estimate,
    /// Overlap of the energies at these times.
    pub overlap: Overlap,
    /// Influences of integrals (as in `integrals`), MBAR and the blind term.
    #[serde(skip)]
    pub(super) influences: (Vec<Influence>, Influence, Influence),
}

impl PathEstimate {
    /// Computes all of it. `settings.pool` serves MBAR.
    ///
    /// # Errors
    /// [`Error::ModelNotFinite`] for an energy that is not finite, and as [`Mbar::solve`].
    pub fn new(
        energy: &dyn Energy,
        samples: &PathSamples,
        settings: &MbarSettings,
    ) -> Result<Self> {
        Self::integrated_over(energy, samples, samples, settings)
    }

    /// The same with slopes of the energy at the samples of other, finer times: integration needs each time alone, MBAR all pairs of them. Both are
    /// made of the same rows.
    ///
    /// # Errors
    /// As [`new`](PathEstimate::new), and [`Error::Value`] for samples of other rows.
    pub fn integrated_over(
        energy: &dyn Energy,
        samples: &PathSamples,
        fine: &PathSamples,
        settings: &MbarSettings,
    ) -> Result<Self> {
        if fine.sources.rows != samples.sources.rows || fine.dim != samples.dim {
            return Err(Error::Value {
                name: "path",
                found: format!(
                    "rows {:?} and {:?}",
                    fine.sources.rows, samples.sources.rows
                ),
                expected: "the same rows for integration and MBAR".into(),
            });
        }
        let (slope_times, per_time, dim) = (fine.times(), fine.count(), samples.dim);
        let all = slope_times.len() * per_time;
        let (mut rates, mut stein) = (vec![0.0; all], vec![0.0; all]);
        let mut score = vec![0.0; per_time * dim];
        for (level, points) in fine.points.chunks_exact(per_time * dim).enumerate() {
            let (time, count) = (slope_times[level], per_time);
            let (rate, stein) = (
                &mut rates[level * count..][..count],
                &mut stein[level * count..][..count],
            );
            energy.energy_rate(&[time], points, rate);
            energy.score(&[time], points, &mut score);
            let flow = &fine.rates[level * count * dim..][..count * dim];
            stein_terms(points, flow, &score, stein);
            for (what, values) in [("energy rate", &*rate), ("score", stein)] {
                if values.iter().any(|x| !x.is_finite()) {
                    return Err(Error::ModelNotFinite { what, time });
                }
            }
        }
        let (times, count) = (samples.times(), samples.count());
        let states = times.len();
        let reduced = samples.reduced_energies(energy);
        let matrix = Matrix::new(&reduced, states)?;
        let mbar = Mbar::solve(&matrix, &vec![count; states], settings)?;
        let log_z = mbar.log_z();
        let sources = &samples.sources;
        // Mean over each level, its levels' weights applied: the value, and every sample's part in it.
        let weigh = |values: &[f64], weights: &[f64]| {
            let (mut sum, mut parts) = (0.0, Vec::with_capacity(all));
            for (values, weight) in values.chunks_exact(per_time).zip(weights) {
                let mean = values.iter().sum::<f64>() / per_time as f64;
                sum += weight * mean;
                let part = |v: &f64| weight * (v - mean) / per_time as f64;
                parts.extend(values.iter().map(part));
            }
            (sum, Influence::of_samples(&fine.sources, parts))
        };
        let estimate = |mean: f64, influence: &Influence| Estimate {
            mean,
            error: influence.error().0,
        };
        let slopes = (0..slope_times.len())
            .map(|level| {
                let mut only = vec![0.0; slope_times.len()];
                only[level] = 1.0;
                let (mean, influence) = weigh(&rates, &only);
                estimate(mean, &influence)
            })
            .collect();
        let (mut integrals, mut influences) = (Vec::new(), Vec::new());
        for rule in Rule::ALL {
            let minus: Vec<f64> = rule.weights(slope_times)?.iter().map(|w| -w).collect();
            let (mean, influence) = weigh(&rates, &minus);
            integrals.push((rule, estimate(mean, &influence)));
            influences.push(influence);
        }
        let (blind, of_blind) = weigh(&stein, &Rule::Simpson.weights(slope_times)?);
        let parts = mbar_influences(&reduced, &log_z, count).ok_or(Error::NotConverged {
            method: "MBAR",
            iterations: mbar.iterations(),
            change: f64::NAN,
            state: 0,
        })?;
        let parts: Vec<Influence> = parts
            .into_iter()
            .map(|part| Influence::of_samples(sources, part))
            .collect();
        let gaps: Vec<Estimate> = (0..states)
            .map(|k| estimate(log_z[k] - log_z[0], &parts[k]))
            .collect();
        let learned = energy.free_energy(times[0]) - energy.free_energy(times[states - 1]);
        let gap = gaps[states - 1];
        let of_mbar = parts.into_iter().next_back();
        Ok(Self {
            times: times.to_vec(),
            slope_times: slope_times.to_vec(),
            slopes,
            integrals,
            mbar: Estimate {
                mean: learned + gap.mean,
                error: gap.error,
            },
            learned,
            gaps,
            blind: estimate(blind, &of_blind),
            overlap: mbar.overlap(),
            influences: (
                influences,
                of_mbar.unwrap_or_else(|| Influence::none(sources)),
                of_blind,
            ),
        })
    }

    /// The integral by one rule.
    pub fn integral(&self, wanted: Rule) -> Option<Estimate> {
        self.integrals
            .iter()
            .find(|(rule, _)| *rule == wanted)
            .map(|(_, delta)| *delta)
    }
}

/// `score . h + div h` of every point, with h the fit of the flow that is linear in each coordinate.
fn stein_terms(points: &[f64], flow: &[f64], score: &[f64], out: &mut [f64]) {
    let (count, dim) = (out.len(), points.len() / out.len());
    let n = count as f64;
    out.fill(0.0);
    for i in 0..dim {
        let column = |values: &'_ [f64]| -> Vec<f64> {
            values.iter().skip(i).step_by(dim).copied().collect()
        };
        let (y, h) = (column(points), column(flow));
        let (mean, level) = (y.iter().sum::<f64>() / n, h.iter().sum::<f64>() / n);
        let spread: f64 = y.iter().map(|y| (y - mean).powi(2)).sum();
        let along: f64 = y
            .iter()
            .zip(&h)
            .map(|(y, h)| (y - mean) * (h - level))
            .sum();
        let slope = if spread > 0.0 { along / spread } else { 0.0 };
        for (row, (out, y)) in out.iter_mut().zip(&y).enumerate() {
            *out += score[row * dim + i] * (level + slope * (y - mean)) + slope;
        }
    }
}

/// How much every sample moves each `log(Z_k/Z_0)` of MBAR, for `count` samples of every state: with `p_n` the shares of the states at a sample,
/// centred within its state, and `H = sum_n diag(p_n) - p_n p_n^T`, it is `(H^-1 p_n)_k`, state 0 held fixed. `None` if the
/// states are not connected.
fn mbar_influences(reduced: &[f64], log_z: &[f64], count: usize) -> Option<Vec<Vec<f64>>> {
    let states = log_z.len();
    let (total, inner) = (states * count, states - 1);
    let mut shares = vec![0.0; total * states];
    let mut hessian = vec![0.0; inner * inner];
    for (n, share) in shares.chunks_exact_mut(states).enumerate() {
        let mut top = f64::NEG_INFINITY;
        for (k, share) in share.iter_mut().enumerate() {
            *share = -log_z[k] - reduced[k * total + n];
            top = top.max(*share);
        }
        share.iter_mut().for_each(|s| *s = (*s - top).exp());
        let sum: f64 = share.iter().sum();
        share.iter_mut().for_each(|s| *s /= sum);
        for (i, row) in hessian.chunks_exact_mut(inner).enumerate() {
            row[i] += share[i + 1];
            for (h, other) in row.iter_mut().zip(&share[1..]) {
                *h -= share[i + 1] * other;
            }
        }
    }
    for level in shares.chunks_exact_mut(count * states) {
        for k in 0..states {
            let own = || (0..count).map(|n| n * states + k);
            let mean = own().map(|at| level[at]).sum::<f64>() / count as f64;
            own().for_each(|at| level[at] -= mean);
        }
    }
    let (inverse, _) = inverse_and_log_det(&hessian, inner)?;
    let mut parts = vec![vec![0.0; total]];
    parts.extend(inverse.chunks_exact(inner).map(|row| {
        let share = shares.chunks_exact(states);
        share.map(|share| dot(row, &share[1..])).collect()
    }));
    Some(parts)
}

/// The way from a state that is known to the learned energy at an end of the path.
#[derive(Debug, Clone, Serialize)]
pub struct EndCorrection {
    /// `log(Z_time / Z_state)`, its errors widened by the correlation of the works in the order given.
    #[serde(flatten)]
    pub perturbation: Perturbation,
    /// `u_learned - u_state` at the samples.
    #[serde(skip)]
    works: Vec<f64>,
}

impl EndCorrection {
    /// Influence of every row on `log <exp(-w)>`: `(x / <x> - 1) / n` with `x = exp(-w)`.
    pub(super) fn influence(&self) -> Vec<f64> {
        let n = self.works.len() as f64;
        let delta = self.perturbation.exponential.mean;
        let part = |w: &f64| ((-w - delta).exp() - 1.0) / n;
        self.works.iter().map(part).collect()
    }

    /// `-<w>`, and the influence of every row on it.
    pub(super) fn mean(&self) -> (f64, Vec<f64>) {
        let n = self.works.len() as f64;
        let mean = self.works.iter().sum::<f64>() / n;
        (-mean, self.works.iter().map(|w| (mean - w) / n).collect())
    }
}

/// From a state known by its energies `own` at samples `points` of it (in the model's coordinates) to the learned energy at
/// `time`: `log(Z_time / Z_state)`.
///
/// # Errors
/// As [`perturbation`](fn@perturbation), [`Error::Shape`] if there is not one energy per sample.
pub fn end_correction(
    energy: &dyn Energy,
    time: f64,
    points: &[f64],
    own: &[f64],
) -> Result<EndCorrection> {
    if points.len() != own.len() * energy.dim() {
        return Err(Error::Shape {
            what: "the energies of an endpoint".into(),
            found: format!("{} numbers", own.len()),
            expected: format!(
                "one for each of its {} samples",
                points.len() / energy.dim()
            ),
        });
    }
    let mut works = vec![0.0; own.len()];
    energy.energy(&[time], points, &mut works);
    for (work, own) in works.iter_mut().zip(own) {
        *work -= own;
    }
    Ok(EndCorrection {
        perturbation: perturbation(&works, true)?,
        works,
    })
}

#[cfg(test)]
mod tests;
