//! A run: weigh, resample if need be, move, level by level.

use super::{Baseline, Genealogy, LogNormaliser, Particles, Path, Smc, SmcLevel, Start, error};
use crate::metric::effective_sample_size;
use crate::rng::{Purpose, Stream, fill_normal_rows};
use crate::sample::mcmc::{Draws, HeldEnergy, Scratch, State};
use crate::sample::{Resampling, StepSize, Transport};
use crate::{Error, Result};

/// Levels an adaptive run may choose.
const MOST_LEVELS: usize = 100_000;

/// A run under way. `state` holds the particles with energy and score at the last level passed.
pub(super) struct Run<'a> {
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
    pub(super) fn new(smc: &'a Smc, path: &'a Path<'a>, particles: usize) -> Result<Run<'a>> {
        let dim = path.energy.dim();
        let target = HeldEnergy {
            energy: path.energy,
            time: path.times[0],
        };
        let mut log_density = vec![0.0; particles];
        let points = match path.start {
            Start::Points(points) => points.to_vec(),
            Start::Draws {
                points,
                density,
                time,
            } => {
                density.log_density(&[time], points, &mut log_density);
                points.to_vec()
            }
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

    /// Passes all levels.
    pub(super) fn complete(mut self, progress: &mut dyn FnMut(&SmcLevel)) -> Result<Particles> {
        let times = self.path.times;
        let last = times[times.len() - 1];
        let mut time = times[0];
        let mut stride = 0.05 * (last - time);
        for k in 0.. {
            let info = self.level(k, time)?;
            progress(&info);
            self.levels.push(info);
            if time == last {
                break;
            }
            time = match self.smc.adaptive {
                None => times[k + 1],
                Some(goal) => self.next_time(time, last, &mut stride, goal)?,
            };
        }
        Ok(self.finish())
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
        let target = HeldEnergy {
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
        self.state.evaluate(HeldEnergy {
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
    fn moves(&mut self, k: usize, target: HeldEnergy<'_>) -> (f64, f64) {
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
        let mut family = vec![0.0; weights.len()];
        for (eve, weight) in self.eve.iter().zip(&weights) {
            family[*eve as usize] += weight;
        }
        let scatters = match self.smc.resampling {
            Resampling::Multinomial => self.resamplings,
            _ => 0,
        };
        Particles {
            points: self.state.points,
            log_z: LogNormaliser {
                value,
                error: error::of_families(&family, scatters),
            },
            baseline: match self.path.start {
                Start::Points(_) => Baseline::FirstLevel,
                Start::Mixture(_) | Start::Draws { .. } => Baseline::StartDensity,
            },
            biased_moves: self.smc.moves > 0 && !self.smc.kernel.keeps_density(),
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
