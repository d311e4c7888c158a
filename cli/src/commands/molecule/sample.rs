//! `diffclf molecule sample`: Langevin dynamics with replica exchange over temperature and solvent.

use super::MoleculeArgs;
use crate::machine::MachineArgs;
use crate::print::print;
use crate::terminal::Terminal;
use diffclf::molecule::{ReplicaSettings, Solvent};
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::error::Result;
use diffclf_run::molecule::{Molecule, Sampled, Sampling, name, solvent};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  diffclf molecule sample --topology aldp.prmtop --coordinates aldp.crd --lambda 0,1 \\
      --temperatures 300,360,430,515,620,740,890,1070 --frames 10000 -o runs/aldp
  diffclf molecule sample --topology aldp.prmtop --coordinates aldp.crd --lambda vacuum \\
      --frames 1000 -o runs/vacuum

A ladder has one copy of the molecule at every temperature in every solvent; neighbours swap their
states every --moves steps. Each frame writes the coordinates of the coldest copies
(frames-lambda-0.npy and so on: nm, centred, float32), and of all copies the energies (energies.npy:
vacuum, polar, surface in kJ/mol, so that U = vacuum + surface + lambda^2 polar) and the angles phi
and psi (angles.npy). record.json tells of swaps, round trips, weights of phi > 0 and free energies
log(Z_to/Z_from) between the solvents by MBAR over all states, with errors.

lambda multiplies the charges inside generalised Born and no others: at 0 the surface term is still
there; 'vacuum' has neither. Stopped runs go on with --resume, to the same bytes; results do not
depend on the number of threads.";

/// Frames of a molecule by Langevin dynamics with replica exchange.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    molecule: MoleculeArgs,
    /// Folder for the results
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Frames of each solvent at the lowest temperature
    #[arg(long, value_name = "N")]
    frames: usize,
    /// Solvents: factors lambda on the charges inside generalised Born, or 'vacuum'
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", value_parser = solvent)]
    lambda: Vec<Solvent>,
    /// Temperatures in K, rising; the frames are those of the first
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "300"
    )]
    temperatures: Vec<f64>,
    /// Ladders side by side
    #[arg(long, value_name = "N", default_value_t = 1)]
    ladders: usize,
    /// Time step in ps
    #[arg(long, value_name = "PS", default_value_t = 0.001)]
    step: f64,
    /// Friction in 1/ps
    #[arg(long, value_name = "RATE", default_value_t = 1.0)]
    friction: f64,
    /// Steps from one swap to the next
    #[arg(long, value_name = "N", default_value_t = 100)]
    moves: u64,
    /// Swaps from one frame to the next
    #[arg(long, value_name = "N", default_value_t = 10)]
    every: u64,
    /// Swaps before the first frame
    #[arg(long, value_name = "N", default_value_t = 1000)]
    warm_up: u64,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Seconds between checkpoints
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    checkpoint_every: u64,
    /// Go on with the run in the folder
    #[arg(long)]
    resume: bool,
    /// Replace what is there
    #[arg(long, conflicts_with = "resume")]
    force: bool,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let molecule = Molecule::open(&args.molecule.topology, args.molecule.model, &args.lambda)?;
    let starts = molecule.coordinates(&args.molecule.coordinates)?;
    let sampling = Sampling {
        replicas: ReplicaSettings {
            temperatures: args.temperatures,
            solvents: args.lambda,
            ladders: args.ladders,
            step: args.step,
            friction: args.friction,
            moves: args.moves,
            seed: args.seed,
        },
        frames: args.frames,
        every: args.every,
        warm_up: args.warm_up,
        checkpoint_every: Duration::from_secs(args.checkpoint_every),
        resume: args.resume,
        force: args.force,
    };
    let (pool, isa) = (args.machine.pool()?, args.machine.isa()?);
    let watch = Terminal::interruptible(args.quiet)?;
    let found = sampling.run(&molecule, &starts, &args.output, &pool, isa, &watch)?;
    print(&tables(&found))
}

fn tables(found: &Sampled) -> String {
    let mut text = String::new();
    let steps = found.nanoseconds * 1e3 / found.settings.step;
    text.push_str(&format!(
        "{} frames of each solvent, {} ps apart; {:.1} ns over all copies in {:.0} s ({:.0} steps a second)\n",
        found.frames,
        found.interval,
        found.nanoseconds,
        found.seconds,
        steps / found.seconds
    ));
    text.push_str(&format!(
        "round trips: {} over the temperatures, {} over the solvents\n\n",
        found.temperature_round_trips, found.solvent_round_trips
    ));
    if !found.swaps.is_empty() {
        let mut rows = Vec::new();
        let state = |k: usize| {
            format!(
                "{} K {}",
                found.states[k].temperature,
                name(found.states[k].solvent)
            )
        };
        for swap in &found.swaps {
            let share = swap.taken as f64 / swap.tried as f64;
            rows.push(vec![
                state(swap.states[0]),
                state(swap.states[1]),
                format!("{share:.3}"),
            ]);
        }
        text.push_str(&table("swaps", &["swap", "and", "taken"], rows));
        text.push('\n');
    }
    let findings = match (&found.findings, &found.problem) {
        (Some(findings), _) => findings,
        (None, problem) => {
            let problem = problem.as_deref().unwrap_or_default();
            text.push_str(&format!("no free energies: {problem}\n"));
            return text;
        }
    };
    text.push_str(&format!(
        "inefficiency {:.1} frames\n\n",
        findings.inefficiency
    ));
    if !findings.basins.is_empty() {
        let mut rows = Vec::new();
        for basin in &findings.basins {
            let number = |x: f64| format!("{x:.5}");
            rows.push(vec![
                name(basin.solvent),
                number(basin.direct.mean),
                number(basin.direct.error),
                number(basin.reweighted.mean),
                number(basin.reweighted.error),
                basin.changes.to_string(),
            ]);
        }
        text.push_str(&table(
            "basins",
            &[
                "phi > 0",
                "share of frames",
                "error",
                "by MBAR",
                "error",
                "changes",
            ],
            rows,
        ));
        text.push('\n');
    }
    if !findings.differences.is_empty() {
        let mut rows = Vec::new();
        for found in &findings.differences {
            rows.push(vec![
                name(found.from),
                name(found.to),
                format!("{:.3}", found.delta.mean),
                format!("{:.3}", found.delta.error),
                format!("{:.3}", found.mbar_error),
                if found.simulated {
                    "simulation"
                } else {
                    "reweighting"
                }
                .into(),
            ]);
        }
        text.push_str(&table(
            "free energies",
            &[
                "from",
                "to",
                "log(Z_to/Z_from), kT",
                "error",
                "MBAR's error",
                "reached by",
            ],
            rows,
        ));
    }
    text
}

fn table(caption: &str, header: &[&str], rows: Vec<Vec<String>>) -> String {
    table_text(&Table {
        caption: caption.into(),
        header: header.iter().map(|name| name.to_string()).collect(),
        rows,
    })
}
