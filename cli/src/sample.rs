//! `diffclf sample`: new samples from a model.

use crate::annealing::write_rows;
use crate::coordinates::Coordinates;
use crate::error::{Error, Result};
use crate::exact::{Systems, exact_path};
use crate::files::{read_model, refuse_overwrite, write_atomic};
use crate::machine::Machine;
use crate::named::word;
use crate::progress::Progress;
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, LearnedEnergy, Velocity};
use diffclf::format::npy::write_npy;
use diffclf::model::Content;
use diffclf::process::TimeGrid;
use diffclf::rng::{Purpose, Stream};
use diffclf::sample::{
    Ddim, Divergence, Flow, Integrator, InterpolantSde, Prior, ReverseSde, Sampler, Solver, Task,
    times_of,
};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf sample model.safetensors -n 10000 -o new.npy
  diffclf sample model.safetensors -n 10000 -o new.npy --method reverse-sde --steps 1000
  diffclf sample model.safetensors -n 100 -o new.npy --steps 50 --seed 7
  diffclf sample model.safetensors -n 1000 -o new.npy --method flow --log-density log_density.npy
  diffclf sample bridge.safetensors -n 1000 -o new.npy --method interpolant-sde --g 0.5

Samples are in the coordinates of the data, float32. A sample depends on its number and the seed alone: the first
100 of 10000 are those of -n 100.

flow solves the probability-flow equation down to the smallest time of the model, and can tell the log-density of every
sample. Interpolants have two methods, flow and interpolant-sde; both start from exact samples of the second endpoint's side and
use the exact velocity, so they need a model that was trained between two mixtures (mog40, mog2, two-modes, ...).";

/// Particles of one piece: bounds the memory besides the result.
const PIECE: usize = 1 << 17;
/// Particles of one piece where every evaluation needs several buffers.
const SMALL_PIECE: usize = 1 << 13;

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
    /// Method: ddim, reverse-sde, flow, interpolant-sde
    #[arg(long, value_name = "NAME", default_value = "ddim")]
    method: String,
    /// Steps from noise to data [default: the levels of the model's grid]
    #[arg(long, value_name = "K")]
    steps: Option<usize>,
    /// Share of fresh noise in ddim: 0 is deterministic, 1 ancestral [default: 0]
    #[arg(long, allow_negative_numbers = true, value_name = "SHARE")]
    eta: Option<f64>,
    /// Steps of reverse-sde: exponential or euler-maruyama [default: exponential]
    #[arg(long, value_name = "NAME", value_parser = word::<Integrator>)]
    integrator: Option<Integrator>,
    /// Let flow choose its steps for this error in each, relative to 1 + |y|
    #[arg(long, value_name = "ERROR")]
    tolerance: Option<f64>,
    /// Write the log-density of every sample of flow to this .npy file
    #[arg(long, value_name = "OUT.npy")]
    log_density: Option<PathBuf>,
    /// Random directions for that log-density instead of all axes: faster in many dimensions, right on average
    #[arg(long, value_name = "N", requires = "log_density")]
    probes: Option<usize>,
    /// Noise g of interpolant-sde [default: 0.5]
    #[arg(long, allow_negative_numbers = true, value_name = "G")]
    g: Option<f64>,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Write how the samples were made as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    machine: Machine,
}

/// What the command line asks for.
enum Method {
    Diffusion(Sampler),
    Flow(Solver),
    InterpolantSde(f64),
}

