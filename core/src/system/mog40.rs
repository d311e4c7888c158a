//! MOG-40 (Midgley et al. 2023): forty Gaussians with means uniform in [-40, 40]^d, standardised.

use super::{Covariance, GaussianMixture};
use crate::Result;
use crate::rng::{Purpose, Stream};

/// Forty equal components, means U([-40, 40]^dim) drawn from `seed`, covariance log(1 + e) I; then zero mean, unit scalar variance.
pub fn mog40(dim: usize, seed: u64) -> Result<GaussianMixture> {
    const COMPONENTS: usize = 40;
    let mut means = Vec::with_capacity(COMPONENTS * dim);
    for k in 0..COMPONENTS as u64 {
        let mut stream = Stream::new(seed, Purpose::System, 40, k);
        means.extend((0..dim).map(|_| 80.0 * stream.uniform() - 40.0));
    }
    let variance = std::f64::consts::E.ln_1p();
    let raw = GaussianMixture::new(
        dim,
        vec![1.0; COMPONENTS],
        means,
        Covariance::Isotropic(vec![variance; COMPONENTS]),
    )?;
    raw.standardised()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_standardised_and_fixed_by_its_seed() {
        let mixture = mog40(8, 0).unwrap();
        assert_eq!((mixture.components(), mixture.dim()), (40, 8));
        assert!(
            mixture.mean().iter().all(|m| m.abs() < 1e-13)
                && (mixture.variance() - 1.0).abs() < 1e-12
        );
        assert_eq!(mixture, mog40(8, 0).unwrap());
        assert_ne!(mixture, mog40(8, 1).unwrap());
        // Raw scalar variance is near 80^2/12 + 1.31 = 534.6, so a component's standardised variance is near 0.00246.
        let Covariance::Isotropic(variances) = mixture.covariance() else {
            panic!("isotropic")
        };
        assert!(
            (variances[0] / 0.00246 - 1.0).abs() < 0.2,
            "{}",
            variances[0]
        );
    }
}
