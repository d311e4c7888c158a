//! Generalised Hamiltonian Monte Carlo (Horowitz 1991): Langevin dynamics whose every step passes an acceptance test, so that
//! configurations have the exact law at any step size. A refused step turns the momentum around.

use super::hmc::LOST;
use super::langevin::Langevin;
use super::{Draws, HeldEnergy, Scratch, State, StepInfo, each_mass, metropolis};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["horowitz1991generalized"];

/// `p <- c p + sqrt(m (1 - c^2)) z`, `c = exp(-friction h)`, which keeps N(0, m); then a step of velocity Verlet, taken with probability
/// `min(1, exp(H(old) - H(new)))`, or `p <- -p`.
pub(super) fn step(
    kernel: &Langevin,
    draws: Draws,
    target: HeldEnergy<'_>,
    h: f64,
    state: &mut State,
    scratch: &mut Scratch,
) -> StepInfo {
    let dim = state.dim;
    draws.normals(dim, &mut scratch.noise);
    let keep = (-kernel.friction * h).exp();
    let fresh = -(-2.0 * kernel.friction * h).exp_m1();
    let masses = state.masses.clone();
    let masses = || each_mass(&masses, &kernel.mass);
    scratch.momentum.clear();
    for ((((p, z), score), (new, old)), mass) in state
        .momentum
        .iter_mut()
        .zip(&scratch.noise)
        .zip(&state.score)
        .zip(scratch.points.iter_mut().zip(&state.points))
        .zip(masses())
    {
        *p = keep * *p + (mass * fresh).sqrt() * f64::from(*z);
        let half = *p + 0.5 * h * score;
        scratch.momentum.push(half);
        *new = old + h * half / mass;
    }
    scratch.evaluate(target);
    for (p, score) in scratch.momentum.iter_mut().zip(&scratch.score) {
        *p += 0.5 * h * score;
    }
    // Until the test the state holds the momenta before the step; after it, those that go on.
    let mut momenta = std::mem::take(&mut state.momentum);
    let kinetic = |momenta: &[f64]| -> f64 {
        let all = momenta.iter().zip(masses());
        0.5 * all.map(|(p, mass)| p * p / mass).sum::<f64>()
    };
    let log_ratio = |row: usize, state: &State| {
        let at = row * dim..(row + 1) * dim;
        state.energy[row] - scratch.energy[row] + kinetic(&momenta[at.clone()])
            - kinetic(&scratch.momentum[at])
    };
    let lost = |row: usize, state: &State| log_ratio(row, state) < -LOST;
    let info = metropolis(draws, state, scratch, log_ratio, lost);
    for row in 0..state.rows() {
        let at = row * dim..(row + 1) * dim;
        // A step that was taken left its points in the state.
        let taken = state.points[at.clone()] == scratch.points[at.clone()];
        for (p, new) in momenta[at.clone()].iter_mut().zip(&scratch.momentum[at]) {
            *p = if taken { *new } else { -*p };
        }
    }
    state.momentum = momenta;
    info
}
