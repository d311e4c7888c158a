//! Mirror points `X_t - gamma z`, for antithetic estimates.

use super::fill::{Fill, Filler, Setup, Tile};
use crate::energy::ModelSpec;
use crate::engine::Real;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mirror;

impl Filler for Mirror {
    fn shapes(&self, spec: &ModelSpec, levels: usize) -> Vec<(usize, usize)> {
        vec![(levels, spec.dim)]
    }

    fn build<T: Real>(&self, _: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<T>> {
        Box::new(MirrorPoints { points: slots[0] })
    }
}

struct MirrorPoints {
    points: usize,
}

impl<T: Real> Fill<T> for MirrorPoints {
    fn fill(&self, tile: &mut Tile<'_, '_, T>) {
        let (d, n, mixing) = (tile.spec.dim, tile.levels, tile.mixing);
        let rows = tile.rows;
        let [x0, z, y] = tile.inputs.many([rows.start, rows.noise, self.points]);
        for (row, c) in mixing.iter().enumerate() {
            let (z, y) = (&z[row * d..][..d], &mut y[row * d..][..d]);
            let gamma = -T::ONE * c.gamma;
            for ((y, &x0), &z) in y.iter_mut().zip(&x0[row / n * d..][..d]).zip(z) {
                *y = c.alpha * x0 + gamma * z;
            }
        }
        tile.add_end(self.points, |row| mixing[row].beta);
    }
}
