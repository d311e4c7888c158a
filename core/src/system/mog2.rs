//! MOG-2 (Grenioux et al. 2024): two Gaussians at -5 and +5 along the diagonal with weights 2/3 and 1/3, standardised.

use super::{Covariance, GaussianMixture};
use crate::Result;

/// Means -5 (1, ..., 1) and +5 (1, ..., 1), covariance 0.05 I, weights 2/3 and 1/3; then zero mean, unit scalar variance.
pub fn mog2(dim: usize) -> Result<GaussianMixture> {
    let means = [vec![-5.0; dim], vec![5.0; dim]].concat();
    let raw = GaussianMixture::new(
        dim,
        vec![2.0, 1.0],
        means,
        Covariance::Isotropic(vec![0.05; 2]),
    )?;
    raw.standardised()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_papers_numbers() {
        let mixture = mog2(6).unwrap();
        // Raw mean -5/3 and variance 25 - 25/9 + 0.05 in every coordinate.
        let scale = (25.0 - 25.0 / 9.0 + 0.05_f64).sqrt();
        for (mean, expected) in [
            (mixture.component_mean(0), -10.0 / 3.0),
            (mixture.component_mean(1), 20.0 / 3.0),
        ] {
            assert!(mean.iter().all(|m| (m - expected / scale).abs() < 1e-13));
        }
        assert!((mixture.weights()[0] - 2.0 / 3.0).abs() < 1e-15);
        assert!((mixture.variance() - 1.0).abs() < 1e-13);
    }
}
