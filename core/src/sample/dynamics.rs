//! Dynamics of many chains side by side: each moves by a [`Kernel`] with masses, friction and a time step, and shows itself every so
//! many steps. Chains are dealt to threads; one depends on its number and the seed alone.

use serde::{Deserialize, Serialize};

use super::mcmc::{Draws, HeldEnergy, Kernel, Scratch, State};
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = crate::citation::OURS;

/// How the chains move: `m dv = F dt - friction m v dt + sqrt(2 friction m kT) dW` with `F = kT score`. Only `m / kT` matters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dynamics {
    /// The scheme with its friction.
    pub kernel: Kernel,
    /// Time step.
    pub step: f64,
    /// Mass over kT of each coordinate of a row, time squared over length squared; empty for kernels without masses.
    pub masses: Vec<f64>,
    /// Steps from one frame to the next.
    pub thin: usize,
    /// Seed of all noise.
    pub seed: u64,
}

/// Where all chains stand: enough to go on to the same bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Steps behind us.
    pub steps: u64,
    /// Points, chain after chain.
    pub points: Vec<f64>,
    /// Momenta over kT; empty for kernels that carry none.
    pub momentum: Vec<f64>,
    /// Sum over steps and chains of the acceptance probabilities.
    pub accepted: f64,
}

/// Chains under way.
pub struct Ensemble<'a> {
    dynamics: &'a Dynamics,
    groups: Vec<Group<'a>>,
    steps: u64,
}

/// The chains of one thread.
struct Group<'a> {
    target: HeldEnergy<'a>,
    first: usize,
    state: State,
    scratch: Scratch,
    accepted: f64,
}

impl Dynamics {
    /// Checks the settings.
    pub fn validate(&self) -> Result<()> {
        self.kernel.validate()?;
        if !(self.step.is_finite() && self.step > 0.0) {
            return Err(Error::Value {
                name: "time step",
                found: self.step.to_string(),
                expected: "a positive finite number".into(),
            });
        }
        if self.thin == 0 {
            return Err(Error::Value {
                name: "steps from frame to frame",
                found: "0".into(),
                expected: "at least 1".into(),
            });
        }
        Ok(())
    }
}

