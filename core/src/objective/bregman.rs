//! Multi-class Bregman divergences between class probabilities: with `r_j = p_j / sum_k p_k` at the point `y_i` of class `i` and
//! a convex generator `phi(r) = sum_j phi_1(r_j)`, the mean over `i` of `grad phi(r) . r - phi(r) - phi_1'(r_i)` is least at
//! the true probabilities (appendix on Bregman divergences).
//!
//! | generator | `phi_1(r)` | loss of a point |
//! | --- | --- | --- |
//! | `entropy` | `r log r` | `-log r_i`: DiffCLF |
//! | `js` | `r log r - (1 + r) log(1 + r)` | `sum_j log(1 + r_j) + log(1 + r_i) - log r_i` |
//! | `square` | `r^2 / 2` | `sum_j r_j^2 / 2 - r_i` (Brier) |
//! | `inverse` | `1 / r` | `1 / r_i^2 - 2 sum_j 1 / r_j` |
//!
//! The paper's last line for `js` loses the sum over `j`; what it prints is not least at the true probabilities. `inverse` is
//! unbounded and needs [close times](crate::process::TimeSampler::Close): where it overflows the loss is not finite and the step
//! says so.

use super::setting::{SettingList, Words};
use super::{LevelObjective, LevelScene, Objective, Scene, Teaches};
use crate::engine::{Function, Node};

/// The convex function of a multi-class Bregman divergence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// `sum r log r`.
    Entropy,
    /// `sum r log r - (1 + r) log(1 + r)`.
    JensenShannon,
    /// `sum r^2 / 2`.
    Square,
    /// `sum 1 / r`.
    Inverse,
}

impl Words for Generator {
    const WORDS: &'static [(&'static str, Generator)] = &[
        ("entropy", Generator::Entropy),
        ("js", Generator::JensenShannon),
        ("square", Generator::Square),
        ("inverse", Generator::Inverse),
    ];
}

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bregman {
    /// The convex function.
    pub generator: Generator,
}

impl Bregman {
    /// The usual settings.
    pub const USUAL: Bregman = Bregman {
        generator: Generator::Entropy,
    };
}

impl Objective for Bregman {
    fn name(&self) -> &'static str {
        "bregman"
    }

    fn about(&self) -> &'static str {
        "Bregman divergences between the class probabilities of N levels"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Levels
    }

    fn cites(&self) -> &'static [&'static str] {
        &["ouyang2026diffclf", "gutmann2011bregman"]
    }

    fn least_levels(&self) -> usize {
        2
    }

    fn settings(&mut self) -> SettingList<'_> {
        vec![("generator", &mut self.generator)]
    }

    fn compares_levels(&self) -> bool {
        true
    }

    fn closeness(&self) -> Option<f64> {
        // Not bounded below at a single point: large ratios are sought before they are punished.
        (self.generator == Generator::Inverse).then_some(0.1)
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        self.of_levels(scene)
    }
}

impl LevelObjective for Bregman {
    fn of_levels(&self, scene: &mut dyn LevelScene) -> Node {
        let levels = scene.levels();
        let own = scene.own_log_density();
        let others = scene.other_log_densities();
        let g = scene.graph();
        let all = g.concat(own, others);
        let total = g.log_sum_exp(all);
        let log_own = g.sub(own, total);
        let spread = g.broadcast_columns(total, levels);
        let log_all = g.sub(all, spread);
        let loss = match self.generator {
            Generator::Entropy => g.scale(log_own, -1.0),
            Generator::JensenShannon => {
                let terms = g.unary(Function::Softplus, log_all);
                let sum = g.row_sum(terms);
                let first = g.unary(Function::Softplus, log_own);
                let sum = g.add(sum, first);
                g.sub(sum, log_own)
            }
            Generator::Square => {
                let (r, r_own) = (
                    g.unary(Function::Exp, log_all),
                    g.unary(Function::Exp, log_own),
                );
                let square = g.row_dot(r, r);
                let half = g.scale(square, 0.5);
                g.sub(half, r_own)
            }
            Generator::Inverse => {
                let (minus, twice) = (g.scale(log_all, -1.0), g.scale(log_own, -2.0));
                let (inverse, square) =
                    (g.unary(Function::Exp, minus), g.unary(Function::Exp, twice));
                let sum = g.row_sum(inverse);
                let sum = g.scale(sum, 2.0);
                g.sub(square, sum)
            }
        };
        scene.mean_over_levels(loss)
    }
}
