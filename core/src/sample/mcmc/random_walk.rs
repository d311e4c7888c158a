//! Random walk Metropolis (Metropolis et al. 1953): a normal step, taken with probability `min(1, p(new) / p(old))`.

use serde::{Deserialize, Serialize};

use super::{Draws, HeldEnergy, Scratch, State, StepInfo, metropolis};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["metropolis1953equation"];

/// See the module's text. The step size is the standard deviation of a coordinate's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomWalk {}

/// `y' = y + step z`.
pub(super) fn step(
    draws: Draws,
    target: HeldEnergy<'_>,
    step: f64,
    state: &mut State,
    scratch: &mut Scratch,
) -> StepInfo {
    draws.normals(state.dim, &mut scratch.noise);
    for ((new, old), z) in scratch
        .points
        .iter_mut()
        .zip(&state.points)
        .zip(&scratch.noise)
    {
        *new = old + step * f64::from(*z);
    }
    target
        .energy
        .energy(&[target.time], &scratch.points, &mut scratch.energy);
    metropolis(
        draws,
        state,
        scratch,
        |row, state| state.energy[row] - scratch.energy[row],
        |_, _| false,
    )
}
