//! The loop of Markov chain Monte Carlo: many chains at once, a warm-up that tunes the step size and then freezes it, draws, and a
//! judgement of them.

use serde::{Deserialize, Serialize};

use super::mcmc::{Draws, HeldEnergy, Kernel, Scratch, State};
use super::{StepSize, effective_draws, split_r_hat};
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = crate::citation::OURS;

/// How chains are run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChainSettings {
    /// The kernel.
    pub kernel: Kernel,
    /// First step size; see the kernel for its meaning.
    pub step: f64,
    /// Mean acceptance to tune to in the warm-up; `None` keeps the step size. Ignored by kernels without acceptance test.
    pub acceptance: Option<f64>,
    /// Steps before the first draw; the step size is tuned in them and frozen after.
    pub warm_up: usize,
    /// Draws kept of each chain.
    pub draws: usize,
    /// Steps from one draw to the next.
    pub thin: usize,
    /// Seed of all noise.
    pub seed: u64,
}

impl Default for ChainSettings {
    fn default() -> Self {
        ChainSettings {
            kernel: Kernel::default(),
            step: 0.1,
            acceptance: Kernel::default().target_acceptance(),
            warm_up: 500,
            draws: 500,
            thin: 1,
            seed: 0,
        }
    }
}

/// What the chains say of themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Mean acceptance after the warm-up.
    pub acceptance: f64,
    /// The frozen step size.
    pub step: f64,
    /// Divergences after the warm-up, over all chains and steps.
    pub divergences: usize,
    /// Effective number of draws of each coordinate, all chains together.
    pub effective_draws: Vec<f64>,
    /// Split R-hat of each coordinate.
    pub r_hat: Vec<f64>,
}

/// Finished chains.
#[derive(Debug, Clone, PartialEq)]
pub struct Chains {
    /// Draws: all chains' first ones, then all second ones, and so on; rows of the energy's dimension.
    pub draws: Vec<f64>,
    /// Where the chains ended.
    pub state: State,
    /// Their judgement.
    pub summary: Summary,
}

impl ChainSettings {
    /// Checks the settings.
    pub fn validate(&self) -> Result<()> {
        self.kernel.validate()?;
        let wrong = |name, found: String, expected: &str| {
            Err(Error::Value {
                name,
                found,
                expected: expected.into(),
            })
        };
        if !(self.step.is_finite() && self.step > 0.0) {
            return wrong(
                "step size",
                self.step.to_string(),
                "a positive finite number",
            );
        }
        if let Some(acceptance) = self.acceptance
            && !(0.01..=0.99).contains(&acceptance)
        {
            return wrong("acceptance", acceptance.to_string(), "from 0.01 to 0.99");
        }
        if self.draws == 0 || self.thin == 0 {
            return wrong(
                "draws and thinning of the chains",
                format!("{} and {}", self.draws, self.thin),
                "at least 1 each",
            );
        }
        Ok(())
    }

    /// Runs one chain from each of `points`. `progress` is told the steps done, out of `warm_up + draws * thin`.
    ///
    /// After the warm-up a chain depends on its own number and the frozen step size alone.
    pub fn run(
        &self,
        target: HeldEnergy<'_>,
        points: Vec<f64>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Chains> {
        self.validate()?;
        let mut state = State::new(target, points, &self.kernel)?;
        let mut scratch = Scratch::default();
        let draws_of = |step: usize| Draws {
            seed: self.seed,
            step: step as u64,
            first: 0,
        };
        self.kernel.prepare(draws_of(0), &mut state);
        let tuned = self
            .acceptance
            .filter(|_| self.kernel.target_acceptance().is_some());
        let mut tuner = StepSize::new(self.step, tuned.unwrap_or(1.0));
        for k in 0..self.warm_up {
            let step = tuner.step();
            let info = self
                .kernel
                .step(draws_of(k + 1), target, step, &mut state, &mut scratch);
            if tuned.is_some() {
                tuner.update(info.acceptance);
            }
            progress(k + 1);
        }
        let step = tuner.settled();
        let mut draws = Vec::with_capacity(self.draws * state.points.len());
        let (mut acceptance, mut divergences) = (0.0, 0);
        for k in 0..self.draws * self.thin {
            let draw = draws_of(self.warm_up + k + 1);
            let info = self
                .kernel
                .step(draw, target, step, &mut state, &mut scratch);
            acceptance += info.acceptance;
            divergences += info.divergences;
            if (k + 1) % self.thin == 0 {
                draws.extend_from_slice(&state.points);
            }
            progress(self.warm_up + k + 1);
        }
        if let Some(lost) = state.points.iter().position(|y| !y.is_finite()) {
            return Err(Error::Diverged {
                sampler: self.kernel.name(),
                time: target.time,
                particle: (lost / state.dim()) as u64,
            });
        }
        let (dim, chains) = (state.dim(), state.rows());
        let (mut effective, mut r_hat) = (Vec::new(), Vec::new());
        for i in 0..dim {
            let values: Vec<f64> = draws.iter().skip(i).step_by(dim).copied().collect();
            effective.push(effective_draws(&values, chains));
            r_hat.push(split_r_hat(&values, chains));
        }
        Ok(Chains {
            draws,
            state,
            summary: Summary {
                acceptance: acceptance / (self.draws * self.thin) as f64,
                step,
                divergences,
                effective_draws: effective,
                r_hat,
            },
        })
    }
}