impl Args {
    fn method(&self) -> Result<Method> {
        let method = match self.method.as_str() {
            "flow" => Method::Flow(match self.tolerance {
                Some(tolerance) => Solver::Adaptive { tolerance },
                None => Solver::Heun,
            }),
            "interpolant-sde" => Method::InterpolantSde(self.g.unwrap_or(0.5)),
            name => match Sampler::by_name(name) {
                Ok(Sampler::Ddim(_)) => Method::Diffusion(Sampler::Ddim(Ddim {
                    eta: self.eta.unwrap_or(0.0),
                })),
                Ok(Sampler::ReverseSde(_)) => Method::Diffusion(Sampler::ReverseSde(ReverseSde {
                    integrator: self.integrator.unwrap_or_default(),
                })),
                Err(_) => {
                    return Err(Error::Usage(format!(
                        "--method is '{name}', expected one of ddim, reverse-sde, flow, interpolant-sde"
                    )));
                }
            },
        };
        for (flag, given, owner) in [
            ("--eta", self.eta.is_some(), "ddim"),
            ("--integrator", self.integrator.is_some(), "reverse-sde"),
            ("--tolerance", self.tolerance.is_some(), "flow"),
            ("--log-density", self.log_density.is_some(), "flow"),
            ("--g", self.g.is_some(), "interpolant-sde"),
        ] {
            if given && owner != self.method {
                return Err(Error::Usage(format!(
                    "{flag} belongs to {owner}, and the method is {}; leave it out",
                    self.method
                )));
            }
        }
        Ok(method)
    }
}

/// Samples in the model's coordinates, and their log-densities there if asked for.
struct Drawn {
    points: Vec<f64>,
    log_density: Vec<f64>,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    for path in [
        Some(&args.output),
        args.log_density.as_ref(),
        args.json.as_ref(),
    ]
    .into_iter()
    .flatten()
    {
        refuse_overwrite(path, args.force)?;
    }
    if args.number == 0 {
        return Err(Error::Usage("-n is 0, expected at least 1 sample".into()));
    }
    let method = args.method()?;
    let model = read_model(&args.model)?;
    let content = &model.content;
    let spec = &content.spec;
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
    if size.is_none() {
        return Err(Error::Usage(format!(
            "-n is {}: that does not fit in memory",
            args.number
        )));
    }
    let energy = model.energy(args.machine.pool()?, args.machine.isa()?)?;
    let mut progress = Progress::new("sample", 1000, 0, args.quiet);
    let mut tell = |share: f64| progress.set((1000.0 * share) as u64, || "per mille".into());
    let mut drawn = match &method {
        Method::Diffusion(sampler) => {
            diffusion(&args, content, &energy, &grid, sampler, &mut tell)?
        }
        Method::Flow(solver) => flow(&args, content, &energy, &grid, *solver, &mut tell)?,
        Method::InterpolantSde(g) => stochastic(&args, content, &energy, &grid, *g, &mut tell)?,
    };
    Coordinates::of(content).data_to_user(&mut drawn.points);
    write_rows(&args.output, &drawn.points, args.number)?;
    if let Some(path) = &args.log_density {
        let volume = spec.dim as f64 * content.standardisation.scale.ln();
        drawn
            .log_density
            .iter_mut()
            .for_each(|value| *value -= volume);
        write_atomic(path, |writer| {
            write_npy(&[args.number], &drawn.log_density, writer)
        })?;
    }
    if let Some(path) = &args.json {
        let document = json!({
            "command": "sample",
            "model": args.model.display().to_string(),
            "number": args.number,
            "method": args.method,
            "eta": args.eta,
            "integrator": args.integrator,
            "tolerance": args.tolerance,
            "g": args.g,
            "grid": grid,
            "seed": args.seed,
        });
        write_atomic(path, |writer| Ok(writeln!(writer, "{document:#}")?))?;
    }
    progress.finish(&format!(
        "{} samples in {}",
        args.number,
        args.output.display()
    ));
    Ok(())
}

fn diffusion(
    args: &Args,
    content: &Content,
    energy: &dyn Energy,
    grid: &TimeGrid,
    sampler: &Sampler,
    tell: &mut dyn FnMut(f64),
) -> Result<Drawn> {
    let spec = &content.spec;
    let (times, start) = (times_of(grid), Prior::of(spec));
    let total = (args.number * (times.len() - 1)) as f64;
    let mut points = Vec::with_capacity(args.number * spec.dim);
    for first in (0..args.number).step_by(PIECE) {
        let task = Task {
            energy,
            process: &spec.process,
            times: &times,
            start: &start,
            particles: first as u64..args.number.min(first + PIECE) as u64,
            seed: args.seed,
        };
        points.extend(sampler.run(&task, &mut |done| {
            tell((first * (times.len() - 1) + done) as f64 / total);
        })?);
    }
    Ok(Drawn {
        points,
        log_density: Vec::new(),
    })
}

