//! The velocity `v_t(y) = E[dX_t/dt | Y_t = y]` of a process `Y_t = X_t + gamma(t) Z`: one trait for exact and learned ones.

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