impl<'a> Ensemble<'a> {
    /// Chains at these points, with momenta from their equilibrium. `targets` holds the same energy once for each thread.
    pub fn start(
        dynamics: &'a Dynamics,
        targets: &[HeldEnergy<'a>],
        points: Vec<f64>,
    ) -> Result<Self> {
        // All points at once: one that cannot be started from is named by its number among all.
        if let Some(target) = targets.first() {
            State::new(*target, points.clone(), &dynamics.kernel)?;
        }
        let mut ensemble = Self::placed(dynamics, targets, &points)?;
        for group in &mut ensemble.groups {
            let draws = group.draws(dynamics, 0);
            dynamics.kernel.prepare(draws, &mut group.state);
        }
        Ok(ensemble)
    }

    /// Chains as a snapshot shows them.
    pub fn resume(
        dynamics: &'a Dynamics,
        targets: &[HeldEnergy<'a>],
        snapshot: Snapshot,
    ) -> Result<Self> {
        let mut ensemble = Self::placed(dynamics, targets, &snapshot.points)?;
        ensemble.steps = snapshot.steps;
        for group in &mut ensemble.groups {
            let (first, numbers) = (group.first * group.state.dim(), group.state.points.len());
            if !snapshot.momentum.is_empty() {
                let momenta = snapshot.momentum.get(first..first + numbers);
                group.state.momentum = momenta.map(<[f64]>::to_vec).ok_or(Error::Shape {
                    what: "the momenta of a snapshot".into(),
                    found: format!("{} numbers", snapshot.momentum.len()),
                    expected: "as many as its points have".into(),
                })?;
            }
        }
        if let Some(group) = ensemble.groups.first_mut() {
            group.accepted = snapshot.accepted;
        }
        Ok(ensemble)
    }

    fn placed(dynamics: &'a Dynamics, targets: &[HeldEnergy<'a>], points: &[f64]) -> Result<Self> {
        dynamics.validate()?;
        let Some(dim) = targets.first().map(|target| target.energy.dim()) else {
            return Err(Error::Value {
                name: "targets of the dynamics",
                found: "none".into(),
                expected: "one for each thread".into(),
            });
        };
        let chains = points.len() / dim;
        let threads = targets.len().min(chains);
        let mut groups = Vec::with_capacity(threads);
        for (k, target) in targets.iter().take(threads).enumerate() {
            let (first, end) = (k * chains / threads, (k + 1) * chains / threads);
            let own = points[first * dim..end * dim].to_vec();
            let mut state = State::anywhere(*target, own, &dynamics.kernel)?;
            if !dynamics.masses.is_empty() {
                state.set_masses(&dynamics.masses)?;
            }
            groups.push(Group {
                target: *target,
                first,
                state,
                scratch: Scratch::default(),
                accepted: 0.0,
            });
        }
        Ok(Self {
            dynamics,
            groups,
            steps: 0,
        })
    }

    /// Number of chains.
    pub fn chains(&self) -> usize {
        self.groups.iter().map(|group| group.state.rows()).sum()
    }

    /// Steps behind us.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Mean acceptance so far; 1 for schemes without an acceptance test.
    pub fn acceptance(&self) -> f64 {
        let sum: f64 = self.groups.iter().map(|group| group.accepted).sum();
        sum / (self.steps.max(1) as f64 * self.chains() as f64)
    }

    /// Mean of `p^2 / (m kT)` over chains and coordinates: 1 in equilibrium. None for kernels that carry no momenta.
    pub fn kinetic_temperature(&self) -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0);
        for group in &self.groups {
            let masses = self.dynamics.masses.iter().copied().cycle();
            for (p, mass) in group.state.momentum.iter().zip(masses) {
                sum += p * p / mass;
                count += 1;
            }
        }
        (count > 0).then(|| sum / f64::from(count))
    }

    /// Where all chains stand.
    pub fn snapshot(&self) -> Snapshot {
        let all = |part: fn(&State) -> &Vec<f64>| {
            let parts = self.groups.iter().flat_map(|group| part(&group.state));
            parts.copied().collect()
        };
        Snapshot {
            steps: self.steps,
            points: all(|state| &state.points),
            momentum: all(|state| &state.momentum),
            accepted: self.groups.iter().map(|group| group.accepted).sum(),
        }
    }

    /// Moves all chains on by so many frames, all threads at once. `points` gets the frames one after the other, each with all chains;
    /// `energies` U at them. A chain that is lost has numbers that are none from then on.
    pub fn advance(&mut self, frames: usize, points: &mut [f64], energies: &mut [f64]) {
        let (dynamics, steps, chains) = (self.dynamics, self.steps, self.chains());
        let dim = points.len() / (frames * chains).max(1);
        let moved = |group: &mut Group<'_>| group.advance(dynamics, steps, frames);
        let shown: Vec<(Vec<f64>, Vec<f64>)> = match self.groups.as_mut_slice() {
            [group] => vec![moved(group)],
            groups => std::thread::scope(|scope| {
                let running: Vec<_> = groups
                    .iter_mut()
                    .map(|group| scope.spawn(|| moved(group)))
                    .collect();
                let ends = running.into_iter().map(|thread| match thread.join() {
                    Ok(shown) => shown,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                ends.collect()
            }),
        };
        for (group, (found, u)) in self.groups.iter().zip(&shown) {
            let rows = group.state.rows();
            for frame in 0..frames {
                let at = frame * chains + group.first;
                points[at * dim..][..rows * dim]
                    .copy_from_slice(&found[frame * rows * dim..][..rows * dim]);
                energies[at..][..rows].copy_from_slice(&u[frame * rows..][..rows]);
            }
        }
        self.steps += (frames * dynamics.thin) as u64;
    }
}

impl Group<'_> {
    fn draws(&self, dynamics: &Dynamics, step: u64) -> Draws {
        Draws {
            seed: dynamics.seed,
            step,
            first: self.first as u64,
        }
    }

    /// Points and energies of the frames.
    fn advance(&mut self, dynamics: &Dynamics, done: u64, frames: usize) -> (Vec<f64>, Vec<f64>) {
        let rows = self.state.rows();
        let mut points = Vec::with_capacity(frames * self.state.points.len());
        let mut energies = Vec::with_capacity(frames * rows);
        for frame in 0..frames {
            for k in 0..dynamics.thin {
                let step = done + (frame * dynamics.thin + k) as u64 + 1;
                let info = dynamics.kernel.step(
                    self.draws(dynamics, step),
                    self.target,
                    dynamics.step,
                    &mut self.state,
                    &mut self.scratch,
                );
                self.accepted += info.acceptance * rows as f64;
            }
            points.extend_from_slice(&self.state.points);
            energies.extend_from_slice(&self.state.energy);
        }
        (points, energies)
    }
}

#[cfg(test)]
mod tests;
