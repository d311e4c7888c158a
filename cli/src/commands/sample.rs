//! `diffclf sample`: new samples from a model.

use crate::annealing::write_rows;
use crate::bridge::BridgeArgs;
use crate::help;
use crate::opened::{ModelArgs, RecordArgs};
use crate::states;
use crate::terminal::Terminal;
use diffclf::format::npy::write_npy;
use diffclf::sample::Integrator;
use diffclf_run::error::{Error, Result};
use diffclf_run::generate::Generation;
use diffclf_run::named::word;
use diffclf_run::outputs;
use diffclf_run::states::StatesGeneration;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf sample model.safetensors -n 10000 -o new.npy
  diffclf sample model.safetensors -n 10000 -o new.npy --method reverse-sde --steps 1000
  diffclf sample model.safetensors -n 100 -o new.npy --steps 50 --seed 7
  diffclf sample model.safetensors -n 1000 -o new.npy --method flow --log-density log_density.npy

Samples are in the coordinates of the data, float64. A sample depends on its number and the seed
alone: the first 100 of 10000 are those of -n 100.

flow solves the probability-flow equation down to the smallest time of the model, and can tell the
log-density of every sample.

Interpolants carry rows of one endpoint to the other, along their velocity; train it beside the
energy:
  diffclf train a.npy --end b.npy --objective dsm+diffclf+velocity -o runs/bridge
  diffclf sample runs/bridge --rows b.npy -o like_a.npy
  diffclf sample runs/bridge --rows a.npy --towards end -o like_b.npy --method interpolant-sde \\
      --g 0.5
  diffclf sample runs/bridge --rows b.npy -o like_a.npy --method interpolant-sde \\
      --g '{kind = \"bridge\", factor = 0.5}'
flow is deterministic, interpolant-sde adds noise g(t) all along: the law of the result is the same
for every g, a larger one forgives more errors of the velocity and wants more steps. Both stop at
the time of the model's grid next to the endpoint, whose little noise stays in the samples.
Log-densities are the model's own, known up to one constant. Between two built-in mixtures rows are
drawn afresh, and --velocity exact uses the exact velocity.";

/// New samples from a model.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Number of samples [default with --rows: one for each row]
    #[arg(short = 'n', long, value_name = "N", required_unless_present = "rows")]
    number: Option<usize>,
    /// Result: a .npy file of float64
    #[arg(short, long, value_name = "OUT.npy")]
    output: PathBuf,
    #[arg(long, help = help::sampling_method(), value_name = "NAME")]
    method: Option<String>,
    /// Steps from noise to data [default: the levels of the model's grid]
    #[arg(long, value_name = "K")]
    steps: Option<usize>,
    /// Share of fresh noise in ddim: 0 is deterministic, 1 ancestral [default: 0]
    #[arg(long, allow_negative_numbers = true, value_name = "SHARE")]
    eta: Option<f64>,
    #[arg(long, help = help::integrator(), value_name = "NAME", value_parser = word::<Integrator>)]
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

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let outputs = [Some(&args.output), args.log_density.as_ref()];
    let outputs = outputs.into_iter().flatten();
    args.record.check(outputs.map(PathBuf::as_path))?;
    let asked = Generation {
        number: args.number,
        method: args.method.clone(),
        steps: args.steps,
        eta: args.eta,
        integrator: args.integrator,
        tolerance: args.tolerance,
        log_density: args.log_density.is_some(),
        probes: args.probes,
        bridge: args.bridge.choice(),
        seed: args.seed,
    };
    if let Some(opened) = args.model.open_states()? {
        let strangers = args.eta.is_some()
            || args.integrator.is_some()
            || args.tolerance.is_some()
            || args.log_density.is_some();
        let Some(number) = args.number.filter(|_| !strangers) else {
            return Err(Error::Usage(
                "rows of states take -n, --method (jumps, tau-leaping, ancestral), --steps and --seed; leave out the rest".into(),
            ));
        };
        let (method, steps, seed) = (args.method.clone(), args.steps, args.seed);
        let asked = StatesGeneration {
            number,
            method,
            steps,
            seed,
        };
        return states::sample(
            &opened,
            &asked,
            &args.model.name(),
            &args.output,
            &args.record,
        );
    }
    let (model, energy) = args.model.open()?;
    let done = asked.run(&model.content, &energy, &Terminal::new(args.record.quiet))?;
    let found = &done.found;
    let number = found.number;
    let force = args.record.force;
    // One that cannot be written must not cost the other.
    let samples = write_rows(&args.output, &found.points, number, force);
    if let (Some(path), Some(values)) = (&args.log_density, &found.log_density) {
        outputs::write(path, force, |writer| write_npy(&[number], values, writer))?;
    }
    samples?;
    let interpolant = model.content.spec.process.is_interpolant();
    args.record.write(|| {
        json!({
            "command": "sample",
            "model": args.model.name(),
            "number": number,
            "method": found.method,
            "eta": args.eta,
            "integrator": args.integrator,
            "tolerance": args.tolerance,
            "g": found.g,
            "interpolant": interpolant.then(|| asked.bridge.record()),
            "grid": found.grid,
            "seed": args.seed,
        })
    })?;
    done.finish(&format!("{number} samples in {}", args.output.display()));
    Ok(())
}
