//! `diffclf molecule energy`: energies and forces at given coordinates, term by term.

use super::MoleculeArgs;
use crate::machine::MachineArgs;
use crate::print::print;
use diffclf::format::npy::write_npy;
use diffclf::molecule::{GAS_CONSTANT, Solvent};
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::error::{Error, Result};
use diffclf_run::molecule::{Molecule, name, solvent};
use diffclf_run::outputs;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf molecule energy --topology aldp.prmtop --coordinates aldp.crd --lambda vacuum,0,1
  diffclf molecule energy --topology aldp.prmtop --coordinates frames.npy --lambda 1 \\
      --forces forces.npy

Prints the terms at the first set of coordinates; polar is the energy of generalised Born at full
charges, of which lambda^2 counts.";

/// Energies and forces at given coordinates.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    molecule: MoleculeArgs,
    /// Solvents: factors lambda on the charges inside generalised Born, or 'vacuum'
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", value_parser = solvent)]
    lambda: Vec<Solvent>,
    /// Write the energies (rows by solvents) to this .npy file: kJ/mol, or kT with --temperature
    #[arg(long, value_name = "OUT.npy")]
    energies: Option<PathBuf>,
    /// Energies of the file in kT of so many K: what free-energy commands take
    #[arg(long, value_name = "K", requires = "energies")]
    temperature: Option<f64>,
    /// Write the forces in the last solvent (kJ/mol/nm) to this .npy file
    #[arg(long, value_name = "OUT.npy")]
    forces: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    if let Some(temperature) = args.temperature.filter(|t| !(*t > 0.0 && t.is_finite())) {
        return Err(Error::setting(
            "temperature",
            temperature,
            "a positive number of kelvins",
        ));
    }
    let results = [&args.energies, &args.forces].into_iter().flatten();
    outputs::plan(results.map(PathBuf::as_path), args.force)?;
    let molecule = Molecule::open(&args.molecule.topology, args.molecule.model, &args.lambda)?;
    let positions = molecule.coordinates(&args.molecule.coordinates)?;
    let last = args.lambda[args.lambda.len() - 1];
    let (terms, forces) = molecule.energies(&positions, last, args.machine.isa()?)?;
    let first = terms[0];
    let mut rows = Vec::new();
    for (name, value) in [
        ("bonds", first.bonds),
        ("angles", first.angles),
        ("torsions", first.torsions),
        ("Lennard-Jones", first.lennard_jones),
        ("Coulomb", first.coulomb),
        ("polar", first.polar),
        ("surface", first.surface),
    ] {
        rows.push(vec![name.into(), format!("{value:.6}")]);
    }
    for solvent in &args.lambda {
        rows.push(vec![
            format!("total, {}", name(*solvent)),
            format!("{:.6}", first.total(*solvent)),
        ]);
    }
    let table = Table {
        caption: "energies".into(),
        header: ["term", "kJ/mol"].map(String::from).to_vec(),
        rows,
    };
    print(&table_text(&table))?;
    if let Some(path) = &args.energies {
        let unit = args
            .temperature
            .map_or(1.0, |temperature| GAS_CONSTANT * temperature);
        let values: Vec<f64> = terms
            .iter()
            .flat_map(|terms| {
                args.lambda
                    .iter()
                    .map(|solvent| terms.total(*solvent) / unit)
            })
            .collect();
        outputs::write(path, args.force, |writer| {
            write_npy(&[terms.len(), args.lambda.len()], &values, writer)
        })?;
    }
    if let Some(path) = &args.forces {
        let shape = [terms.len(), forces.len() / terms.len()];
        outputs::write(path, args.force, |writer| {
            write_npy(&shape, &forces, writer)
        })?;
    }
    Ok(())
}
