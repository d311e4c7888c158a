//! `diffclf free-energy levels`: MBAR over the learned energies of a model against the F(t) it learned.

use super::output::Output;
use crate::machine::MachineArgs;
use crate::opened::WeightArgs;
use diffclf_report::free_energy::levels;
use diffclf_run::error::Result;
use diffclf_run::free_energy::levels::Levelling;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy levels runs/mog40/model.safetensors
  diffclf free-energy levels model.safetensors samples.npy --levels 64 --page levels.html
  diffclf free-energy levels bridge.safetensors a.npy --end b.npy

The data are noised as the process does, and MBAR over the learned energies at these levels says
what F(t) should be. The gap log Z_t + F(t), zero for a perfect model, is the model's own error bar:
by so much the levels' weights are off. Rows that were trained on are left out where they are known;
errors hold for rows that all levels share.";

/// Check a model's F(t) by MBAR over its own energies.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Samples of the data [default: drawn from the system the model was trained on]
    #[arg(value_name = "DATA.npy")]
    data: Option<PathBuf>,
    /// Samples of the second endpoint of an interpolant
    #[arg(long, value_name = "DATA1.npy")]
    end: Option<PathBuf>,
    #[command(flatten)]
    weights: WeightArgs,
    /// Levels, evenly over the grid of the model
    #[arg(long, value_name = "L", default_value_t = 48)]
    levels: usize,
    /// Samples at each level
    #[arg(long, value_name = "N", default_value_t = 500)]
    samples: usize,
    /// Seed of the samples
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.output.check()?;
    let asked = Levelling {
        model: args.model.clone(),
        data: [args.data.clone(), args.end.clone()],
        weights: args.weights.both(),
        levels: args.levels,
        samples: args.samples,
        seed: args.seed,
    };
    let found = asked.run(&args.machine.machine())?;
    let name = args.model.display().to_string();
    args.output.give(&levels(&found, &name))
}
