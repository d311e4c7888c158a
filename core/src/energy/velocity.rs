//! The velocity `v_t(y) = E[dX_t/dt | Y_t = y]` of a process `Y_t = X_t + gamma(t) Z`: one trait for exact and learned ones, and one
//! from a closure.

/// A velocity field, evaluated in batches.
///
/// The probability flow of the marginals is `v - gamma gamma' score`; the SDE of an interpolant (Albergo et al. 2023)
/// forward in time has the drift `v + (g^2/2 - gamma gamma') score`, backward in time `v - (g^2/2 + gamma gamma') score`.
///
/// `points` holds rows of [`dim`](Velocity::dim) numbers. `times` holds one entry for all rows or one per row. `out` has one
/// row of `dim` numbers per row of `points`.
pub trait Velocity: Send + Sync {
    /// Dimension of a point.
    fn dim(&self) -> usize;

    /// `E[dX_t/dt | Y_t = y]`.
    fn velocity(&self, times: &[f64], points: &[f64], out: &mut [f64]);
}

/// A velocity from a function `f(t, y, v)` that writes `v_t(y)` into `v`: a network of another program, say.
///
/// ```
/// use diffclf::energy::{Velocity, VelocityClosure};
/// // Between two standard normals of means 0 and 3, straight ahead.
/// let ahead = VelocityClosure::new(1, |_t, _y: &[f64], v: &mut [f64]| v[0] = 3.0);
/// let mut v = [0.0; 2];
/// ahead.velocity(&[0.5], &[0.1, 0.2], &mut v);
/// assert_eq!(v, [3.0; 2]);
/// ```
pub struct VelocityClosure<F> {
    dim: usize,
    function: F,
}

impl<F: Fn(f64, &[f64], &mut [f64]) + Send + Sync> VelocityClosure<F> {
    /// The velocity of points of so many coordinates.
    pub fn new(dim: usize, function: F) -> VelocityClosure<F> {
        VelocityClosure { dim, function }
    }
}

impl<F: Fn(f64, &[f64], &mut [f64]) + Send + Sync> Velocity for VelocityClosure<F> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn velocity(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let rows = points
            .chunks_exact(self.dim)
            .zip(out.chunks_exact_mut(self.dim));
        for (row, (y, out)) in rows.enumerate() {
            let time = if times.len() == 1 {
                times[0]
            } else {
                times[row]
            };
            (self.function)(time, y, out);
        }
    }
}
