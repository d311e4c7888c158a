//! Time score matching: `tau^2 (time_score(t, y) - d/dt log p_t(y))^2`, for systems whose exact time score is known.

use super::column::{ObjectiveColumn, TimeWeight};
use super::setting::Settings;
use super::{Objective, Scene};
use crate::Result;
use crate::energy::ModelSpec;
use crate::engine::Node;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tsm {
    /// Weight over time.
    pub weight: TimeWeight,
}

impl Tsm {
    /// The usual settings.
    pub const USUAL: Tsm = Tsm {
        weight: TimeWeight::Balanced,
    };
}

impl Objective for Tsm {
    fn name(&self) -> &'static str {
        "tsm"
    }

    fn settings(&mut self) -> Settings<'_> {
        vec![("weight", &mut self.weight)]
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        self.weight.validate(spec)
    }

    fn needs_truth(&self, _spec: &ModelSpec) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let (score, exact) = (scene.time_score(), scene.exact_time_score());
        let tau = scene.objective_column(ObjectiveColumn::TimeScale(self.weight));
        let g = scene.graph();
        let residual = g.sub(score, exact);
        let residual = g.mul(residual, tau);
        let square = g.mul(residual, residual);
        scene.mean_over_levels(square)
    }
}
