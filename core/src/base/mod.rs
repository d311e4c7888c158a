//! What an energy stands on: a Gaussian mixture fitted to the data, and its exact noised marginal at every time.
//!
//! An energy `U(t, y) = -log b_t(y) - correction` decays like the base `b_t` wherever the correction is held back, and is a density
//! from the first step on. [`fit`](fit()) finds the mixture: k-means++ starts, expectation maximisation with a ridge, structure and
//! number of components by held-out likelihood. [`Marginal`] evaluates `log b_t`, its score, time score and Laplacian for batches of
//! points, and draws from it, inflated if asked: a density that is known is what others are measured against. [`KernelDensity`] is the
//! other classical estimate, to compare with.
//!
//! A mixture has places, and particles have none of their own: an energy over particles can stand on [`Springs`] between those that are bonded.

mod ends;
mod fit;
mod kernel_density;
pub(crate) mod lanes;
mod marginal;
mod mixture;
pub mod springs;
mod wrapped;

pub use ends::BaseEnds;
pub use fit::{
    COMPONENTS, Candidate, Fit, FitEnds, FitSettings, MOST_DENSE, RowSlice, Rows, Shape, fit,
    fit_ends,
};
pub use kernel_density::{KernelDensity, MOST_COLUMNS, MOST_KERNELS};
pub use marginal::{Level, MOST_PAIRS, Marginal, Scratch, Wanted};
pub use mixture::{MOST_COMPONENTS, MixtureBase, Spread};
pub use springs::{Spring, SpringRows, Springs, Term, Terms};
pub use wrapped::mean_distances;

/// By how much a base is inflated where points away from the data are wanted.
pub const INFLATIONS: [f64; 4] = [1.0, 1.5, 2.0, 3.0];
