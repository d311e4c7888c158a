//! Chains of beads in space whose bonds are independent: particle systems with exact log-densities, samples and mode weights.

use std::f64::consts::PI;

use crate::particles::centre;
use crate::rng::Stream;
use crate::{Error, Result};

/// Energy of a bond of length r, in kT.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bond {
    /// `k r^2 / 2`: the chain is Gaussian.
    Harmonic {
        /// Spring constant.
        k: f64,
    },
    /// `height (r - short)^2 (r - long)^2 / ((long - short) / 2)^4 + tilt (r - short) / (long - short)`: two lengths.
    DoubleWell {
        /// The shorter length.
        short: f64,
        /// The longer length.
        long: f64,
        /// Height of the barrier.
        height: f64,
        /// How much more energy the longer one has.
        tilt: f64,
    },
}

impl Bond {
    fn energy(&self, r: f64) -> f64 {
        match *self {
            Bond::Harmonic { k } => 0.5 * k * r * r,
            Bond::DoubleWell {
                short,
                long,
                height,
                tilt,
            } => {
                let half = 0.5 * (long - short);
                let square = (r - short) * (r - long) / (half * half);
                height * square * square + tilt * (r - short) / (long - short)
            }
        }
    }
}

/// Points of the table of a bond's length.
const POINTS: usize = 20_001;

/// `u(x) = sum_i V(|x_{i+1} - x_i|)` of n beads without their centre. With `Z = 4 pi int r^2 exp(-V) dr` of one bond,
/// `log p = -u - (n - 1) log Z + 3/2 log n` in the `3 n - 3` dimensions of the subspace: the map from its coordinates to the bonds has determinant
/// `sqrt(n)` along each axis of space, the root of the product of the chain's Laplacian eigenvalues.
#[derive(Debug, Clone)]
pub struct BeadChain {
    beads: usize,
    bond: Bond,
    log_z: f64,
    /// Lengths, and the share of bonds that are no longer.
    lengths: Vec<f64>,
    shares: Vec<f64>,
}

impl BeadChain {
    /// So many beads with bonds of this kind.
    pub fn new(beads: usize, bond: Bond) -> Result<BeadChain> {
        let longest = match bond {
            Bond::Harmonic { k } => 12.0 / k.sqrt(),
            Bond::DoubleWell { short, long, .. } => long + 2.0 * (long - short),
        };
        let sane = match bond {
            Bond::Harmonic { k } => k.is_finite() && k > 0.0,
            Bond::DoubleWell {
                short,
                long,
                height,
                tilt,
            } => short > 0.0 && long > short && height > 0.0 && tilt.abs() < 1e3,
        };
        if beads < 2 || !sane || !longest.is_finite() {
            return Err(Error::Value {
                name: "chain of beads",
                found: format!("{beads} beads, {bond:?}"),
                expected: "at least two beads, and bonds that hold them together".into(),
            });
        }
        let h = longest / (POINTS - 1) as f64;
        let lengths: Vec<f64> = (0..POINTS).map(|k| k as f64 * h).collect();
        let weight = |r: f64| r * r * (-bond.energy(r)).exp();
        // The trapezoid rule: the integrand vanishes at both ends.
        let mut shares = Vec::with_capacity(POINTS);
        let (mut sum, mut before) = (0.0, 0.0);
        for &r in &lengths {
            let now = weight(r);
            sum += 0.5 * h * (before + now);
            shares.push(sum);
            before = now;
        }
        shares.iter_mut().for_each(|share| *share /= sum);
        Ok(BeadChain {
            beads,
            bond,
            log_z: (4.0 * PI * sum).ln(),
            lengths,
            shares,
        })
    }

    /// Numbers of a row.
    pub fn columns(&self) -> usize {
        3 * self.beads
    }

