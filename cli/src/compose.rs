//! `diffclf compose`: samples of products, mixtures and powers of models, by sequential Monte Carlo.

use crate::annealing::{Levels, OutputArgs, SmcArgs, print_runs, record_of};
use crate::error::{Error, Result};
use crate::files::read_model;
use crate::machine::Machine;
use crate::named::word;
use crate::print::{print, table_text};
use crate::report::page::Table;
use diffclf::energy::compose::{Composition, Expression, start_of};
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, InDataCoordinates, LearnedEnergy, Prior};
use diffclf::engine::{Isa, Pool};
use diffclf::metric::Regions;
use diffclf::model::Model;
use diffclf::process::{Process, TimeGrid};
use diffclf::sample::{Particles, Path, Smc, SmcLevel, Start};
use diffclf::system::System;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  diffclf compose \"A and B\" --model A=rings/model.safetensors --model B=boxes/model.safetensors -o both.npy
  diffclf compose \"0.3*A or 0.7*B\" --model A=a.safetensors --model B=b.safetensors -o either.npy
  diffclf compose \"A^0.5\" --model A=a.safetensors -o warm.npy --adaptive 0.9 --moves 16
  diffclf compose \"A and not B\" --model A=a.safetensors --system B=two-modes -o rest.npy

and: product of densities. or: mixture, with weights (equal ones if there are none). A^p: power. not A: A^-0.5, to be used in
a product. Parentheses as usual; or binds weakest, then and, then not, then ^.

Particles start at the noisiest level and pass the composed densities of all levels; log Z is the logarithm of the
composition's mass (0 for an or of well normalised models). The settings are those of the paper: 512 levels, 64 MALA steps,
resampling below 30 %, 8192 particles. Models are composed in the coordinates of their data.";

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
    /// A built-in system of the expression with exact densities: NAME=SYSTEM (mog40, mog2, two-modes, upper-pair, lower-pair)
    #[arg(long, value_name = "NAME=SYSTEM")]
    system: Vec<String>,
    /// Also print the shares of regions beside the truth: quadrants (upper-pair or lower-pair) or rings-and-boxes (rings and boxes)
    #[arg(long, value_name = "REGIONS", value_parser = word::<Regions>)]
    regions: Option<Regions>,
    /// Seed of the systems' own parameters
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    system_seed: u64,
    #[command(flatten)]
    smc: SmcArgs,
    #[command(flatten)]
    out: OutputArgs,
    #[command(flatten)]
    machine: Machine,
}

/// `NAME=VALUE`.
fn binding<'a>(text: &'a str, flag: &str) -> Result<(&'a str, &'a str)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        _ => Err(Error::Usage(format!(
            "{flag} is '{text}', expected a name and what it stands for, as in {flag} A=..."
        ))),
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.out.check()?;
    let smc = args.smc.smc()?;
    let expression = Expression::parse(&args.expression)?;
    let models = read_models(&args)?;
    let systems: Vec<(&str, &str)> = args
        .system
        .iter()
        .map(|text| binding(text, "--system"))
        .collect::<Result<_>>()?;
    let known: Vec<&str> = models
        .iter()
        .map(|(name, _)| *name)
        .chain(systems.iter().map(|(name, _)| *name))
        .collect();
    check_names(&expression, &known)?;
    let compound = Compound {
        expression: &expression,
        models: &models,
        systems: &systems,
        system_seed: args.system_seed,
        levels: args.smc.levels,
    };
    let mut levels = None;
    let (pool, isa) = (args.machine.pool()?, args.machine.isa()?);
    let composed = compound.sample(&smc, args.smc.particles, pool, isa, &mut |times, level| {
        let adaptive = smc.adaptive.is_some();
        levels
            .get_or_insert_with(|| Levels::new("compose", times, adaptive, args.out.quiet))
            .see(level);
    })?;
    let (particles, process) = (composed.particles, composed.process);
    args.out.write(&particles, args.smc.seed)?;
    if let Some(levels) = levels {
        levels.finish(&format!(
            "{} samples of {expression} in {}",
            args.smc.particles,
            args.out.output.display()
        ));
    }
    print_runs(
        format!("{expression} at time {}", composed.grid.t_min()),
        &[("smc", &particles)],
    )?;
    let shares = match args.regions {
        Some(regions) => Some(print_regions(regions, &particles)?),
        None => None,
    };
    args.out.write_record(&json!({
        "command": "compose",
        "expression": args.expression,
        "models": args.model,
        "systems": args.system,
        "settings": smc,
        "process": process,
        "regions": shares,
        "result": record_of(&particles),
    }))
}

/// What is composed.
pub struct Compound<'a> {
    /// The composition; every name in it is a model or a system.
    pub expression: &'a Expression,
    /// Models with their names.
    pub models: &'a [(&'a str, Model)],
    /// Names and the systems with exact marginals that they stand for.
    pub systems: &'a [(&'a str, &'a str)],
    /// Seed of the systems' own parameters.
    pub system_seed: u64,
    /// Levels of the path, if not those of the models' grid.
    pub levels: Option<usize>,
}

/// Samples of a composition, and the path they were led along.
pub struct Composed {
    /// The samples.
    pub particles: Particles,
    /// The process of all members.
    pub process: Process,
    /// The levels.
    pub grid: TimeGrid,
}

