//! `diffclf molecule`: real molecules, their energies and their dynamics; each thing to do is a file of its own.

mod energy;
mod sample;

use diffclf::molecule::SolventModel;
use diffclf_run::error::Result;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf molecule energy --topology aldp.prmtop --coordinates aldp.crd
  diffclf molecule sample --topology aldp.prmtop --coordinates aldp.crd --lambda 0,1 \\
      --frames 10000 -o runs/aldp

Topologies are Amber's .prmtop (.parm7) without periodic box, coordinates Amber's .crd, .inpcrd or
.rst7 in text, or rows of a .npy file in nm. Energies are kJ/mol, lengths nm, times ps, free
energies kT.";

/// Real molecules: energies, dynamics with replica exchange.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Energy(energy::Args),
    Sample(Box<sample::Args>),
}

/// Which molecule.
#[derive(Debug, clap::Args)]
struct MoleculeArgs {
    /// Amber topology (.prmtop, .parm7)
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    /// Coordinates: Amber's .crd, .inpcrd or .rst7, or rows of a .npy file in nm
    #[arg(long, value_name = "FILE")]
    coordinates: PathBuf,
    /// Radii of the implicit solvent: obc1 or obc2
    #[arg(long, value_name = "NAME", default_value = "obc1", value_parser = model)]
    model: SolventModel,
}

fn model(text: &str) -> std::result::Result<SolventModel, String> {
    SolventModel::by_name(text).map_err(|error| error.to_string())
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Energy(args) => energy::run(args),
        Command::Sample(args) => sample::run(*args),
    }
}
