//! `diffclf sample`: new samples from a model.

use crate::annealing::write_rows;
use crate::bridge::BridgeArgs;
use crate::opened::{ModelArgs, RecordArgs};
use crate::terminal::Terminal;
use diffclf::energy::{LearnedEnergy, Prior};
use diffclf::format::npy::write_npy;
use diffclf::model::Content;
use diffclf::process::TimeGrid;
use diffclf::rng::{Purpose, Stream};
use diffclf::sample::{
    Ddim, Diffusivity, Divergence, Flow, Integrator, InterpolantSde, ReverseSde, Sampler, Solver,
    Task, times_of,
};
use diffclf_run::Watch;
use diffclf_run::bridge::Bridge;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::write_atomic;
use diffclf_run::named::word;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf sample model.safetensors -n 10000 -o new.npy
  diffclf sample model.safetensors -n 10000 -o new.npy --method reverse-sde --steps 1000
  diffclf sample model.safetensors -n 100 -o new.npy --steps 50 --seed 7
  diffclf sample model.safetensors -n 1000 -o new.npy --method flow --log-density log_density.npy

Samples are in the coordinates of the data, float32. A sample depends on its number and the seed alone: the first
100 of 10000 are those of -n 100.

flow solves the probability-flow equation down to the smallest time of the model, and can tell the log-density of every
sample.

Interpolants carry rows of one endpoint to the other, along their velocity; train it beside the energy:
  diffclf train a.npy --end b.npy --objective dsm+diffclf+velocity -o runs/bridge
  diffclf sample runs/bridge --rows b.npy -o like_a.npy
  diffclf sample runs/bridge --rows a.npy --towards end -o like_b.npy --method interpolant-sde --g 0.5
  diffclf sample runs/bridge --rows b.npy -o like_a.npy --method interpolant-sde --g '{kind = \"bridge\", factor = 0.5}'
flow is deterministic, interpolant-sde adds noise g(t) all along: the law of the result is the same for every g, a larger one forgives
more errors of the velocity and wants more steps. Both stop at the time of the model's grid next to the endpoint, whose little noise
stays in the samples. Log-densities are the model's own, known up to one constant. Between two built-in mixtures
(mog40, mog2, two-modes, ...) rows are drawn afresh, and --velocity exact uses the exact velocity.";

/// Particles of one piece: bounds the memory besides the result.
const PIECE: usize = 1 << 17;
/// Particles of one piece where every evaluation needs several buffers.
const SMALL_PIECE: usize = 1 << 13;

/// New samples from a model.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Number of samples [default with --rows: one for each row]
    #[arg(short = 'n', long, value_name = "N", required_unless_present = "rows")]
    number: Option<usize>,
    /// Result: a .npy file of float32
    #[arg(short, long, value_name = "OUT.npy")]
    output: PathBuf,
    /// Method: ddim, reverse-sde, flow, interpolant-sde [default: ddim; flow for an interpolant]
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
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
    #[command(flatten)]
    bridge: BridgeArgs,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    record: RecordArgs,
}

/// What the command line asks for.
enum Method {
    Diffusion(Sampler),
    Flow(Solver),
    InterpolantSde(Diffusivity),
}

impl Args {
    /// The method of this name, with its settings.
    fn method(&self, name: &str) -> Result<Method> {
        for (flag, given, owner) in [
            ("--eta", self.eta.is_some(), "ddim"),
            ("--integrator", self.integrator.is_some(), "reverse-sde"),
            ("--tolerance", self.tolerance.is_some(), "flow"),
            ("--log-density", self.log_density.is_some(), "flow"),
        ] {
            if given && owner != name {
                return Err(Error::Usage(format!(
                    "{flag} belongs to {owner}, and the method is {name}; leave it out"
                )));
            }
        }
        if name == "interpolant-sde" {
            return Ok(Method::InterpolantSde(self.bridge.g_or(0.5)));
        }
        self.bridge.refuse_g(name)?;
        if name == "flow" {
            return Ok(Method::Flow(match self.tolerance {
                Some(tolerance) => Solver::Adaptive { tolerance },
                None => Solver::Heun,
            }));
        }
        match Sampler::by_name(name) {
            Ok(Sampler::Ddim(_)) => Ok(Method::Diffusion(Sampler::Ddim(Ddim {
                eta: self.eta.unwrap_or(0.0),
            }))),
            Ok(Sampler::ReverseSde(_)) => Ok(Method::Diffusion(Sampler::ReverseSde(ReverseSde {
                integrator: self.integrator.unwrap_or_default(),
            }))),
            Err(_) => Err(Error::Usage(format!(
                "--method is '{name}', expected one of ddim, reverse-sde, flow, interpolant-sde"
            ))),
        }
    }
}

