//! Underdamped Langevin dynamics by the Langevin leapfrog (Izaguirre, Sweet and Pande 2010): the exact step of the velocity under a
//! force that stands still, then a step along it. The `LangevinIntegrator` of OpenMM, and the scheme of the paper's simulations.

use super::langevin::Langevin;
use super::{Draws, HeldEnergy, Scratch, State, StepInfo, each_mass, unadjusted_info};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["izaguirre2010multiscale"];

/// `p <- c p + (1 - c)/friction score + sqrt(m (1 - c^2)) z`, `c = exp(-friction h)`; `y += h p / m`.
pub(super) fn step(
    kernel: &Langevin,
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