impl Compound<'_> {
    /// Leads particles from the noisiest level down the path of compositions. `see` is told the times of all levels and the level that
    /// is done.
    pub fn sample(
        &self,
        smc: &Smc,
        particles: usize,
        pool: Arc<Pool>,
        isa: Isa,
        see: &mut dyn FnMut(&[f64], &SmcLevel),
    ) -> Result<Composed> {
        let (process, grid, dim) = common(self.models)?;
        let grid = match self.levels {
            Some(levels) => grid.with_levels(levels)?,
            None => grid,
        };
        let learned: Vec<LearnedEnergy> = self
            .models
            .iter()
            .map(|(_, model)| model.energy(pool.clone(), isa))
            .collect::<diffclf::Result<_>>()?;
        let rescaled: Vec<InDataCoordinates<&LearnedEnergy>> = self
            .models
            .iter()
            .zip(&learned)
            .map(|((_, model), energy)| model.content.in_data_coordinates(energy))
            .collect();
        let exact: Vec<ExactPath> = self
            .systems
            .iter()
            .map(|(_, name)| exact_path(name, dim, self.system_seed, process))
            .collect::<Result<_>>()?;
        let mut members: Vec<(&str, &dyn Energy)> = Vec::new();
        let mut priors: Vec<(&str, Prior)> = Vec::new();
        for ((name, model), energy) in self.models.iter().zip(&rescaled) {
            members.push((name, energy));
            let prior = Prior::of(&model.content.spec);
            priors.push((name, energy.prior(grid.t_max(), &prior)));
        }
        for ((name, _), path) in self.systems.iter().zip(&exact) {
            members.push((name, path));
            let (mean, variance) = (path.start().mean(), path.start().variance());
            priors.push((name, Prior::new(&process, grid.t_max(), &mean, variance)));
        }
        let composition = Composition::new(self.expression, &members)?;
        let start = start_of(self.expression, &priors)?;
        let times: Vec<f64> = grid.times().iter().rev().copied().collect();
        let path = Path {
            energy: &composition,
            times: &times,
            start: Start::Mixture(&start),
            transport: None,
        };
        let particles = smc.run(&path, particles, &mut |level| see(&times, level))?;
        Ok(Composed {
            particles,
            process,
            grid,
        })
    }
}

/// Shares of regions beside the truth; gives them for the record.
fn print_regions(regions: Regions, particles: &Particles) -> Result<serde_json::Value> {
    let truth = regions.truth()?;
    let shares = regions.shares(&particles.points, &particles.weights)?;
    let names = regions.names();
    let row = |k: usize, name: &str| {
        let exact = truth.get(k).copied().unwrap_or(0.0);
        let error = shares[k] - exact;
        vec![
            name.to_string(),
            format!("{exact:.4}"),
            format!("{:.4}", shares[k]),
            format!("{error:+.4}"),
        ]
    };
    let mut rows: Vec<Vec<String>> = (0..names.len()).map(|k| row(k, &names[k])).collect();
    rows.push(row(names.len(), "elsewhere"));
    print(&table_text(&Table {
        caption: "\nShares of regions".into(),
        header: ["region", "truth", "found", "error"]
            .map(String::from)
            .to_vec(),
        rows,
    }))?;
    Ok(json!({ "names": names, "truth": truth, "found": shares }))
}

fn read_models(args: &Args) -> Result<Vec<(&str, Model)>> {
    args.model
        .iter()
        .map(|text| {
            let (name, path) = binding(text, "--model")?;
            Ok((name, read_model(&PathBuf::from(path))?))
        })
        .collect()
}

/// Every name of the expression is bound, once, and every binding is used.
fn check_names(expression: &Expression, known: &[&str]) -> Result<()> {
    for (k, name) in known.iter().enumerate() {
        if known[..k].contains(name) {
            return Err(Error::Usage(format!(
                "'{name}' is given twice; a name stands for one model or system"
            )));
        }
        if !expression.names().contains(name) {
            return Err(Error::Usage(format!(
                "'{name}' is not in the expression '{expression}'; leave it out, or use it"
            )));
        }
    }
    match expression.names().iter().find(|name| !known.contains(name)) {
        Some(name) => Err(Error::Usage(format!(
            "'{name}' is not known; give --model {name}=FILE or --system {name}=SYSTEM"
        ))),
        None => Ok(()),
    }
}

/// Process, grid and dimension that all models share. Paths are composed time by time, so the times must mean the same noise.
fn common(models: &[(&str, Model)]) -> Result<(Process, TimeGrid, usize)> {
    let Some((first, model)) = models.first() else {
        let process = Process::default();
        return Ok((process, TimeGrid::default_for(&process), 2));
    };
    let spec = &model.content.spec;
    for (name, other) in models {
        let other = &other.content.spec;
        if other.process.is_interpolant() {
            return Err(Error::Usage(format!(
                "{name} is a model of the {} interpolant, which has no noise to start from; compose models of diffusions",
                other.process.name()
            )));
        }
        let ends = |grid: &TimeGrid| (grid.t_min(), grid.t_max());
        if other.process != spec.process || ends(&other.grid) != ends(&spec.grid) {
            return Err(Error::Usage(format!(
                "{first} and {name} have different processes or times ({:?} from {} to {}, and {:?} from {} to {}); train them with \
                 the same --process, --t-min and --t-max",
                spec.process,
                spec.grid.t_min(),
                spec.grid.t_max(),
                other.process,
                other.grid.t_min(),
                other.grid.t_max()
            )));
        }
    }
    Ok((spec.process, spec.grid.clone(), spec.dim))
}

fn exact_path(name: &str, dim: usize, seed: u64, process: Process) -> Result<ExactPath> {
    let system = System::by_name(name, dim, seed)?;
    match system.mixture() {
        Some(mixture) => Ok(ExactPath::new(process, mixture.clone(), None)?),
        None => Err(Error::Usage(format!(
            "the marginals of {name} under noise are not known exactly; train a model on it, or use mog40, mog2, two-modes, \
             upper-pair or lower-pair"
        ))),
    }
}
