//! Losses of states: the conditional score entropy, and all that compare levels, which are those of points in space.

mod name;
mod scene;
mod score_entropy;

pub use name::StatesObjectiveName;
pub use scene::{Changes, StatesScene, StatesSlots};
pub use score_entropy::{EntropyWeight, ScoreEntropy};

use crate::engine::Node;
use crate::objective::{LevelObjective, Objective, Teaches};

/// A loss.
pub trait StatesObjective {
    /// Name in configuration, log and errors.
    fn name(&self) -> &'static str;
    /// What it does, in a line of help.
    fn about(&self) -> &'static str;
    /// What is learned from it.
    fn teaches(&self) -> Teaches;
    /// Whom to cite.
    fn cites(&self) -> &'static [&'static str];
    /// Fewest and most levels of a row.
    fn level_range(&self) -> (usize, usize);

    /// Whether it compares levels with each other: it cannot do with one.
    fn compares_levels(&self) -> bool {
        self.level_range().0 > 1
    }
    /// The loss of each source row, `Unit(1) x 1`; the objective is its mean over the batch.
    fn loss(&self, scene: &mut StatesScene<'_>) -> Node;
}

/// Whoever looks at log-densities of levels alone does not ask what a point is.
impl<T: LevelObjective> StatesObjective for T {
    fn name(&self) -> &'static str {
        Objective::name(self)
    }
    fn about(&self) -> &'static str {
        Objective::about(self)
    }
    fn teaches(&self) -> Teaches {
        Objective::teaches(self)
    }
    fn cites(&self) -> &'static [&'static str] {
        Objective::cites(self)
    }
    fn level_range(&self) -> (usize, usize) {
        (self.least_levels(), self.most_levels())
    }
    fn loss(&self, scene: &mut StatesScene<'_>) -> Node {
        self.of_levels(scene)
    }
}
