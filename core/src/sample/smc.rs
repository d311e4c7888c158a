//! Sequential Monte Carlo along a path of densities: the paper's Algorithms 1 and 2 in corrected form, with annealed importance
//! sampling as the case without resampling.
//!
//! Particles start from a law that can be sampled and pass the levels of a path; the last level is the target. At each level they
//! are weighted by how much likelier they became, resampled if too few carry the weight, and moved by MCMC.
//!
//! ```
//! use diffclf::energy::exact::ExactPath;
//! use diffclf::process::{Process, TimeGrid};
//! use diffclf::sample::{Path, Prior, Smc, Start};
//! use diffclf::system::two_modes;
//!
//! let process = Process::by_name("vp")?;
//! let energy = ExactPath::new(process, two_modes()?, None)?;
//! let times: Vec<f64> = TimeGrid::default_for(&process).with_levels(32)?.times().iter().rev().copied().collect();
//! let start = Prior { mean: vec![0.0; 2], std: 1.1 }.mixture()?;
//! let path = Path { energy: &energy, times: &times, start: Start::Mixture(&start), transport: None };
//! let smc = Smc { moves: 4, least_overlap: 0.01, ..Smc::default() };
//! let particles = smc.run(&path, 200, &mut |_| ())?;
//! // The exact marginals are normalised: log Z is 0.
//! assert!(particles.log_z.value.abs() < 5.0 * particles.log_z.error + 0.5);
//! # Ok::<(), diffclf::Error>(())
//! ```

use serde::{Deserialize, Serialize};

use super::mcmc::{Draws, Kernel, Scratch, State, Target};
use super::{Resampling, StepSize, Transport};
use crate::energy::Energy;
use crate::metric::effective_sample_size;
use crate::rng::{Purpose, Stream, fill_normal_rows};
use crate::system::GaussianMixture;
use crate::{Error, Result};

/// Levels an adaptive run may choose.
const MOST_LEVELS: usize = 100_000;

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
            seed: 0,
        }
    }
}

/// Where particles come from.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Draws of a known density; they are weighted by the first level against it.
    Mixture(&'a GaussianMixture),
    /// Given points, taken as draws of the first level.
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

/// One level of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SmcLevel {
    /// Its time.
    pub time: f64,
    /// Conditional effective sample size of the step to this level, a share (Zhou, Johansen, Aston 2016): the overlap of the
    /// levels. 1 if they agree.
    pub conditional_ess: f64,
    /// Effective sample size of all weights since the last resampling, a share.
    pub ess: f64,
    /// Whether particles were resampled.
    pub resampled: bool,
    /// Mean acceptance of the moves; NaN without moves.
    pub acceptance: f64,
    /// Step size of the last move.
    pub step: f64,
    /// log Z up to this level, relative to the start.
    pub log_z: f64,
}

/// An estimate of log Z and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogNormaliser {
    /// `log Z` of `exp(-U + F)` at the last level, relative to the start's law (which is normalised if it is a mixture).
    pub value: f64,
    /// Standard error from this one run: the families of the first particles tell how far the estimate would vary (Lee and
    /// Whiteley 2018). Larger than 1 means: not to be trusted.
    pub error: f64,
}

/// Who descends from whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Genealogy {
    /// For every level: where each particle came from, or `None` if all stayed themselves.
    pub ancestors: Vec<Option<Vec<u32>>>,
}

impl Genealogy {
    /// The places of a final particle's ancestors, from the first level to the last.
    pub fn line(&self, particle: u32) -> Vec<u32> {
        let mut at = particle;
        let mut line: Vec<u32> = self
            .ancestors
            .iter()
            .rev()
            .map(|parents| {
                at = parents.as_ref().map_or(at, |parents| parents[at as usize]);
                at
            })
            .collect();
        line.reverse();
        line
    }
}

/// Weighted particles of the last level.
#[derive(Debug, Clone, PartialEq)]
pub struct Particles {
    /// Points, row after row.
    pub points: Vec<f64>,
    /// Weights, summing to 1.
    pub weights: Vec<f64>,
    /// log Z.
    pub log_z: LogNormaliser,
    /// Every level.
    pub levels: Vec<SmcLevel>,
    /// First particles that still have descendants.
    pub families: usize,
    /// Ancestors, if asked for.
    pub genealogy: Option<Genealogy>,
}

impl Particles {
    /// Effective sample size of the weights, a share of the particles.
    pub fn ess(&self) -> f64 {
        let squares: f64 = self.weights.iter().map(|w| w * w).sum();
        1.0 / (self.weights.len() as f64 * squares)
    }

