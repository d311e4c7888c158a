//! Replica exchange over time (Geyer 1991; Hukushima and Nemoto 1996): chains at every level of a ladder, whose points are swapped
//! between neighbouring levels so that the cold end profits from the mobility of the hot one.

use serde::{Deserialize, Serialize};

use super::mcmc::{Draws, HeldEnergy, Kernel, Scratch, State};
use super::trips::{End, Trips};
use super::{StepSize, effective_draws, split_r_hat};
use crate::energy::Energy;
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["hukushima1996exchange"];

/// How the ladder is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exchange {
    /// The kernel that moves points within a level.
    pub kernel: Kernel,
    /// Its steps in a sweep.
    pub moves: usize,
    /// First step size, tuned per level in the warm-up.
    pub step: f64,
    /// Sweeps before the first draw.
    pub warm_up: usize,
    /// Sweeps after that; each gives a draw.
    pub sweeps: usize,
    /// Seed of all noise.
    pub seed: u64,
}

impl Default for Exchange {
    fn default() -> Self {
        Exchange {
            kernel: Kernel::default(),
            moves: 4,
            step: 0.1,
            warm_up: 200,
            sweeps: 500,
            seed: 0,
        }
    }
}

/// The levels, from the hot end to the cold one.
#[derive(Clone, Copy)]
pub struct Ladder<'a> {
    /// The energy.
    pub energy: &'a dyn Energy,
    /// Times of the levels; the last is the target.
    pub times: &'a [f64],
}

/// What a run gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchanged {
    /// Draws of the last level: all ladders' first ones, then all second ones, and so on.
    #[serde(skip)]
    pub draws: Vec<f64>,
    /// Share of accepted swaps between a level and the next.
    pub swap_acceptance: Vec<f64>,
    /// Mean acceptance of the moves at each level, after the warm-up.
    pub acceptance: Vec<f64>,
    /// Step size of each level.
    pub steps: Vec<f64>,
    /// Journeys of points from the hot end to the cold and back, after the warm-up, over all ladders.
    pub round_trips: usize,
    /// At each level, the share of points that saw the hot end last: falls from 1 to 0, and steeply where the ladder is narrow.
    pub from_hot: Vec<f64>,
    /// Effective draws of each coordinate at the last level.
    pub effective_draws: Vec<f64>,
    /// Split R-hat of each coordinate at the last level.
    pub r_hat: Vec<f64>,
}

impl Exchange {
    /// Runs independent ladders side by side. `points` are the first points, level after level, each with the same number of
    /// rows: the number of ladders. `progress` is told the sweeps done.
    pub fn run(
        &self,
        ladder: Ladder<'_>,
        points: &[f64],
        progress: &mut dyn FnMut(usize),
    ) -> Result<Exchanged> {
        self.kernel.validate()?;
        let (levels, dim) = (ladder.times.len(), ladder.energy.dim());
        if levels < 2 || points.is_empty() || !points.len().is_multiple_of(levels * dim) {
            return Err(Error::Shape {
                what: "the first points of replica exchange".into(),
                found: format!("{} numbers for {levels} levels", points.len()),
                expected: format!(
                    "at least two levels with the same number of rows of {dim} numbers"
                ),
            });
        }
        if self.sweeps == 0 || !(self.step.is_finite() && self.step > 0.0) {
            return Err(Error::Value {
                name: "sweeps and step size of replica exchange",
                found: format!("{} and {}", self.sweeps, self.step),
                expected: "at least one sweep and a positive step size".into(),
            });
        }
        let mut run = Run::new(self, ladder, points)?;
        let mut draws = Vec::new();
        for sweep in 0..self.warm_up + self.sweeps {
            let counts = sweep >= self.warm_up;
            run.moves(!counts);
            run.swaps(sweep, counts);
            if counts {
                draws.extend_from_slice(&run.states[levels - 1].points);
            }
            progress(sweep + 1);
        }
        run.finish(draws)
    }
}

struct Run<'a> {
    settings: &'a Exchange,
    ladder: Ladder<'a>,
    states: Vec<State>,
    tuners: Vec<StepSize>,
    scratch: Scratch,
    /// Number of the point (`hot level of its birth * ladders + ladder`) at each level and ladder.
    walker: Vec<Vec<u32>>,
    trips: Trips,
    visits: Vec<[usize; 2]>,
    swapped: Vec<[usize; 2]>,
    acceptance: Vec<f64>,
    steps: u64,
}

