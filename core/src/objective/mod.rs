//! Objectives: one file per loss. An objective builds its loss from the energies, scores and log-densities of a
//! [`Scene`]; it never sees the network's inside, and terms that ask for the same node share it.

pub(crate) mod anchor;
mod bayes;
mod binary_bregman;
mod binary_diffclf;
mod bregman;
mod column;
mod ctsm;
mod diffclf;
mod dre_infinity;
mod dsm;
mod fill;
mod fokker_planck;
mod known_diffclf;
mod mirror;
mod name;
mod partner;
pub(crate) mod probe;
mod scene;
mod setting;
mod target_score;
mod tsm;
mod velocity;
mod wrapped_noise;

pub use anchor::Anchor;
pub use bayes::Bayes;
pub use binary_bregman::{BinaryBregman, BinaryGenerator};
pub use binary_diffclf::BinaryDiffclf;
pub use bregman::{Bregman, Generator};
pub use column::{ObjectiveColumn, TimeWeight};
pub use ctsm::Ctsm;
pub use diffclf::Diffclf;
pub use dre_infinity::DreInfinity;
pub use dsm::Dsm;
pub use fill::{AnyFiller, Fill, Filled, Filler, Mixing, RowSlots, Scratch, Setup, Tile};
pub use fokker_planck::{FokkerPlanck, Laplacian};
pub use known_diffclf::{Ends, KnownDiffclf};
pub use name::{Choice, ObjectiveName, Term, closeness, parse_sum, parse_terms, validate_terms};
pub(crate) use name::{check_sum, choice_text, parse_choice};
pub use partner::{Partner, PartnerDraw};
pub use scene::{Scene, Slots};
pub use setting::{Setting, SettingList, Words};
pub use target_score::TargetScore;
pub use tsm::Tsm;
pub use velocity::VelocityRegression;

use crate::energy::ModelSpec;
use crate::engine::{Graph, Node};
use crate::{Error, Result};

/// A loss.
pub trait Objective {
    /// Name in configuration, log and errors.
    fn name(&self) -> &'static str;

    /// What it does, in a line of help.
    fn about(&self) -> &'static str;

    /// What is learned from it.
    fn teaches(&self) -> Teaches;

    /// Whom to cite, by the keys of their BibTeX entries.
    fn cites(&self) -> &'static [&'static str];

    /// Smallest number of levels a row must have.
    fn least_levels(&self) -> usize {
        1
    }

    /// Largest number of levels a row may have.
    fn most_levels(&self) -> usize {
        MAX_LEVELS
    }

    /// Its settings, those of `name(setting=value)`.
    fn settings(&mut self) -> SettingList<'_> {
        Vec::new()
    }

    /// Refuses models for which the loss is not defined, alone or with these settings.
    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        let _ = spec;
        Ok(())
    }

    /// Whether the loss needs the exact densities of the data (a system with known answers).
    fn needs_truth(&self, spec: &ModelSpec) -> bool {
        let _ = spec;
        false
    }

    /// Whether the model must have a velocity network.
    fn needs_velocity(&self) -> bool {
        false
    }

    /// Whether energies at other levels are compared, so that F(t) is learned from differences between levels.
    fn compares_levels(&self) -> bool {
        false
    }

    /// Whether F(t) is seen through its slope alone. Levels of the grid would show the slope of a cell at its lower end only, a
    /// left Riemann sum of F; times are then drawn [inside the cells](crate::train::StepSpec::on_grid).
    fn sees_slope(&self) -> bool {
        false
    }

    /// For a loss that contains density ratios themselves, so that the levels of a row must overlap: the share of
    /// [close times](crate::process::TimeSampler::Close) at which it trains well.
    fn closeness(&self) -> Option<f64> {
        None
    }

    /// Whether the loss fixes the constant in F(t); without such a term F is pinned to zero at the reference level.
    fn fixes_free_energy(&self) -> bool {
        false
    }

    /// The loss of each source row, `Unit(1) x 1`; the objective is its mean over the batch.
    fn loss(&self, scene: &mut Scene<'_>) -> Node;
}

/// What a loss between levels needs of a scene, of numbers or of states: `log p_{t_j}(y_i)` of a row's N points at its N times.
pub trait LevelScene {
    /// The graph, for building a loss.
    fn graph(&mut self) -> &mut Graph;
    /// Number of levels N of a row.
    fn levels(&self) -> usize;
    /// `log p_{t_i}(y_i)`, `Unit(N) x 1`.
    fn own_log_density(&mut self) -> Node;
    /// `log p_{t_j}(y_i)` for `j != i` in order, `Unit(N) x (N - 1)`.
    fn other_log_densities(&mut self) -> Node;

    /// Mean over the N levels of a `Unit(N) x 1` column: the loss of the source row.
    fn mean_over_levels(&mut self, column: Node) -> Node {
        let levels = self.levels() as f64;
        let sum = self.graph().unit_sum(column);
        self.graph().scale(sum, 1.0 / levels)
    }
}

/// A loss that sees nothing but the log-densities of levels, so that it serves finite state spaces as well.
pub trait LevelObjective: Objective {
    /// The loss of each source row, `Unit(1) x 1`.
    fn of_levels(&self, scene: &mut dyn LevelScene) -> Node;
}

/// What is learned from an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Teaches {
    /// The score: the shape of each level's density, but not F(t).
    Score,
    /// How the densities of levels relate: mode weights, and F(t) up to a constant.
    Levels,
    /// The time score, and with it the differences of F(t).
    TimeScore,
    /// That energies at different times belong to one process, F(t) included.
    Consistency,
    /// The velocity of an interpolant, and nothing of the energy.
    Velocity,
}

impl Teaches {
    /// Whether F(t) is learned.
    pub fn free_energy(self) -> bool {
        !matches!(self, Teaches::Score | Teaches::Velocity)
    }

    /// In words, for lists.
    pub fn words(self) -> &'static str {
        match self {
            Teaches::Score => "the score",
            Teaches::Levels => "how levels relate: mode weights and normalisation too",
            Teaches::TimeScore => "the time score",
            Teaches::Consistency => "consistency of the path",
            Teaches::Velocity => "an interpolant's velocity",
        }
    }
}

/// Most levels of one row.
pub const MAX_LEVELS: usize = 64;

/// Refuses interpolants.
fn diffusions_only(name: &str, spec: &ModelSpec, reason: &str) -> Result<()> {
    if !spec.process.is_interpolant() {
        return Ok(());
    }
    Err(Error::Value {
        name: "objective",
        found: format!("{name} with the {} process", spec.process.name()),
        expected: format!("a diffusion (vp, ve, edm): {reason}"),
    })
}

#[cfg(test)]
pub(crate) mod tests;
