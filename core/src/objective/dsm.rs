//! Denoising score matching: `w(t) |score(t, y) + z / gamma|^2`, `y = X_t + gamma z`.
//!
//! Diffusions use the weight of EDM, `w = gamma^2 (sigma^2 + sd^2) / sd^2` (Karras et al. 2022), which makes the
//! regression target of the network unit-sized at every level. Interpolants use `w = gamma^2`, bounded at the ends, and
//! the mean over the antithetic pair `+z, -z` (Albergo et al. 2023). In periodic columns `-z / gamma` is the score of the wrapped kernel.

use super::wrapped_noise::WrappedNoise;
use super::{Objective, Scene, Teaches};
use crate::energy::Column;
use crate::engine::Node;

/// See the module's text.
pub struct Dsm;

impl Objective for Dsm {
    fn name(&self) -> &'static str {
        "dsm"
    }

    fn about(&self) -> &'static str {
        "denoising score matching"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Score
    }

    fn cites(&self) -> &'static [&'static str] {
        &["vincent2011connection"]
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let noise = match scene.spec().periods() {
            [] => scene.noise(),
            _ => scene.filled(WrappedNoise)[0],
        };
        let score = scene.score();
        let mut square = residual(scene, score, noise);
        if scene.spec().process.is_interpolant() {
            let mirror = scene.mirror_score();
            let minus = scene.graph().scale(noise, -1.0);
            let other = residual(scene, mirror, minus);
            let sum = scene.graph().add(square, other);
            square = scene.graph().scale(sum, 0.5);
        }
        let weight = scene.column(Column::DsmWeight);
        let weighted = scene.graph().mul(square, weight);
        scene.mean_over_levels(weighted)
    }
}

/// `|gamma score + z|^2`: the noise's scale is multiplied in first, so that no term is large.
fn residual(scene: &mut Scene<'_>, score: Node, noise: Node) -> Node {
    let gamma = scene.column(Column::Noise);
    let g = scene.graph();
    let scaled = g.mul_column(score, gamma);
    let residual = g.add(scaled, noise);
    g.row_dot(residual, residual)
}
