//! An energy from a closure: whatever a user can write down, for every sampler of the library.

use super::Energy;

/// Step of the differences that give the time score, relative to 1 + |t|: with it central differences keep about ten digits.
const DIFFERENCE: f64 = 1e-5;

/// `U(t, y)` from a function `f(t, y, score) -> U` that writes `-grad_y U` into `score`. F is 0.
///
/// ```
/// use diffclf::energy::{Closure, Energy};
/// // A harmonic well of stiffness 3.
/// let well = Closure::new(2, |_t, y: &[f64], score: &mut [f64]| {
///     score.iter_mut().zip(y).for_each(|(s, y)| *s = -3.0 * y);
///     1.5 * y.iter().map(|y| y * y).sum::<f64>()
/// });
/// let mut energy = [0.0];
/// well.energy(&[0.0], &[1.0, 2.0], &mut energy);
/// assert_eq!(energy, [7.5]);
/// ```
pub struct Closure<F> {
    dim: usize,
    function: F,
}

impl<F: Fn(f64, &[f64], &mut [f64]) -> f64 + Send + Sync> Closure<F> {
    /// The energy of points of so many coordinates.
    pub fn new(dim: usize, function: F) -> Closure<F> {
        Closure { dim, function }
    }

    fn each(&self, times: &[f64], points: &[f64], mut out: impl FnMut(usize, f64, &[f64])) {
        for (row, point) in points.chunks_exact(self.dim).enumerate() {
            let time = if times.len() == 1 {
                times[0]
            } else {
                times[row]
            };
            out(row, time, point);
        }
    }
}

impl<F: Fn(f64, &[f64], &mut [f64]) -> f64 + Send + Sync> Energy for Closure<F> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let mut score = vec![0.0; self.dim];
        self.each(times, points, |row, time, point| {
            out[row] = (self.function)(time, point, &mut score);
        });
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.each(times, points, |row, time, point| {
            (self.function)(time, point, &mut out[row * self.dim..][..self.dim]);
        });
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        self.each(times, points, |row, time, point| {
            energy[row] = (self.function)(time, point, &mut score[row * self.dim..][..self.dim]);
        });
    }

    /// By central differences in time.
    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let mut score = vec![0.0; self.dim];
        self.each(times, points, |row, time, point| {
            let h = DIFFERENCE * (1.0 + time.abs());
            let mut at = |time| (self.function)(time, point, &mut score);
            out[row] = (at(time - h) - at(time + h)) / (2.0 * h);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_own_times_and_the_time_score_is_a_derivative() {
        // U = t^3 y0^2 / 2 + y1.
        let energy = Closure::new(2, |t: f64, y: &[f64], score: &mut [f64]| {
            score.copy_from_slice(&[-t.powi(3) * y[0], -1.0]);
            0.5 * t.powi(3) * y[0] * y[0] + y[1]
        });
        let (times, points) = ([0.5, 2.0], [1.5, 0.3, -0.7, 4.0]);
        let (mut u, mut score, mut rate) = ([0.0; 2], [0.0; 4], [0.0; 2]);
        energy.energy_and_score(&times, &points, &mut u, &mut score);
        assert!(
            (u[0] - (0.125 * 1.125 + 0.3)).abs() < 1e-15
                && (u[1] - (4.0 * 0.49 + 4.0)).abs() < 1e-14
        );
        assert_eq!(score, [-0.125 * 1.5, -1.0, 8.0 * 0.7, -1.0]);
        energy.time_score(&times, &points, &mut rate);
        for ((rate, t), y) in rate.iter().zip(times).zip([1.5, -0.7]) {
            assert!((rate + 1.5 * t * t * y * y).abs() < 1e-8, "{rate}");
        }
        let mut single = [0.0; 2];
        energy.energy(&[2.0], &points, &mut single);
        assert_eq!(single[1], u[1]);
    }
}
