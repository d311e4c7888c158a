//! Four uniform boxes in the plane, the arms of a cross (the paper's composition example).

use super::Target;
use crate::rng::Stream;

/// Equal mixture of U([-6, -1.6] x [-1.4, 1.4]) and its three rotations by a quarter turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Boxes {
    /// Lower and upper corner of each box: (x, y) and (x, y).
    corners: [[f64; 4]; 4],
}

impl Default for Boxes {
    fn default() -> Self {
        Self {
            corners: [
                [-6.0, -1.4, -1.6, 1.4],
                [-1.4, 1.6, 1.4, 6.0],
                [1.6, -1.4, 6.0, 1.4],
                [-1.4, -6.0, 1.4, -1.6],
            ],
        }
    }
}

impl Target for Boxes {
    fn dim(&self) -> usize {
        2
    }

    fn sample_row(&self, stream: &mut Stream, out: &mut [f32]) {
        let [left, bottom, right, top] = self.corners[stream.below(4) as usize];
        out[0] = (left + (right - left) * stream.uniform()) as f32;
        out[1] = (bottom + (top - bottom) * stream.uniform()) as f32;
    }

    fn log_density(&self, point: &[f64]) -> Option<f64> {
        let density: f64 = self
            .corners
            .iter()
            .filter(|[left, bottom, right, top]| {
                (*left..=*right).contains(&point[0]) && (*bottom..=*top).contains(&point[1])
            })
            .map(|[left, bottom, right, top]| 0.25 / ((right - left) * (top - bottom)))
            .sum();
        Some(density.ln())
    }
}
