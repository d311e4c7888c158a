//! `diffclf sample`: new samples from a model.

use crate::coordinates::Coordinates;
use crate::error::{Error, Result};
use crate::files::{read_model, refuse_overwrite, write_atomic};
use crate::machine::Machine;
use crate::progress::Progress;
use diffclf::format::npy::write_npy;
use diffclf::sample::{Ddim, Prior, Sampler, Task, times_of};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf sample model.safetensors -n 10000 -o new.npy
  diffclf sample model.safetensors -n 10000 -o new.npy --method reverse-sde --steps 1000
  diffclf sample model.safetensors -n 100 -o new.npy --steps 50 --seed 7

Samples are in the coordinates of the data, float32. A sample depends on its number and the seed alone: the first
100 of 10000 are those of -n 100.";

/// Particles of one piece: bounds the memory besides the result.
const PIECE: usize = 1 << 17;

/// New samples from a model.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Number of samples
    #[arg(short = 'n', long, value_name = "N")]
    number: usize,
    /// Result: a .npy file of float32
    #[arg(short, long, value_name = "OUT.npy")]
    output: PathBuf,
    /// Sampler: ddim or reverse-sde
    #[arg(long, value_name = "NAME", default_value = "ddim")]
    method: String,
    /// Steps from noise to data [default: the levels of the model's grid]
    #[arg(long, value_name = "K")]
    steps: Option<usize>,
    /// Share of fresh noise in ddim: 0 is deterministic, 1 ancestral [default: 0]
    #[arg(long, allow_negative_numbers = true, value_name = "SHARE")]
    eta: Option<f64>,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    machine: Machine,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    refuse_overwrite(&args.output, args.force)?;
    if args.number == 0 {
        return Err(Error::Usage("-n is 0, expected at least 1 sample".into()));
    }
    let sampler = match (Sampler::by_name(&args.method)?, args.eta) {
        (Sampler::Ddim(_), Some(eta)) => Sampler::Ddim(Ddim { eta }),
        (sampler, Some(_)) => {
            return Err(Error::Usage(format!(
                "--eta belongs to ddim, and the method is {}; leave it out",
                sampler.name()
            )));
        }
        (sampler, None) => sampler,
    };
    let model = read_model(&args.model)?;
    let spec = &model.content.spec;
    let grid = match args.steps {
        Some(steps) if steps < 2 => {
            return Err(Error::Usage(format!(
                "--steps is {steps}, expected at least 2"
            )));
        }
        Some(steps) => spec.grid.with_levels(steps)?,
        None => spec.grid.clone(),
    };
    let size = args
        .number
        .checked_mul(spec.dim)
        .filter(|n| *n <= isize::MAX as usize / 8);
    let Some(size) = size else {
        return Err(Error::Usage(format!(
            "-n is {}: that does not fit in memory",
            args.number
        )));
    };
    let energy = model.energy(args.machine.pool()?, args.machine.isa()?)?;
    let (times, start) = (times_of(&grid), Prior::of(spec));
    let map = Coordinates::of(&model.content);
    let steps = times.len() - 1;
    let mut progress = Progress::new("sample", (args.number * steps) as u64, 0, args.quiet);
    let mut samples = Vec::with_capacity(size);
    for first in (0..args.number).step_by(PIECE) {
        let task = Task {
            energy: &energy,
            process: &spec.process,
            times: &times,
            start: &start,
            particles: first as u64..args.number.min(first + PIECE) as u64,
            seed: args.seed,
        };
        let mut points = sampler.run(&task, &mut |done| {
            progress.set((first * steps + done) as u64, || "steps of samples".into());
        })?;
        map.data_to_user(&mut points);
        samples.extend(points.iter().map(|x| *x as f32));
    }
    write_atomic(&args.output, |writer| {
        write_npy(&[args.number, spec.dim], &samples, writer)
    })?;
    progress.finish(&format!(
        "{} samples in {}",
        args.number,
        args.output.display()
    ));
    Ok(())
}
