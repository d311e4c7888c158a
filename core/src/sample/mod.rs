//! Energies put to work: generation, Markov chain Monte Carlo, sequential Monte Carlo and replica exchange, on any
//! [`Energy`](crate::energy::Energy): exact, learned, composed or a closure.
//!
//! One file per method. Steps are pure functions of (draws, state, energy, parameters); loops stand apart, and state,
//! information about a step and tuned parameters are separate values.
//!
//! - **Generation**: [`Sampler`] runs the reverse SDE and DDIM of diffusions, [`Flow`] the probability flow of every process with the
//!   log-density along the way, [`InterpolantSde`] the SDE of an interpolant in both directions.
//! - **MCMC** ([`mcmc`]): random walk, MALA, HMC and generalised HMC, underdamped (BAOAB, leapfrog) and unadjusted Langevin; [`ChainSettings`] runs many chains at
//!   once and judges them (acceptance, ESS, split R-hat, divergences); [`Annealed`] takes them through falling noise.
//! - **Dynamics**: [`Dynamics`] moves many chains with masses, friction and a time step, on all cores, frame by frame.
//! - **SMC and AIS**: [`Smc`] moves weighted particles along a path of densities, by MCMC or by the kernels of a diffusion or an
//!   interpolant ([`Transport`]), and estimates log Z with its error.
//! - **Boltzmann generator**: [`Boltzmann`] replaces a model's last marginal by a target that is known.
//! - **Replica exchange** over time: [`Exchange`].
//!
//! All noise is counter-based, a stream per particle and step: results do not depend on threads, and a particle does not depend
//! on how many others run beside it except where it says so (resampling, step sizes tuned to the mean acceptance).
//!
//! ```
//! use diffclf::energy::Prior;
//! use diffclf::energy::exact::ExactPath;
//! use diffclf::process::{Process, TimeGrid};
//! use diffclf::sample::{Sampler, Task, times_of};
//! use diffclf::system::two_modes;
//!
//! let process = Process::by_name("vp")?;
//! let path = ExactPath::new(process, two_modes()?, None)?;
//! let grid = TimeGrid::default_for(&process).with_levels(64)?;
//! let task = Task {
//!     energy: &path,
//!     process: &process,
//!     times: &times_of(&grid),
//!     start: &Prior::new(&process, grid.t_max(), &path.start().mean(), path.start().variance()),
//!     particles: 0..100,
//!     seed: 1,
//! };
//! let points = Sampler::by_name("ddim")?.run(&task, &mut |_done| ())?;
//! assert_eq!(points.len(), 100 * 2);
//! # Ok::<(), diffclf::Error>(())
//! ```

pub mod mcmc;

mod annealed;
mod boltzmann;
mod chains;
mod ddim;
mod diagnostics;
mod diffusion;
mod dynamics;
mod exchange;
mod flow;
mod interpolant;
mod resampling;
mod reverse_sde;
mod smc;
mod step_size;
mod transport;
pub(crate) mod trips;

pub use annealed::Annealed;
pub use boltzmann::{Boltzmann, Contest};
pub use chains::{ChainSettings, Chains, Summary};
pub use ddim::Ddim;
pub use diagnostics::{effective_draws, split_r_hat};
pub use diffusion::{Sampler, Stepper, Task, Transition, times_of};
pub use dynamics::{Dynamics, Ensemble, Snapshot};
pub use exchange::{Exchange, Exchanged, Ladder};
pub use flow::{Divergence, Flow, Solver};
pub use interpolant::{Diffusivity, InterpolantSde, depart};
pub use resampling::Resampling;
pub use reverse_sde::{Integrator, ReverseSde};
pub use smc::{Baseline, Genealogy, LogNormaliser, Particles, Path, Smc, SmcLevel, Start};
pub use step_size::StepSize;
pub use transport::{
    DataTransport, DiffusionKernels, GaussianKernels, InterpolantKernels, Transport,
};

/// Whom the methods of this folder cite, by file.
pub const CITES: crate::citation::Table = crate::citation::cited![
    annealed,
    boltzmann,
    chains,
    ddim,
    diagnostics,
    dynamics,
    exchange,
    flow,
    interpolant,
    resampling,
    reverse_sde,
    smc,
    transport,
];
