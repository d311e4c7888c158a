//! Resampling: `n` ancestors drawn so that particle `i` has `n W_i` descendants on average. The schemes differ in how much the
//! numbers of descendants vary around that (Douc, Cappe, Moulines 2005).

use serde::{Deserialize, Serialize};

use crate::rng::Stream;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["douc2005comparison"];

/// How ancestors are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resampling {
    /// One uniform shared by all: `u_i = (i + u) / n`. A number of descendants is `n W` rounded down or up.
    #[default]
    Systematic,
    /// One uniform in each of `n` equal strata.
    Stratified,
    /// `floor(n W)` descendants for certain, the rest by multinomial draws of what is left.
    Residual,
    /// `n` independent draws.
    Multinomial,
}

impl Resampling {
    /// Names of all schemes.
    pub const NAMES: [&'static str; 4] = ["systematic", "stratified", "residual", "multinomial"];

    /// Fills `ancestors` with particles in rising order, drawn from non-negative `weights` of positive sum.
    pub fn draw(&self, weights: &[f64], stream: &mut Stream, ancestors: &mut [u32]) {
        let n = ancestors.len();
        match self {
            Resampling::Systematic => {
                let shared = stream.uniform();
                let points = (0..n).map(|i| (i as f64 + shared) / n as f64);
                invert(weights, points, ancestors);
            }
            Resampling::Stratified => {
                let points = (0..n).map(|i| (i as f64 + stream.uniform()) / n as f64);
                invert(weights, points, ancestors);
            }
            Resampling::Multinomial => invert(weights, sorted_uniforms(n, stream), ancestors),
            Resampling::Residual => {
                let total: f64 = weights.iter().sum();
                let mut filled = 0;
                let rest: Vec<f64> = weights
                    .iter()
                    .enumerate()
                    .map(|(i, w)| {
                        let expected = n as f64 * w / total;
                        let certain = (expected as usize).min(n - filled);
                        ancestors[filled..filled + certain].fill(i as u32);
                        filled += certain;
                        expected - certain as f64
                    })
                    .collect();
                let left = n - filled;
                invert(
                    &rest,
                    sorted_uniforms(left, stream),
                    &mut ancestors[filled..],
                );
                ancestors.sort_unstable();
            }
        }
    }
}

/// `n` uniforms in rising order, one by one: the spacings of a Poisson process, scaled.
fn sorted_uniforms(n: usize, stream: &mut Stream) -> std::vec::IntoIter<f64> {
    let mut sum = 0.0;
    let mut sums: Vec<f64> = (0..n)
        .map(|_| {
            sum -= stream.uniform().ln();
            sum
        })
        .collect();
    let total = sum - stream.uniform().ln();
    sums.iter_mut().for_each(|value| *value /= total);
    sums.into_iter()
}

/// For every point in (0, 1), rising: the first particle whose running sum of shares exceeds it.
fn invert(weights: &[f64], points: impl Iterator<Item = f64>, ancestors: &mut [u32]) {
    let total: f64 = weights.iter().sum();
    // Rounding must not lead beyond the last particle that has a weight.
    let last = weights.iter().rposition(|w| *w > 0.0).unwrap_or(0);
    let (mut particle, mut sum) = (0, weights[0]);
    for (ancestor, point) in ancestors.iter_mut().zip(points) {
        while sum <= point * total && particle < last {
            particle += 1;
            sum += weights[particle];
        }
        *ancestor = particle as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    const ALL: [Resampling; 4] = [
        Resampling::Systematic,
        Resampling::Stratified,
        Resampling::Residual,
        Resampling::Multinomial,
    ];

    #[test]
    fn descendants_are_proportional_to_weights() {
        let weights = [0.3, 0.0, 2.1, 0.05, 1.0, 0.0];
        let total: f64 = weights.iter().sum();
        let (n, repeats) = (50, 4000);
        for scheme in ALL {
            let mut counts = [0.0; 6];
            let mut ancestors = vec![0; n];
            for repeat in 0..repeats {
                let mut stream = Stream::new(9, Purpose::Resample, repeat, 0);
                scheme.draw(&weights, &mut stream, &mut ancestors);
                assert!(ancestors.is_sorted());
                for &a in &ancestors {
                    counts[a as usize] += 1.0 / repeats as f64;
                }
                if scheme == Resampling::Systematic {
                    for (i, w) in weights.iter().enumerate() {
                        let found = ancestors.iter().filter(|a| **a == i as u32).count() as f64;
                        assert!((found - n as f64 * w / total).abs() < 1.0);
                    }
                }
            }
            for (count, weight) in counts.iter().zip(weights) {
                let share = weight / total;
                // A multinomial count has the largest variance of all schemes, n p (1 - p); 4 sigma of its mean.
                let allowed = 4.0 * (n as f64 * share * (1.0 - share) / repeats as f64).sqrt();
                assert!(
                    (count - n as f64 * share).abs() <= allowed + 1e-9,
                    "{scheme:?}: {count} {share}"
                );
            }
        }
    }

    #[test]
    fn one_heavy_particle_takes_all() {
        for scheme in ALL {
            let mut ancestors = [9; 7];
            let mut stream = Stream::new(1, Purpose::Resample, 0, 0);
            scheme.draw(&[0.0, 1e-300, 5.0], &mut stream, &mut ancestors);
            assert_eq!(ancestors, [2; 7], "{scheme:?}");
        }
    }

    #[test]
    fn names_are_those_of_files() {
        for (scheme, name) in ALL.iter().zip(Resampling::NAMES) {
            assert_eq!(
                serde_json::to_string(scheme).unwrap(),
                format!("\"{name}\"")
            );
        }
    }
}
