//! The paper's tables and figures, each computed again.
//!
//! An experiment is a folder of this crate: `run.toml` says what is computed, `expected.json` what the paper prints.
//! It is cut into cells, each with its own figures; a finished cell is a file, so an interrupted reproduction goes on
//! where it stopped. [`catalogue`] lists the experiments, [`cell`] keeps the cells, [`outcome`] sets them beside the
//! paper, [`reproduction`] leads from one to the other. One file for each kind of experiment.

pub mod catalogue;
pub mod cell;
pub mod demo;
pub mod outcome;
pub mod reproduction;

mod aldp_cg;
mod aldp_solvation;
mod blindness;
mod boltzmann;
mod chignolin;
mod classifier;
mod composition;
mod dynamics;
mod gaussian;
mod ising;
mod limits;
mod mueller_brown;
mod properties;
mod side_by_side;
mod stages;

use diffclf::engine::{Isa, Pool};
use diffclf_run::Watch;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// How models are trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// Multiscale times, cosine decay, moving average.
    Ours,
    /// Uniform levels, constant rate, no average.
    Paper,
}

/// How an experiment is computed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Manner {
    /// The small budget.
    pub quick: bool,
    /// How models are trained.
    pub recipe: Recipe,
    /// Share of the training steps of the budget.
    pub share: f64,
}

/// What a cell may use.
pub struct Bench {
    /// Folder of the experiment.
    pub folder: PathBuf,
    /// Threads.
    pub pool: Arc<Pool>,
    /// Kernels.
    pub isa: Isa,
    /// The user's own frames, in place of the experiment's.
    pub data: Option<PathBuf>,
    /// Name of the kernels, if chosen by the user.
    pub kernel: Option<String>,
    /// Who follows it.
    pub watch: Arc<dyn Watch>,
}

/// Whether a cell's name begins with whole words of `prefix`: `d8` is not the beginning of `d80`.
pub fn begins(cell: &str, prefix: &str) -> bool {
    cell.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalogue::CATALOGUE;

    #[test]
    fn cells_are_chosen_by_whole_words() {
        assert!(begins("d8-n4-dsm-s0", "d8-n4"));
        assert!(begins("d8-n4-dsm-s0", "d8-n4-dsm-s0"));
        assert!(!begins("d80-n4", "d8") && !begins("d8-n4", "d8-n4-dsm"));
    }

    #[test]
    fn a_share_of_the_steps_changes_nothing_else() {
        let definition = catalogue::find("mog40-dm").unwrap().definition().unwrap();
        let settings = |share| {
            let manner = Manner {
                quick: false,
                recipe: Recipe::Ours,
                share,
            };
            definition.experiment(manner).unwrap().settings().unwrap()
        };
        let (mut whole, tenth) = (settings(1.0), settings(0.1));
        assert_eq!(whole[2]["steps"], serde_json::json!([15000, 15000]));
        whole[2]["steps"] = serde_json::json!([1500, 1500]);
        assert_eq!(whole, tenth);
    }

    #[test]
    fn every_experiment_can_be_read_and_has_cells_in_both_budgets() {
        for entry in CATALOGUE {
            let definition = entry.definition().unwrap();
            let expected = entry.expected().unwrap();
            for quick in [true, false] {
                for recipe in [Recipe::Ours, Recipe::Paper] {
                    let experiment = definition.experiment(Manner {
                        quick,
                        recipe,
                        share: 1.0,
                    });
                    let experiment = experiment.unwrap();
                    let cells = experiment.cells();
                    assert!(!cells.is_empty(), "{}", entry.name);
                    experiment.settings().unwrap();
                    // Every claim of an order must be about cells that the budget computes.
                    for order in definition.orders(quick) {
                        for group in [&order.less, &order.than] {
                            assert!(
                                cells.iter().any(|cell| begins(cell, group)),
                                "{}: {group} is no cell",
                                entry.name
                            );
                        }
                    }
                    if !quick {
                        for row in &expected {
                            assert!(
                                cells.iter().any(|cell| begins(cell, &row.cell)),
                                "{}: {} is no cell",
                                entry.name,
                                row.cell
                            );
                        }
                    }
                }
            }
        }
    }
}
