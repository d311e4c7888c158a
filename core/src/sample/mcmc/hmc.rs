//! Hamiltonian Monte Carlo (Duane et al. 1987; Neal 2011): fresh momenta, leapfrog steps, an acceptance test on the energy error.

use serde::{Deserialize, Serialize};

use super::{Draws, HeldEnergy, Scratch, State, StepInfo, each_mass, metropolis, positive};
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["duane1987hybrid"];

/// An energy error beyond this (kT) says that the integrator has lost the trajectory, as in Stan.
pub(super) const LOST: f64 = 1000.0;

/// See the module's text. The step size is the time of one leapfrog step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hmc {
    /// Mean number of leapfrog steps of a trajectory. The number is drawn afresh at every step, from 1 to twice this minus 1, the same
    /// for all chains: trajectories of one length may come back to where they began, every time.
    pub leapfrog: usize,
    /// Mass of every coordinate.
    pub mass: f64,
}

impl Default for Hmc {
    fn default() -> Self {
        Hmc {
            leapfrog: 8,
            mass: 1.0,
        }
    }
}

impl Hmc {
    pub(super) fn validate(&self) -> Result<()> {
        positive("mass of hmc", self.mass)?;
        if self.leapfrog == 0 {
            return Err(Error::Value {
                name: "leapfrog steps of hmc",
                found: "0".into(),
                expected: "at least 1".into(),
            });
        }
        Ok(())
    }
}

/// `p ~ N(0, m)`, then some times `p += step/2 score`, `y += step p / m`, `p += step/2 score`; taken with probability
/// `min(1, exp(H(old) - H(new)))`, `H = U + |p|^2 / (2 m)`.
pub(super) fn step(
    kernel: &Hmc,
    draws: Draws,
    target: HeldEnergy<'_>,
    step: f64,
    state: &mut State,
    scratch: &mut Scratch,
) -> StepInfo {
    let dim = state.dim;
    let masses = state.masses.clone();
    let masses = || each_mass(&masses, &kernel.mass);
    draws.normals(dim, &mut scratch.noise);
    scratch.momentum.clear();
    let momenta = scratch.noise.iter().zip(masses());
    let momenta = momenta.map(|(z, m)| m.sqrt() * f64::from(*z));
    scratch.momentum.extend(momenta);
    scratch.points.copy_from_slice(&state.points);
    scratch.score.copy_from_slice(&state.score);
    let mut length = Stream::new(draws.seed, Purpose::Length, draws.step, 0);
    let leapfrog = 1 + length.below(2 * kernel.leapfrog as u64 - 1);
    for k in 0..=leapfrog {
        // Half a kick at both ends, whole ones in between.
        let kick = if k == 0 || k == leapfrog {
            0.5 * step
        } else {
            step
        };
        for (p, score) in scratch.momentum.iter_mut().zip(&scratch.score) {
            *p += kick * score;
        }
        if k < leapfrog {
            let moving = scratch.points.iter_mut().zip(&scratch.momentum);
            for ((y, p), mass) in moving.zip(masses()) {
                *y += step * p / mass;
            }
            scratch.evaluate(target);
        }
    }
    let log_ratio = |row: usize, state: &State| {
        let at = row * dim..(row + 1) * dim;
        let old: f64 = scratch.noise[at.clone()]
            .iter()
            .map(|z| f64::from(*z).powi(2))
            .sum();
        let new = scratch.momentum[at].iter().zip(masses());
        let new: f64 = new.map(|(p, mass)| p * p / mass).sum();
        state.energy[row] - scratch.energy[row] + 0.5 * (old - new)
    };
    metropolis(draws, state, scratch, log_ratio, |row, state| {
        log_ratio(row, state) < -LOST
    })
}
