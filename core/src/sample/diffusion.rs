//! Generation by a diffusion: particles that run against time, from the noise at T to the data at 0, driven by the score of any
//! energy. A step is linear in point, score and noise, `y <- keep y + pull score + kick z`, so a sampler is one pure function from
//! two times to a [`Transition`]; [`Sampler::run`] is the loop.
//!
//! The noise of a particle at a step is a stream of its own: a particle does not depend on how many others run beside it,
//! nor on threads. Adding a sampler: a file with its settings and `impl Stepper`, a variant of [`Sampler`], a line in
//! `Sampler::step`.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Ddim, ReverseSde};
use crate::energy::{Energy, Prior};
use crate::process::{Process, TimeGrid};
use crate::rng::{Purpose, fill_normal_rows};
use crate::{Error, Result};

/// Numbers of one buffer of a block of particles (8 MB); there are four of them.
const BLOCK: usize = 1 << 20;

/// One step against time: `y <- keep y + pull score + kick z`, `z` standard normal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// Factor of the point.
    pub keep: f64,
    /// Factor of the score at the point.
    pub pull: f64,
    /// Factor of fresh noise.
    pub kick: f64,
}

impl Transition {
    /// The step to time 0 of every sampler: the posterior mean `D = (y + gamma^2 score) / S` of the data, without noise.
    fn denoise(process: &Process, time: f64) -> Transition {
        let scale = process.scale(time);
        Transition {
            keep: 1.0 / scale,
            pull: process.noise(time).powi(2) / scale,
            kick: 0.0,
        }
    }
}

/// A sampler's step.
pub trait Stepper {
    /// Name in configuration, reports and errors.
    fn name(&self) -> &'static str;
    /// Checks the settings.
    fn validate(&self) -> Result<()> {
        Ok(())
    }
    /// The step from time `from` to the smaller time `to > 0` of a diffusion.
    fn transition(&self, process: &Process, from: f64, to: f64) -> Transition;
}

/// A sampler and its settings, as written in files: `{"kind": "ddim", "eta": 0.0}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sampler {
    /// Denoising diffusion implicit model.
    Ddim(Ddim),
    /// Stochastic differential equation, backward in time.
    ReverseSde(ReverseSde),
}

/// The usual times: the grid's levels downwards, then 0.
pub fn times_of(grid: &TimeGrid) -> Vec<f64> {
    grid.times().iter().rev().copied().chain([0.0]).collect()
}

/// What is sampled.
pub struct Task<'a> {
    /// Its score drives the particles.
    pub energy: &'a dyn Energy,
    /// The diffusion whose marginals the energy describes.
    pub process: &'a Process,
    /// Decreasing times. Particles start at the first and are returned at the last; the energy is never asked for
    /// time 0, where a diffusion has no noise and may have no density. If the last time is 0, the last step returns the
    /// posterior mean of the data given the point at the time before, without fresh noise; otherwise what is returned
    /// are points of the marginal at the last time, its noise included.
    pub times: &'a [f64],
    /// Law of the points at the first time.
    pub start: &'a Prior,
    /// Numbers of the particles: `0..n` for the first `n`. A particle is a function of its number and the seed, so a
    /// large sample can be made in pieces.
    pub particles: Range<u64>,
    /// Seed of all noise.
    pub seed: u64,
}

impl Task<'_> {
    /// Steps of all particles together: what `progress` counts up to.
    pub fn work(&self) -> usize {
        self.times.len().saturating_sub(1) * self.count()
    }

    fn count(&self) -> usize {
        self.particles.end.saturating_sub(self.particles.start) as usize
    }

    fn validate(&self) -> Result<()> {
        let wrong = |name, found: String, expected: String| {
            Err(Error::Value {
                name,
                found,
                expected,
            })
        };
        self.process.validate()?;
        if self.process.is_interpolant() {
            return wrong(
                "process of the sampler",
                self.process.name().into(),
                "a diffusion (vp, ve, edm): an interpolant's sampler also needs its velocity"
                    .into(),
            );
        }
        let falling = self.times.windows(2).all(|pair| pair[0] > pair[1]);
        let inside = self
            .times
            .first()
            .is_some_and(|&t| t <= self.process.horizon())
            && self.times.last().is_some_and(|&t| t >= 0.0);
        if self.times.len() < 2 || !falling || !inside {
            return wrong(
                "times of the sampler",
                format!(
                    "{} times, {:?} to {:?}",
                    self.times.len(),
                    self.times.first(),
                    self.times.last()
                ),
                format!(
                    "at least two, strictly decreasing, within [0, {}]",
                    self.process.horizon()
                ),
            );
        }
        if self.start.mean.len() != self.energy.dim() {
            return Err(Error::Shape {
                what: "the mean of the sampler's start".into(),
                found: self.start.mean.len().to_string(),
                expected: format!("{}, the dimension of the energy", self.energy.dim()),
            });
        }
        if !self.start.std.fits(self.energy.dim()) {
            return wrong(
                "standard deviation of the sampler's start",
                format!("{:?}", self.start.std),
                "a positive number, or one for each column".into(),
            );
        }
        Ok(())
    }
}

