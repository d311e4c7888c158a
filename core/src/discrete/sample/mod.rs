//! Samplers of states: the reverse chain, exactly by thinning, by tau-leaping or ancestrally; kernels that leave one level's law alone;
//! annealing from noise to data with the partition function.

mod anneal;
mod kernel;
mod reverse;

pub use anneal::{Anneal, Annealed, LogWeight, annealing_times};
pub use kernel::{Kernel, gibbs_sweep, metropolis_sweep};
#[cfg(test)]
pub(crate) use reverse::leap_law as reverse_law;
pub use reverse::{Clipped, Method, Reversal, ancestral_step, tau_leap_step};
