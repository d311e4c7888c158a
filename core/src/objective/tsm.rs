//! Time score matching: `tau^2 (time_score(t, y) - d/dt log p_t(y))^2`, for systems whose exact time score is known.

use super::column::{ObjectiveColumn, TimeWeight};
use super::fill::{Fill, Filler, Setup, Tile};
use super::setting::SettingList;
use super::{Objective, Scene, Teaches};
use crate::energy::ModelSpec;
use crate::engine::{Node, Real};
use crate::{Error, Result};

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

    fn about(&self) -> &'static str {
        "time score matching against the exact time score of a system"
    }

    fn teaches(&self) -> Teaches {
        Teaches::TimeScore
    }

    fn cites(&self) -> &'static [&'static str] {
        &["choi2022density"]
    }

    fn settings(&mut self) -> SettingList<'_> {
        vec![("weight", &mut self.weight)]
    }

    fn sees_slope(&self) -> bool {
        true
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        if spec.coupling.is_some() {
            return Err(Error::Value {
                name: "objective",
                found: "tsm between rows that belong together".into(),
                expected: "independent pairs: the exact path is known for them alone".into(),
            });
        }
        self.weight.validate(spec)
    }

    fn needs_truth(&self, _spec: &ModelSpec) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let score = scene.time_score();
        let exact = scene.filled(ExactTimeScore)[0];
        let tau = scene.objective_column(ObjectiveColumn::TimeScale(self.weight));
        let g = scene.graph();
        let residual = g.sub(score, exact);
        let residual = g.mul(residual, tau);
        let square = g.mul(residual, residual);
        scene.mean_over_levels(square)
    }
}

/// Exact time scores at `(t_i, y_i)`, `Unit(N) x 1`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ExactTimeScore;

impl Filler for ExactTimeScore {
    fn shapes(&self, _: &ModelSpec, levels: usize) -> Vec<(usize, usize)> {
        vec![(levels, 1)]
    }

    fn build<T: Real>(&self, _: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<T>> {
        Box::new(TimeScores { slot: slots[0] })
    }
}

struct TimeScores {
    slot: usize,
}

impl<T: Real> Fill<T> for TimeScores {
    fn fill(&self, tile: &mut Tile<'_, '_, T>) {
        let Some(truth) = tile.truth else { return };
        tile.widen(tile.rows.points);
        tile.make_room(tile.times.len());
        let scratch = &mut *tile.scratch;
        scratch.evaluate(tile.spec.dim, tile.times, |times, points, out| {
            truth.time_score(times, points, out);
        });
        tile.narrow(self.slot);
    }
}
