//! Overdamped Langevin dynamics by Euler-Maruyama, without acceptance test: the kernel of annealed Langevin sampling (Song and
//! Ermon 2019). Its law is off by the order of the step size; [`Mala`](super::Mala) corrects it.

use serde::{Deserialize, Serialize};

use super::{Draws, HeldEnergy, Scratch, State, StepInfo, unadjusted_info};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["song2019generative"];

/// See the module's text. The step size is the time `h` of the Langevin step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unadjusted {}

/// `y' = y + h score(y) + sqrt(2 h) z`.
pub(super) fn step(
    draws: Draws,
    target: HeldEnergy<'_>,
    h: f64,
    state: &mut State,
    scratch: &mut Scratch,
) -> StepInfo {
    draws.normals(state.dim, &mut scratch.noise);
    let kick = (2.0 * h).sqrt();
    for ((y, score), z) in state
        .points
        .iter_mut()
        .zip(&state.score)
        .zip(&scratch.noise)
    {
        *y += h * score + kick * f64::from(*z);
    }
    state.evaluate(target);
    unadjusted_info(state)
}