    /// Lengths of the bonds of a row.
    pub fn bonds<'a>(&self, row: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        row.windows(6).step_by(3).map(|pair| {
            let square: f64 = (0..3).map(|c| (pair[3 + c] - pair[c]).powi(2)).sum();
            square.sqrt()
        })
    }

    /// u(x).
    pub fn energy(&self, row: &[f64]) -> f64 {
        self.bonds(row).map(|r| self.bond.energy(r)).sum()
    }

    /// log p of a row in the dimensions of the subspace; the centre does not matter.
    pub fn log_density(&self, row: &[f64]) -> f64 {
        let bonds = (self.beads - 1) as f64;
        1.5 * (self.beads as f64).ln() - bonds * self.log_z - self.energy(row)
    }

    /// Share of bonds that are longer than this.
    pub fn share_longer(&self, r: f64) -> f64 {
        let at = self.lengths.partition_point(|length| *length < r);
        1.0 - self.shares.get(at).copied().unwrap_or(1.0)
    }

    /// A row with its centre at zero.
    pub fn sample_row(&self, stream: &mut Stream, row: &mut [f64]) {
        row[..3].fill(0.0);
        for bead in 1..self.beads {
            let u = stream.uniform();
            let above = self.shares.partition_point(|share| *share < u);
            let above = above.clamp(1, POINTS - 1);
            let (low, high) = (self.shares[above - 1], self.shares[above]);
            let part = if high > low {
                (u - low) / (high - low)
            } else {
                0.5
            };
            let step = self.lengths[above] - self.lengths[above - 1];
            let r = self.lengths[above - 1] + part * step;
            let direction: [f64; 3] = std::array::from_fn(|_| stream.normal());
            let length = direction
                .iter()
                .map(|x| x * x)
                .sum::<f64>()
                .sqrt()
                .max(1e-12);
            for c in 0..3 {
                row[3 * bead + c] = row[3 * (bead - 1) + c] + direction[c] * r / length;
            }
        }
        centre(row, 3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::particles::Subspace;
    use crate::rng::Purpose;
    use crate::system::{Covariance, GaussianMixture};

    const WELL: Bond = Bond::DoubleWell {
        short: 1.0,
        long: 2.2,
        height: 4.0,
        tilt: 1.3,
    };

    /// The harmonic chain is a Gaussian of the subspace, whose covariance follows from independent bonds.
    #[test]
    fn a_harmonic_chain_is_the_gaussian_of_the_subspace() {
        let (n, k) = (4, 1.7);
        let chain = BeadChain::new(n, Bond::Harmonic { k }).unwrap();
        let subspace = Subspace::new(n, 3).unwrap();
        let dim = subspace.dim();
        // Coordinates of the subspace for a unit bond along each axis: columns of the map from bonds.
        let mut covariance = vec![0.0; dim * dim];
        for bond in 0..n - 1 {
            for axis in 0..3 {
                let mut row = vec![0.0; 3 * n];
                for bead in bond + 1..n {
                    row[3 * bead + axis] = 1.0;
                }
                let column = subspace.rows_inward(&row);
                for i in 0..dim {
                    for j in 0..dim {
                        covariance[i * dim + j] += column[i] * column[j] / k;
                    }
                }
            }
        }
        let covariance = Covariance::Full(covariance);
        let law = GaussianMixture::new(dim, vec![1.0], vec![0.0; dim], covariance).unwrap();
        let mut stream = Stream::new(3, Purpose::Test, 0, 0);
        let mut row = vec![0.0; 3 * n];
        for _ in 0..5 {
            chain.sample_row(&mut stream, &mut row);
            let (found, exact) = (
                chain.log_density(&row),
                law.log_density(&subspace.rows_inward(&row)),
            );
            // The quadrature of Z and rounding.
            assert!((found - exact).abs() < 1e-5, "{found} {exact}");
        }
    }

    #[test]
    fn bonds_have_their_law_and_no_preferred_direction() {
        let chain = BeadChain::new(3, WELL).unwrap();
        let draws = 20_000;
        let (mut longer, mut mean, mut square) = (0.0, [0.0; 3], 0.0);
        let mut row = [0.0; 9];
        for k in 0..draws {
            let mut stream = Stream::new(5, Purpose::Test, 0, k);
            chain.sample_row(&mut stream, &mut row);
            longer += chain.bonds(&row).filter(|r| *r > 1.6).count() as f64;
            for (c, mean) in mean.iter_mut().enumerate() {
                *mean += row[3 + c] - row[c];
                assert!((row[c] + row[3 + c] + row[6 + c]).abs() < 1e-12);
            }
            square += chain.bonds(&row).map(|r| r * r).sum::<f64>();
        }
        let (share, count) = (chain.share_longer(1.6), 2.0 * draws as f64);
        let error = (share * (1.0 - share) / count).sqrt();
        assert!((longer / count - share).abs() < 4.0 * error, "{share}");
        // Unequal on purpose: the volume of longer bonds works against the tilt.
        assert!(share > 0.4 && share < 0.75, "{share}");
        let error = (square / count / 3.0 / draws as f64).sqrt();
        for mean in mean {
            assert!((mean / draws as f64).abs() < 4.0 * error);
        }
        assert!(BeadChain::new(1, WELL).is_err());
        assert!(BeadChain::new(3, Bond::Harmonic { k: -1.0 }).is_err());
    }
}
