//! Two interleaved half circles with Gaussian noise (sampler only).

use super::Target;
use crate::rng::Stream;
use std::f64::consts::PI;

/// Upper half circle around (0, 0) and lower half circle around (1, 1/2), radius 1, noise 0.1, moved to zero mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Moons {
    deviation: f64,
}

impl Default for Moons {
    fn default() -> Self {
        Self { deviation: 0.1 }
    }
}

impl Target for Moons {
    fn dim(&self) -> usize {
        2
    }

    fn sample_row(&self, stream: &mut Stream, out: &mut [f32]) {
        let upper = stream.below(2) == 0;
        let (sin, cos) = (PI * stream.uniform()).sin_cos();
        let (x, y) = if upper {
            (cos, sin)
        } else {
            (1.0 - cos, 0.5 - sin)
        };
        out[0] = (x - 0.5 + self.deviation * stream.normal()) as f32;
        out[1] = (y - 0.25 + self.deviation * stream.normal()) as f32;
    }

    fn log_density(&self, _point: &[f64]) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    #[test]
    fn points_lie_near_two_half_circles_of_zero_mean() {
        let moons = Moons::default();
        let n = 20_000;
        let (mut mean, mut squares) = ([0.0; 2], 0.0);
        for row in 0..n {
            let mut point = [0.0; 2];
            moons.sample_row(&mut Stream::new(1, Purpose::Test, 0, row), &mut point);
            let (x, y) = (f64::from(point[0]) + 0.5, f64::from(point[1]) + 0.25);
            let off = (x.hypot(y) - 1.0)
                .abs()
                .min(((x - 1.0).hypot(y - 0.5) - 1.0).abs());
            // 6 sigma of the noise: exceeded with probability 2e-9 per point.
            assert!(off < 0.6);
            mean[0] += f64::from(point[0]) / n as f64;
            mean[1] += f64::from(point[1]) / n as f64;
            squares += f64::from(point[0]).powi(2) / n as f64;
        }
        // Var x = 1/2 + 1/4 + 0.01; Var y is below 1/4 + 0.01.
        assert!(
            mean[0].abs() < 4.0 * (0.76 / n as f64).sqrt()
                && mean[1].abs() < 4.0 * (0.26 / n as f64).sqrt()
        );
        // x^2 lies in [0, 4], so its variance is below 4.
        assert!((squares - 0.76).abs() < 4.0 * (4.0 / n as f64).sqrt());
    }
}
