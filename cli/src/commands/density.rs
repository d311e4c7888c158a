//! `diffclf density`: log-density, energy, score or time score of points, in the user's coordinates.

use crate::opened::ModelArgs;
use crate::print::note;
use crate::states;
use crate::terminal::Terminal;
use diffclf::format::npy::write_npy;
use diffclf_run::density::{Quantity, evaluate_points};
use diffclf_run::error::{Error, Result};
use diffclf_run::outputs;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf density model.safetensors points.npy -o log_density.npy
  diffclf density model.safetensors points.npy --what score -o score.npy
  diffclf density model.safetensors points.npy --by flow -o by_flow.npy
  diffclf density model.safetensors points.npy --time 0.5 --what energy -o energy.npy

log p_t(y) = -U(t, y) + F(t), in units of kT; the score is its gradient in y, the time score its
derivative in t. All are in the coordinates of the data the model was trained on. A model of a
diffusion is normalised as well as it was trained; that of an interpolant up to one constant for all
times. --by flow gives the log-density of a diffusion by its probability flow: independent of U and
F, always normalised, and slow; where both differ, one of them is wrong. Time 0 would be the data
themselves; the default is the smallest time the model knows, a hair above. Points farther out than
all of 10,000 draws of the mixture that the energy stands on are counted, and marked with --outside.";

/// What to compute.
#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
enum What {
    LogDensity,
    Energy,
    Score,
    TimeScore,
}

/// Where a log-density comes from.
#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
enum By {
    Energy,
    Flow,
}

/// Log-density, energy or score of points.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Points: a .npy file whose first axis counts them
    #[arg(value_name = "POINTS.npy")]
    points: PathBuf,
    /// Time at which to evaluate [default: the smallest of the model]
    #[arg(long, allow_negative_numbers = true, value_name = "T")]
    time: Option<f64>,
    /// What to compute
    #[arg(long, value_enum, default_value = "log-density")]
    what: What,
    /// Where a log-density comes from: energy, -U + F; flow, the change of variables along the probability flow, from scores alone
    #[arg(long, value_enum, default_value = "energy")]
    by: By,
    /// Result: a .npy file of float64, one number or row per point
    #[arg(short, long, value_name = "OUT.npy")]
    output: PathBuf,
    /// Which points lie outside of the data: a .npy file of 1 for those that do and 0 for the others
    #[arg(long, value_name = "OUT.npy")]
    outside: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
}

fn quantity_of(what: What) -> Quantity {
    match what {
        What::LogDensity => Quantity::LogDensity,
        What::Energy => Quantity::Energy,
        What::Score => Quantity::Score,
        What::TimeScore => Quantity::TimeScore,
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let paths = [Some(&args.output), args.outside.as_ref()];
    outputs::plan(
        paths.into_iter().flatten().map(PathBuf::as_path),
        args.force,
    )?;
    if let Some(opened) = args.model.open_states()? {
        if args.outside.is_some() || args.by == By::Flow {
            return Err(Error::Usage(
                "states have no outside and no flow; leave out --outside and --by".into(),
            ));
        }
        let quantity = quantity_of(args.what);
        let (points, output) = (&args.points, &args.output);
        return states::density(
            &opened, quantity, points, args.time, output, args.force, args.quiet,
        );
    }
    let (model, energy) = args.model.open()?;
    if args.outside.is_some() && energy.outside(model.content.spec.grid.t_min()).is_none() {
        return Err(Error::Usage(
            "this model cannot tell which points lie outside of its data: its energy, that of an interpolant, stands on nothing that is like \
             them; leave out --outside"
                .into(),
        ));
    }
    let quantity = match (args.what, args.by) {
        (What::LogDensity, By::Flow) => Quantity::FlowLogDensity,
        (_, By::Flow) => {
            return Err(Error::Usage(
                "the flow gives log-densities alone; leave out --by flow, or --what".into(),
            ));
        }
        (what, By::Energy) => quantity_of(what),
    };
    let watch = Terminal::new(args.quiet);
    let model = (&model.content, &energy);
    let done = evaluate_points(quantity, model, &args.points, args.time, &watch)?;
    let found = &done.found;
    outputs::write(&args.output, args.force, |writer| {
        write_npy(&found.shape, &found.values, writer)
    })?;
    if let (Some(path), Some(marks)) = (&args.outside, &found.outside) {
        let marks: Vec<f64> = marks.iter().map(|far| f64::from(u8::from(*far))).collect();
        outputs::write(path, args.force, |writer| {
            write_npy(&[marks.len()], &marks, writer)
        })?;
    }
    let message = format!(
        "{} points at time {}, in {}",
        found.rows,
        found.time,
        args.output.display()
    );
    let found = done.finish(&message);
    if let (Some(warning), false) = (found.warning(), args.quiet) {
        note(&format!("warning: {warning}"));
    }
    Ok(())
}
