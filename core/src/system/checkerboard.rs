//! The black squares of a 4 x 4 board on [-4, 4]^2.

use super::Target;
use crate::rng::Stream;

/// Uniform over the eight squares of side 2 whose column and row numbers have an even sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkerboard {}

impl Target for Checkerboard {
    fn dim(&self) -> usize {
        2
    }

    fn sample_row(&self, stream: &mut Stream, out: &mut [f32]) {
        let square = stream.below(8);
        let (column, half) = (square / 2, square % 2);
        let row = 2 * half + column % 2;
        out[0] = (2.0 * (column as f64 + stream.uniform()) - 4.0) as f32;
        out[1] = (2.0 * (row as f64 + stream.uniform()) - 4.0) as f32;
    }

    fn log_density(&self, point: &[f64]) -> Option<f64> {
        let (column, row) = (
            ((point[0] + 4.0) / 2.0).floor(),
            ((point[1] + 4.0) / 2.0).floor(),
        );
        let inside = (0.0..4.0).contains(&column) && (0.0..4.0).contains(&row);
        let black = inside && (column + row) % 2.0 == 0.0;
        Some(if black {
            -(32.0_f64).ln()
        } else {
            f64::NEG_INFINITY
        })
    }
}