/// Samples in the model's coordinates, and their log-densities there if asked for.
struct Drawn {
    points: Vec<f64>,
    log_density: Vec<f64>,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let outputs = [Some(&args.output), args.log_density.as_ref()];
    let outputs = outputs.into_iter().flatten();
    args.record.check(outputs.map(PathBuf::as_path))?;
    if args.number == Some(0) {
        return Err(Error::Usage("-n is 0, expected at least 1 sample".into()));
    }
    let (model, energy) = args.model.open()?;
    let content = &model.content;
    let spec = &content.spec;
    let interpolant = spec.process.is_interpolant();
    let name = match (&args.method, interpolant) {
        (Some(name), _) => name.as_str(),
        (None, false) => "ddim",
        (None, true) => "flow",
    };
    let method = args.method(name)?;
    let grid = match args.steps {
        Some(steps) if steps < 2 => {
            return Err(Error::Usage(format!(
                "--steps is {steps}, expected at least 2"
            )));
        }
        Some(steps) => spec.grid.with_levels(steps)?,
        None => spec.grid.clone(),
    };
    let number = args.number.unwrap_or(1);
    let size = number
        .checked_mul(spec.dim)
        .filter(|n| *n <= isize::MAX as usize / 8);
    if size.is_none() {
        return Err(Error::Usage(format!(
            "-n is {number}: that does not fit in memory"
        )));
    }
    let choice = args.bridge.choice();
    let bridge = if interpolant {
        Some(Bridge::open(&choice, content, &energy)?)
    } else {
        args.bridge.refuse_for_diffusion(content)?;
        None
    };
    let mut progress = Terminal::new(args.record.quiet).begin("sample", 1000, 0);
    let mut tell = |share: f64| progress.set((1000.0 * share) as u64, &|| "per mille".into());
    let run = Run {
        args: &args,
        content,
        energy: &energy,
        grid: &grid,
        bridge: bridge.as_ref(),
        number,
    };
    let unfit = |kind: &str, fitting: &str| {
        Err(Error::Usage(format!(
            "{name} is for {kind}, and the model's process is {}; use {fitting}",
            spec.process.name()
        )))
    };
    let mut drawn = match (&method, &bridge) {
        (Method::Diffusion(sampler), None) => run.diffusion(sampler, &mut tell)?,
        (Method::Flow(solver), _) => run.flow(*solver, &mut tell)?,
        (Method::InterpolantSde(g), Some(bridge)) => run.stochastic(bridge, *g, &mut tell)?,
        (Method::Diffusion(_), Some(_)) => {
            return unfit("a diffusion", "flow or interpolant-sde");
        }
        (Method::InterpolantSde(_), None) => return unfit("interpolants", "reverse-sde"),
    };
    match &bridge {
        Some(bridge) => {
            let times = bridge.times(&grid);
            content.points_to_data(times[times.len() - 1], &mut drawn.points);
        }
        None => content.standardisation.to_data(&mut drawn.points),
    }
    let number = drawn.points.len() / spec.dim;
    write_rows(&args.output, &drawn.points, number)?;
    if let Some(path) = &args.log_density {
        let volume = content.standardisation.log_volume();
        drawn
            .log_density
            .iter_mut()
            .for_each(|value| *value -= volume);
        write_atomic(path, |writer| {
            write_npy(&[number], &drawn.log_density, writer)
        })?;
    }
    args.record.write(|| {
        json!({
            "command": "sample",
            "model": args.model.name(),
            "number": number,
            "method": name,
            "eta": args.eta,
            "integrator": args.integrator,
            "tolerance": args.tolerance,
            "g": match method {
                Method::InterpolantSde(g) => Some(g),
                _ => None,
            },
            "interpolant": interpolant.then(|| args.bridge.record()),
            "grid": grid,
            "seed": args.seed,
        })
    })?;
    progress.finish(&format!("{number} samples in {}", args.output.display()));
    Ok(())
}

