//! `diffclf convert`: frames of atoms from one format to another, with a selection of atoms.

use crate::print::print;
use diffclf::format::npy::write_npy;
use diffclf_run::error::Result;
use diffclf_run::outputs;
use diffclf_run::trajectory::{Conversion, kind_of};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf convert run.xtc --topology protein.pdb --atoms CA -o beads.npy
  diffclf convert run.dcd --atoms 4,6,8,14,16 --every 10 -o beads.npy
  diffclf convert a.xtc b.xtc c.xtc -o all.dcd
  diffclf convert frames.npy --topology beads.pdb -o frames.pdb

Lengths are in nm inside, as in mdtraj: .xtc files are in nm, .dcd and .pdb files in Angstrom and
are converted, arrays (.npy, .npz) are taken to be in nm. Other commands read .xtc, .dcd and .pdb
files directly, with all atoms. .xtc rounds to 0.001 nm beyond nine atoms.";

/// Frames of atoms from one format to another.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Frames of the same atoms: .xtc, .dcd, .pdb, or arrays of (frames, atoms, 3)
    #[arg(value_name = "FRAMES", required = true)]
    inputs: Vec<PathBuf>,
    /// Result: .npy (float32), .xtc, .dcd or .pdb
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// A .pdb file that names the atoms
    #[arg(long, value_name = "FILE.pdb")]
    topology: Option<PathBuf>,
    /// Atoms to keep, in this order: numbers from 0 on, ranges, or names: 4,6,14-16 or CA
    #[arg(long, value_name = "ATOMS")]
    atoms: Option<String>,
    /// Keep every so-manieth frame
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    outputs::plan([args.output.as_path()], args.force)?;
    let conversion = Conversion {
        inputs: args.inputs,
        topology: args.topology,
        atoms: args.atoms,
        every: args.every,
    };
    let found = conversion.run()?;
    let frames = &found.frames;
    outputs::write(&args.output, args.force, |writer| {
        match kind_of(&args.output) {
            Some(kind) => frames.write(kind, 1.0, writer),
            None => write_npy(
                &[frames.frames(), frames.atoms, 3],
                &frames.positions,
                writer,
            ),
        }
    })?;
    let unit = kind_of(&args.output).map_or("nm", |kind| kind.unit());
    print(&format!(
        "{}\n{} written in {unit}\n",
        found.text,
        args.output.display()
    ))
}
