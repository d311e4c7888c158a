//! `diffclf reproduce`: the paper's tables and figures, each by one command.
//!
//! An experiment is a folder of `experiments/`: `run.toml` says what is computed, `expected.json` what the paper prints.
//! It is cut into cells, each with its own figures; a finished cell is a file, so an interrupted reproduction goes on
//! where it stopped. [`catalogue`] lists the experiments, [`cell`] keeps the cells, [`outcome`] sets them beside the
//! paper. One file for each kind of experiment.

mod blindness;
mod boltzmann;
mod catalogue;
mod cell;
mod classifier;
mod composition;
mod gaussian;
mod limits;
mod outcome;
mod properties;
mod stages;

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::print::{note, print, table_text};
use crate::progress::duration_text;
use crate::report::page::Table;
use crate::stop::Stop;
use catalogue::{CATALOGUE, Definition};
use cell::Cells;
use diffclf::engine::{Isa, Pool};
use outcome::Outcome;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  diffclf reproduce --list
  diffclf reproduce mog40-dm --quick
  diffclf reproduce mog40-dm --cells d8-n4
  diffclf reproduce boltzmann-si --cells d16 --share 0.1
  diffclf reproduce mog40-dm --recipe paper --cells d8-n4-diffclf -o reproduced/as-printed

Results land in a folder: results.json, table.md, a page with pictures, and what was trained. A finished cell is not
computed again: after an interruption the same command goes on where it stopped. --quick takes minutes and shows the
order of the methods, not the paper's values.

Exit codes: 0 the orders that the paper claims hold, 1 one of them does not, 2 wrong usage, 130 interrupted.";

/// A table or figure of the paper, computed here.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The experiment (see --list)
    #[arg(value_name = "NAME", required_unless_present = "list")]
    name: Option<String>,
    /// Show all experiments with their cost
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// A small budget that still shows the order of the methods
    #[arg(long)]
    quick: bool,
    /// How models are trained: `ours`, or `paper` for the recipe as printed
    #[arg(long, value_name = "NAME", default_value = "ours")]
    recipe: Recipe,
    /// Train with this share of the steps, such as 0.1: a reduced budget for cells that --quick leaves out
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    share: f64,
    /// Only cells whose name begins like one of these, such as d8-n4 or d8-n4-diffclf-s0
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cells: Vec<String>,
    /// Folder of the results [default: reproduced/NAME, with -quick, -paper and -SHARE where asked for]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    machine: Machine,
}

/// How models are trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Recipe {
    /// Multiscale times, cosine decay, moving average.
    Ours,
    /// Uniform levels, constant rate, no average.
    Paper,
}

/// How an experiment is computed.
#[derive(Debug, Clone, Copy)]
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
    /// Name of the kernels, if chosen by the user.
    pub kernel: Option<String>,
    /// No progress.
    pub quiet: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let Some(name) = &args.name else {
        return print(&table_text(&list()?));
    };
    let entry = catalogue::find(name)?;
    let definition = entry.definition()?;
    let manner = Manner {
        quick: args.quick,
        recipe: args.recipe,
        share: args.share,
    };
    if !(manner.share > 0.0 && manner.share <= 1.0) {
        return Err(Error::Usage(format!(
            "--share {}: expected a number above 0, at most 1",
            manner.share
        )));
    }
    let experiment = definition.experiment(manner)?;
    let all = experiment.cells();
    let chosen: Vec<&String> = all
        .iter()
        .filter(|cell| args.cells.is_empty() || args.cells.iter().any(|p| begins(cell, p)))
        .collect();
    if chosen.is_empty() {
        return Err(Error::Usage(format!(
            "no cell of {name} begins with {}; expected one of {}",
            args.cells.join(" or "),
            all.join(", ")
        )));
    }
    let bench = Bench {
        folder: args
            .output
            .clone()
            .unwrap_or_else(|| default_folder(&args, name)),
        pool: args.machine.pool()?,
        isa: args.machine.isa()?,
        kernel: args.machine.kernel.clone(),
        quiet: args.quiet,
    };
    let cells = Cells::open(&bench.folder, &experiment.settings()?)?;
    let stop = Stop::install()?;
    for (k, cell) in chosen.iter().enumerate() {
        if cells.finished(cell)? {
            continue;
        }
        if stop.asked() {
            return Err(Error::Interrupted(
                "finished cells are kept; the same command goes on".into(),
            ));
        }
        if !args.quiet {
            note(&format!(
                "{name}: cell {} of {}, {cell}",
                k + 1,
                chosen.len()
            ));
        }
        let begin = Instant::now();
        let result = experiment.run(cell, &bench)?;
        cells.write(cell, result, begin.elapsed().as_secs_f64())?;
    }
    let outcome = Outcome::new(&definition, entry.expected()?, &cells.read(&all)?, manner);
    let pictures = experiment.pictures(&cells.read(&all)?)?;
    outcome.write(&bench.folder, &definition, &args_text(&args), &pictures)?;
    print(&outcome.text())?;
    note(&format!("results: {}", bench.folder.display()));
    outcome.verdict()
}

/// Whether a cell's name begins with whole words of `prefix`: `d8` is not the beginning of `d80`.
fn begins(cell: &str, prefix: &str) -> bool {
    cell.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn default_folder(args: &Args, name: &str) -> PathBuf {
    let quick = if args.quick { "-quick" } else { "" };
    let paper = match args.recipe {
        Recipe::Ours => "",
        Recipe::Paper => "-paper",
    };
    let share = match args.share {
        1.0 => String::new(),
        share => format!("-{share}"),
    };
    PathBuf::from("reproduced").join(format!("{name}{quick}{paper}{share}"))
}

/// The command that gives these results.
fn args_text(args: &Args) -> String {
    let mut text = format!("diffclf reproduce {}", args.name.as_deref().unwrap_or(""));
    if args.quick {
        text += " --quick";
    }
    if args.recipe == Recipe::Paper {
        text += " --recipe paper";
    }
    if args.share != 1.0 {
        text += &format!(" --share {}", args.share);
    }
    if !args.cells.is_empty() {
        text += &format!(" --cells {}", args.cells.join(","));
    }
    text
}

fn list() -> Result<Table> {
    let minutes = |minutes: f64| duration_text(Duration::from_secs_f64(60.0 * minutes));
    let rows = CATALOGUE.iter().map(|entry| {
        let Definition {
            title, paper, cost, ..
        } = entry.definition()?;
        Ok(vec![
            entry.name.to_string(),
            minutes(cost.quick),
            minutes(cost.full),
            cost.how.to_string(),
            paper,
            title,
        ])
    });
    Ok(Table {
        caption: "Experiments, with their time on two cores".into(),
        header: [
            "name",
            "--quick",
            "full",
            "full time is",
            "in the paper",
            "what",
        ]
        .map(String::from)
        .to_vec(),
        rows: rows.collect::<Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
