//! Rotations of the plane and of space, drawn uniformly.

use crate::rng::Stream;

/// A rotation; in the plane the third axis stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotation(pub(super) [[f64; 3]; 3]);

impl Rotation {
    /// Whether there are rotations of so many numbers a particle: in the plane and in space.
    pub fn exist_in(space: usize) -> bool {
        space == 2 || space == 3
    }

    /// Uniform over all rotations of the plane (`space` 2) or of space.
    pub fn random(space: usize, stream: &mut Stream) -> Rotation {
        if space == 2 {
            let (sin, cos) = (std::f64::consts::TAU * stream.uniform()).sin_cos();
            return Rotation([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]]);
        }
        loop {
            // A Gaussian of four numbers has no preferred direction.
            let q: [f64; 4] = std::array::from_fn(|_| stream.normal());
            if let Some(rotation) = Rotation::of_quaternion(q) {
                return rotation;
            }
        }
    }

    /// Of a quaternion of any length but zero.
    pub fn of_quaternion([w, x, y, z]: [f64; 4]) -> Option<Rotation> {
        let square = w * w + x * x + y * y + z * z;
        if !(square.is_finite() && square > 1e-12) {
            return None;
        }
        let s = 2.0 / square;
        Some(Rotation([
            [
                1.0 - s * (y * y + z * z),
                s * (x * y - w * z),
                s * (x * z + w * y),
            ],
            [
                s * (x * y + w * z),
                1.0 - s * (x * x + z * z),
                s * (y * z - w * x),
            ],
            [
                s * (x * z - w * y),
                s * (y * z + w * x),
                1.0 - s * (x * x + y * y),
            ],
        ]))
    }

    /// Turns every particle of a row about the origin.
    pub fn turn(&self, row: &mut [f64], space: usize) {
        for particle in row.chunks_exact_mut(space) {
            let mut turned = [0.0; 3];
            for (turned, factors) in turned.iter_mut().zip(&self.0) {
                *turned = particle.iter().zip(factors).map(|(x, f)| x * f).sum();
            }
            particle.copy_from_slice(&turned[..space]);
        }
    }

    /// Turns every particle of a row the other way.
    pub fn turn_back(&self, row: &mut [f64], space: usize) {
        let r = self.0;
        let back = [0, 1, 2].map(|i| [0, 1, 2].map(|j| r[j][i]));
        Rotation(back).turn(row, space);
    }

    /// Turns a row in single precision about its centre, or about the origin, where its centre is if it has none.
    pub(crate) fn turn_rounded(&self, row: &mut [f32], space: usize, about_centre: bool) {
        let mut centre = [0.0; 3];
        if about_centre {
            let particles = (row.len() / space) as f64;
            for (k, x) in row.iter().enumerate() {
                centre[k % space] += f64::from(*x) / particles;
            }
        }
        for particle in row.chunks_exact_mut(space) {
            let mut gap = [0.0; 3];
            for ((gap, x), c) in gap.iter_mut().zip(particle.iter()).zip(centre) {
                *gap = f64::from(*x) - c;
            }
            self.turn(&mut gap[..space], space);
            for ((x, gap), c) in particle.iter_mut().zip(gap).zip(centre) {
                *x = (gap + c) as f32;
            }
        }
    }
}
