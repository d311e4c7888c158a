//! Rows of particles, `x1 y1 z1 x2 y2 z2 ...`: their centre, their orientation, and how to be rid of both.

mod align;
mod rotation;
mod subspace;
mod view;

pub use align::{Frame, superposition};
pub use rotation::Rotation;
pub use subspace::Subspace;
pub use view::View;

/// The mean of all particles, of up to three numbers each.
fn centre_of(row: &[f64], space: usize) -> [f64; 3] {
    let particles = (row.len() / space) as f64;
    let mut centre = [0.0; 3];
    for (k, x) in row.iter().enumerate() {
        centre[k % space] += x / particles;
    }
    centre
}

/// Moves a row of the plane or of space to its centre: the mean of all particles becomes zero.
pub fn centre(row: &mut [f64], space: usize) {
    let centre = centre_of(row, space);
    for (k, x) in row.iter_mut().enumerate() {
        *x -= centre[k % space];
    }
}

#[cfg(test)]
mod tests;
