//! Conditional time score matching: `tau^2 (time_score(t, y) - c)^2` with the time score of `y` given its source,
//! `c = -d gamma'/gamma + z . X_t' / gamma + |z|^2 gamma'/gamma`, which averages to the time score (Yu et al. 2025, Guth et al.
//! 2025). The paper prints the middle term with a minus sign; `log N(y; X_t, gamma^2)` has it with a plus, and only that averages
//! to the time score.
//!
//! The weight `tau^2` is a [`TimeWeight`]. Interpolants take the mean over the antithetic pair `+z, -z`, whose large odd term
//! `z . X_t' / gamma` cancels near the ends.

use super::column::{ObjectiveColumn, TimeWeight};
use super::setting::SettingList;
use super::{Objective, Scene, Teaches};
use crate::Result;
use crate::energy::ModelSpec;
use crate::engine::Node;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ctsm {
    /// Weight over time.
    pub weight: TimeWeight,
}

impl Ctsm {
    /// The usual settings.
    pub const USUAL: Ctsm = Ctsm {
        weight: TimeWeight::Balanced,
    };
}

impl Objective for Ctsm {
    fn name(&self) -> &'static str {
        "ctsm"
    }

    fn about(&self) -> &'static str {
        "conditional time score matching, from samples"
    }

    fn teaches(&self) -> Teaches {
        Teaches::TimeScore
    }

    fn cites(&self) -> &'static [&'static str] {
        &["yu2025density"]
    }

    fn settings(&mut self) -> SettingList<'_> {
        vec![("weight", &mut self.weight)]
    }

    fn sees_slope(&self) -> bool {
        true
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        self.weight.validate(spec)
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let score = scene.time_score();
        let (even, odd) = target(scene, self.weight);
        let plus = scene.graph().add(even, odd);
        let mut square = residual(scene, self.weight, score, plus);
        if scene.spec().process.is_interpolant() {
            let score = scene.mirror_time_score();
            let minus = scene.graph().sub(even, odd);
            let other = residual(scene, self.weight, score, minus);
            let sum = scene.graph().add(square, other);
            square = scene.graph().scale(sum, 0.5);
        }
        scene.mean_over_levels(square)
    }
}

/// tau times the conditional time score: the part even in z, and the part odd in it.
fn target(scene: &mut Scene<'_>, weight: TimeWeight) -> (Node, Node) {
    let noise = scene.noise();
    let dim = scene.spec().dim as f64;
    let g = scene.graph();
    let square = g.row_dot(noise, noise);
    let square = g.affine(square, 1.0, -dim);
    let factor = scene.objective_column(ObjectiveColumn::ConditionalNoise(weight));
    let even = scene.graph().mul(square, factor);
    let rate = scene.source_sum(
        ObjectiveColumn::ConditionalStart(weight),
        ObjectiveColumn::ConditionalEnd(weight),
    );
    let odd = scene.graph().row_dot(noise, rate);
    (even, odd)
}

/// `(tau score - target)^2`.
fn residual(scene: &mut Scene<'_>, weight: TimeWeight, score: Node, target: Node) -> Node {
    let tau = scene.objective_column(ObjectiveColumn::TimeScale(weight));
    let g = scene.graph();
    let scaled = g.mul(score, tau);
    let residual = g.sub(scaled, target);
    g.mul(residual, residual)
}
