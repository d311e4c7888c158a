//! Sequential Monte Carlo along a path of densities: the paper's Algorithms 1 and 2 in corrected form, with annealed importance
//! sampling as the case without resampling.
//!
//! Particles start from a law that can be sampled and pass the levels of a path; the last level is the target. At each level they
//! are weighted by how much likelier they became, resampled if too few carry the weight, and moved by MCMC.
//!
//! ```
//! use diffclf::energy::exact::ExactPath;
//! use diffclf::process::{Process, TimeGrid};
//! use diffclf::energy::Prior;
//! use diffclf::sample::{Path, Smc, Start};
//! use diffclf::system::two_modes;
//!
//! let process = Process::by_name("vp")?;
//! let energy = ExactPath::new(process, two_modes()?, None)?;
//! let times: Vec<f64> = TimeGrid::default_for(&process).with_levels(32)?.times().iter().rev().copied().collect();
//! let start = Prior { mean: vec![0.0; 2], std: 1.1.into() }.mixture()?;
//! let path = Path { energy: &energy, times: &times, start: Start::Mixture(&start), transport: None };
//! let smc = Smc { moves: 4, least_overlap: 0.01, ..Smc::default() };
//! let particles = smc.run(&path, 200, &mut |_| ())?;
//! // The exact marginals are normalised: log Z is 0.
//! assert!(particles.log_z.value.abs() < 5.0 * particles.log_z.error.unwrap_or(1.0) + 0.5);
//! # Ok::<(), diffclf::Error>(())
//! ```

mod error;
mod particles;
mod pooled;
mod run;

pub use particles::{Baseline, Genealogy, LogNormaliser, Particles, SmcLevel};
use run::Run;
use serde::{Deserialize, Serialize};

use super::mcmc::Kernel;
use super::{Resampling, Transport};
use crate::energy::Energy;
use crate::system::GaussianMixture;
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["delmoral2006sequential", "neal2001annealed"];

/// How sequential Monte Carlo is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Smc {
    /// The kernel that moves particles at a level.
    pub kernel: Kernel,
    /// Its steps at each level, L.
    pub moves: usize,
    /// Its first step size; tuned at every move to the kernel's acceptance.
    pub step: f64,
    /// Step sizes of all levels, as an earlier run reported them: then nothing is tuned, and the estimate of Z (not of its
    /// logarithm) is unbiased.
    pub frozen_steps: Option<Vec<f64>>,
    /// Resample when the effective sample size falls below this share of the particles, alpha; 0 never does (AIS).
    pub threshold: f64,
    /// How ancestors are drawn.
    pub resampling: Resampling,
    /// Choose the levels: from each the next one is where the conditional effective sample size is this share. Of the path's times
    /// only the first and the last count then.
    pub adaptive: Option<f64>,
    /// Refuse a path on which the conditional effective sample size falls below this share.
    pub least_overlap: f64,
    /// Keep every particle's ancestors.
    pub genealogy: bool,
    /// Split the particles into so many independent runs, whose spread tells the error of log Z: an honest one from four runs on, eight
    /// or more for a narrow one. 1 leaves it to the families of one run.
    pub runs: usize,
    /// Seed of all noise.
    pub seed: u64,
}

impl Default for Smc {
    /// The paper's settings for compositions: 64 MALA moves at a level, resampling below 30 %.
    fn default() -> Self {
        Smc {
            kernel: Kernel::default(),
            moves: 64,
            step: 0.1,
            frozen_steps: None,
            threshold: 0.3,
            resampling: Resampling::default(),
            adaptive: None,
            least_overlap: 0.05,
            genealogy: false,
            runs: 1,
            seed: 0,
        }
    }
}

