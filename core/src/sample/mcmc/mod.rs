//! Markov chain Monte Carlo at one time of an energy: a kernel's step moves a batch of chains that share the target.
//!
//! Every kernel is a file with its settings and one function, [`Kernel::step`], pure in (draws, target, step size, state). It
//! evaluates the energy once per step ([`Hmc`]: once per leapfrog step): what it needs at the present points is kept in the
//! [`State`]. Step sizes are numbers from outside, tuned elsewhere ([`StepSize`](super::StepSize)).

pub(crate) mod baoab;
mod ghmc;
mod hmc;
pub(crate) mod langevin;
mod langevin_leapfrog;
mod mala;
mod random_walk;
#[cfg(test)]
mod tests;
mod unadjusted;

pub use hmc::Hmc;
pub use langevin::Langevin;
pub use mala::Mala;
pub use random_walk::RandomWalk;
pub use unadjusted::Unadjusted;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::energy::Energy;
use crate::rng::{Purpose, Stream, fill_normal_rows};
use crate::{Error, Result};

/// Whom the methods of this folder cite, by file.
pub const CITES: crate::citation::Table = crate::citation::cited![
    random_walk,
    mala,
    hmc,
    ghmc,
    baoab,
    langevin_leapfrog,
    unadjusted,
];

/// An energy held at one time: the density `exp(-U(t, y))` of a chain.
#[derive(Clone, Copy)]
pub struct HeldEnergy<'a> {
    /// The energy.
    pub energy: &'a dyn Energy,
    /// The time.
    pub time: f64,
}

/// Where a batch of chains stands: the points, and energy and score there.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    dim: usize,
    /// Points, row after row.
    pub points: Vec<f64>,
    /// U at the points.
    pub energy: Vec<f64>,
    /// -grad U at the points; empty for kernels that do not use it.
    pub score: Vec<f64>,
    /// Momenta of kernels that carry them from step to step; empty otherwise.
    pub momentum: Vec<f64>,
    /// A mass over kT for each coordinate of a row, in place of the kernel's own; empty otherwise.
    masses: Arc<[f64]>,
}

impl State {
    /// Evaluates the target at the points. A start of infinite or undefined energy is refused.
    pub fn new(target: HeldEnergy<'_>, points: Vec<f64>, kernel: &Kernel) -> Result<State> {
        let state = State::anywhere(target, points, kernel)?;
        match state.energy.iter().position(|u| !u.is_finite()) {
            Some(row) => Err(Error::Value {
                name: "start of a chain",
                found: format!("energy {} at point {row}", state.energy[row]),
                expected: "points where the target has a density; start elsewhere".into(),
            }),
            None => Ok(state),
        }
    }

    /// The same for chains under way, some of which may be lost.
    pub(super) fn anywhere(
        target: HeldEnergy<'_>,
        points: Vec<f64>,
        kernel: &Kernel,
    ) -> Result<State> {
        let dim = target.energy.dim();
        if points.is_empty() || !points.len().is_multiple_of(dim) {
            return Err(Error::Shape {
                what: "the chains' first points".into(),
                found: format!("{} numbers", points.len()),
                expected: format!("rows of {dim} numbers, the dimension of the energy"),
            });
        }
        let rows = points.len() / dim;
        let mut state = State {
            dim,
            energy: vec![0.0; rows],
            score: vec![0.0; if kernel.uses_score() { points.len() } else { 0 }],
            momentum: Vec::new(),
            masses: Arc::new([]),
            points,
        };
        state.evaluate(target);
        Ok(state)
    }

    /// Evaluates another target (the same energy at another time, say) at the same points.
    pub fn evaluate(&mut self, target: HeldEnergy<'_>) {
        let HeldEnergy { energy, time } = target;
        if self.score.is_empty() {
            energy.energy(&[time], &self.points, &mut self.energy);
        } else {
            energy.energy_and_score(&[time], &self.points, &mut self.energy, &mut self.score);
        }
    }

    /// Gives each coordinate of a row a mass of its own, over kT: the kernels that know masses then use these.
    pub fn set_masses(&mut self, masses: &[f64]) -> Result<()> {
        if masses.len() != self.dim {
            return Err(Error::Shape {
                what: "the masses".into(),
                found: format!("{} numbers", masses.len()),
                expected: format!("{}, one for each coordinate", self.dim),
            });
        }
        for mass in masses {
            positive("mass of a coordinate", *mass)?;
        }
        self.masses = masses.into();
        Ok(())
    }

    /// Momenta from their equilibrium, N(0, m).
    fn draw_momenta(&mut self, draws: Draws, own: f64) {
        let mut noise = vec![0f32; self.points.len()];
        draws.normals(self.dim, &mut noise);
        let momenta = noise.iter().zip(each_mass(&self.masses, &own));
        self.momentum = momenta.map(|(z, m)| m.sqrt() * f64::from(*z)).collect();
    }

    /// Dimension of a point.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of chains.
    pub fn rows(&self) -> usize {
        self.energy.len()
    }

