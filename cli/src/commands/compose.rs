//! `diffclf compose`: samples of products, mixtures and powers of models, by sequential Monte Carlo.

use crate::annealing::{OutputArgs, SmcArgs};
use crate::help;
use crate::machine::MachineArgs;
use crate::print::print;
use crate::states;
use crate::terminal::Terminal;
use diffclf::discrete::model::StatesModel;
use diffclf::energy::compose::Expression;
use diffclf::metric::Regions;
use diffclf_report::annealing;
use diffclf_report::text::table_text;
use diffclf_run::compose::{Compound, RegionShares, binding, read_models};
use diffclf_run::error::{Error, Result};
use diffclf_run::named::word;
use diffclf_run::states::StatesCompound;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  diffclf compose \"A and B\" --model A=rings/model.safetensors --model B=boxes/model.safetensors \\
      -o both.npy
  diffclf compose \"0.3*A or 0.7*B\" --model A=a.safetensors --model B=b.safetensors -o either.npy
  diffclf compose \"A^0.5\" --model A=a.safetensors -o warm.npy --adaptive 0.9 --moves 16
  diffclf compose \"A and not B\" --model A=a.safetensors --system B=two-modes -o rest.npy

and: product of densities. or: mixture, with weights (equal ones if there are none). A^p: power. not
A: A^-0.5, to be used in a product. Parentheses as usual; or binds weakest, then and, then not, then
^.

Particles start at the noisiest level and pass the composed densities of all levels; log Z is the
logarithm of the composition's mass (0 for an or of well normalised models). The settings are those
of the paper: 512 levels, 64 MALA steps, resampling below 30 %, 8192 particles. Models are composed
in the coordinates of their data.";

/// Samples of a composition of models.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The composition, such as "A and B" or "0.3*A or 0.7*B"
    #[arg(value_name = "EXPRESSION")]
    expression: String,
    /// A model of the expression: NAME=FILE
    #[arg(long, value_name = "NAME=FILE")]
    model: Vec<String>,
    #[arg(long, help = help::composed_system(), value_name = "NAME=SYSTEM")]
    system: Vec<String>,
    #[arg(long, help = help::regions(), value_name = "REGIONS", value_parser = word::<Regions>)]
    regions: Option<Regions>,
    /// Seed of the systems' own parameters
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    system_seed: u64,
    #[command(flatten)]
    smc: SmcArgs,
    #[command(flatten)]
    out: OutputArgs,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.out.check()?;
    let expression = Expression::parse(&args.expression)?;
    if let Some(models) = diffclf_run::states::read_all(&args.model)? {
        return of_states(&args, &expression, &models);
    }
    let smc = args.smc.smc()?;
    let compound = Compound {
        expression: &expression,
        models: &read_models(&args.model)?,
        systems: &systems(&args)?,
        system_seed: args.system_seed,
        levels: args.smc.levels,
    };
    let (pool, isa) = (args.machine.pool()?, args.machine.isa()?);
    let watch = Terminal::new(args.out.quiet);
    let done = compound.sample(&smc, args.smc.particles, pool, isa, &watch)?;
    args.out.write(&done.found.particles, args.smc.seed)?;
    let composed = done.finish(&format!(
        "{} samples of {expression} in {}",
        args.smc.particles,
        args.out.output.display()
    ));
    let particles = &composed.particles;
    let runs = [("smc", particles)];
    let caption = format!("{expression} at time {}", composed.grid.t_min());
    print(&table_text(&annealing::runs(caption, &runs)))?;
    print(&annealing::notes(&runs))?;
    let shares = match args.regions {
        Some(regions) => Some(RegionShares::of(regions, particles)?),
        None => None,
    };
    if let Some(shares) = &shares {
        print(&table_text(&annealing::regions(shares)))?;
    }
    args.out.write_record(&json!({
        "command": "compose",
        "expression": args.expression,
        "models": args.model,
        "systems": args.system,
        "settings": smc,
        "process": composed.process,
        "regions": shares,
        "result": annealing::record(particles),
    }))
}

fn systems(args: &Args) -> Result<Vec<(&str, &str)>> {
    let bindings = args.system.iter();
    bindings.map(|text| binding(text, "system")).collect()
}

/// A composition of models of states.
fn of_states(args: &Args, expression: &Expression, models: &[(&str, StatesModel)]) -> Result<()> {
    if args.regions.is_some() {
        return Err(Error::Usage(
            "--regions are regions of the plane, and states have none; leave it out".into(),
        ));
    }
    let compound = StatesCompound {
        expression,
        models,
        systems: &systems(args)?,
        system_seed: args.system_seed,
    };
    let sites = models[0].1.content.spec.space.sites;
    let asked = states::annealing(&args.smc, None, sites, args.smc.threshold)?;
    let (pool, isa) = (args.machine.pool()?, args.machine.isa()?);
    let done = compound.sample(&asked, &pool, isa, &Terminal::new(args.out.quiet))?;
    let about = json!({
        "command": "compose",
        "expression": args.expression,
        "models": args.model,
        "systems": args.system,
    });
    states::annealed(
        done,
        (&asked, sites),
        &expression.to_string(),
        &args.out,
        about,
    )
}
