//! The energy U(t, y) with log p_t(y) = -U(t, y) + F(t): one trait for learned and exact energies.

pub mod exact;

mod builder;
mod column;
mod learned;
mod schedule;
mod spec;

pub use builder::{Builder, EnergyNodes, Group, Points, TimeMode, Wiring};
pub use column::{Column, Coordinate, frequency};
pub use learned::LearnedEnergy;
pub use schedule::Schedule;
pub use spec::{Form, ModelSpec, NetworkSpec};

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

#[cfg(test)]
mod tests {
    use super::*;

    /// U = t |y|^2, F = 3 t.
    struct Square;

    impl Energy for Square {
        fn dim(&self) -> usize {
            2
        }
        fn free_energy(&self, time: f64) -> f64 {
            3.0 * time
        }
        fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
            for (i, (value, y)) in out.iter_mut().zip(points.chunks(2)).enumerate() {
                *value = times[i % times.len()] * (y[0] * y[0] + y[1] * y[1]);
            }
        }
        fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
            for (i, (value, y)) in out.iter_mut().zip(points).enumerate() {
                *value = -2.0 * times[(i / 2) % times.len()] * y;
            }
        }
        fn time_score(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
            for (value, y) in out.iter_mut().zip(points.chunks(2)) {
                *value = 3.0 - y[0] * y[0] - y[1] * y[1];
            }
        }
    }

    #[test]
    fn provided_methods_agree_with_the_definition() {
        let points = [1.0, 2.0, 0.5, -1.0, 0.0, 3.0];
        let squares = [5.0, 1.25, 9.0];
        let mut out = [0.0; 3];
        Square.log_density(&[0.5], &points, &mut out);
        assert_eq!(out, squares.map(|square| 1.5 - 0.5 * square));
        Square.log_density(&[0.5, 1.0, 2.0], &points, &mut out);
        assert_eq!(out, [1.5 - 2.5, 3.0 - 1.25, 6.0 - 18.0]);
        let mut grid = [0.0; 6];
        Square.log_density_grid(&[0.5, 2.0], &points, &mut grid);
        for (row, square) in grid.chunks(2).zip(squares) {
            assert_eq!(row, [1.5 - 0.5 * square, 6.0 - 2.0 * square]);
        }
        let (mut energy, mut score) = ([0.0; 3], [0.0; 6]);
        Square.energy_and_score(&[0.5], &points, &mut energy, &mut score);
        assert_eq!(energy, squares.map(|square| 0.5 * square));
        assert_eq!(score, points.map(|y| -y));
    }
}
