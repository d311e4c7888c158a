//! Annealed Langevin sampling (Song and Ermon 2019; Du et al. 2023 for compositions): a few kernel steps at each level of falling
//! noise, without weights. Cheap, and biased by what the chains do not forget on their way; [`Smc`](super::Smc) corrects that.

use serde::{Deserialize, Serialize};

use super::StepSize;
use super::mcmc::{Draws, HeldEnergy, Kernel, Scratch, State, Unadjusted};
use crate::energy::{Energy, Prior};
use crate::rng::{Purpose, fill_normal_rows};
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["song2019generative", "du2023reduce"];

/// How the levels are passed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Annealed {
    /// The kernel.
    pub kernel: Kernel,
    /// Kernel steps at each level.
    pub moves: usize,
    /// Step size. Kernels with an acceptance test start with it and tune it to their target; the others use `step` times the
    /// mean inverse curvature of the level, `1 / E|score|^2` per coordinate, so that one number serves all noise levels.
    pub step: f64,
    /// Seed of all noise.
    pub seed: u64,
}

impl Default for Annealed {
    fn default() -> Self {
        Annealed {
            kernel: Kernel::Unadjusted(Unadjusted {}),
            moves: 10,
            step: 0.1,
            seed: 0,
        }
    }
}

impl Annealed {
    /// Takes `particles` points from the Gaussian `start` through `times` (falling noise) and returns them with the mean acceptance
    /// of every level. `progress` is told the levels done.
    pub fn run(
        &self,
        energy: &dyn Energy,
        times: &[f64],
        start: &Prior,
        particles: usize,
        progress: &mut dyn FnMut(usize),
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        self.kernel.validate()?;
        let dim = energy.dim();
        let fits = start.mean.len() == dim && start.std.fits(dim);
        if times.is_empty() || particles == 0 || !fits {
            return Err(Error::Shape {
                what: "the task of annealed Langevin".into(),
                found: format!(
                    "{} times, {particles} particles, a start of dimension {} with deviations {:?}",
                    times.len(),
                    start.mean.len(),
                    start.std
                ),
                expected: format!("at least one time and particle, dimension {dim}"),
            });
        }
        let mut noise = vec![0f32; particles * dim];
        fill_normal_rows(self.seed, Purpose::Sample, 0, 0, dim, &mut noise);
        let mut points = vec![0.0; noise.len()];
        start.points(&noise, &mut points);
        let at = |time| HeldEnergy { energy, time };
        let mut state = State::new(at(times[0]), points, &self.kernel)?;
        let mut scratch = Scratch::default();
        let mut count = 0;
        let mut draws = || {
            count += 1;
            Draws {
                seed: self.seed,
                step: count,
                first: 0,
            }
        };
        self.kernel.prepare(draws(), &mut state);
        let target = self.kernel.target_acceptance();
        let mut tuner = StepSize::following(self.step, target.unwrap_or(1.0));
        let mut acceptances = Vec::with_capacity(times.len());
        for (k, &time) in times.iter().enumerate() {
            if k > 0 {
                state.evaluate(at(time));
            }
            let fixed = match target {
                Some(_) => None,
                None => {
                    let squares: f64 = state.score.iter().map(|s| s * s).sum();
                    Some(self.step * state.score.len() as f64 / squares)
                }
            };
            let mut acceptance = 0.0;
            for _ in 0..self.moves {
                let step = fixed.unwrap_or_else(|| tuner.step());
                let info = self
                    .kernel
                    .step(draws(), at(time), step, &mut state, &mut scratch);
                acceptance += info.acceptance / self.moves as f64;
                if fixed.is_none() {
                    tuner.update(info.acceptance);
                }
            }
            if let Some(lost) = state.points.iter().position(|y| !y.is_finite()) {
                return Err(Error::Diverged {
                    sampler: "annealed",
                    time,
                    particle: (lost / dim) as u64,
                });
            }
            acceptances.push(acceptance);
            progress(k + 1);
        }
        Ok((state.points, acceptances))
    }
}
