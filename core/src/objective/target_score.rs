//! Target score matching: the score of the data at the source is a target for the score of the noisy point, where the data's
//! density is known up to a constant (De Bortoli et al. 2024).
//!
//! Diffusion: `score(t, y) = E[grad log p_0(x_0) | y] / S`. Interpolant: `E[grad log q_0(x_0) | y] / alpha`, and equally
//! `E[grad log q_1(x_1) | y] / beta`; the endpoint with the larger share is taken. The paper's formula for interpolants has
//! the energies themselves in place of their gradients, and no factor. Weights: `S^2 sigma^2 sd^2 / (sigma^2 + sd^2)` for diffusions (that of the noise where it is
//! small, bounded where it is large); for interpolants `gamma^2`, or on springs one over the target's variance (`target_scale` in `column.rs`).

use super::column::ObjectiveColumn;
use super::fill::{Fill, Filler, Setup, Tile};
use super::{Objective, Scene, Teaches};
use crate::energy::ModelSpec;
use crate::engine::{Node, Real};

/// See the module's text.
pub struct TargetScore;

impl Objective for TargetScore {
    fn name(&self) -> &'static str {
        "target-score"
    }

    fn about(&self) -> &'static str {
        "score matching against the exact score of the data"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Score
    }

    fn cites(&self) -> &'static [&'static str] {
        &["debortoli2024target"]
    }

    fn needs_truth(&self, _spec: &ModelSpec) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let score = scene.score();
        let scores = scene.filled(SourceScores);
        let target = scene.sum_of_sources(
            (scores[0], ObjectiveColumn::TargetStart),
            scores.get(1).map(|end| (*end, ObjectiveColumn::TargetEnd)),
        );
        let scale = scene.objective_column(ObjectiveColumn::TargetScale);
        let g = scene.graph();
        let scaled = g.mul_column(score, scale);
        let residual = g.sub(scaled, target);
        let square = g.row_dot(residual, residual);
        scene.mean_over_levels(square)
    }
}

/// Exact scores of the data at `x_0`, and at the `x_1` of an interpolant, `Unit(1) x d` each.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SourceScores;

impl Filler for SourceScores {
    fn shapes(&self, spec: &ModelSpec, _: usize) -> Vec<(usize, usize)> {
        vec![(1, spec.dim); if spec.process.is_interpolant() { 2 } else { 1 }]
    }

    fn build<T: Real>(&self, _: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<T>> {
        Box::new(Scores {
            start: slots[0],
            end: slots.get(1).copied(),
        })
    }
}

struct Scores {
    start: usize,
    end: Option<usize>,
}

impl<T: Real> Fill<T> for Scores {
    fn fill(&self, tile: &mut Tile<'_, '_, T>) {
        let Some(truth) = tile.truth else { return };
        let last = tile.spec.process.horizon();
        let ends = [
            (Some(self.start), Some(tile.rows.start), 0.0),
            (self.end, tile.rows.end, last),
        ];
        for (slot, source, time) in ends {
            if let (Some(slot), Some(source)) = (slot, source) {
                tile.widen(source);
                tile.make_room(tile.scratch.input.len());
                let scratch = &mut *tile.scratch;
                scratch.evaluate(tile.spec.dim, &[time], |time, points, out| {
                    truth.score(time, points, out);
                });
                tile.narrow(slot);
            }
        }
    }
}
