//! Two pairs of modes at the corners of a square (the paper's OR composition): the upper pair with weights 0.3 and 0.7, the lower
//! one with 0.7 and 0.3.

use super::{Covariance, GaussianMixture};
use crate::Result;

/// Distance of a corner from the axes.
const CORNER: f64 = 0.5;

/// `N((-0.5, y), 0.01 I)` with weight `left` and `N((0.5, y), 0.01 I)` with the rest.
fn pair(height: f64, left: f64) -> Result<GaussianMixture> {
    GaussianMixture::new(
        2,
        vec![left, 1.0 - left],
        vec![-CORNER, height, CORNER, height],
        Covariance::Isotropic(vec![0.01; 2]),
    )
}

/// Modes at (-0.5, 0.5) and (0.5, 0.5) with weights 0.3 and 0.7.
pub fn upper_pair() -> Result<GaussianMixture> {
    pair(CORNER, 0.3)
}

/// Modes at (-0.5, -0.5) and (0.5, -0.5) with weights 0.7 and 0.3.
pub fn lower_pair() -> Result<GaussianMixture> {
    pair(-CORNER, 0.7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn have_the_papers_numbers() {
        for (mixture, height, left) in [(upper_pair(), 0.5, 0.3), (lower_pair(), -0.5, 0.7)] {
            let mixture = mixture.unwrap();
            assert_eq!(mixture.component_mean(0), [-0.5, height]);
            assert!((mixture.weights()[0] - left).abs() < 1e-15);
            // Along x: 4 w (1 - w) / 4 between the modes and 0.01 within.
            assert!((mixture.variance() - 0.5 * (0.21 + 0.02)).abs() < 1e-12);
        }
    }
}
