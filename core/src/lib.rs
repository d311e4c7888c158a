//! Learn energies from samples: time-dependent log-densities, mode weights included.
//!
//! A diffusion or an interpolant turns samples into a path of densities `p_t`. Its score can be learned by denoising,
//! but a score does not see how much probability sits in each of several separate modes. DiffCLF adds a classification
//! loss: given a noisy sample, which noise level did it come from? Trained together, the energy `U(t, y)` and the
//! log-normaliser `F(t)` become the true log-density, `log p_t(y) = -U(t, y) + F(t)`.
//!
//! The pipeline, each step a module:
//!
//! 1. [`process`]: `Y_t = X_t + gamma(t) Z`, its schedules, time grids and time samplers;
//! 2. [`energy`]: `U(t, y)`, learned on a network, or exact for Gaussian mixtures;
//! 3. [`objective`]: the losses, built from energies and scores;
//! 4. [`train`]: stages, optimiser, exact resume;
//! 5. [`sample`]: new samples from a learned energy;
//! 6. [`metric`]: how close a model is to the truth, where the truth is known ([`system`]);
//! 7. [`free_energy`]: free-energy differences with error bars, from samples, works or learned energies.
//!
//! [`molecule`] holds real molecules, their force field and its dynamics.
//!
//! Underneath lie [`engine`], a static graph of row-tile primitives that is closed under differentiation, and
//! [`network`], the architectures written in it;
//! [`format`](mod@format) with [`model`] turn models into files. All randomness is counter-based ([`rng`]): results do not depend on
//! the number of threads.
//!
//! ```
//! use std::sync::Arc;
//! use diffclf::energy::{Coordinates, Energy, ModelSpec, Prior};
//! use diffclf::network::NetworkSpec;
//! use diffclf::engine::{Isa, Pool};
//! use diffclf::process::Process;
//! use diffclf::sample::{Sampler, Task, times_of};
//! use diffclf::system::System;
//! use diffclf::train::{Endpoints, Resampled, TrainSettings, Trainer, finish};
//!
//! # fn main() -> diffclf::Result<()> {
//! // A mixture of two modes of weights 2/3 and 1/3.
//! let system = Arc::new(System::by_name("two-modes", 2, 0)?);
//! let mut spec = ModelSpec::new(2, Process::by_name("vp")?);
//! spec.grid = spec.grid.with_levels(64)?;
//! spec.network = NetworkSpec::Mlp { width: 32, depth: 2 };
//!
//! // Score first, then score and classification together.
//! let settings = TrainSettings::two_stages(128, 100, 100, 4);
//! let source = Resampled::new(0, system, 1, Coordinates::identity(2));
//! let (pool, isa) = (Arc::new(Pool::with_all_cores()), Isa::detect());
//! let from = Endpoints { start: Arc::new(source), end: None };
//! let mut trainer = Trainer::new(&spec, &settings, from, None, pool.clone(), isa)?;
//! finish(&mut trainer)?;
//!
//! // The learned log-density, and new samples.
//! let model = diffclf::energy::LearnedEnergy::new(spec.clone(), trainer.averaged().to_vec(), pool, isa)?;
//! let mut log_density = [0.0; 1];
//! model.log_density(&[spec.grid.t_min()], &[0.1, -0.2], &mut log_density);
//! let task = Task {
//!     energy: &model,
//!     process: &spec.process,
//!     times: &times_of(&spec.grid),
//!     start: &Prior::of(&spec),
//!     particles: 0..10,
//!     seed: 7,
//! };
//! let samples = Sampler::by_name("ddim")?.run(&task, &mut |_| ())?;
//! assert!(log_density[0].is_finite() && samples.len() == 20);
//! # Ok(())
//! # }
//! ```

pub mod base;
pub mod citation;
pub mod coupling;
pub mod discrete;
pub mod energy;
pub mod engine;
pub mod error;
pub mod expression;
pub mod format;
pub mod free_energy;
pub mod metric;
pub mod model;
pub mod molecule;
pub mod network;
pub mod objective;
pub mod observable;
pub mod particles;
pub mod process;
pub mod rng;
pub mod sample;
pub mod system;
pub mod train;
pub mod weights;

pub use error::{Error, Result};