impl Sampler {
    /// The names of all samplers, as [`Sampler::by_name`] takes them.
    pub const NAMES: [&'static str; 2] = ["ddim", "reverse-sde"];

    /// The sampler of that name with its default settings.
    pub fn by_name(name: &str) -> Result<Sampler> {
        match name {
            "ddim" => Ok(Sampler::Ddim(Ddim::default())),
            "reverse-sde" => Ok(Sampler::ReverseSde(ReverseSde::default())),
            _ => Err(Error::Value {
                name: "sampler",
                found: format!("'{name}'"),
                expected: format!("one of {}", Self::NAMES.join(", ")),
            }),
        }
    }

    fn step(&self) -> &dyn Stepper {
        match self {
            Sampler::Ddim(step) => step,
            Sampler::ReverseSde(step) => step,
        }
    }

    /// Name in configuration, reports and errors.
    pub fn name(&self) -> &'static str {
        self.step().name()
    }

    /// Checks the settings.
    pub fn validate(&self) -> Result<()> {
        self.step().validate()
    }

    /// The step from one time to a smaller one, which may be 0.
    pub fn transition(&self, process: &Process, from: f64, to: f64) -> Transition {
        if to == 0.0 {
            Transition::denoise(process, from)
        } else {
            self.step().transition(process, from, to)
        }
    }

    /// Runs the particles of `task` and returns their points, row after row. `progress` is told how many steps of
    /// single particles are done, out of [`Task::work`].
    ///
    /// Particles run in blocks of bounded size, each through all times.
    pub fn run(&self, task: &Task<'_>, progress: &mut dyn FnMut(usize)) -> Result<Vec<f64>> {
        self.validate()?;
        task.validate()?;
        let dim = task.energy.dim();
        let rows = (BLOCK / dim).max(1);
        let mut points = vec![0.0; task.count() * dim];
        let mut score = vec![0.0; rows.min(task.count()) * dim];
        let mut noise = vec![0f32; score.len()];
        let mut done = 0;
        for (block, points) in points.chunks_mut(rows * dim).enumerate() {
            let first = task.particles.start + (block * rows) as u64;
            let (score, noise) = (&mut score[..points.len()], &mut noise[..points.len()]);
            fill_normal_rows(task.seed, Purpose::Sample, 0, first, dim, noise);
            task.start.points(noise, points);
            for (k, pair) in task.times.windows(2).enumerate() {
                let (from, to) = (pair[0], pair[1]);
                let Transition { keep, pull, kick } = self.transition(task.process, from, to);
                task.energy.score(&[from], points, score);
                if kick == 0.0 {
                    noise.fill(0.0);
                } else {
                    fill_normal_rows(task.seed, Purpose::Sample, k as u64 + 1, first, dim, noise);
                }
                let mut finite = true;
                for ((y, s), z) in points.iter_mut().zip(&*score).zip(&*noise) {
                    *y = keep * *y + pull * s + kick * f64::from(*z);
                    finite &= y.is_finite();
                }
                if !finite {
                    let lost = points.iter().position(|y| !y.is_finite()).unwrap_or(0);
                    return Err(Error::Diverged {
                        sampler: self.name(),
                        time: from,
                        particle: first + (lost / dim) as u64,
                    });
                }
                done += points.len() / dim;
                progress(done);
            }
        }
        Ok(points)
    }
}

#[cfg(test)]
mod tests;
