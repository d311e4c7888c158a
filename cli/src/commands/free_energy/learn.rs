//! `diffclf free-energy learn`: from samples of two states, through a learned path between them, to their free-energy difference.

use super::output::Output;
use crate::machine::MachineArgs;
use crate::settings::SettingsArgs;
use crate::terminal::Terminal;
use diffclf::model::Model;
use diffclf_report::free_energy::learn;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::read_model;
use diffclf_run::free_energy::learn::{LearnedRequest, StateFiles};
use diffclf_run::run_folder::RunFolder;
use diffclf_run::train::{Job, train};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  diffclf free-energy learn a.npy b.npy --energy-a u_a.npy --energy-b u_b.npy -o runs/ab
  diffclf free-energy learn a.npy b.npy --energy-a u_a.npy --energy-b u_b.npy --objective dsm \\
      -o runs/dsm
  diffclf free-energy learn --system pair-a --end-system pair-b --dim 8 -o runs/pair
  diffclf free-energy learn a.npy b.npy --model runs/ab/model.safetensors --energy-a u_a.npy \\
      --energy-b u_b.npy
  diffclf free-energy learn frames-lambda-0.npy frames-lambda-1.npy --model runs/path \\
      --molecule '{topology = \"aldp.prmtop\", solvents = [\"0\", \"1\"], temperature = 300.0}'

a.npy and b.npy hold samples of the two states; u_a.npy the reduced energy of state A (kT) at the
samples of A, u_b.npy that of B at the samples of B. An interpolant energy between them is trained
(any objective of diffclf train), and then
  log(Z_B/Z_A) = log(Z_0/Z_A) - integral of <dU/dt> dt + log(Z_B/Z_1)
with one-sided perturbations at the ends. BAR directly between A and B needs the crossed energies as
well (--energy-b-at-a, --energy-a-at-b). Without energies, the learned path alone is reported.
Built-in systems know theirs, and so does --molecule, in its two solvents.

Errors count that all times share the same rows and that neighbours in a file may be correlated. The
model's error is not statistical: it is estimated by the disagreement of the routes through the path
(integration by two rules, MBAR, the learned F, and Stein's identity, which alone sees a factor
common to all times) and is part of the last line of the table.";

/// Time between two checkpoints of the training.
const CHECKPOINT_PAUSE: Duration = Duration::from_secs(10);

/// Free-energy difference of two sample sets through a learned path.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Samples of state B (the same as --end)
    #[arg(value_name = "B.npy", help_heading = "Data")]
    second: Option<PathBuf>,
    /// Energies of A at the samples of A
    #[arg(long, value_name = "U.npy", help_heading = "Energies")]
    energy_a: Option<PathBuf>,
    /// Energies of B at the samples of B
    #[arg(long, value_name = "U.npy", help_heading = "Energies")]
    energy_b: Option<PathBuf>,
    /// Energies of B at the samples of A
    #[arg(long, value_name = "U.npy", help_heading = "Energies")]
    energy_b_at_a: Option<PathBuf>,
    /// Energies of A at the samples of B
    #[arg(long, value_name = "U.npy", help_heading = "Energies")]
    energy_a_at_b: Option<PathBuf>,
    /// Use this model instead of training one
    #[arg(long, value_name = "MODEL", help_heading = "Run")]
    model: Option<PathBuf>,
    /// Run folder of the training [default: runs/free-energy]
    #[arg(short, long = "output", value_name = "RUNDIR", help_heading = "Run")]
    output_folder: Option<PathBuf>,
    /// Continue the training in the folder (or start it)
    #[arg(long, help_heading = "Run")]
    resume: bool,
    /// Times along the path
    #[arg(long, value_name = "L", default_value_t = 65, help_heading = "Path")]
    path_levels: usize,
    /// Samples at each time
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = "Path")]
    path_samples: usize,
    /// Times of the integration, among which the path's samples are shared [default: the times along the path]
    #[arg(
        long,
        value_name = "L",
        default_value_t = 0,
        hide_default_value = true,
        help_heading = "Path"
    )]
    integration_levels: usize,
    /// Samples of each built-in system at the ends
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20_000,
        help_heading = "Path"
    )]
    end_samples: usize,
    /// No progress on the terminal
    #[arg(long, help_heading = "Run")]
    quiet: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(mut args: Args) -> Result<()> {
    args.output.check()?;
    if args.settings.end.is_some() && args.second.is_some() {
        return Err(Error::Usage(
            "state B is given twice, as the second file and with --end; leave one out".into(),
        ));
    }
    args.settings.end = args.settings.end.take().or(args.second.take());
    let settings = args.settings.settings()?;
    if !settings.has_end() {
        return Err(Error::Usage(
            "a free-energy difference needs two states: give A.npy and B.npy, or --system and --end-system".into(),
        ));
    }
    let model = obtain(&args)?;
    let asked = LearnedRequest {
        states: [
            StateFiles {
                rows: settings.data.clone(),
                weights: settings.weights.clone(),
                own: args.energy_a.clone(),
                other: args.energy_b_at_a.clone(),
            },
            StateFiles {
                rows: settings.end.clone(),
                weights: settings.end_weights.clone(),
                own: args.energy_b.clone(),
                other: args.energy_a_at_b.clone(),
            },
        ],
        molecule: settings.molecule.clone(),
        levels: args.path_levels,
        samples: args.path_samples,
        integration_levels: args.integration_levels,
        end_samples: args.end_samples,
        seed: settings.seed.unwrap_or(0),
    };
    let found = asked.run(&model, &args.machine.machine())?;
    args.output.give(&learn(&found))
}

/// The model: given, or trained now.
fn obtain(args: &Args) -> Result<Model> {
    if let Some(path) = &args.model {
        return read_model(path);
    }
    let folder = args
        .output_folder
        .clone()
        .unwrap_or_else(|| Path::new("runs").join("free-energy"));
    let mut settings = args.settings.settings()?;
    settings.kernel = args.machine.kernel.clone();
    train(Job {
        settings,
        path: folder.clone(),
        first_stage: None,
        from: None,
        time: None,
        resume: args.resume,
        force: args.output.force,
        checkpoint_every: CHECKPOINT_PAUSE,
        pool: args.machine.pool()?,
        watch: Arc::new(Terminal::interruptible(args.quiet)?),
    })?;
    read_model(&RunFolder::take(&folder)?.model_path())
}
