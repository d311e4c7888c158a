//! Metropolis-adjusted Langevin (Roberts and Tweedie 1996): a Langevin step, corrected by an acceptance test.

use serde::{Deserialize, Serialize};

use super::{Draws, HeldEnergy, Scratch, State, StepInfo, metropolis};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["roberts1996exponential"];

/// See the module's text. The step size is the time `h` of the Langevin step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mala {}

/// `y' = y + h score(y) + sqrt(2 h) z`, taken with probability `min(1, p(y') q(y | y') / (p(y) q(y' | y)))`;
/// `-log q(y | y') = |y - y' - h score(y')|^2 / (4 h)` and `-log q(y' | y) = |z|^2 / 2` up to the same constant.
pub(super) fn step(
    draws: Draws,
    target: HeldEnergy<'_>,
    h: f64,
    state: &mut State,
    scratch: &mut Scratch,
) -> StepInfo {
    draws.normals(state.dim, &mut scratch.noise);
    let kick = (2.0 * h).sqrt();
    for (((new, old), score), z) in scratch
        .points
        .iter_mut()
        .zip(&state.points)
        .zip(&state.score)
        .zip(&scratch.noise)
    {
        *new = old + h * score + kick * f64::from(*z);
    }
    scratch.evaluate(target);
    let dim = state.dim;
    let log_ratio = |row: usize, state: &State| {
        let at = row * dim..(row + 1) * dim;
        let (old, new) = (&state.points[at.clone()], &scratch.points[at.clone()]);
        let (score, noise) = (&scratch.score[at.clone()], &scratch.noise[at]);
        let (mut back, mut there) = (0.0, 0.0);
        for (((old, new), score), z) in old.iter().zip(new).zip(score).zip(noise) {
            let distance = old - new - h * score;
            back += distance * distance;
            there += f64::from(*z) * f64::from(*z);
        }
        let gain = state.energy[row] - scratch.energy[row];
        // Outside the support the score is of no use and the proposal is left.
        if gain == f64::NEG_INFINITY {
            gain
        } else {
            gain - back / (4.0 * h) + 0.5 * there
        }
    };
    metropolis(draws, state, scratch, log_ratio, |_, _| false)
}
