//! `diffclf simulate`: Langevin dynamics on a model, a system or a composition of them.

use crate::help;
use crate::machine::MachineArgs;
use crate::opened::RecordArgs;
use crate::print::{note, print};
use crate::terminal::Terminal;
use diffclf::energy::compose::Expression;
use diffclf::format::npy::write_npy;
use diffclf::format::sha256_of;
use diffclf_run::compose::{binding, read_models};
use diffclf_run::error::Result;
use diffclf_run::files::read_model;
use diffclf_run::named::word;
use diffclf_run::outputs;
use diffclf_run::simulate::{
    Asking, Departure, Given, Keeping, Landscape, Scheme, Settled, Simulated, Simulation, Units,
};
use diffclf_run::trajectory::{kind_of, outputs_of, writable, write_chains};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  diffclf simulate runs/mb --chains 10 --frames 2000 --thin 50 --step 0.005 --temperature 23 \\
      --masses 0.5 -o chains.npy
  diffclf simulate A --system A=mueller-brown --chains 10 --step 0.005 --temperature 23 \\
      --masses 0.5 -o exact.npy
  diffclf simulate runs/aldp --start frames.npy --chains 100 --units nm --step 2 --temperature 300 \\
      --masses 12.011,14.007,12.011,12.011,14.007 --bonds 0-1,1-2,2-3,3-4 --frames 1000 --thin 50 \\
      -o chains.xtc
  diffclf simulate A --system A=go:native.pdb --topology native.pdb --chains 20 --units nm \\
      --step 5 --temperature 340 -o folding.xtc
  diffclf simulate \"A and B\" --model A=a.safetensors --model B=b.safetensors --start rows.npy \\
      --step 0.01 -o both.npy

The force is kT times the score at the energy's smallest time (or --time), in the coordinates of the
data. Units: with --units nm or angstrom the coordinates are that, --step is in fs, --friction in
1/ps, --temperature in K and --masses in u. With reduced units (the default) the temperature is kT
in mass length^2 / time^2, and the others follow.

Chains start at the first rows of --start; a model of a built-in system, or a system, needs none. An
.npy result is float64 with all frames of the first chain, then of the second; .xtc and .dcd have a
file for each chain (NAME-0.xtc, NAME-1.xtc) in nm or Angstrom as the format wants it. Results do
not depend on the number of threads. An interrupted simulation goes on, to the same bytes, with the
same command; --force starts it anew.

Chains that leave the data (their energies, bond lengths or coordinates go far beyond those of
--data) are named; nothing of them is dropped.";

/// Langevin dynamics on a model, a system or a composition.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Model file or run folder; with --model or --system, an expression of their names, such as "A" or "A and B"
    #[arg(value_name = "MODEL")]
    energy: String,
    /// A model of the expression: NAME=FILE
    #[arg(long, value_name = "NAME=FILE")]
    model: Vec<String>,
    #[arg(long, help = help::simulated_system(), value_name = "NAME=SYSTEM")]
    system: Vec<String>,
    /// Seed of the systems' own parameters
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    system_seed: u64,
    /// Result: .npy, .xtc, .dcd or .pdb
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Rows that chains start from: .npy, .npz, .csv, .xtc, .dcd or .pdb
    #[arg(long, value_name = "FILE")]
    start: Option<PathBuf>,
    /// Number of chains, from the first rows of the start on
    #[arg(long, value_name = "N", default_value_t = 1)]
    chains: usize,
    /// Rows by which chains that leave the data are noticed [default: those of --start]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Frames of each chain
    #[arg(long, value_name = "N", default_value_t = 1000)]
    frames: usize,
    /// Steps from one frame to the next
    #[arg(long, value_name = "N", default_value_t = 50)]
    thin: usize,
    #[arg(long, help = help::scheme(), value_name = "NAME", default_value = "baoab", value_parser = word::<Scheme>)]
    scheme: Scheme,
    #[arg(long, help = help::units(), value_name = "NAME", default_value = "reduced", value_parser = word::<Units>)]
    units: Units,
    /// Time step, in fs or reduced units
    #[arg(long, value_name = "H")]
    step: f64,
    /// Friction, in 1/ps or reduced units
    #[arg(long, value_name = "RATE", default_value_t = 1.0)]
    friction: f64,
    /// Temperature in K, or kT in reduced units [default: 1 in reduced units]
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    /// Beads whose masses and bonds these are: a .pdb file, or a .toml file (docs/molecules.md)
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Masses, in u or reduced units: one for all, one for each particle, or one for each coordinate [default: those of --topology, or 1]
    #[arg(long, value_name = "M,...", value_delimiter = ',')]
    masses: Vec<f64>,
    /// Bonds whose lengths are watched, as pairs of particles: 0-1,1-2 [default: those of --topology, or all distances of few particles]
    #[arg(long, value_name = "A-B,...", value_delimiter = ',', value_parser = bond)]
    bonds: Vec<[usize; 2]>,
    /// Time of the energy [default: the model's smallest]
    #[arg(long, value_name = "T")]
    time: Option<f64>,
    /// Write U of every frame, in kT, to this .npy file: (chains, frames)
    #[arg(long, value_name = "OUT.npy")]
    energies: Option<PathBuf>,
    /// Seconds between two saves of a simulation that may be interrupted
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    save_every: u64,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    record: RecordArgs,
}

