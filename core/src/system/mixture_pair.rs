//! Two unlike mixtures in any dimension: the ends of a path whose free-energy difference is known.

use super::{Covariance, GaussianMixture};
use crate::Result;

/// Point k of a fixed pattern on the sphere of this radius.
fn place(dim: usize, k: usize, radius: f64) -> Vec<f64> {
    let raw: Vec<f64> = (0..dim)
        .map(|i| (1.3 + 2.4 * i as f64 + 1.9 * k as f64 * (1 + i % 3) as f64).cos())
        .collect();
    let norm = raw.iter().map(|x| x * x).sum::<f64>().sqrt();
    raw.iter().map(|x| radius * x / norm).collect()
}

/// Two modes of weights 0.7 and 0.3 and different widths.
pub fn pair_a(dim: usize) -> Result<GaussianMixture> {
    let means = [place(dim, 0, 2.0), place(dim, 1, 2.2)].concat();
    GaussianMixture::new(
        dim,
        vec![0.7, 0.3],
        means,
        Covariance::Isotropic(vec![0.35, 0.6]),
    )
}

/// Three modes of weights 0.2, 0.5 and 0.3, elsewhere.
pub fn pair_b(dim: usize) -> Result<GaussianMixture> {
    let means = [place(dim, 2, 2.3), place(dim, 3, 1.8), place(dim, 4, 2.1)].concat();
    GaussianMixture::new(
        dim,
        vec![0.2, 0.5, 0.3],
        means,
        Covariance::Isotropic(vec![0.5, 0.3, 0.7]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_apart_in_every_dimension() {
        for dim in [2, 8, 16] {
            for mixture in [pair_a(dim).unwrap(), pair_b(dim).unwrap()] {
                for k in 0..mixture.components() {
                    for j in 0..k {
                        let distance: f64 = mixture
                            .component_mean(k)
                            .iter()
                            .zip(mixture.component_mean(j))
                            .map(|(a, b)| (a - b).powi(2))
                            .sum();
                        assert!(distance.sqrt() > 1.2, "{dim} {j} {k} {}", distance.sqrt());
                    }
                }
            }
        }
        assert!(pair_a(0).is_err());
    }
}
