//! Molecules from Amber's files: energies and forces of many copies.

use crate::array::{Rows, array};
use crate::error::detached;
use crate::machine::isa;
use diffclf::molecule::{Solvent, SolventModel};
use diffclf_run::molecule::Molecule as RunMolecule;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A molecule and its force field.
#[pyclass(frozen, module = "diffclf._native")]
pub struct Molecule {
    molecule: RunMolecule,
}

/// Energies, and forces.
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pymethods]
impl Molecule {
    #[new]
    fn new(py: Python<'_>, topology: PathBuf, model: &str) -> PyResult<Self> {
        let molecule = detached(py, || {
            let model = SolventModel::by_name(model)?;
            RunMolecule::open_whole(&topology, model)
        })?;
        Ok(Self { molecule })
    }

    /// Coordinates of a file, nm: one row for each set.
    fn coordinates<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let values = detached(py, || self.molecule.coordinates(&path))?;
        let dim = 3 * self.molecule.topology.atoms();
        let rows = values.len() / dim;
        array(py, values, &[rows, dim])
    }

    /// Masses, amu.
    fn masses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let masses = self.molecule.topology.masses.clone();
        let atoms = masses.len();
        array(py, masses, &[atoms])
    }

    /// Names of the atoms.
    fn names(&self) -> Vec<String> {
        self.molecule.topology.names.clone()
    }

    /// Atomic numbers.
    fn elements(&self) -> Vec<u32> {
        self.molecule.topology.elements.clone()
    }

    /// Pairs of bonded atoms.
    fn bonds(&self) -> Vec<[usize; 2]> {
        let bonds = self.molecule.topology.bonds.iter();
        bonds.map(|bond| bond.atoms).collect()
    }

    /// Rows of seven terms (kJ/mol), and forces (kJ/mol/nm) with that factor on the charges inside generalised Born, or in vacuum.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        charge_factor: Option<f64>,
    ) -> PyResult<Pair<'py>> {
        let rows = Rows::of(x)?;
        let solvent = charge_factor.map_or(Solvent::Vacuum, |lambda| Solvent::Implicit { lambda });
        let (terms, forces) = detached(py, || {
            let positions = rows.finite("data")?;
            self.molecule.energies(&positions, solvent, isa())
        })?;
        let (count, dim) = (terms.len(), forces.len() / terms.len().max(1));
        let values = terms.iter().flat_map(|t| {
            [
                t.bonds,
                t.angles,
                t.torsions,
                t.lennard_jones,
                t.coulomb,
                t.polar,
                t.surface,
            ]
        });
        Ok((
            array(py, values.collect(), &[count, 7])?,
            array(py, forces, &[count, dim])?,
        ))
    }
}