/// Where an interpolant starts: exact samples at its largest time.
fn interpolant_path(content: &Content) -> Result<ExactPath> {
    exact_path(&Systems::default(), content).map(|(path, _)| path)
}

fn flow(
    args: &Args,
    content: &Content,
    energy: &LearnedEnergy,
    grid: &TimeGrid,
    solver: Solver,
    tell: &mut dyn FnMut(f64),
) -> Result<Drawn> {
    let spec = &content.spec;
    let path = match spec.process.is_interpolant() {
        true => Some(interpolant_path(content)?),
        false => None,
    };
    let times: Vec<f64> = grid.times().iter().rev().copied().collect();
    let flow = Flow {
        energy,
        process: &spec.process,
        velocity: path.as_ref().map(|path| path as &dyn Velocity),
        solver,
        divergence: args.log_density.as_ref().map(|_| match args.probes {
            Some(probes) => Divergence::Hutchinson { probes },
            None => Divergence::Exact,
        }),
        seed: args.seed,
    };
    let start = Prior::of(spec).mixture()?;
    let whole = match &path {
        Some(path) => path.sample(grid.t_max(), args.number, args.seed),
        None => {
            let mut points = vec![0.0; args.number * spec.dim];
            for (row, point) in points.chunks_exact_mut(spec.dim).enumerate() {
                let mut stream = Stream::new(args.seed, Purpose::Sample, 0, row as u64);
                start.sample_point(&mut stream, point);
            }
            points
        }
    };
    let mut drawn = Drawn {
        points: whole,
        log_density: Vec::new(),
    };
    for (piece, points) in drawn.points.chunks_mut(SMALL_PIECE * spec.dim).enumerate() {
        let rows = points.len() / spec.dim;
        let mut before = vec![0.0; rows];
        match &path {
            Some(path) => path.log_density(&[grid.t_max()], points, &mut before),
            None => {
                for (value, point) in before.iter_mut().zip(points.chunks_exact(spec.dim)) {
                    *value = start.log_density(point);
                }
            }
        }
        let first = piece * SMALL_PIECE;
        let growth = flow.carry(&times, first as u64, points, &mut |share| {
            tell((first as f64 + share * rows as f64) / args.number as f64);
        })?;
        if let Some(growth) = growth {
            let values = before.iter().zip(growth).map(|(a, b)| a + b);
            drawn.log_density.extend(values);
        }
    }
    Ok(drawn)
}

fn stochastic(
    args: &Args,
    content: &Content,
    energy: &LearnedEnergy,
    grid: &TimeGrid,
    g: f64,
    tell: &mut dyn FnMut(f64),
) -> Result<Drawn> {
    let spec = &content.spec;
    if !spec.process.is_interpolant() {
        return Err(Error::Usage(format!(
            "interpolant-sde is for interpolants, and the model's process is {}; use reverse-sde",
            spec.process.name()
        )));
    }
    let path = interpolant_path(content)?;
    let times: Vec<f64> = grid.times().iter().rev().copied().collect();
    let sde = InterpolantSde {
        energy,
        velocity: &path,
        process: &spec.process,
        g: &|_| g,
        seed: args.seed,
    };
    let mut points = path.sample(grid.t_max(), args.number, args.seed);
    for (piece, points) in points.chunks_mut(SMALL_PIECE * spec.dim).enumerate() {
        let (first, rows) = (piece * SMALL_PIECE, points.len() / spec.dim);
        sde.carry(&times, first as u64, points, &mut |done| {
            let share = done as f64 / (times.len() - 1) as f64;
            tell((first as f64 + share * rows as f64) / args.number as f64);
        })?;
    }
    Ok(Drawn {
        points,
        log_density: Vec::new(),
    })
}
