//! Real molecules: topologies and coordinates in Amber's formats, a force field with implicit solvent, and its dynamics.
//!
//! Units are those of OpenMM: nm, ps, amu, kJ/mol, elementary charges. Energies in kT appear where a temperature is given.
//!
//! * [`Topology`]: what a `.prmtop` file says, checked; [`read_coordinates`]: `.crd`, `.inpcrd` and `.rst7`;
//! * [`ForceField`]: bonds, angles, torsions, Lennard-Jones and Coulomb with exclusions, generalised Born with surface term;
//!   energies and forces of several copies of the molecule side by side in the lanes of a register;
//! * [`Replicas`]: Langevin dynamics of many copies with exchange over temperature and solvent, exactly resumable;
//! * [`Beads`]: coarse-grained topologies; [`GoModel`]: structure-based models of chains of beads, test molecules with a known energy;
//! * [`SolvatedEnergy`]: the force field as an [`Energy`](crate::energy::Energy) in kT, for samplers and objectives.

mod beads;
mod bonded;
mod coordinates;
mod force_field;
mod go_model;
mod lanes;
mod langevin;
mod pairs;
mod prmtop;
mod replicas;
mod solvated_energy;
mod solvent;
#[cfg(test)]
mod tests;
mod topology;

pub use beads::Beads;
pub use coordinates::read_coordinates;
pub use force_field::{COPIES, EnergyTerms, ForceField};
pub use go_model::{GoModel, GoSettings};
pub use replicas::{ReplicaSettings, ReplicaState, Replicas, SwapCount, ThermoState};
pub use solvated_energy::SolvatedEnergy;
pub use solvent::{Solvent, SolventModel};
pub use topology::{Angle, Bond, BornRadius, PairTerm, Topology, Torsion};

/// Whom the methods of this folder cite, by file.
pub const CITES: crate::citation::Table =
    crate::citation::cited![force_field, go_model, langevin, replicas, solvent,];

/// The gas constant in kJ/mol/K: kT of one mole at temperature T is `GAS_CONSTANT * T`.
pub const GAS_CONSTANT: f64 = 8.314_462_618_153_24e-3;
