//! Underdamped Langevin dynamics by the Langevin leapfrog (Izaguirre, Sweet and Pande 2010): the exact step of the velocity under a
//! force that stands still, then a step along it. The `LangevinIntegrator` of OpenMM, and the scheme of the paper's simulations.

use serde::{Deserialize, Serialize};

use super::{Draws, HeldEnergy, Scratch, State, StepInfo, each_mass, positive, unadjusted_info};
use crate::Result;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["izaguirre2010multiscale"];

/// See the module's text. The step size is a time; momenta lie half a step behind the points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LangevinLeapfrog {
    /// Friction, a rate: 1 / time.
    pub friction: f64,
    /// Mass of every coordinate.
    pub mass: f64,
}

impl Default for LangevinLeapfrog {
    fn default() -> Self {
        LangevinLeapfrog {
            friction: 1.0,
            mass: 1.0,
        }
    }
}

impl LangevinLeapfrog {
    pub(super) fn validate(&self) -> Result<()> {
        positive("friction of langevin-leapfrog", self.friction)?;
        positive("mass of langevin-leapfrog", self.mass)
    }
}

/// `p <- c p + (1 - c)/friction score + sqrt(m (1 - c^2)) z`, `c = exp(-friction h)`; `y += h p / m`.
pub(super) fn step(
    kernel: &LangevinLeapfrog,
    draws: Draws,
    target: HeldEnergy<'_>,
    h: f64,
    state: &mut State,
    scratch: &mut Scratch,
) -> StepInfo {
    draws.normals(state.dim, &mut scratch.noise);
    let keep = (-kernel.friction * h).exp();
    let kick = -(-kernel.friction * h).exp_m1() / kernel.friction;
    let fresh = -(-2.0 * kernel.friction * h).exp_m1();
    for ((((y, p), score), z), mass) in state
        .points
        .iter_mut()
        .zip(&mut state.momentum)
        .zip(&state.score)
        .zip(&scratch.noise)
        .zip(each_mass(&state.masses, &kernel.mass))
    {
        *p = keep * *p + kick * score + (mass * fresh).sqrt() * f64::from(*z);
        *y += h * *p / mass;
    }
    state.evaluate(target);
    unadjusted_info(state)
}
