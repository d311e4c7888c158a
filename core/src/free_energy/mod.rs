//! Free-energy differences with error bars: perturbation, BAR, MBAR, thermodynamic integration, and what tells whether to
//! trust them.
//!
//! **Units and sign.** Energies `u` are reduced (in kT). Every difference here is `delta = log(Z_B / Z_A)`, the logarithm of
//! how much more probability weight B has than A, with `Z = integral of exp(-u)`. The free energy difference in kT that
//! pymbar calls `Delta_f` is `f_B - f_A = -delta`.
//!
//! | estimator | needs | function |
//! | --- | --- | --- |
//! | perturbation (FEP), Jarzynski, AIS | works in one direction | [`perturbation`] |
//! | BAR, Crooks | works in both directions | [`bar`](fn@bar) |
//! | MBAR | energies of all samples in all states | [`Mbar`] |
//! | thermodynamic integration | mean slopes along a path | [`integrate`] |
//! | all of them over a learned energy | samples of both ends | [`PathEstimate`], [`end_correction`], [`LearnedDifference`] |
//! | F(t) of all levels at once | noised samples of the data | [`level`] |
//!
//! [`Overlap`], [`convergence`] and [`statistical_inefficiency`] judge the input; [`Mbar::bootstrap`] and
//! [`bootstrap`](fn@bootstrap) give error bars that do not rest on asymptotics.
//!
//! ```
//! use diffclf::free_energy::{Matrix, Mbar, MbarSettings};
//! use diffclf::system::HarmonicLadder;
//!
//! // Three springs in the plane, 500 samples each.
//! let ladder = HarmonicLadder::new(2, vec![0.0, 0.4, 0.9], vec![1.0, 2.0, 4.0])?;
//! let counts = [500, 500, 500];
//! let (_, energies) = ladder.sample(&counts, 1);
//! let energies = Matrix::new(&energies, 3)?;
//! let mbar = Mbar::solve(&energies, &counts, &MbarSettings::default())?;
//! let found = mbar.difference(0, 2);
//! let exact = ladder.log_z(2) - ladder.log_z(0);
//! assert!((found.mean - exact).abs() < 4.0 * found.error);
//! # Ok::<(), diffclf::Error>(())
//! ```

mod bar;
mod bootstrap;
mod convergence;
mod correlation;
mod energies;
mod influence;
mod integration;
mod learned;
mod learned_difference;
mod levelling;
mod mbar;
mod overlap;
mod perturbation;

pub use bar::{Bar, bar, bar_bootstrap};
pub use bootstrap::{Blocks, bootstrap, resample};
pub use convergence::{Convergence, convergence, factor_for};
pub use correlation::{Equilibration, detect_equilibration, statistical_inefficiency, subsample};
pub use energies::{Matrix, ReducedEnergies, Selection};
pub(crate) use influence::{Influence, Sources};
pub use integration::{Integral, Rule, integrate};
pub use learned::{EndCorrection, PathEstimate, PathSamples, end_correction};
pub use learned_difference::{Answer, LearnedDifference, Route};
pub use levelling::{Levelling, level};
pub use mbar::{Bootstrapped, Ensemble, Mbar, MbarSettings, Perturbed, Surface};
pub use overlap::{LOW_OVERLAP, Link, Overlap};
pub use perturbation::{Perturbation, perturbation};

/// Whom the methods of this folder cite, by file.
pub const CITES: crate::citation::Table = crate::citation::cited![
    bar,
    bootstrap,
    correlation,
    integration,
    levelling,
    mbar,
    overlap,
    perturbation,
];

#[cfg(test)]
mod tests;
