//! Target score matching: the score of the data at the source is a target for the score of the noisy point, where the data's
//! density is known up to a constant (De Bortoli et al. 2024).
//!
//! Diffusion: `score(t, y) = E[grad log p_0(x_0) | y] / S`. Interpolant: `E[grad log q_0(x_0) | y] / alpha`, and equally
//! `E[grad log q_1(x_1) | y] / beta`; the endpoint with the larger share is taken. The paper's formula for interpolants has
//! the energies themselves in place of their gradients, and no factor. Weights: `S^2 sigma^2 sd^2 / (sigma^2 + sd^2)` for diffusions (that of the noise where it is
//! small, bounded where it is large), `gamma^2` for interpolants.

use super::column::ObjectiveColumn;
use super::{Objective, Scene};
use crate::energy::ModelSpec;
use crate::engine::Node;

/// See the module's text.
pub struct TargetScore;

impl Objective for TargetScore {
    fn name(&self) -> &'static str {
        "target-score"
    }

    fn needs_truth(&self, _spec: &ModelSpec) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let score = scene.score();
        let target =
            scene.source_score_sum(ObjectiveColumn::TargetStart, ObjectiveColumn::TargetEnd);
        let scale = scene.objective_column(ObjectiveColumn::TargetScale);
        let g = scene.graph();
        let scaled = g.mul_column(score, scale);
        let residual = g.sub(scaled, target);
        let square = g.row_dot(residual, residual);
        scene.mean_over_levels(square)
    }
}
