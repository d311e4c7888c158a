//! The energy U(t, y) with log p_t(y) = -U(t, y) + F(t): one trait for learned and exact energies.

pub mod compose;
pub mod exact;

mod base_inputs;
mod builder;
mod chart;
mod closure;
mod column;
mod coordinates;
mod ending;
mod in_data_coordinates;
mod in_view;
mod kind;
mod known;
mod law;
mod learned;
mod normalise;
mod outside;
mod prior;
mod scale;
mod spec;
mod springs;
mod straightened;
mod time_table;
mod velocity;
mod wiring;

pub use base_inputs::{BaseInputs, UnitLevels};
pub use builder::{Builder, EnergyNodes, Points};
pub use closure::Closure;
pub use column::{Column, Coordinate, TimeFunction, frequency};
pub use coordinates::{Coordinates, Moments};
pub use ending::{Ending, SystemEnergy};
pub use in_data_coordinates::InDataCoordinates;
pub use in_view::{OfPoints, OfRows};
pub use kind::{Kind, nearest};
pub use known::KnownMarginals;
pub use law::MixtureLaw;
pub use learned::{LearnedEnergy, LearnedVelocity};
pub use normalise::{Normaliser, WeightedDraws};
pub use outside::Outside;
pub use prior::Prior;
pub use scale::{MOST_WHITENED, Scale};
pub use spec::{Form, LogDensity, ModelSpec};
pub use straightened::Straightened;
pub use time_table::TimeTable;
pub use velocity::{Velocity, VelocityClosure};
pub use wiring::{BaseSlots, Group, TimeMode, Wiring};

/// A time-dependent energy, evaluated in batches.
///
/// `points` holds rows of [`dim`](Energy::dim) numbers. `times` holds one entry for all rows or one per row. Outputs have one
/// number (or one row of `dim` numbers) per row of `points`. Energies are dimensionless (kT).
pub trait Energy: Send + Sync {
    /// Dimension of a point.
    fn dim(&self) -> usize;

    /// F(t), the model's log-normaliser: log p = -U + F.
    fn free_energy(&self, time: f64) -> f64;

    /// U(t, y).
    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]);

    /// -grad_y U(t, y), the gradient of the log-density.
    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]);

    /// Energy and score together, for less than the price of both where an implementation shares work.
    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        self.energy(times, points, energy);
        self.score(times, points, score);
    }

    /// d/dt (-U(t, y) + F(t)).
    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]);

    /// dU/dt at a fixed point: the integrand of thermodynamic integration.
    ///
    /// By default from the time score and a central difference of F, which is right where F has a slope and wrong where it bends (at
    /// the levels of a table); energies that wrap others pass the question on instead.
    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        /// Step of the central difference of F.
        const STEP: f64 = 1e-5;
        self.time_score(times, points, out);
        for (i, out) in out.iter_mut().enumerate() {
            let time = if times.len() == 1 { times[0] } else { times[i] };
            let rise = self.free_energy(time + STEP) - self.free_energy(time - STEP);
            *out = rise / (2.0 * STEP) - *out;
        }
    }

    /// `e . H e` with H the Hessian of log p in y and one direction `e` per point (rows of `directions`): along an axis, the second
    /// derivative; summed over the axes, or averaged over random signs, the Laplacian of log p.
    ///
    /// By central differences of the score where an implementation has nothing better; in double precision these keep about
    /// nine digits.
    fn curvature(&self, times: &[f64], points: &[f64], directions: &[f64], out: &mut [f64]) {
        let score = |points: &[f64], out: &mut [f64]| self.score(times, points, out);
        slope_along(&score, self.dim(), points, directions, out);
    }

    /// `H e` with H the Hessian of log p in y and one direction `e` per point: one row per point, by central differences of the score where
    /// an implementation has nothing better.
    fn hessian_product(&self, times: &[f64], points: &[f64], directions: &[f64], out: &mut [f64]) {
        let score = |points: &[f64], out: &mut [f64]| self.score(times, points, out);
        product_along(&score, self.dim(), points, directions, out);
    }

    /// -U(t, y) + F(t).
    fn log_density(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.energy(times, points, out);
        if let [time] = times {
            let free_energy = self.free_energy(*time);
            out.iter_mut()
                .for_each(|value| *value = free_energy - *value);
        } else {
            for (value, &time) in out.iter_mut().zip(times) {
                *value = self.free_energy(time) - *value;
            }
        }
    }

    /// -U(t_j, y_i) + F(t_j) of every point at every time: `out` has one row of `times.len()` numbers per point.
    fn log_density_grid(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let mut column = vec![0.0; points.len() / self.dim()];
        for (j, &time) in times.iter().enumerate() {
            self.log_density(&[time], points, &mut column);
            for (row, value) in out.chunks_exact_mut(times.len()).zip(&column) {
                row[j] = *value;
            }
        }
    }
}

/// `e . (df/dy) e` of a vector field, one direction `e` per point, by central differences.
pub(crate) fn slope_along(
    field: &dyn Fn(&[f64], &mut [f64]),
    dim: usize,
    points: &[f64],
    directions: &[f64],
    out: &mut [f64],
) {
    let (up, down) = either_side(field, dim, points, directions);
    for (row, out) in out.iter_mut().enumerate() {
        let at = row * dim..(row + 1) * dim;
        let rise: f64 = up[at.clone()]
            .iter()
            .zip(&down[at.clone()])
            .zip(&directions[at.clone()])
            .map(|((a, b), e)| e * (a - b))
            .sum();
        *out = rise / (2.0 * difference(&points[at]));
    }
}

/// `(df/dy) e`, likewise: one row per point.
pub(crate) fn product_along(
    field: &dyn Fn(&[f64], &mut [f64]),
    dim: usize,
    points: &[f64],
    directions: &[f64],
    out: &mut [f64],
) {
    let (up, down) = either_side(field, dim, points, directions);
    for (i, out) in out.iter_mut().enumerate() {
        let row = i / dim * dim;
        *out = (up[i] - down[i]) / (2.0 * difference(&points[row..row + dim]));
    }
}

/// Step of a central difference at a point.
fn difference(point: &[f64]) -> f64 {
    1e-5 * (1.0 + point.iter().fold(0.0_f64, |m, y| m.max(y.abs())))
}

/// The field a step ahead and a step behind.
fn either_side(
    field: &dyn Fn(&[f64], &mut [f64]),
    dim: usize,
    points: &[f64],
    directions: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let shifted = |sign: f64| -> Vec<f64> {
        let both = points.iter().zip(directions).enumerate();
        both.map(|(i, (y, e))| {
            let row = i / dim * dim;
            y + sign * difference(&points[row..row + dim]) * e
        })
        .collect()
    };
    let (mut up, mut down) = (vec![0.0; points.len()], vec![0.0; points.len()]);
    field(&shifted(1.0), &mut up);
    field(&shifted(-1.0), &mut down);
    (up, down)
}

#[cfg(test)]
pub(crate) mod tests;