impl<'a> Run<'a> {
    fn new(settings: &'a Exchange, ladder: Ladder<'a>, points: &[f64]) -> Result<Run<'a>> {
        let levels = ladder.times.len();
        let rows = points.len() / ladder.energy.dim() / levels;
        let mut states = Vec::with_capacity(levels);
        for (part, &time) in points.chunks_exact(points.len() / levels).zip(ladder.times) {
            let energy = ladder.energy;
            states.push(State::new(
                HeldEnergy { energy, time },
                part.to_vec(),
                &settings.kernel,
            )?);
        }
        let goal = settings.kernel.target_acceptance().unwrap_or(1.0);
        let mut run = Run {
            settings,
            ladder,
            states,
            tuners: vec![StepSize::new(settings.step, goal); levels],
            scratch: Scratch::default(),
            walker: (0..levels)
                .map(|r| (0..rows).map(|i| (r * rows + i) as u32).collect())
                .collect(),
            trips: Trips::new(levels * rows),
            visits: vec![[0; 2]; levels],
            swapped: vec![[0; 2]; levels - 1],
            acceptance: vec![0.0; levels],
            steps: 0,
        };
        for r in 0..levels {
            let draws = run.draws();
            settings.kernel.prepare(draws, &mut run.states[r]);
        }
        Ok(run)
    }

    fn draws(&mut self) -> Draws {
        self.steps += 1;
        Draws {
            seed: self.settings.seed,
            step: self.steps,
            first: 0,
        }
    }

    fn target(&self, level: usize) -> HeldEnergy<'a> {
        HeldEnergy {
            energy: self.ladder.energy,
            time: self.ladder.times[level],
        }
    }

    fn moves(&mut self, tune: bool) {
        let kernel = &self.settings.kernel;
        for r in 0..self.states.len() {
            for _ in 0..self.settings.moves {
                let (draws, target) = (self.draws(), self.target(r));
                let tuner = &mut self.tuners[r];
                let step = if tune { tuner.step() } else { tuner.settled() };
                let state = &mut self.states[r];
                let info = kernel.step(draws, target, step, state, &mut self.scratch);
                if tune {
                    if kernel.target_acceptance().is_some() {
                        tuner.update(info.acceptance);
                    }
                } else {
                    self.acceptance[r] += info.acceptance;
                }
            }
        }
    }

    /// Neighbours of even and of odd sweeps take turns. A swap of `x` at level `a` and `y` at `b` is taken with probability
    /// `min(1, exp(U_a(x) + U_b(y) - U_a(y) - U_b(x)))`.
    fn swaps(&mut self, sweep: usize, counts: bool) {
        let rows = self.states[0].rows();
        for r in (sweep % 2..self.states.len() - 1).step_by(2) {
            // Both levels as they would be with the other's points.
            let (mut low, mut high) = (self.states[r + 1].clone(), self.states[r].clone());
            low.evaluate(self.target(r));
            high.evaluate(self.target(r + 1));
            for i in 0..rows {
                let stay = self.states[r].energy[i] + self.states[r + 1].energy[i];
                let log_ratio = stay - low.energy[i] - high.energy[i];
                let step = (sweep * self.states.len() + r) as u64;
                let uniform =
                    || Stream::new(self.settings.seed, Purpose::Swap, step, i as u64).uniform();
                // A ratio that is not a number is no swap.
                let taken = log_ratio >= 0.0 || log_ratio > uniform().ln();
                if taken {
                    copy_row(&low, &mut self.states[r], i);
                    copy_row(&high, &mut self.states[r + 1], i);
                    let (left, right) = self.walker.split_at_mut(r + 1);
                    std::mem::swap(&mut left[r][i], &mut right[0][i]);
                }
                if counts {
                    self.swapped[r][usize::from(taken)] += 1;
                }
            }
        }
        self.record(counts);
    }

    fn record(&mut self, counts: bool) {
        let last = self.states.len() - 1;
        for &walker in &self.walker[0] {
            self.trips.at_hot(walker as usize, counts);
        }
        for &walker in &self.walker[last] {
            self.trips.at_cold(walker as usize);
        }
        if !counts {
            return;
        }
        for (visits, walkers) in self.visits.iter_mut().zip(&self.walker) {
            for &walker in walkers {
                match self.trips.last(walker as usize) {
                    End::Hot => visits[1] += 1,
                    End::Cold { .. } => visits[0] += 1,
                    End::Neither => (),
                }
            }
        }
    }

    fn finish(self, draws: Vec<f64>) -> Result<Exchanged> {
        let (dim, ladders) = (self.states[0].dim(), self.states[0].rows());
        if let Some(lost) = draws.iter().position(|y| !y.is_finite()) {
            return Err(Error::Diverged {
                sampler: "exchange",
                time: self.ladder.times[self.states.len() - 1],
                particle: (lost / dim % ladders) as u64,
            });
        }
        let share = |[no, yes]: &[usize; 2]| *yes as f64 / (no + yes) as f64;
        let columns: Vec<Vec<f64>> = (0..dim)
            .map(|i| draws.iter().skip(i).step_by(dim).copied().collect())
            .collect();
        let moved = (self.settings.sweeps * self.settings.moves) as f64;
        Ok(Exchanged {
            swap_acceptance: self.swapped.iter().map(share).collect(),
            acceptance: self.acceptance.iter().map(|a| a / moved).collect(),
            steps: self.tuners.iter().map(StepSize::settled).collect(),
            round_trips: self.trips.round_trips(),
            from_hot: self.visits.iter().map(share).collect(),
            effective_draws: columns
                .iter()
                .map(|values| effective_draws(values, ladders))
                .collect(),
            r_hat: columns
                .iter()
                .map(|values| split_r_hat(values, ladders))
                .collect(),
            draws,
        })
    }
}

/// Copies one chain.
fn copy_row(from: &State, to: &mut State, row: usize) {
    let at = row * to.dim()..(row + 1) * to.dim();
    to.points[at.clone()].copy_from_slice(&from.points[at.clone()]);
    to.energy[row] = from.energy[row];
    if !to.score.is_empty() {
        to.score[at.clone()].copy_from_slice(&from.score[at.clone()]);
    }
    if !to.momentum.is_empty() {
        to.momentum[at.clone()].copy_from_slice(&from.momentum[at]);
    }
}

#[cfg(test)]
mod tests;