    /// Row `i` becomes what row `ancestors[i]` was. `spare` is room for a copy.
    pub(super) fn gather(&mut self, ancestors: &[u32], spare: &mut Vec<f64>) {
        let dim = self.dim;
        for (values, width) in [
            (&mut self.points, dim),
            (&mut self.energy, 1),
            (&mut self.score, dim),
            (&mut self.momentum, dim),
        ] {
            if values.is_empty() {
                continue;
            }
            gather_rows(values, width, ancestors, spare);
        }
    }
}

/// The mass of every coordinate of all rows, one after the other: those of a row again and again, or the kernel's own.
fn each_mass<'a>(masses: &'a [f64], own: &'a f64) -> impl Iterator<Item = f64> + 'a {
    let masses = match masses {
        [] => std::slice::from_ref(own),
        masses => masses,
    };
    masses.iter().copied().cycle()
}

/// Row `i` of `values` becomes what row `ancestors[i]` was.
pub(super) fn gather_rows(
    values: &mut Vec<f64>,
    width: usize,
    ancestors: &[u32],
    spare: &mut Vec<f64>,
) {
    spare.clear();
    for &a in ancestors {
        spare.extend_from_slice(&values[a as usize * width..][..width]);
    }
    std::mem::swap(values, spare);
}

/// Which random numbers a step uses: chain `i` has the stream of (seed, step, first + i).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the step, never used twice in a run.
    pub step: u64,
    /// Number of the first chain of the batch.
    pub first: u64,
}

impl Draws {
    /// Standard normals, a row of `dim` per chain.
    fn normals(&self, dim: usize, out: &mut [f32]) {
        fill_normal_rows(self.seed, Purpose::Move, self.step, self.first, dim, out);
    }

    /// Whether a proposal of this log acceptance ratio is taken; its probability is `min(1, exp(log_ratio))`.
    fn accepts(&self, row: usize, log_ratio: f64) -> bool {
        let uniform = || {
            Stream::new(
                self.seed,
                Purpose::Accept,
                self.step,
                self.first + row as u64,
            )
            .uniform()
        };
        log_ratio >= 0.0 || log_ratio > uniform().ln()
    }
}

/// What happened in a step.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct StepInfo {
    /// Mean over the chains of the acceptance probability; 1 for kernels that always accept.
    pub acceptance: f64,
    /// Chains whose proposal had no finite energy, or (HMC) an energy error beyond 1000 kT.
    pub divergences: usize,
}

/// Room a step works in; holds nothing from one step to the next.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    points: Vec<f64>,
    energy: Vec<f64>,
    score: Vec<f64>,
    momentum: Vec<f64>,
    noise: Vec<f32>,
}

impl Scratch {
    fn fit(&mut self, state: &State) {
        let (all, rows) = (state.points.len(), state.rows());
        self.points.resize(all, 0.0);
        self.energy.resize(rows, 0.0);
        self.score.resize(all, 0.0);
        self.noise.resize(all, 0.0);
    }

    fn evaluate(&mut self, target: HeldEnergy<'_>) {
        let HeldEnergy { energy, time } = target;
        energy.energy_and_score(&[time], &self.points, &mut self.energy, &mut self.score);
    }
}

/// A kernel and its settings, as written in files: `{"kind": "mala"}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Kernel {
    /// Random walk Metropolis.
    RandomWalk(RandomWalk),
    /// Metropolis-adjusted Langevin.
    Mala(Mala),
    /// Hamiltonian Monte Carlo.
    Hmc(Hmc),
    /// Underdamped Langevin dynamics with an acceptance test.
    Ghmc(Langevin),
    /// Underdamped Langevin dynamics, BAOAB splitting.
    Baoab(Langevin),
    /// Underdamped Langevin dynamics, velocities half a step behind.
    LangevinLeapfrog(Langevin),
    /// Overdamped Langevin dynamics without adjustment.
    Unadjusted(Unadjusted),
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel::Mala(Mala {})
    }
}

impl Kernel {
    /// The names of all kernels, as [`Kernel::by_name`] takes them.
    pub const NAMES: [&'static str; 7] = [
        "random-walk",
        "mala",
        "hmc",
        "ghmc",
        "baoab",
        "langevin-leapfrog",
        "unadjusted",
    ];

    /// The kernel of that name with its default settings.
    pub fn by_name(name: &str) -> Result<Kernel> {
        match name {
            "random-walk" => Ok(Kernel::RandomWalk(RandomWalk {})),
            "mala" => Ok(Kernel::Mala(Mala {})),
            "hmc" => Ok(Kernel::Hmc(Hmc::default())),
            "ghmc" => Ok(Kernel::Ghmc(Langevin::default())),
            "baoab" => Ok(Kernel::Baoab(Langevin::default())),
            "langevin-leapfrog" => Ok(Kernel::LangevinLeapfrog(Langevin::default())),
            "unadjusted" => Ok(Kernel::Unadjusted(Unadjusted {})),
            _ => Err(Error::Value {
                name: "kernel",
                found: format!("'{name}'"),
                expected: format!("one of {}", Self::NAMES.join(", ")),
            }),
        }
    }