/// What all methods use.
struct Run<'a> {
    args: &'a Args,
    content: &'a Content,
    energy: &'a LearnedEnergy,
    grid: &'a TimeGrid,
    bridge: Option<&'a Bridge<'a>>,
    number: usize,
}

impl Run<'_> {
    fn diffusion(&self, sampler: &Sampler, tell: &mut dyn FnMut(f64)) -> Result<Drawn> {
        let (spec, number) = (&self.content.spec, self.number);
        let (times, start) = (times_of(self.grid), Prior::of(spec));
        let total = (number * (times.len() - 1)) as f64;
        let mut points = Vec::with_capacity(number * spec.dim);
        for first in (0..number).step_by(PIECE) {
            let task = Task {
                energy: self.energy,
                process: &spec.process,
                times: &times,
                start: &start,
                particles: first as u64..number.min(first + PIECE) as u64,
                seed: self.args.seed,
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

    /// Points at the first of the times; a bridge's rows, or draws of the noise.
    fn start(&self, times: &[f64]) -> Result<Vec<f64>> {
        if let Some(bridge) = self.bridge {
            return bridge.departures(times[0], self.args.number, self.args.seed);
        }
        let spec = &self.content.spec;
        let start = Prior::of(spec).mixture()?;
        let mut points = vec![0.0; self.number * spec.dim];
        for (row, point) in points.chunks_exact_mut(spec.dim).enumerate() {
            let mut stream = Stream::new(self.args.seed, Purpose::Sample, 0, row as u64);
            start.sample_point(&mut stream, point);
        }
        Ok(points)
    }

    fn flow(&self, solver: Solver, tell: &mut dyn FnMut(f64)) -> Result<Drawn> {
        let (spec, args) = (&self.content.spec, self.args);
        let times = match self.bridge {
            Some(bridge) => bridge.times(self.grid),
            None => self.grid.times().iter().rev().copied().collect(),
        };
        let flow = Flow {
            energy: self.energy,
            process: &spec.process,
            velocity: self.bridge.map(Bridge::velocity),
            solver,
            divergence: args.log_density.as_ref().map(|_| match args.probes {
                Some(probes) => Divergence::Hutchinson { probes },
                None => Divergence::Exact,
            }),
            seed: args.seed,
        };
        let start = Prior::of(spec).mixture()?;
        let mut drawn = Drawn {
            points: self.start(&times)?,
            log_density: Vec::new(),
        };
        let number = drawn.points.len() / spec.dim;
        for (piece, points) in drawn.points.chunks_mut(SMALL_PIECE * spec.dim).enumerate() {
            let rows = points.len() / spec.dim;
            let mut before = vec![0.0; rows];
            match self.bridge {
                Some(bridge) => bridge.log_density(times[0], points, &mut before),
                None => {
                    for (value, point) in before.iter_mut().zip(points.chunks_exact(spec.dim)) {
                        *value = start.log_density(point);
                    }
                }
            }
            let first = piece * SMALL_PIECE;
            let growth = flow.carry(&times, first as u64, points, &mut |share| {
                tell((first as f64 + share * rows as f64) / number as f64);
            })?;
            if let Some(growth) = growth {
                let values = before.iter().zip(growth).map(|(a, b)| a + b);
                drawn.log_density.extend(values);
            }
        }
        Ok(drawn)
    }

    fn stochastic(
        &self,
        bridge: &Bridge<'_>,
        g: Diffusivity,
        tell: &mut dyn FnMut(f64),
    ) -> Result<Drawn> {
        let spec = &self.content.spec;
        let times = bridge.times(self.grid);
        let sde = InterpolantSde {
            energy: self.energy,
            velocity: bridge.velocity(),
            process: &spec.process,
            g: &|time| g.at(&spec.process, time),
            seed: self.args.seed,
        };
        let mut points = self.start(&times)?;
        let number = points.len() / spec.dim;
        for (piece, points) in points.chunks_mut(SMALL_PIECE * spec.dim).enumerate() {
            let (first, rows) = (piece * SMALL_PIECE, points.len() / spec.dim);
            sde.carry(&times, first as u64, points, &mut |done| {
                let share = done as f64 / (times.len() - 1) as f64;
                tell((first as f64 + share * rows as f64) / number as f64);
            })?;
        }
        Ok(Drawn {
            points,
            log_density: Vec::new(),
        })
    }
}