/// `3-4`.
fn bond(text: &str) -> std::result::Result<[usize; 2], String> {
    let pair = text.split_once('-');
    pair.and_then(|(a, b)| Some([a.trim().parse().ok()?, b.trim().parse().ok()?]))
        .ok_or_else(|| format!("'{text}' is no pair of particles, expected one such as 3-4"))
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    writable(&args.output, args.units)?;
    let paths = outputs_of(&args.output, args.chains);
    let others = args.energies.iter().map(PathBuf::as_path);
    args.record
        .check(paths.iter().map(PathBuf::as_path).chain(others))?;
    let models = match args.model.is_empty() && args.system.is_empty() {
        true => vec![("model", read_model(Path::new(&args.energy))?)],
        false => read_models(&args.model)?,
    };
    let systems: Vec<(&str, &str)> = args
        .system
        .iter()
        .map(|text| binding(text, "system"))
        .collect::<Result<_>>()?;
    let expression = match models.as_slice() {
        [("model", _)] if args.model.is_empty() => Expression::parse("model")?,
        _ => Expression::parse(&args.energy)?,
    };
    let landscape = Landscape {
        expression: &expression,
        models: &models,
        systems: &systems,
        system_seed: args.system_seed,
    };
    let dim = landscape.dim()?;
    let trajectory = kind_of(&args.output).is_some();
    let asking = Asking {
        scheme: args.scheme,
        units: args.units,
        step: args.step,
        friction: args.friction,
        temperature: args.temperature,
        masses: args.masses.clone(),
        bonds: args.bonds.clone(),
        topology: args.topology.clone(),
        particles: trajectory.then_some(true),
        chains: Some(args.chains),
        frames: args.frames,
        thin: args.thin,
        time: args.time,
        seed: args.seed,
    };
    let given = |path: &Option<PathBuf>| path.as_deref().map(Given::read).transpose();
    let (start, data) = (given(&args.start)?, given(&args.data)?);
    let watch = Terminal::interruptible(args.record.quiet)?;
    let Settled {
        simulation: asked,
        start,
        data,
    } = asking.settle(&landscape, start, data, &watch)?;
    let settings = json!({
        "simulation": asked,
        "energy": expression.to_string(),
        "models": models
            .iter()
            .map(|(_, model)| Ok(sha256_of(|writer| Ok(writer.write_all(&model.to_bytes()?)?))?))
            .collect::<Result<Vec<String>>>()?,
        "systems": args.system,
        "start": sha256_of(|writer| write_npy(&[start.len()], &start, writer))?,
    });
    let keeping = Keeping::beside(&args.output, settings);
    if args.record.force {
        keeping.finish()?;
    }
    let threads = args.machine.pool()?.threads();
    let machine = (threads, args.machine.isa()?);
    let every = Duration::from_secs(args.save_every);
    let done = asked.run(
        &landscape,
        &start,
        &data,
        machine,
        Some((&keeping, every)),
        &watch,
    )?;
    let found = &done.found;
    let spacing = args.units.time(args.step) * args.thin as f64;
    let shape = (found.chains, dim, asked.particles && dim.is_multiple_of(3));
    let force = args.record.force;
    let written = write_chains(
        &args.output,
        &found.points,
        shape,
        (args.units, spacing),
        force,
    )?;
    if let Some(path) = &args.energies {
        let shape = [found.chains, args.frames];
        outputs::write(path, force, |writer| {
            write_npy(&shape, &found.energies, writer)
        })?;
    }
    args.record.write(|| {
        json!({
            "command": "simulate",
            "energy": args.energy,
            "simulation": asked,
            "chains": found.chains,
            "summary": found.summary,
        })
    })?;
    keeping.finish()?;
    let files = match written.as_slice() {
        [one] => one.display().to_string(),
        many => format!(
            "{} to {}",
            many[0].display(),
            many[many.len() - 1].display()
        ),
    };
    let found = done.finish(&format!(
        "{} chains of {} frames in {files}",
        args.chains, args.frames
    ));
    told(&asked, &found)
}

/// What was done, in words, and which chains left.
fn told(asked: &Simulation, found: &Simulated) -> Result<()> {
    let [step, rate, kelvin, mass, length] = asked.units.names();
    let summary = &found.summary;
    let acceptance = match asked.scheme {
        Scheme::Ghmc => format!(", acceptance {:.4}", summary.acceptance),
        _ => String::new(),
    };
    let masses: Vec<String> = asked.masses.iter().map(f64::to_string).collect();
    print(&format!(
        "time step {} {step}, friction {} {rate}, temperature {} {kelvin}, masses {} {mass}, lengths in {length}; energy at time {}\n\
         kinetic temperature at the end {:.3} of the thermostat's{acceptance}\n",
        asked.step,
        asked.friction,
        asked.temperature,
        masses.join(", "),
        summary.time,
        summary.kinetic_temperature,
    ))?;
    let left = &summary.departures;
    let chains = |some: &dyn Fn(&Departure) -> bool| {
        let mut chains: Vec<usize> = left.iter().filter(|d| some(d)).map(|d| d.chain).collect();
        chains.sort_unstable();
        chains.dedup();
        chains.len()
    };
    // A lost chain has nothing left that could be said apart from its energy.
    let told: Vec<&Departure> = left
        .iter()
        .filter(|departure| departure.value.is_finite() || departure.what == "energy")
        .collect();
    for departure in told.iter().take(10) {
        note(&format!("warning: {}", departure.text()));
    }
    let gone = chains(&|_| true);
    if gone > 0 {
        let more = told.len().saturating_sub(10);
        let rest = match more {
            0 => String::new(),
            _ => format!(" ({more} more in the record of --json)"),
        };
        note(&format!(
            "warning: {gone} of {} chains left the data{rest}; their frames are in the result",
            found.chains
        ));
    }
    let lost = chains(&|departure| !departure.farthest.is_finite());
    if lost > 0 {
        note(&format!(
            "warning: {lost} of {} chains were lost for good (NaN); a smaller --step or a larger --time may hold them",
            found.chains
        ));
    }
    Ok(())
}
