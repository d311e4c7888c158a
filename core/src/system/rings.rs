//! Concentric rings in the plane: uniform angle, Gaussian radius (the paper's composition example).

use super::Target;
use super::log_sum::log_sum_exp;
use crate::rng::Stream;
use std::f64::consts::TAU;

/// Rings of radii 1, 3 and 5 with radial standard deviation 0.1 and weights proportional to the radius.
#[derive(Clone, Debug, PartialEq)]
pub struct Rings {
    radii: [f64; 3],
    deviation: f64,
}

impl Default for Rings {
    fn default() -> Self {
        Self {
            radii: [1.0, 3.0, 5.0],
            deviation: 0.1,
        }
    }
}

impl Target for Rings {
    fn dim(&self) -> usize {
        2
    }

    fn sample_row(&self, stream: &mut Stream, out: &mut [f32]) {
        let mut rest = stream.uniform() * self.radii.iter().sum::<f64>();
        let radius = self.radii.iter().copied().find(|r| {
            rest -= r;
            rest < 0.0
        });
        let distance = radius.unwrap_or(self.radii[2]) + self.deviation * stream.normal();
        let (sin, cos) = (TAU * stream.uniform()).sin_cos();
        out[0] = (distance * cos) as f32;
        out[1] = (distance * sin) as f32;
    }

    /// p(x) = sum_r w_r (N(|x|; r, s^2) + N(-|x|; r, s^2)) / (2 pi |x|); the second term is the radius drawn below 0.
    fn log_density(&self, point: &[f64]) -> Option<f64> {
        let distance = point[0].hypot(point[1]);
        let total: f64 = self.radii.iter().sum();
        let mut terms = [0.0; 6];
        for (pair, radius) in terms.chunks_exact_mut(2).zip(self.radii) {
            let at = |d: f64| (radius / total).ln() - 0.5 * ((d - radius) / self.deviation).powi(2);
            pair.copy_from_slice(&[at(distance), at(-distance)]);
        }
        let normaliser = 0.5 * (TAU * self.deviation * self.deviation).ln() + (TAU * distance).ln();
        Some(log_sum_exp(&mut terms) - normaliser)
    }
}
