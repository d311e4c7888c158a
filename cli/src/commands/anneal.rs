//! `diffclf anneal`: a model's path run by sequential Monte Carlo, annealed importance sampling or replica exchange; with a target, a
//! Boltzmann generator.

use crate::annealing::{OutputArgs, SmcArgs, print_runs, record_of, write_rows};
use crate::bridge::BridgeArgs;
use crate::opened::ModelArgs;
use crate::print::print;
use crate::terminal::Terminal;
use diffclf::energy::{Ending, Energy, LearnedEnergy, Prior, SystemEnergy};
use diffclf::model::Content;
use diffclf::process::TimeGrid;
use diffclf::sample::mcmc::Kernel;
use diffclf::sample::{
    Boltzmann, DataTransport, DiffusionKernels, Exchange, InterpolantKernels, Ladder, Particles,
    Path, Smc, Start, Transport,
};
use diffclf::system::System;
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::Watch;
use diffclf_run::anneal::{Levels, angular_times};
use diffclf_run::bridge::Bridge;
use diffclf_run::error::{Error, Result};
use serde_json::{Value, json};

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

A model of an interpolant carries rows of one endpoint to its own density at the other, by the kernels of its SDE with noise --g and
its velocity; its energies give the weights. Train the velocity beside the energy:
  diffclf train a.npy --end b.npy --objective dsm+diffclf+velocity -o runs/bridge
  diffclf anneal runs/bridge --rows b.npy -n 2000 -o like_a.npy --weights w.npy
  diffclf anneal runs/bridge --rows a.npy -n 2000 --towards end -o like_b.npy
Between two built-in mixtures --velocity exact uses exact velocity and score, and ends at the exact law (the paper's experiment):
  diffclf anneal runs/mixtures --velocity exact -n 8192 --moves 0 -o exact.npy --weights w.npy

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
    #[command(flatten)]
    model: ModelArgs,
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
    #[command(flatten)]
    bridge: BridgeArgs,
    /// Sweeps of replica exchange after as many for warming up
    #[arg(long, value_name = "SWEEPS", default_value_t = 500)]
    sweeps: usize,
    #[command(flatten)]
    smc: SmcArgs,
    #[command(flatten)]
    out: OutputArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.out.check()?;
    let smc = args.smc.smc()?;
    let smc = match args.method {
        Method::Ais => Smc {
            least_overlap: 0.0,
            ..smc.annealed_importance_sampling()
        },
        _ => smc,
    };
    let (model, learned) = args.model.open()?;
    let content = &model.content;
    let spec = &content.spec;
    if spec.process.is_interpolant() {
        return interpolant(&args, content, &learned, &smc);
    }
    args.bridge.refuse_for_diffusion(content)?;
    let grid = match args.smc.levels {
        Some(levels) => spec.grid.with_levels(levels)?,
        None => spec.grid.clone(),
    };
    let energy = content.in_data_coordinates(&learned);
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
    let kernels = DataTransport {
        inner: &kernels,
        process: spec.process,
        map: &content.standardisation,
    };
    let transport = args.diffusion.then_some(&kernels as &dyn Transport);
    let mut levels = Levels::new(
        "anneal",
        &times,
        smc.adaptive.is_some(),
        &Terminal::new(args.out.quiet),
    );
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
        "model": args.model.name(),
        "target": args.target,
        "diffusion": args.diffusion,
        "settings": smc,
        "results": results,
    }))
}

/// From rows of one endpoint to the model's density at the other, by the kernels of the interpolant's SDE with learned velocity and score;
/// the model's energies give the weights. With the exact velocity, the paper's Boltzmann generator: exact samples, exact kernels, and the
/// exact law at the end.
fn interpolant(args: &Args, content: &Content, learned: &LearnedEnergy, smc: &Smc) -> Result<()> {
    if args.method == Method::Exchange
        || args.target.is_some()
        || args.diffusion
        || smc.adaptive.is_some()
    {
        return Err(Error::Usage(
            "an interpolant is annealed by smc or ais between the two data sets it was trained on; leave out --target, \
             --diffusion, --adaptive and --method exchange"
                .into(),
        ));
    }
    let choice = args.bridge.choice();
    let bridge = Bridge::open(&choice, content, learned)?;
    let count = args.smc.levels.unwrap_or(content.spec.grid.levels());
    if count < 2 {
        return Err(Error::Usage(format!(
            "--levels is {count}, expected at least 2"
        )));
    }
    let known = bridge.times(&content.spec.grid);
    let exact = bridge.exact().map(|path| path as &dyn Energy);
    // To the model's last time; or, if an exact law waits there, to the endpoint itself: beyond its last time the model is then asked
    // for what its network says there, and only at the endpoint does the target take its place.
    let last = exact.map_or(known[known.len() - 1], |_| bridge.ends().1);
    let times = angular_times(known[0], last, count);
    let kernels = InterpolantKernels {
        process: content.spec.process,
        velocity: bridge.velocity(),
        energy: exact.unwrap_or(learned),
        // The paper's with exact fields; learned ones do not obey the continuity equation exactly, and noise makes up for it.
        g: args.bridge.g_or(if exact.is_some() { 0.01 } else { 0.5 }),
    };
    if kernels.g.at(&content.spec.process, 0.5) == 0.0 {
        return Err(Error::Usage(
            "--g is 0, expected a positive number: without noise a way back has no density".into(),
        ));
    }
    let ending = exact.map(|target| Ending {
        path: learned,
        target,
        time: times[count - 1],
    });
    let n = args.smc.particles;
    let points = bridge.departures(times[0], Some(n), args.smc.seed)?;
    let path = Path {
        energy: ending
            .as_ref()
            .map_or(learned as &dyn Energy, |ending| ending),
        times: &times,
        // Exact draws are weighted by the model's first level against their own density; of other rows none is known.
        start: match exact {
            Some(density) if !bridge.has_rows() => Start::Draws {
                points: &points,
                density,
                time: times[0],
            },
            _ => Start::Points(&points),
        },
        transport: Some(&kernels),
    };
    let mut levels = Levels::new("anneal", &times, false, &Terminal::new(args.out.quiet));
    let mut particles = smc.run(&path, n, &mut |level| levels.see(level))?;
    content.points_to_data(times[count - 1], &mut particles.points);
    args.out.write(&particles, args.smc.seed)?;
    levels.finish(&format!("{n} samples in {}", args.out.output.display()));
    let [from, to] = bridge.names();
    print_runs(format!("From {from} to {to}"), &[("result", &particles)])?;
    args.out.write_record(&json!({
        "command": "anneal",
        "model": args.model.name(),
        "from": from,
        "to": to,
        "interpolant": args.bridge.record(),
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
        let noise: Vec<f64> = (0..dim).map(|_| stream.normal()).collect();
        prior.points(&noise, point);
    }
    let total = 2 * args.sweeps as u64;
    let mut progress = Terminal::new(args.out.quiet).begin("exchange", total, 0);
    let ladder = Ladder { energy, times };
    let found = settings.run(ladder, &points, &mut |done| {
        progress.set(done as u64, &|| "sweeps".into());
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
        "model": args.model.name(),
        "target": args.target,
        "settings": settings,
        "grid": grid,
        "result": found,
    }))
}