    /// Name in configuration, reports and errors.
    pub fn name(&self) -> &'static str {
        match self {
            Kernel::RandomWalk(_) => "random-walk",
            Kernel::Mala(_) => "mala",
            Kernel::Hmc(_) => "hmc",
            Kernel::Ghmc(_) => "ghmc",
            Kernel::Baoab(_) => "baoab",
            Kernel::LangevinLeapfrog(_) => "langevin-leapfrog",
            Kernel::Unadjusted(_) => "unadjusted",
        }
    }

    /// Checks the settings.
    pub fn validate(&self) -> Result<()> {
        match self {
            Kernel::Hmc(kernel) => kernel.validate(),
            _ => self.langevin().map_or(Ok(()), Langevin::validate),
        }
    }

    /// Whether the kernel needs the score at the present point.
    pub fn uses_score(&self) -> bool {
        !matches!(self, Kernel::RandomWalk(_))
    }

    /// The mean acceptance to tune the step size to: about the best for many dimensions (Roberts and Rosenthal 2001; for HMC
    /// Beskos et al. 2013), and 75 % for MALA as in the paper. `None` for kernels without an acceptance test.
    pub fn target_acceptance(&self) -> Option<f64> {
        match self {
            Kernel::RandomWalk(_) => Some(0.3),
            Kernel::Mala(_) | Kernel::Hmc(_) => Some(0.75),
            // A refused step turns the momentum around: only few may be.
            Kernel::Ghmc(_) => Some(0.95),
            Kernel::Baoab(_) | Kernel::LangevinLeapfrog(_) | Kernel::Unadjusted(_) => None,
        }
    }

    /// Whether a step leaves the target's density as it is, whatever the step size. Kernels without an acceptance test do so only as
    /// their step goes to zero: chains and weights that use them are biased.
    pub fn keeps_density(&self) -> bool {
        self.target_acceptance().is_some()
    }

    /// Friction and mass of the kernels of Langevin dynamics, which carry momenta from step to step.
    fn langevin(&self) -> Option<&Langevin> {
        match self {
            Kernel::Ghmc(kernel) | Kernel::Baoab(kernel) | Kernel::LangevinLeapfrog(kernel) => {
                Some(kernel)
            }
            _ => None,
        }
    }

    /// What a kernel needs before its first step: those that carry momenta draw them.
    pub fn prepare(&self, draws: Draws, state: &mut State) {
        if let Some(kernel) = self.langevin() {
            state.draw_momenta(draws, kernel.mass);
        }
    }

    /// One step of every chain of `state` towards `target`, whose energy and score at the points the state holds.
    pub fn step(
        &self,
        draws: Draws,
        target: HeldEnergy<'_>,
        step: f64,
        state: &mut State,
        scratch: &mut Scratch,
    ) -> StepInfo {
        scratch.fit(state);
        match self {
            Kernel::RandomWalk(_) => random_walk::step(draws, target, step, state, scratch),
            Kernel::Mala(_) => mala::step(draws, target, step, state, scratch),
            Kernel::Hmc(kernel) => hmc::step(kernel, draws, target, step, state, scratch),
            Kernel::Ghmc(kernel) => ghmc::step(kernel, draws, target, step, state, scratch),
            Kernel::Baoab(kernel) => baoab::step(kernel, draws, target, step, state, scratch),
            Kernel::LangevinLeapfrog(kernel) => {
                langevin_leapfrog::step(kernel, draws, target, step, state, scratch)
            }
            Kernel::Unadjusted(_) => unadjusted::step(draws, target, step, state, scratch),
        }
    }
}

/// Takes or leaves the proposals in `scratch`, row by row, by their log acceptance ratios. A ratio that is not a number, or a
/// row that `diverged` says is lost, is a divergence and is left.
fn metropolis(
    draws: Draws,
    state: &mut State,
    scratch: &Scratch,
    log_ratio: impl Fn(usize, &State) -> f64,
    diverged: impl Fn(usize, &State) -> bool,
) -> StepInfo {
    let dim = state.dim;
    let mut info = StepInfo::default();
    for row in 0..state.rows() {
        let ratio = log_ratio(row, state);
        if ratio.is_nan() || diverged(row, state) {
            info.divergences += 1;
            continue;
        }
        info.acceptance += ratio.min(0.0).exp();
        if draws.accepts(row, ratio) {
            let at = row * dim..(row + 1) * dim;
            state.points[at.clone()].copy_from_slice(&scratch.points[at.clone()]);
            state.energy[row] = scratch.energy[row];
            if !state.score.is_empty() {
                state.score[at.clone()].copy_from_slice(&scratch.score[at]);
            }
        }
    }
    info.acceptance /= state.rows() as f64;
    info
}

/// What a step without acceptance test tells.
fn unadjusted_info(state: &State) -> StepInfo {
    StepInfo {
        acceptance: 1.0,
        divergences: state.energy.iter().filter(|u| !u.is_finite()).count(),
    }
}

/// Error of a kernel's number that must be positive and finite.
fn positive(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error::Value {
        name,
        found: value.to_string(),
        expected: "a positive finite number".into(),
    })
}
