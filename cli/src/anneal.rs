//! `diffclf anneal`: a model's path run by sequential Monte Carlo, annealed importance sampling or replica exchange; with a target, a
//! Boltzmann generator.

use crate::annealing::{
    Levels, OutputArgs, SmcArgs, angular_times, print_runs, record_of, write_rows,
};
use crate::compose::rescale;
use crate::coordinates::Coordinates;
use crate::error::{Error, Result};
use crate::exact::{Systems, exact_path};
use crate::files::read_model;
use crate::judging::model_path;
use crate::machine::Machine;
use crate::print::{print, table_text};
use crate::progress::Progress;
use crate::report::page::Table;
use diffclf::energy::{Ending, Energy, SystemEnergy};
use diffclf::model::Model;
use diffclf::process::TimeGrid;
use diffclf::sample::mcmc::Kernel;
use diffclf::sample::{
    Boltzmann, DiffusionKernels, Exchange, InterpolantKernels, Ladder, Particles, Path, Prior, Smc,
    Start, Transport,
};
use diffclf::system::System;
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf anneal runs/mine/model.safetensors -o samples.npy
  diffclf anneal runs/mog40/model.safetensors --target mog40 -o exact.npy --weights w.npy
  diffclf anneal runs/mog40/model.safetensors --target mog40 --contest --diffusion -o exact.npy
  diffclf anneal runs/mine/model.safetensors --method exchange --levels 24 -n 64 --moves 4 -o samples.npy

Without --target the samples are those of the model's density at its smallest time, corrected for all errors of the way. With
--target the last marginal is replaced by the exact density of a system: a Boltzmann generator, whose weighted samples are
unbiased whatever the model is worth; log Z is then that of the target (0 for these systems). --contest runs importance
sampling and annealed importance sampling beside it.

A model of an interpolant between two mixtures goes from exact samples of the second to the exact law of the first, by the kernels
of its SDE with noise --g and exact velocity and score; the model's energies give the weights (the paper's experiment):
  diffclf anneal runs/bridge -n 8192 --moves 0 -o exact.npy --weights w.npy

exchange runs replica exchange: -n ladders side by side, --moves kernel steps in each of --sweeps sweeps.";

/// How particles are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    /// Sequential Monte Carlo
    Smc,
    /// Annealed importance sampling: never resampled
    Ais,
    /// Replica exchange over time
    Exchange,
}

/// Run a model's path by SMC, AIS or replica exchange.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model file or run folder
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Method
    #[arg(long, value_enum, default_value = "smc")]
    method: Method,
    /// System whose exact density takes the place of the last marginal: mog40, mog2, two-modes, rings, ...
    #[arg(long, value_name = "SYSTEM")]
    target: Option<String>,
    /// Seed of the target's own parameters
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    system_seed: u64,
    /// Move particles between levels by the reverse diffusion (Phillips et al. 2024), not by MCMC alone
    #[arg(long)]
    diffusion: bool,
    /// Also run importance sampling and annealed importance sampling, and print all three
    #[arg(long, requires = "target")]
    contest: bool,
    /// Noise of an interpolant's kernels [default: 0.01]
    #[arg(long, value_name = "G")]
    g: Option<f64>,
    /// Sweeps of replica exchange after as many for warming up
    #[arg(long, value_name = "SWEEPS", default_value_t = 500)]
    sweeps: usize,
    #[command(flatten)]
    smc: SmcArgs,
    #[command(flatten)]
    out: OutputArgs,
    #[command(flatten)]
    machine: Machine,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.out.check()?;
    let smc = args.smc.smc()?;
    let model = read_model(&model_path(&args.model))?;
    let content = &model.content;
    let spec = &content.spec;
    if spec.process.is_interpolant() {
        return interpolant(&args, &model, &smc);
    }
    if args.g.is_some() {
        return Err(Error::Usage(format!(
            "--g belongs to interpolants, and the model's process is {}; leave it out",
            spec.process.name()
        )));
    }
    let grid = match args.smc.levels {
        Some(levels) => spec.grid.with_levels(levels)?,
        None => spec.grid.clone(),
    };
    let learned = model.energy(args.machine.pool()?, args.machine.isa()?)?;
    let energy = rescale(content, &learned);
    let prior = energy.prior(grid.t_max(), &Prior::of(spec));
    let target = target(&args, spec.dim)?;
    let mut times: Vec<f64> = grid.times().iter().rev().copied().collect();
    if target.is_some() {
        times.push(0.0);
    }
    if args.method == Method::Exchange {
        return exchange(&args, &energy, target.as_ref(), &grid, &times, &prior);
    }
    let start = prior.mixture()?;
    let kernels = DiffusionKernels {
        process: spec.process,
        energy: &learned,
    };
    let kernels = Moved {
        inner: kernels,
        scale: content.standardisation.scale,
        shift: &content.standardisation.shift,
    };
    let transport = args.diffusion.then_some(&kernels as &dyn Transport);
    let smc = match args.method {
        Method::Ais => Smc {
            least_overlap: 0.0,
            ..smc.annealed_importance_sampling()
        },
        _ => smc,
    };
    let mut levels = Levels::new("anneal", &times, smc.adaptive.is_some(), args.out.quiet);
    let n = args.smc.particles;
    let start = Start::Mixture(&start);
    let mut others: Vec<(&str, Particles)> = Vec::new();
    let particles = match &target {
        None => {
            let path = Path {
                energy: &energy,
                times: &times,
                start,
                transport,
            };
            smc.run(&path, n, &mut |level| levels.see(level))?
        }
        Some(target) => {
            let generator = Boltzmann {
                path: &energy,
                target,
                times: &times,
                start,
                transport,
            };
            if args.contest {
                let contest = generator.contest(&smc, n, &mut |level| levels.see(level))?;
                others.push(("ais", contest.ais));
                others.extend(contest.importance.map(|run| ("importance sampling", run)));
                contest.smc
            } else {
                generator.run(&smc, n, &mut |level| levels.see(level))?
            }
        }
    };
    args.out.write(&particles, args.smc.seed)?;
    levels.finish(&format!("{n} samples in {}", args.out.output.display()));
    let name = if args.method == Method::Ais {
        "ais"
    } else {
        "smc"
    };
    let mut runs = vec![(name, &particles)];
    runs.extend(others.iter().map(|(name, run)| (*name, run)));
    let end = args.target.as_deref().unwrap_or("the model's density");
    print_runs(format!("From noise to {end}"), &runs)?;
    let results: serde_json::Map<String, Value> = runs
        .iter()
        .map(|(name, run)| (name.to_string(), record_of(run)))
        .collect();
    args.out.write_record(&json!({
        "command": "anneal",
        "model": args.model.display().to_string(),
        "target": args.target,
        "diffusion": args.diffusion,
        "settings": smc,
        "results": results,
    }))
}

