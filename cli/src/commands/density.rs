//! `diffclf density`: log-density, energy, score or time score of points, in the user's coordinates.

use crate::opened::ModelArgs;
use crate::terminal::Terminal;
use diffclf::energy::Energy;
use diffclf::format::npy::write_npy;
use diffclf_run::Watch;
use diffclf_run::data::refuse_non_finite;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::{MappedNpy, refuse_overwrite, write_atomic};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf density model.safetensors points.npy -o log_density.npy
  diffclf density model.safetensors points.npy --what score -o score.npy
  diffclf density model.safetensors points.npy --time 0.5 --what energy -o energy.npy

log p_t(y) = -U(t, y) + F(t), in units of kT; the score is its gradient in y, the time score its derivative in t. All
are in the coordinates of the data the model was trained on. A model of a diffusion is normalised as well as it was
trained; that of an interpolant up to one constant for all times. Time 0 would be the data themselves; the default
is the smallest time the model knows, a hair above.";

/// Numbers evaluated at once.
const BLOCK: usize = 1 << 19;

/// What to compute.
#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
enum What {
    LogDensity,
    Energy,
    Score,
    TimeScore,
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
    /// Result: a .npy file of float64, one number or row per point
    #[arg(short, long, value_name = "OUT.npy")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    refuse_overwrite(&args.output, args.force)?;
    let (model, energy) = args.model.open()?;
    let spec = &model.content.spec;
    let (low, high) = (spec.grid.t_min(), spec.grid.t_max());
    let time = args.time.unwrap_or(low);
    if !(low..=high).contains(&time) {
        return Err(Error::Usage(format!(
            "--time is {time}, but the model was trained for times from {low} (nearest to the data) to {high}; choose one of \
             them"
        )));
    }
    let mapped = MappedNpy::open(&args.points)?;
    let view = mapped.view()?;
    if view.dim() != spec.dim {
        return Err(Error::Usage(format!(
            "{}: the points have {} coordinates, but the model has {}; give points of the kind it was trained on",
            args.points.display(),
            view.dim(),
            spec.dim
        )));
    }
    let energy = model.content.in_data_coordinates(&energy);
    let width = if args.what == What::Score {
        spec.dim
    } else {
        1
    };
    let mut values = vec![0.0; view.rows() * width];
    let rows = (BLOCK / spec.dim).max(1);
    let mut progress = Terminal::new(args.quiet).begin("density", view.rows() as u64, 0);
    for (block, out) in values.chunks_mut(rows * width).enumerate() {
        let first = block * rows;
        let mut points = vec![0.0; out.len() / width * spec.dim];
        for (row, point) in points.chunks_exact_mut(spec.dim).enumerate() {
            view.copy_row_f64(first + row, point);
            refuse_non_finite(&args.points, first + row, point)?;
        }
        match args.what {
            What::LogDensity => energy.log_density(&[time], &points, out),
            What::Energy => energy.energy(&[time], &points, out),
            What::Score => energy.score(&[time], &points, out),
            What::TimeScore => energy.time_score(&[time], &points, out),
        }
        progress.set((first + out.len() / width) as u64, &|| "points".into());
    }
    let shape = if args.what == What::Score {
        view.shape()
    } else {
        &view.shape()[..1]
    };
    write_atomic(&args.output, |writer| write_npy(shape, &values, writer))?;
    progress.finish(&format!(
        "{} points at time {time}, in {}",
        view.rows(),
        args.output.display()
    ));
    Ok(())
}
