//! `diffclf reproduce`: the paper's tables and figures, each by one command.

use crate::help;
use crate::machine::MachineArgs;
use crate::print::{note, print};
use crate::terminal::Terminal;
use diffclf_experiments::reproduction::{Reproduction, list};
use diffclf_experiments::{Manner, Recipe};
use diffclf_report::text::table_text;
use diffclf_run::Result;
use diffclf_run::named::word;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  diffclf reproduce --list
  diffclf reproduce mog40-dm --quick
  diffclf reproduce mog40-dm --cells d8-n4
  diffclf reproduce boltzmann-si --cells d16 --share 0.1
  diffclf reproduce mog40-dm --cells $SLURM_ARRAY_TASK_ID/20 -o shared/mog40    (in a job array)
  diffclf reproduce mog40-dm --recipe paper --cells d8-n4-diffclf -o reproduced/as-printed
  diffclf reproduce chignolin --data chignolin-ca.xtc -o reproduced/real-chignolin
  diffclf reproduce limits --keep experiments/limits/cells
  diffclf reproduce limits --redraw experiments/limits/cells

Results land in a folder: results.json, table.md, a page with pictures, and what was trained. A
finished cell is not computed again: after an interruption the same command goes on where it
stopped, and many jobs may work in one folder, each on its share of the cells (--cells 2/8): one
that needs what another trains waits for it. --quick takes minutes and shows the order of the
methods, not the paper's values.

Exit codes: 0 the orders that the paper claims hold, 1 one of them does not, 2 wrong usage, 130
interrupted.";

/// A table or figure of the paper, computed here.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[arg(help = help::experiment(), value_name = "NAME", required_unless_present = "list")]
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
    /// Only cells whose name begins like one of these, such as d8-n4 or d8-n4-diffclf-s0; 2/8 is the second of eight parts, for job arrays
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cells: Vec<String>,
    /// Folder of the results [default: reproduced/NAME, with -quick, -paper and -SHARE where asked for]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Your own frames in place of the experiment's, where the paper's are not public (chignolin: ten C-alpha beads in nm; .npy, .xtc, .dcd)
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Keep finished cells in this folder too, as small files with the budget, command and machine that made them
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Compute nothing: draw tables and page of the cells kept in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "keep")]
    redraw: Option<PathBuf>,
    /// Replace files in the folder that are not results of this experiment
    #[arg(long)]
    force: bool,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let Some(name) = args.name else {
        return print(&table_text(&list()?));
    };
    let asked = Reproduction {
        name,
        manner: Manner {
            quick: args.quick,
            recipe: args.recipe,
            share: args.share,
        },
        cells: args.cells,
        output: args.output,
        data: args.data,
        keep: args.keep,
        force: args.force,
    };
    let found = match &args.redraw {
        Some(kept) => asked.redraw(kept)?,
        None => asked.compute(
            &args.machine.machine(),
            Arc::new(Terminal::interruptible(args.quiet)?),
        )?,
    };
    print(&found.outcome.text())?;
    note(&format!("results: {}", found.folder.display()));
    found.outcome.verdict()
}