/// The paper's Boltzmann generator: from exact samples of the second endpoint's side to the exact law of the first, by the kernels
/// of the interpolant's SDE with exact velocity and score; the model's energies give the weights.
fn interpolant(args: &Args, model: &Model, smc: &Smc) -> Result<()> {
    let content = &model.content;
    if args.method == Method::Exchange || args.target.is_some() || smc.adaptive.is_some() {
        return Err(Error::Usage(
            "an interpolant is annealed by smc or ais between the two systems it was trained on; leave out --target, \
             --adaptive and --method exchange"
                .into(),
        ));
    }
    let (exact, names) = exact_path(&Systems::default(), content)?;
    let process = content.spec.process;
    let levels = args.smc.levels.unwrap_or(content.spec.grid.levels());
    if levels < 2 {
        return Err(Error::Usage(format!(
            "--levels is {levels}, expected at least 2"
        )));
    }
    let times = angular_times(content.spec.grid.t_max(), levels);
    let learned = model.energy(args.machine.pool()?, args.machine.isa()?)?;
    let kernels = InterpolantKernels {
        process,
        velocity: &exact,
        energy: &exact,
        g: args.g.unwrap_or(0.01),
    };
    let n = args.smc.particles;
    let points = exact.sample(times[0], n, args.smc.seed);
    let generator = Boltzmann {
        path: &learned,
        target: &exact,
        times: &times,
        start: Start::Points(&points),
        transport: Some(&kernels),
    };
    let smc = match args.method {
        Method::Ais => Smc {
            least_overlap: 0.0,
            ..smc.clone().annealed_importance_sampling()
        },
        _ => smc.clone(),
    };
    let mut levels = Levels::new("anneal", &times, false, args.out.quiet);
    let mut particles = generator.run(&smc, n, &mut |level| levels.see(level))?;
    Coordinates::of(content).data_to_user(&mut particles.points);
    args.out.write(&particles, args.smc.seed)?;
    levels.finish(&format!("{n} samples in {}", args.out.output.display()));
    let caption = format!("From {} to {}", names[1], names[0]);
    print_runs(caption, &[("result", &particles)])?;
    args.out.write_record(&json!({
        "command": "anneal",
        "model": args.model.display().to_string(),
        "systems": names,
        "g": kernels.g,
        "settings": smc,
        "result": record_of(&particles),
    }))
}

fn target(args: &Args, dim: usize) -> Result<Option<SystemEnergy>> {
    let Some(name) = &args.target else {
        return Ok(None);
    };
    match SystemEnergy::new(System::by_name(name, dim, args.system_seed)?) {
        Some(energy) => Ok(Some(energy)),
        None => Err(Error::Usage(format!(
            "the density of {name} is not known exactly, so it cannot be a target; choose another system"
        ))),
    }
}

