//! Molecules from files: their energies, their dynamics in a folder of its own, and what free energies follow from it.

mod analysis;
mod folder;
mod sampling;
mod truth;

pub use analysis::{Basin, Difference, Findings};
pub use sampling::{Sampled, Sampling};
pub use truth::MoleculeChoice;

use crate::error::{Error, Result};
use crate::files::{MappedNpy, read_bytes};
use diffclf::engine::Isa;
use diffclf::format::sha256_hex;
use diffclf::molecule::{
    EnergyTerms, ForceField, Solvent, SolventModel, Topology, read_coordinates,
};
use std::path::Path;

/// A molecule and its force field.
pub struct Molecule {
    /// What it is made of.
    pub topology: Topology,
    /// Its energies.
    pub field: ForceField,
    /// Digest of the topology's file.
    pub digest: String,
}

impl Molecule {
    /// Reads a `.prmtop` file. Where no solvent is asked for the force field has none and is faster.
    pub fn open(path: &Path, model: SolventModel, solvents: &[Solvent]) -> Result<Self> {
        let wet = solvents.iter().any(|solvent| *solvent != Solvent::Vacuum);
        Self::read(path, |_| wet.then_some(model))
    }

    /// Reads a `.prmtop` file for every solvent that it can be put into.
    pub fn open_whole(path: &Path, model: SolventModel) -> Result<Self> {
        Self::read(path, |topology| topology.born.as_ref().map(|_| model))
    }

    fn read(path: &Path, model: impl Fn(&Topology) -> Option<SolventModel>) -> Result<Self> {
        let bytes = read_bytes(path)?;
        let about = |source| Error::about(path, source);
        let topology = Topology::from_prmtop(&bytes).map_err(about)?;
        let field = ForceField::new(&topology, model(&topology)).map_err(about)?;
        Ok(Molecule {
            topology,
            field,
            digest: sha256_hex(&bytes),
        })
    }

    /// Coordinates in nm, row after row: an Amber file with one set (in Angstrom), or rows of a `.npy` file in nm.
    pub fn coordinates(&self, path: &Path) -> Result<Vec<f64>> {
        let dim = 3 * self.topology.atoms();
        let array = path
            .extension()
            .is_some_and(|end| end == "npy" || end == "npz");
        let values = if array {
            let file = MappedNpy::open(path)?;
            let view = file.view()?;
            if view.dim() != dim {
                return Err(self.other_atoms(path, view.dim()));
            }
            view.to_vec_f64()
        } else {
            let values = read_coordinates(&read_bytes(path)?)
                .map_err(|source| Error::about(path, source))?;
            if values.len() != dim {
                return Err(self.other_atoms(path, values.len()));
            }
            values
        };
        Ok(values)
    }

    fn other_atoms(&self, path: &Path, found: usize) -> Error {
        let source = diffclf::Error::Amber {
            what: "coordinate file",
            problem: format!(
                "a set has {found} coordinates, expected {} for the topology's {} atoms",
                3 * self.topology.atoms(),
                self.topology.atoms()
            ),
        };
        Error::about(path, source)
    }

    /// Energies (kJ/mol) and forces (kJ/mol/nm) at rows of coordinates.
    pub fn energies(
        &self,
        positions: &[f64],
        solvent: Solvent,
        isa: Isa,
    ) -> Result<(Vec<EnergyTerms>, Vec<f64>)> {
        let rows = positions.len() / (3 * self.topology.atoms());
        let (mut terms, mut forces) = (
            vec![EnergyTerms::default(); rows],
            vec![0.0; positions.len()],
        );
        self.field
            .energies_and_forces(isa, positions, &[solvent], &mut terms, &mut forces)?;
        Ok((terms, forces))
    }
}

/// A solvent as it is written: a number is lambda, `vacuum` is none.
pub fn solvent(text: &str) -> std::result::Result<Solvent, String> {
    if text == "vacuum" {
        return Ok(Solvent::Vacuum);
    }
    let wrong = |_| format!("'{text}' is no solvent: give lambda from 0 to 1, or 'vacuum'");
    let solvent = Solvent::Implicit {
        lambda: text.parse().map_err(wrong)?,
    };
    solvent.validate().map_err(|error| error.to_string())?;
    Ok(solvent)
}

/// The name of a solvent in the names of files and in tables.
pub fn name(solvent: Solvent) -> String {
    match solvent {
        Solvent::Vacuum => "vacuum".into(),
        Solvent::Implicit { lambda } => format!("lambda-{lambda}"),
    }
}
