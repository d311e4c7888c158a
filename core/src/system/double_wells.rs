//! Double wells coupled to a neighbour: multimodal energies whose normaliser is a chain of one-dimensional integrals.

use crate::{Error, Result};

/// `u(x) = scale * [ sum_i (a (x_i^2 - 1)^2 + b x_i) + c sum_i x_i x_{i+1} ]` (kT) on a chain of d coordinates.
///
/// The tilt b makes the wells unequal; the coupling c makes them prefer the side of their neighbours (c < 0). Z is a product
/// of transfer matrices, exact to rounding on a fine lattice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DoubleWells {
    /// Number of coordinates.
    pub dim: usize,
    /// Height of the barrier.
    pub barrier: f64,
    /// Tilt.
    pub tilt: f64,
    /// Coupling of neighbours.
    pub coupling: f64,
    /// Factor of the whole energy: an inverse temperature.
    pub scale: f64,
}

/// Lattice of the quadrature. The integrand vanishes at the ends, where the trapezoid rule is then exact to rounding.
const POINTS: usize = 801;
const HALF_WIDTH: f64 = 5.0;

impl DoubleWells {
    /// Refuses energies that cannot be normalised on the lattice.
    pub fn validate(&self) -> Result<()> {
        let edge = self.scale
            * (self.barrier * (HALF_WIDTH * HALF_WIDTH - 1.0).powi(2)
                - HALF_WIDTH * self.tilt.abs()
                - HALF_WIDTH * HALF_WIDTH * self.coupling.abs());
        if self.dim > 0 && edge > 60.0 && edge.is_finite() {
            return Ok(());
        }
        Err(Error::Value {
            name: "double wells",
            found: format!("{self:?}"),
            expected: "at least one coordinate, and a barrier that confines it to |x| < 5".into(),
        })
    }

    /// u(x).
    pub fn energy(&self, point: &[f64]) -> f64 {
        let own: f64 = point.iter().map(|x| self.own(*x)).sum();
        let pairs: f64 = point.windows(2).map(|pair| pair[0] * pair[1]).sum();
        own + self.scale * self.coupling * pairs
    }

    fn own(&self, x: f64) -> f64 {
        self.scale * (self.barrier * (x * x - 1.0).powi(2) + self.tilt * x)
    }

    /// log Z by quadrature: `v <- T v` with `T(x, y) = exp(-own(y) - c x y) dy`, d - 1 times.
    pub fn log_z(&self) -> Result<f64> {
        self.validate()?;
        let h = 2.0 * HALF_WIDTH / (POINTS - 1) as f64;
        let x: Vec<f64> = (0..POINTS).map(|i| -HALF_WIDTH + i as f64 * h).collect();
        let weight: Vec<f64> = x.iter().map(|x| (-self.own(*x)).exp() * h).collect();
        let mut message = vec![1.0; POINTS];
        let mut log_scale = 0.0;
        for _ in 1..self.dim {
            let next: Vec<f64> = x
                .iter()
                .map(|x_i| {
                    let factor = self.scale * self.coupling * x_i;
                    x.iter()
                        .zip(weight.iter().zip(&message))
                        .map(|(y, (w, m))| w * m * (-factor * y).exp())
                        .sum()
                })
                .collect();
            let largest = next.iter().copied().fold(0.0, f64::max);
            log_scale += largest.ln();
            message = next.iter().map(|m| m / largest).collect();
        }
        let last: f64 = weight.iter().zip(&message).map(|(w, m)| w * m).sum();
        Ok(log_scale + last.ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELLS: DoubleWells = DoubleWells {
        dim: 3,
        barrier: 1.7,
        tilt: 0.3,
        coupling: -0.4,
        scale: 1.2,
    };

    /// Against a plain triple sum on a coarse lattice, on which the trapezoid rule is already exact to 1e-8.
    #[test]
    fn the_transfer_matrix_agrees_with_the_triple_sum() {
        let (h, n) = (0.1, 29);
        let place = |i: i32| f64::from(i) * h;
        let mut sum = 0.0;
        for i in -n..=n {
            for j in -n..=n {
                for k in -n..=n {
                    sum += (-WELLS.energy(&[place(i), place(j), place(k)])).exp() * h * h * h;
                }
            }
        }
        assert!((sum.ln() - WELLS.log_z().unwrap()).abs() < 1e-7);
    }

    #[test]
    fn uncoupled_wells_multiply_and_wide_ones_are_refused() {
        let single = DoubleWells {
            dim: 1,
            coupling: 0.0,
            ..WELLS
        };
        let many = DoubleWells {
            dim: 6,
            coupling: 0.0,
            ..WELLS
        };
        assert!((many.log_z().unwrap() - 6.0 * single.log_z().unwrap()).abs() < 1e-11);
        assert!(
            DoubleWells {
                barrier: 0.0,
                ..WELLS
            }
            .log_z()
            .is_err()
        );
        assert!(DoubleWells { dim: 0, ..WELLS }.validate().is_err());
    }
}
