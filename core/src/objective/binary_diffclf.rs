//! Binary DiffCLF: the mean over a row's two samples of `softplus(-(l_own - l_other))`, `l = -U + F`. Equal to DiffCLF with
//! N = 2 to rounding.

use super::{LevelObjective, LevelScene, Objective, Scene, Teaches};
use crate::engine::{Function, Node};

/// See the module's text.
pub struct BinaryDiffclf;

impl Objective for BinaryDiffclf {
    fn name(&self) -> &'static str {
        "binary-diffclf"
    }

    fn about(&self) -> &'static str {
        "the same between two levels"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Levels
    }

    fn cites(&self) -> &'static [&'static str] {
        &["ouyang2026diffclf"]
    }

    fn least_levels(&self) -> usize {
        2
    }

    fn most_levels(&self) -> usize {
        2
    }

    fn compares_levels(&self) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        self.of_levels(scene)
    }
}

impl LevelObjective for BinaryDiffclf {
    fn of_levels(&self, scene: &mut dyn LevelScene) -> Node {
        let own = scene.own_log_density();
        let other = scene.other_log_densities();
        let g = scene.graph();
        let margin = g.sub(other, own);
        let loss = g.unary(Function::Softplus, margin);
        scene.mean_over_levels(loss)
    }
}