    /// Smallest overlap of neighbouring levels.
    pub fn least_overlap(&self) -> f64 {
        let overlaps = self.levels.iter().map(|level| level.conditional_ess);
        overlaps.fold(f64::INFINITY, f64::min)
    }

    /// The step sizes of all levels, for [`Smc::frozen_steps`].
    pub fn steps(&self) -> Vec<f64> {
        self.levels.iter().map(|level| level.step).collect()
    }

    /// `n` equally weighted points, drawn by systematic resampling.
    pub fn equally_weighted(&self, n: usize, seed: u64) -> Vec<f64> {
        let dim = self.points.len() / self.weights.len();
        let mut ancestors = vec![0; n];
        let mut stream = Stream::new(seed, Purpose::Resample, u64::MAX, 0);
        Resampling::Systematic.draw(&self.weights, &mut stream, &mut ancestors);
        ancestors
            .iter()
            .flat_map(|&a| &self.points[a as usize * dim..][..dim])
            .copied()
            .collect()
    }
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

    /// Runs so many particles along the path; `progress` sees every level as it is done.
    pub fn run(
        &self,
        path: &Path<'_>,
        particles: usize,
        progress: &mut dyn FnMut(&SmcLevel),
    ) -> Result<Particles> {
        self.validate()?;
        path.validate(self, particles)?;
        let mut run = Run::new(self, path, particles)?;
        let last = path.times[path.times.len() - 1];
        let mut time = path.times[0];
        let mut stride = 0.05 * (last - time);
        for k in 0.. {
            let info = run.level(k, time)?;
            progress(&info);
            run.levels.push(info);
            if time == last {
                break;
            }
            time = match self.adaptive {
                None => path.times[k + 1],
                Some(goal) => run.next_time(time, last, &mut stride, goal)?,
            };
        }
        Ok(run.finish())
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
        if !(2..=u32::MAX as usize / 2).contains(&particles) {
            return wrong("particles", particles.to_string(), "at least 2".into());
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
            Start::Points(points) => (points.len(), particles * dim),
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

/// A run under way. `state` holds the particles with energy and score at the last level passed.
struct Run<'a> {
    smc: &'a Smc,
    path: &'a Path<'a>,
    state: State,
    scratch: Scratch,
    tuner: StepSize,
    /// Log-weights since the last resampling.
    log_weights: Vec<f64>,
    /// `-U + F` of the particles at the last level passed; `log q` of the start before the first.
    log_density: Vec<f64>,
    increments: Vec<f64>,
    /// log Z up to the last resampling.
    log_z: f64,
    resamplings: u32,
    /// First ancestor of every particle.
    eve: Vec<u32>,
    levels: Vec<SmcLevel>,
    genealogy: Vec<Option<Vec<u32>>>,
    spare: Vec<f64>,
    /// MCMC steps so far: the counter of their noise.
    steps: u64,
}

impl<'a> Run<'a> {
    fn new(smc: &'a Smc, path: &'a Path<'a>, particles: usize) -> Result<Run<'a>> {
        let dim = path.energy.dim();
        let target = Target {
            energy: path.energy,
            time: path.times[0],
        };
        let mut log_density = vec![0.0; particles];
        let points = match path.start {
            Start::Points(points) => points.to_vec(),
            Start::Mixture(mixture) => {
                let mut points = vec![0.0; particles * dim];
                for (row, point) in points.chunks_exact_mut(dim).enumerate() {
                    let mut stream = Stream::new(smc.seed, Purpose::Sample, 0, row as u64);
                    mixture.sample_point(&mut stream, point);
                    log_density[row] = mixture.log_density(point);
                }
                points
            }
        };
        let state = State::new(target, points, &smc.kernel)?;
        if matches!(path.start, Start::Points(_)) {
            let free_energy = path.energy.free_energy(target.time);
            for (value, u) in log_density.iter_mut().zip(&state.energy) {
                *value = free_energy - u;
            }
        }
        let mut run = Run {
            smc,
            path,
            state,
            scratch: Scratch::default(),
            tuner: StepSize::following(smc.step, smc.kernel.target_acceptance().unwrap_or(1.0)),
            log_weights: vec![0.0; particles],
            log_density,
            increments: vec![0.0; particles],
            log_z: 0.0,
            resamplings: 0,
            eve: (0..particles as u32).collect(),
            levels: Vec::new(),
            genealogy: Vec::new(),
            spare: Vec::new(),
            steps: 0,
        };
        let draws = run.draws();
        smc.kernel.prepare(draws, &mut run.state);
        Ok(run)
    }

    fn draws(&mut self) -> Draws {
        self.steps += 1;
        Draws {
            seed: self.smc.seed,
            step: self.steps,
            first: 0,
        }
    }

    /// Passes to the level at `time`: propose, weight, resample, move.
    fn level(&mut self, k: usize, time: f64) -> Result<SmcLevel> {
        let target = Target {
            energy: self.path.energy,
            time,
        };
        match self.path.transport {
            Some(transport) if k > 0 => self.propose(transport, k, time),
            _ => {
                self.increments.fill(0.0);
                if k > 0 {
                    self.state.evaluate(target);
                }
            }
        }
        let free_energy = self.path.energy.free_energy(time);
        for ((increment, old), u) in self
            .increments
            .iter_mut()
            .zip(&mut self.log_density)
            .zip(&self.state.energy)
        {
            let new = free_energy - u;
            // What has no density stays without, also where the next level has none either.
            *increment = if new == f64::NEG_INFINITY {
                new
            } else {
                *increment + new - *old
            };
            *old = new;
        }
        let lost = self
            .increments
            .iter()
            .position(|w| w.is_nan() || *w == f64::INFINITY);
        if let Some(particle) = lost {
            return Err(Error::Diverged {
                sampler: "smc",
                time,
                particle: particle as u64,
            });
        }
        let conditional_ess = conditional_ess(&self.log_weights, &self.increments);
        // NaN, where no particle is left, is refused too.
        if !(conditional_ess >= self.smc.least_overlap && conditional_ess > 0.0) {
            return Err(self.poor_overlap(time, conditional_ess));
        }
        for (weight, increment) in self.log_weights.iter_mut().zip(&self.increments) {
            *weight += increment;
        }
        let ess = effective_sample_size(&self.log_weights);
        let resampled = ess < self.smc.threshold;
        let log_z = self.log_z + log_mean_exp(&self.log_weights);
        if resampled {
            self.log_z = log_z;
            self.resample(k);
        } else if self.smc.genealogy {
            self.genealogy.push(None);
        }
        let (acceptance, step) = self.moves(k, target);
        let free_energy = self.path.energy.free_energy(time);
        for (value, u) in self.log_density.iter_mut().zip(&self.state.energy) {
            *value = free_energy - u;
        }
        Ok(SmcLevel {
            time,
            conditional_ess,
            ess,
            resampled,
            acceptance,
            step,
            log_z,
        })
    }

    fn poor_overlap(&self, time: f64, found: f64) -> Error {
        Error::PoorOverlap {
            from: self.levels.last().map(|level| level.time),
            to: time,
            found,
            least: self.smc.least_overlap,
        }
    }

    /// Algorithm 2, step 1: particles go to `x ~ q(. | y)`; the increments become `log f(y | x) - log q(x | y)`.
    fn propose(&mut self, transport: &dyn Transport, k: usize, time: f64) {
        let from = self.levels[k - 1].time;
        let (dim, rows) = (self.state.dim(), self.state.rows());
        let mut noise = vec![0f32; rows * dim];
        fill_normal_rows(self.smc.seed, Purpose::Sample, k as u64, 0, dim, &mut noise);
        let mut proposed = vec![0.0; rows * dim];
        let (points, there) = (&self.state.points, &mut self.increments);
        transport.propose(from, time, points, &noise, &mut proposed, there);
        let mut back = vec![0.0; rows];
        transport.log_return(from, time, points, &proposed, &mut back);
        for (increment, back) in there.iter_mut().zip(back) {
            *increment = back - *increment;
        }
        self.state.points = proposed;
        self.state.evaluate(Target {
            energy: self.path.energy,
            time,
        });
    }

    /// Draws ancestors and sets all weights to 1.
    fn resample(&mut self, k: usize) {
        let weights = normalised(&self.log_weights);
        let mut ancestors = vec![0; weights.len()];
        let mut stream = Stream::new(self.smc.seed, Purpose::Resample, k as u64, 0);
        self.smc
            .resampling
            .draw(&weights, &mut stream, &mut ancestors);
        self.state.gather(&ancestors, &mut self.spare);
        self.eve = ancestors.iter().map(|&a| self.eve[a as usize]).collect();
        self.log_weights.fill(0.0);
        self.resamplings += 1;
        if self.smc.genealogy {
            self.genealogy.push(Some(ancestors));
        }
    }

    /// L kernel steps; gives their mean acceptance and the step size of the last.
    fn moves(&mut self, k: usize, target: Target<'_>) -> (f64, f64) {
        let smc = self.smc;
        let frozen = smc.frozen_steps.as_ref().map(|steps| steps[k]);
        let tuned = frozen.is_none() && smc.kernel.target_acceptance().is_some();
        let mut step = frozen.unwrap_or_else(|| self.tuner.step());
        let mut acceptance = 0.0;
        for _ in 0..smc.moves {
            let draws = self.draws();
            let state = &mut self.state;
            let info = smc
                .kernel
                .step(draws, target, step, state, &mut self.scratch);
            acceptance += info.acceptance;
            if tuned {
                self.tuner.update(info.acceptance);
                step = self.tuner.step();
            }
        }
        (acceptance / smc.moves as f64, step)
    }

    /// The time nearest to `last` at which the conditional effective sample size is still `goal`: a stride that is doubled or halved
    /// until the goal lies between two tries, then cut four times.
    fn next_time(&mut self, time: f64, last: f64, stride: &mut f64, goal: f64) -> Result<f64> {
        if self.levels.len() >= MOST_LEVELS {
            return Err(self.poor_overlap(last, 0.0));
        }
        let mut energy = vec![0.0; self.state.rows()];
        let mut overlap_at = |next: f64| {
            let path = self.path;
            path.energy.energy(&[next], &self.state.points, &mut energy);
            let free_energy = path.energy.free_energy(next);
            for ((increment, old), u) in self
                .increments
                .iter_mut()
                .zip(&self.log_density)
                .zip(&energy)
            {
                *increment = free_energy - u - old;
            }
            conditional_ess(&self.log_weights, &self.increments)
        };
        let whole = last - time;
        let reaches = |stride: f64| stride.abs() >= whole.abs();
        let (mut good, mut bad) = (0.0, f64::INFINITY * whole.signum());
        loop {
            let tried = if reaches(*stride) { whole } else { *stride };
            if overlap_at(time + tried) >= goal {
                if tried == whole {
                    return Ok(last);
                }
                good = tried;
                *stride = 2.0 * tried;
            } else {
                bad = tried;
                *stride = 0.5 * tried;
            }
            if (good != 0.0 && bad.is_finite()) || stride.abs() < 1e-9 * whole.abs() {
                break;
            }
        }
        if good == 0.0 {
            let found = overlap_at(last);
            return Err(self.poor_overlap(last, found));
        }
        for _ in 0..4 {
            let middle = 0.5 * (good + bad);
            if overlap_at(time + middle) >= goal {
                good = middle;
            } else {
                bad = middle;
            }
        }
        *stride = 1.2 * good;
        Ok(time + good)
    }

    fn finish(self) -> Particles {
        let weights = normalised(&self.log_weights);
        let value = self.log_z + log_mean_exp(&self.log_weights);
        let n = weights.len() as f64;
        let mut family = vec![0.0; weights.len()];
        for (eve, weight) in self.eve.iter().zip(&weights) {
            family[*eve as usize] += weight;
        }
        // Lee and Whiteley 2018: relative variance of the estimate of Z. Their factor takes the scatter of multinomial numbers of
        // descendants out again, once per resampling; the other schemes have (almost) none, and what they have stays in.
        let squares: f64 = family.iter().map(|w| w * w).sum();
        let scatters = match self.smc.resampling {
            Resampling::Multinomial => self.resamplings,
            _ => 0,
        };
        let growth = (n / (n - 1.0)).powf(scatters as f64 + 1.0);
        let variance = 1.0 - growth * (1.0 - squares);
        Particles {
            points: self.state.points,
            log_z: LogNormaliser {
                value,
                error: variance.max(0.0).sqrt(),
            },
            levels: self.levels,
            families: family.iter().filter(|w| **w > 0.0).count(),
            genealogy: self.smc.genealogy.then_some(Genealogy {
                ancestors: self.genealogy,
            }),
            weights,
        }
    }
}

/// `(sum W w)^2 / sum W w^2` of increments `w` under normalised weights `W`, from logarithms.
fn conditional_ess(log_weights: &[f64], increments: &[f64]) -> f64 {
    let top = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (shift, rise) = (top(log_weights), top(increments));
    let (mut total, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (weight, increment) in log_weights.iter().zip(increments) {
        let (weight, increment) = ((weight - shift).exp(), (increment - rise).exp());
        total += weight;
        sum += weight * increment;
        squares += weight * increment * increment;
    }
    sum * sum / (total * squares)
}

/// `exp(log w) / sum`.
fn normalised(log_weights: &[f64]) -> Vec<f64> {
    let top = log_weights
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = log_weights.iter().map(|w| (w - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= total);
    weights
}

/// `log (sum exp / n)`.
fn log_mean_exp(values: &[f64]) -> f64 {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = values.iter().map(|v| (v - top).exp()).sum();
    top + (sum / values.len() as f64).ln()
}

#[cfg(test)]
mod tests;