/// Where particles come from.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Draws of a known density; they are weighted by the first level against it.
    Mixture(&'a GaussianMixture),
    /// Given points that are draws of a known, normalised density; they are weighted by the first level against it. Where the first level is
    /// learned and the points come from the exact marginal, this is the weight `p_learned / p_exact` that makes the rest right.
    Draws {
        /// Rows.
        points: &'a [f64],
        /// Their density, as an energy with `log p = -U + F`.
        density: &'a dyn Energy,
        /// The time at which it is asked.
        time: f64,
    },
    /// Given points whose density is not known, taken on trust as draws of the first level: see [`Baseline::FirstLevel`] for what
    /// the result is then worth.
    Points(&'a [f64]),
}

/// The path of densities `p_k(y) = exp(-U(t_k, y) + F(t_k))`.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    /// The energy.
    pub energy: &'a dyn Energy,
    /// Times of the levels, from the start's side to the target. They may fall (a diffusion) or rise.
    pub times: &'a [f64],
    /// Where particles come from.
    pub start: Start<'a>,
    /// Proposals from level to level (Algorithm 2); `None` leaves the particles where they are (Algorithm 1).
    pub transport: Option<&'a dyn Transport>,
}

impl Smc {
    /// Annealed importance sampling (Neal 2001): the same without resampling.
    pub fn annealed_importance_sampling(self) -> Smc {
        Smc {
            threshold: 0.0,
            ..self
        }
    }

    /// Checks the settings.
    pub fn validate(&self) -> Result<()> {
        self.kernel.validate()?;
        let share = |name, value: f64, least: f64| {
            if (least..=1.0).contains(&value) {
                return Ok(());
            }
            Err(Error::Value {
                name,
                found: value.to_string(),
                expected: format!("a share from {least} to 1"),
            })
        };
        share("resampling threshold", self.threshold, 0.0)?;
        share("least overlap", self.least_overlap, 0.0)?;
        if let Some(adaptive) = self.adaptive {
            share("conditional ESS of adaptive levels", adaptive, 0.05)?;
        }
        if !(self.step.is_finite() && self.step > 0.0) {
            return Err(Error::Value {
                name: "step size",
                found: self.step.to_string(),
                expected: "a positive finite number".into(),
            });
        }
        Ok(())
    }

    /// Runs so many particles along the path; `progress` sees every level as it is done (of each run, where there are several).
    pub fn run(
        &self,
        path: &Path<'_>,
        particles: usize,
        progress: &mut dyn FnMut(&SmcLevel),
    ) -> Result<Particles> {
        self.validate()?;
        path.validate(self, particles)?;
        if self.runs > 1 {
            return pooled::run(self, path, particles, progress);
        }
        Run::new(self, path, particles)?.complete(progress)
    }
}

impl Path<'_> {
    fn validate(&self, smc: &Smc, particles: usize) -> Result<()> {
        let wrong = |name, found: String, expected: String| {
            Err(Error::Value {
                name,
                found,
                expected,
            })
        };
        let (dim, times) = (self.energy.dim(), self.times);
        let one_way = times.windows(2).all(|pair| pair[0] > pair[1])
            || times.windows(2).all(|pair| pair[0] < pair[1]);
        if times.is_empty() || !one_way || !times.iter().all(|t| t.is_finite()) {
            return wrong(
                "times of the path",
                format!("{} times", times.len()),
                "at least one, all rising or all falling".into(),
            );
        }
        let least = smc.runs.max(1).saturating_mul(2);
        if !(least..=u32::MAX as usize / 2).contains(&particles) {
            return wrong(
                "particles",
                particles.to_string(),
                format!("at least {least}"),
            );
        }
        if smc.runs == 0 || (smc.runs > 1 && smc.genealogy) {
            return wrong(
                "independent runs",
                format!("{}, with genealogy: {}", smc.runs, smc.genealogy),
                "at least 1, and 1 where ancestors are kept".into(),
            );
        }
        if let Some(steps) = &smc.frozen_steps
            && steps.len() != times.len()
        {
            return wrong(
                "frozen step sizes",
                format!("{} of them", steps.len()),
                format!("one for each of the {} levels", times.len()),
            );
        }
        if smc.adaptive.is_some() && (self.transport.is_some() || smc.frozen_steps.is_some()) {
            return wrong(
                "adaptive levels",
                "together with proposals or frozen step sizes".into(),
                "a fixed list of times for those".into(),
            );
        }
        let (found, expected) = match self.start {
            Start::Mixture(mixture) => (mixture.dim(), dim),
            Start::Points(points) | Start::Draws { points, .. } => (points.len(), particles * dim),
        };
        if found != expected {
            return Err(Error::Shape {
                what: "the start of the particles".into(),
                found: found.to_string(),
                expected: expected.to_string(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
