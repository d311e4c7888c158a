//! DiffCLF with N levels: given a noisy sample, which of the row's N noise levels did it come from?
//! `-(1/N) sum_i log softmax_j(-U(t_j, y_i) + F(t_j))[i]`, the categorical cross-entropy of that classifier.

use super::{LevelObjective, LevelScene, Objective, Scene, Teaches};
use crate::engine::Node;

/// See the module's text.
pub struct Diffclf;

impl Objective for Diffclf {
    fn name(&self) -> &'static str {
        "diffclf"
    }

    fn about(&self) -> &'static str {
        "which of a row's N levels did a noisy point come from?"
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

    fn compares_levels(&self) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        self.of_levels(scene)
    }
}

impl LevelObjective for Diffclf {
    fn of_levels(&self, scene: &mut dyn LevelScene) -> Node {
        let own = scene.own_log_density();
        let others = scene.other_log_densities();
        let g = scene.graph();
        let all = g.concat(own, others);
        let total = g.log_sum_exp(all);
        let loss = g.sub(total, own);
        scene.mean_over_levels(loss)
    }
}
