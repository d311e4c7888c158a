//! The noise of periodic columns as far as a noisy point tells it: `E[z | x_0, y up to whole periods]`, so that `-z / gamma` is the score of the
//! wrapped kernel. The noise itself has the same mean and much more spread where it is wider than a period.

use super::fill::{Fill, Filler, Setup, Tile};
use crate::base::mean_distances;
use crate::energy::ModelSpec;
use crate::engine::Real;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WrappedNoise;

impl Filler for WrappedNoise {
    fn shapes(&self, spec: &ModelSpec, levels: usize) -> Vec<(usize, usize)> {
        vec![(levels, spec.dim)]
    }

    fn build<T: Real>(&self, _: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<T>> {
        Box::new(Told { noise: slots[0] })
    }
}

struct Told {
    noise: usize,
}

/// Rows that are worked on at once.
const BLOCK: usize = 16;

impl<T: Real> Fill<T> for Told {
    fn fill(&self, tile: &mut Tile<'_, '_, T>) {
        let (d, mixing, rows) = (tile.spec.dim, tile.mixing, tile.rows);
        let [z, out] = tile.inputs.many([rows.noise, self.noise]);
        out.copy_from_slice(z);
        let blocks = out.chunks_mut(BLOCK * d).zip(mixing.chunks(BLOCK));
        for (out, mixing) in blocks {
            for (j, period) in tile.spec.periods().iter().enumerate() {
                if *period == 0.0 {
                    continue;
                }
                let (mut away, mut variance) = ([0.0; BLOCK], [1.0; BLOCK]);
                for (k, c) in mixing.iter().enumerate() {
                    let gamma = c.gamma.to_f64();
                    away[k] = gamma * out[k * d + j].to_f64();
                    variance[k] = gamma * gamma;
                }
                mean_distances(&mut away, &variance, *period);
                for (k, c) in mixing.iter().enumerate() {
                    out[k * d + j] = T::from_f64(away[k] / c.gamma.to_f64());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::base::mean_distances;
    use crate::rng::{Purpose, Stream};

    /// Given the point up to whole periods, what is told is the mean of the noise: in narrow bins of the point both have the same average.
    #[test]
    fn what_is_told_is_the_mean_of_the_noise() {
        let (period, gamma, bins) = (2.0, 0.9, 8);
        let (mut told, mut drawn, mut square, mut counts) =
            ([0.0; 8], [0.0; 8], [0.0; 8], [0.0; 8]);
        for i in 0..200_000 {
            let noise = gamma * Stream::new(3, Purpose::Test, 1, i).normal();
            let mut away = [noise; 16];
            mean_distances(&mut away, &[gamma * gamma; 16], period);
            let place = (noise / period).rem_euclid(1.0);
            let bin = (place * f64::from(bins)) as usize;
            told[bin] += away[0];
            drawn[bin] += noise;
            square[bin] += (noise - away[0]).powi(2);
            counts[bin] += 1.0;
        }
        for bin in 0..8 {
            let error = (square[bin]).sqrt() / counts[bin];
            let gap = (told[bin] - drawn[bin]) / counts[bin];
            assert!(gap.abs() < 4.0 * error, "{bin}: {gap} {error}");
        }
        // Narrow noise is told as it is.
        let mut away = [0.3; 16];
        mean_distances(&mut away, &[0.01; 16], period);
        assert!((away[0] - 0.3).abs() < 1e-12);
    }
}