/// The kernels of a diffusion in the coordinates of the data: points and densities are mapped, noise is the same.
struct Moved<'a> {
    inner: DiffusionKernels<'a>,
    scale: f64,
    shift: &'a [f64],
}

impl Moved<'_> {
    fn inward(&self, time: f64, points: &[f64]) -> Vec<f64> {
        let factor = self.inner.process.scale(time);
        let shift = self.shift.iter().cycle();
        let both = points.iter().zip(shift);
        both.map(|(y, s)| (y - factor * s) / self.scale).collect()
    }

    fn volume(&self, out: &mut [f64]) {
        let volume = self.shift.len() as f64 * self.scale.ln();
        out.iter_mut().for_each(|value| *value -= volume);
    }
}

impl Transport for Moved<'_> {
    fn propose(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        noise: &[f32],
        proposed: &mut [f64],
        log_density: &mut [f64],
    ) {
        let inward = self.inward(from, points);
        self.inner
            .propose(from, to, &inward, noise, proposed, log_density);
        let factor = self.inner.process.scale(to);
        for (x, shift) in proposed.iter_mut().zip(self.shift.iter().cycle()) {
            *x = factor * shift + self.scale * *x;
        }
        self.volume(log_density);
    }

    fn log_return(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        proposed: &[f64],
        log_density: &mut [f64],
    ) {
        let (points, proposed) = (self.inward(from, points), self.inward(to, proposed));
        self.inner
            .log_return(from, to, &points, &proposed, log_density);
        self.volume(log_density);
    }
}

fn exchange(
    args: &Args,
    energy: &dyn Energy,
    target: Option<&SystemEnergy>,
    grid: &TimeGrid,
    times: &[f64],
    prior: &Prior,
) -> Result<()> {
    if args.out.weights.is_some() || args.contest || args.diffusion || args.smc.adaptive.is_some() {
        return Err(Error::Usage(
            "--weights, --contest, --diffusion and --adaptive belong to smc and ais; leave them out with exchange".into(),
        ));
    }
    let ending = target.map(|target| Ending {
        path: energy,
        target,
        time: 0.0,
    });
    let energy = ending
        .as_ref()
        .map_or(energy, |ending| ending as &dyn Energy);
    let (ladders, dim) = (args.smc.particles, energy.dim());
    let settings = Exchange {
        kernel: Kernel::by_name(&args.smc.moving)?,
        moves: args.smc.moves,
        step: args.smc.step,
        warm_up: args.sweeps,
        sweeps: args.sweeps,
        seed: args.smc.seed,
    };
    // All levels start from draws of the hot end; the warm-up brings them down.
    let mut points = vec![0.0; times.len() * ladders * dim];
    for (row, point) in points.chunks_exact_mut(dim).enumerate() {
        use diffclf::rng::{Purpose, Stream};
        let mut stream = Stream::new(args.smc.seed, Purpose::Sample, 0, row as u64);
        for (y, mean) in point.iter_mut().zip(&prior.mean) {
            *y = mean + prior.std * stream.normal();
        }
    }
    let total = 2 * args.sweeps as u64;
    let mut progress = Progress::new("exchange", total, 0, args.out.quiet);
    let ladder = Ladder { energy, times };
    let found = settings.run(ladder, &points, &mut |done| {
        progress.set(done as u64, || "sweeps".into());
    })?;
    write_rows(&args.out.output, &found.draws, args.sweeps * ladders)?;
    progress.finish(&format!(
        "{} samples in {}",
        args.sweeps * ladders,
        args.out.output.display()
    ));
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let row = |name: &str, value: String| vec![name.to_string(), value];
    print(&table_text(&Table {
        caption: format!(
            "{ladders} ladders of {} levels, {} sweeps",
            times.len(),
            args.sweeps
        ),
        header: vec!["quantity".into(), "value".into()],
        rows: vec![
            row(
                "swap acceptance, least",
                format!("{:.2}", least(&found.swap_acceptance)),
            ),
            row(
                "move acceptance, least",
                format!("{:.2}", least(&found.acceptance)),
            ),
            row("round trips", found.round_trips.to_string()),
            row(
                "effective draws, least",
                format!("{:.0}", least(&found.effective_draws)),
            ),
            row("split R-hat, largest", format!("{:.3}", most(&found.r_hat))),
        ],
    }))?;
    args.out.write_record(&json!({
        "command": "anneal",
        "method": "exchange",
        "model": args.model.display().to_string(),
        "target": args.target,
        "settings": settings,
        "grid": grid,
        "result": found,
    }))
}
