//! The subspace of rows whose centre is zero, as plain coordinates: an isometry between `n - 1` points and `n` particles without a centre.
//!
//! It is the Householder reflection that takes the last axis of `R^n` to the centre, `(1, ..., 1) / sqrt(n)`, for each axis of space alike:
//! ```text
//! x_i = y_i - S / (n - sqrt(n)),  i < n,      x_n = S / sqrt(n),      S = y_1 + ... + y_(n-1)
//! y_i = x_i + (x_n - (x_1 + ... + x_n) / sqrt(n)) / (sqrt(n) - 1)
//! ```
//! Lengths stay: a standard Gaussian of `y` is that of `x` in the subspace, a density of `y` is one of dimension `space (n - 1)`, and the gradient in
//! `x` is the image of that in `y`. Rotations of space act on the `y_i` as on the `x_i`. A row that has a centre loses it.

use crate::{Error, Result};

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subspace {
    particles: usize,
    space: usize,
}

impl Subspace {
    /// For so many particles of so many numbers each.
    pub fn new(particles: usize, space: usize) -> Result<Subspace> {
        if particles < 2 || space == 0 {
            return Err(Error::Value {
                name: "particles",
                found: format!("{particles} of {space} numbers"),
                expected: "at least 2 of at least 1: one alone has no place without its centre"
                    .into(),
            });
        }
        Ok(Subspace { particles, space })
    }

    /// Numbers of a row of particles.
    pub fn columns(&self) -> usize {
        self.particles * self.space
    }

    /// Dimension of the subspace.
    pub fn dim(&self) -> usize {
        (self.particles - 1) * self.space
    }

    /// Factors of `S` in the first particles and in the last.
    pub(crate) fn factors(particles: usize) -> [f64; 2] {
        let n = particles as f64;
        [-1.0 / (n - n.sqrt()), 1.0 / n.sqrt()]
    }

    /// Factor of the last particle, and of the sum of all, in `y_i`.
    pub(crate) fn inverse_factors(particles: usize) -> [f64; 2] {
        let n = particles as f64;
        let last = 1.0 / (n.sqrt() - 1.0);
        [last, -last / n.sqrt()]
    }

    /// Particles to coordinates of the subspace: `y` of the module's text.
    pub fn inward(&self, row: &[f64], out: &mut [f64]) {
        let (space, dim) = (self.space, self.dim());
        let [of_last, of_sum] = Subspace::inverse_factors(self.particles);
        out.copy_from_slice(&row[..dim]);
        for axis in 0..space {
            let sum: f64 = row.iter().skip(axis).step_by(space).sum();
            let common = of_last * row[dim + axis] + of_sum * sum;
            out.iter_mut()
                .skip(axis)
                .step_by(space)
                .for_each(|y| *y += common);
        }
    }

    /// Coordinates of the subspace to particles: `x` of the module's text. Gradients go the same way.
    pub fn outward(&self, point: &[f64], out: &mut [f64]) {
        let (space, dim) = (self.space, self.dim());
        let [of_first, of_last] = Subspace::factors(self.particles);
        out[..dim].copy_from_slice(point);
        for axis in 0..space {
            let sum: f64 = point.iter().skip(axis).step_by(space).sum();
            for x in out[..dim].iter_mut().skip(axis).step_by(space) {
                *x += of_first * sum;
            }
            out[dim + axis] = of_last * sum;
        }
    }

    /// [`inward`](Subspace::inward) of many rows.
    pub fn rows_inward(&self, rows: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; rows.len() / self.columns() * self.dim()];
        let pairs = rows
            .chunks_exact(self.columns())
            .zip(out.chunks_exact_mut(self.dim()));
        pairs.for_each(|(row, out)| self.inward(row, out));
        out
    }

    /// [`outward`](Subspace::outward) of many rows.
    pub fn rows_outward(&self, points: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; points.len() / self.dim() * self.columns()];
        let pairs = points
            .chunks_exact(self.dim())
            .zip(out.chunks_exact_mut(self.columns()));
        pairs.for_each(|(point, out)| self.outward(point, out));
        out
    }
}
