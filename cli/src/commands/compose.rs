//! `diffclf compose`: samples of products, mixtures and powers of models, by sequential Monte Carlo.

use crate::annealing::{OutputArgs, SmcArgs, print_runs, record_of};
use crate::machine::MachineArgs;
use crate::print::print;
use crate::terminal::Terminal;
use diffclf::energy::compose::Expression;
use diffclf::metric::Regions;
use diffclf::model::Model;
use diffclf::sample::Particles;
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::anneal::Levels;
use diffclf_run::compose::Compound;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::read_model;
use diffclf_run::named::word;
use serde_json::json;
use std::path::PathBuf;

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
    machine: MachineArgs,
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
            .get_or_insert_with(|| {
                Levels::new("compose", times, adaptive, &Terminal::new(args.out.quiet))
            })
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
