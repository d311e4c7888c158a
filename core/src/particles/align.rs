//! Alignment: the rotation, never a reflection, that brings a row closest to a reference, after Kabsch (1976) by Horn's quaternions (1987).

use super::{Rotation, centre, centre_of};
use crate::{Error, Result};

/// The rotation `R` that makes `sum_i |R x_i - r_i|^2` least, about the centres of both. Where several do (all particles on a line), it is
/// one of them.
pub fn superposition(row: &[f64], reference: &[f64], space: usize) -> Rotation {
    let centres = [row, reference].map(|row| centre_of(row, space));
    // S_ab = sum_i x_ia r_ib about the centres; numbers of the plane have a third that is zero.
    let mut s = [[0.0; 3]; 3];
    for (x, r) in row.chunks_exact(space).zip(reference.chunks_exact(space)) {
        for (a, x) in x.iter().enumerate() {
            for (b, r) in r.iter().enumerate() {
                s[a][b] += (x - centres[0][a]) * (r - centres[1][b]);
            }
        }
    }
    if space == 2 {
        let angle = (s[0][1] - s[1][0]).atan2(s[0][0] + s[1][1]);
        let half = 0.5 * angle;
        let turn = Rotation::of_quaternion([half.cos(), 0.0, 0.0, half.sin()]);
        return turn.unwrap_or(Rotation::of_identity());
    }
    // The eigenvector of the largest eigenvalue of Horn's matrix is the quaternion.
    let [[xx, xy, xz], [yx, yy, yz], [zx, zy, zz]] = s;
    let horn = [
        [xx + yy + zz, yz - zy, zx - xz, xy - yx],
        [yz - zy, xx - yy - zz, xy + yx, zx + xz],
        [zx - xz, xy + yx, yy - xx - zz, yz + zy],
        [xy - yx, zx + xz, yz + zy, zz - xx - yy],
    ];
    Rotation::of_quaternion(largest(horn)).unwrap_or(Rotation::of_identity())
}

impl Rotation {
    pub(super) fn of_identity() -> Rotation {
        Rotation([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    }
}

/// The eigenvector of the largest eigenvalue of a symmetric matrix, by cyclic Jacobi rotations.
fn largest(mut a: [[f64; 4]; 4]) -> [f64; 4] {
    let mut vectors = [[0.0; 4]; 4];
    for (i, row) in vectors.iter_mut().enumerate() {
        row[i] = 1.0;
    }
    // Quadratic convergence: a handful of sweeps reach rounding.
    for _ in 0..30 {
        let mut off = 0.0;
        for p in 0..4 {
            for q in p + 1..4 {
                off += a[p][q] * a[p][q];
                if a[p][q] == 0.0 {
                    continue;
                }
                let theta = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                let (sin, cos) = theta.sin_cos();
                for row in &mut a {
                    let (x, y) = (row[p], row[q]);
                    (row[p], row[q]) = (cos * x - sin * y, sin * x + cos * y);
                }
                let (x, y) = (a[p], a[q]);
                a[p] = std::array::from_fn(|k| cos * x[k] - sin * y[k]);
                a[q] = std::array::from_fn(|k| sin * x[k] + cos * y[k]);
                for row in &mut vectors {
                    let (x, y) = (row[p], row[q]);
                    (row[p], row[q]) = (cos * x - sin * y, sin * x + cos * y);
                }
            }
        }
        let size: f64 = (0..4).map(|i| a[i][i] * a[i][i]).sum();
        if off <= 1e-32 * size {
            break;
        }
    }
    let best = (0..4).fold(0, |best, i| if a[i][i] > a[best][best] { i } else { best });
    vectors.map(|row| row[best])
}

/// A reference frame: rows are moved to their centre and turned onto it.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    reference: Vec<f64>,
    space: usize,
}

impl Frame {
    /// The frame of a row of particles, in the plane or in space.
    pub fn new(reference: &[f64], particles: usize) -> Result<Frame> {
        let fits = particles > 1 && reference.len().is_multiple_of(particles);
        let space = reference.len() / particles.max(1);
        let finite = reference.iter().all(|x| x.is_finite());
        if !fits || !finite || !Rotation::exist_in(space) {
            return Err(Error::Value {
                name: "particles",
                found: format!("{particles} of {space} numbers"),
                expected: "at least 2 of 2 or 3 finite numbers each, which have orientations"
                    .into(),
            });
        }
        let mut reference = reference.to_vec();
        centre(&mut reference, space);
        Ok(Frame { reference, space })
    }

    /// The row onto which others are turned, about its centre.
    pub fn reference(&self) -> &[f64] {
        &self.reference
    }

    /// Numbers of a particle.
    pub(super) fn space(&self) -> usize {
        self.space
    }

    /// Moves a row to its centre and turns it onto the reference; tells by which rotation. Allocates nothing.
    pub fn align(&self, row: &mut [f64]) -> Rotation {
        centre(row, self.space);
        let rotation = superposition(row, &self.reference, self.space);
        rotation.turn(row, self.space);
        rotation
    }
}
