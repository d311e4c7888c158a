//! Underdamped Langevin dynamics by the BAOAB splitting (Leimkuhler and Matthews 2013): kick, drift, friction and noise, drift,
//! kick. Without acceptance test; positions in a harmonic well have the exact variance at every stable step size.

use super::langevin::{Langevin, thermostat};
use super::{Draws, HeldEnergy, Scratch, State, StepInfo, each_mass, unadjusted_info};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["leimkuhler2013rational"];

/// B: `p += h/2 score`; A: `y += h/2 p / m`; O: `p <- c p + sqrt(m (1 - c^2)) z`, `c = exp(-friction h)`; then A and B again.
/// The score of the last B serves the next step's first.
pub(super) fn step(
    kernel: &Langevin,
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
