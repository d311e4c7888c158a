//! Underdamped Langevin dynamics by the BAOAB splitting (Leimkuhler and Matthews 2013): kick, drift, friction and noise, drift,
//! kick. Without acceptance test; positions in a harmonic well have the exact variance at every stable step size.

use serde::{Deserialize, Serialize};

use super::{Draws, HeldEnergy, Scratch, State, StepInfo, each_mass, positive, unadjusted_info};
use crate::Result;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["leimkuhler2013rational"];

/// See the module's text. The step size is a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Baoab {
    /// Friction, a rate: 1 / time.
    pub friction: f64,
    /// Mass of every coordinate.
    pub mass: f64,
}

impl Default for Baoab {
    fn default() -> Self {
        Baoab {
            friction: 1.0,
            mass: 1.0,
        }
    }
}

impl Baoab {
    pub(super) fn validate(&self) -> Result<()> {
        positive("friction of baoab", self.friction)?;
        positive("mass of baoab", self.mass)
    }
}

/// What friction leaves of a momentum in a time `h`, `c = exp(-friction h)`, and the share of fresh noise that keeps its variance,
/// `sqrt(1 - c^2)`, without cancellation for small `h`.
pub(crate) fn thermostat(friction: f64, h: f64) -> (f64, f64) {
    let fresh = (-(-2.0 * friction * h).exp_m1()).sqrt();
    ((-friction * h).exp(), fresh)
}

/// B: `p += h/2 score`; A: `y += h/2 p / m`; O: `p <- c p + sqrt(m (1 - c^2)) z`, `c = exp(-friction h)`; then A and B again.
/// The score of the last B serves the next step's first.
pub(super) fn step(
    kernel: &Baoab,
    draws: Draws,
    target: HeldEnergy<'_>,
    h: f64,
    state: &mut State,
    scratch: &mut Scratch,
) -> StepInfo {
    draws.normals(state.dim, &mut scratch.noise);
    let (keep, fresh) = thermostat(kernel.friction, h);
    for ((((y, p), score), z), mass) in state
        .points
        .iter_mut()
        .zip(&mut state.momentum)
        .zip(&state.score)
        .zip(&scratch.noise)
        .zip(each_mass(&state.masses, &kernel.mass))
    {
        let drift = 0.5 * h / mass;
        *p += 0.5 * h * score;
        *y += drift * *p;
        *p = keep * *p + mass.sqrt() * fresh * f64::from(*z);
        *y += drift * *p;
    }
    state.evaluate(target);
    for (p, score) in state.momentum.iter_mut().zip(&state.score) {
        *p += 0.5 * h * score;
    }
    unadjusted_info(state)
}
