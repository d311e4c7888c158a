//! `diffclf reproduce`: the paper's tables and figures, each by one command.

use crate::machine::MachineArgs;
use crate::print::{note, print};
use crate::terminal::Terminal;
use diffclf_experiments::catalogue::{self, CATALOGUE, Definition};
use diffclf_experiments::cell::Cells;
use diffclf_experiments::outcome::Outcome;
use diffclf_experiments::{Bench, Manner, Recipe, begins};
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::named::word;
use diffclf_run::watch::duration_text;
use diffclf_run::{Error, Result, Watch};
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
    #[arg(long, value_name = "NAME", default_value = "ours", value_parser = word::<Recipe>)]
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
    machine: MachineArgs,
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
    let machine = args.machine.machine();
    let watch = Arc::new(Terminal::interruptible(args.quiet)?);
    let bench = Bench {
        folder: args
            .output
            .clone()
            .unwrap_or_else(|| default_folder(&args, name)),
        pool: machine.pool()?,
        isa: machine.isa()?,
        kernel: machine.kernel.clone(),
        watch: watch.clone(),
    };
    let cells = Cells::open(&bench.folder, &experiment.settings()?)?;
    for (k, cell) in chosen.iter().enumerate() {
        if cells.finished(cell)? {
            continue;
        }
        if watch.stopped() {
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
