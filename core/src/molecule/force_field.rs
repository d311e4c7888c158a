//! The force field of a molecule in vacuum or implicit solvent: energies and forces of several copies at once, in double precision.

use super::bonded::{self, PreparedAngle, TorsionGroup};
use super::lanes::Lanes;
use super::pairs::{self, BornAtom, PairScratch, Solvated};
use super::solvent::{OFFSET, Solvent, SolventModel};
use super::topology::{Bond, PairTerm, Topology};
use crate::engine::Isa;
use crate::engine::kernel::dispatch::{Loop, dispatch};
use crate::{Error, Result};
use serde::Serialize;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["cornell1995second"];

/// Copies of a molecule that are computed side by side.
pub const COPIES: usize = 8;

/// The largest molecule: all pairs are kept.
const MOST_ATOMS: usize = 4096;

/// The parts of an energy, kJ/mol.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct EnergyTerms {
    /// Bonds.
    pub bonds: f64,
    /// Angles.
    pub angles: f64,
    /// Torsions, improper ones too.
    pub torsions: f64,
    /// Lennard-Jones, 1-4 pairs too.
    pub lennard_jones: f64,
    /// Coulomb, 1-4 pairs too.
    pub coulomb: f64,
    /// Generalised Born at full charges; zero where the force field has no solvent model.
    pub polar: f64,
    /// The surface term; zero where the force field has no solvent model.
    pub surface: f64,
}

impl EnergyTerms {
    /// All but the solvent.
    pub fn vacuum(&self) -> f64 {
        self.bonds + self.angles + self.torsions + self.lennard_jones + self.coulomb
    }

    /// The energy in that solvent.
    pub fn total(&self, solvent: Solvent) -> f64 {
        let (polar, surface) = solvent.factors();
        self.vacuum() + polar * self.polar + surface * self.surface
    }
}

/// A force field, ready to compute.
#[derive(Debug, Clone)]
pub struct ForceField {
    atoms: usize,
    bonds: Vec<Bond>,
    angles: Vec<PreparedAngle>,
    torsions: Vec<TorsionGroup>,
    pairs: Vec<PairTerm>,
    born: Option<(Vec<BornAtom>, SolventModel)>,
}

impl ForceField {
    /// The force field of a topology; with a `model` its copies can be solvated.
    pub fn new(topology: &Topology, model: Option<SolventModel>) -> Result<ForceField> {
        let atoms = topology.atoms();
        if atoms > MOST_ATOMS {
            return Err(Error::Amber {
                what: "topology",
                problem: format!(
                    "it has {atoms} atoms, expected at most {MOST_ATOMS}: every pair of atoms is computed"
                ),
            });
        }
        let born = match model {
            None => None,
            Some(model) => {
                let radii = topology.born()?;
                if let Some(k) = radii
                    .iter()
                    .position(|born| born.radius <= OFFSET || born.screen < 0.0)
                {
                    return Err(Error::Amber {
                        what: "topology",
                        problem: format!(
                            "atom {} has radius {} nm and screening factor {}; implicit solvent needs radii above {OFFSET} nm and \
                             factors that are not negative",
                            k + 1,
                            radii[k].radius,
                            radii[k].screen
                        ),
                    });
                }
                let atoms = radii
                    .iter()
                    .zip(&topology.charges)
                    .map(|(born, charge)| BornAtom::new(*born, *charge));
                Some((atoms.collect(), model))
            }
        };
        Ok(ForceField {
            atoms,
            bonds: topology.bonds.clone(),
            angles: topology.angles.iter().map(PreparedAngle::from).collect(),
            torsions: bonded::group(&topology.torsions),
            pairs: topology.pairs(),
            born,
        })
    }

    /// Number of atoms.
    pub fn atoms(&self) -> usize {
        self.atoms
    }

    /// Whether copies can be solvated.
    pub fn solvates(&self) -> bool {
        self.born.is_some()
    }

    /// Energies and forces (kJ/mol/nm) of copies of the molecule: rows of `3 atoms` coordinates in nm, one solvent for all or one for each.
    pub fn energies_and_forces(
        &self,
        isa: Isa,
        positions: &[f64],
        solvents: &[Solvent],
        energies: &mut [EnergyTerms],
        forces: &mut [f64],
    ) -> Result<()> {
        let dim = 3 * self.atoms;
        let rows = energies.len();
        if positions.len() != rows * dim
            || forces.len() != rows * dim
            || ![1, rows].contains(&solvents.len())
        {
            return Err(Error::Shape {
                what: "the copies of the molecule".into(),
                found: format!(
                    "{} coordinates, {} solvents",
                    positions.len(),
                    solvents.len()
                ),
                expected: format!(
                    "rows of {dim} coordinates, and one solvent for all or one for each"
                ),
            });
        }
        for solvent in solvents {
            solvent.validate()?;
            if *solvent != Solvent::Vacuum && !self.solvates() {
                return Err(Error::Value {
                    name: "solvent",
                    found: "implicit solvent".into(),
                    expected: "vacuum: the force field was made without a solvent model".into(),
                });
            }
        }
        let solvent = |row: usize| solvents[if solvents.len() == 1 { 0 } else { row }];
        let mut done = 0;
        while done < rows {
            // A copy that is alone is computed alone: the same numbers in less time.
            let count = if rows - done == 1 {
                self.block::<1>(isa, done, rows, positions, &solvent, energies, forces)
            } else {
                self.block::<COPIES>(isa, done, rows, positions, &solvent, energies, forces)
            };
            done += count;
        }
        Ok(())
    }

    /// Up to `L` copies from row `first` on; returns how many.
    #[allow(clippy::too_many_arguments)]
    fn block<const L: usize>(
        &self,
        isa: Isa,
        first: usize,
        rows: usize,
        positions: &[f64],
        solvent: &dyn Fn(usize) -> Solvent,
        energies: &mut [EnergyTerms],
        forces: &mut [f64],
    ) -> usize {
        let (dim, count) = (3 * self.atoms, L.min(rows - first));
        let mut copies = Copies::<L>::new(self);
        for lane in 0..L {
            let row = first + lane.min(count - 1);
            copies.place(lane, &positions[row * dim..][..dim]);
            copies.solvate(lane, solvent(row));
        }
        copies.evaluate(isa, self);
        for lane in 0..count {
            let row = first + lane;
            energies[row] = copies.terms(lane);
            for (force, lanes) in forces[row * dim..][..dim].iter_mut().zip(&copies.forces) {
                *force = lanes.0[lane];
            }
        }
        count
    }
}

/// Terms of the energy.
pub(super) const TERMS: usize = 7;

/// `L` copies of a molecule, each in its own solvent.
#[derive(Debug, Clone)]
pub(crate) struct Copies<const L: usize> {
    /// nm, three for each atom.
    pub positions: Vec<Lanes<L>>,
    /// kJ/mol/nm.
    pub forces: Vec<Lanes<L>>,
    polar: Lanes<L>,
    surface: Lanes<L>,
    /// In the order of [`EnergyTerms`].
    terms: [Lanes<L>; TERMS],
    scratch: PairScratch<L>,
}

impl<const L: usize> Copies<L> {
    /// Energies of all copies, term by term.
    pub(super) fn term_lanes(&self) -> &[Lanes<L>] {
        &self.terms
    }

    /// Positions and energies, to be replaced by those of the same copies elsewhere.
    pub(super) fn moved(&mut self) -> (&mut [Lanes<L>], &mut [Lanes<L>]) {
        (&mut self.positions, &mut self.terms)
    }

    pub(crate) fn new(field: &ForceField) -> Self {
        let mut scratch = PairScratch::default();
        if field.solvates() {
            scratch.fit(field.atoms, field.pairs.len());
        }
        Copies {
            positions: vec![Lanes::ZERO; 3 * field.atoms],
            forces: vec![Lanes::ZERO; 3 * field.atoms],
            polar: Lanes::ZERO,
            surface: Lanes::ZERO,
            terms: [Lanes::ZERO; TERMS],
            scratch,
        }
    }

    /// Puts a copy into a lane.
    pub(crate) fn place(&mut self, lane: usize, positions: &[f64]) {
        for (to, from) in self.positions.iter_mut().zip(positions) {
            to.0[lane] = *from;
        }
    }

    /// The solvent of a lane.
    pub(crate) fn solvate(&mut self, lane: usize, solvent: Solvent) {
        (self.polar.0[lane], self.surface.0[lane]) = solvent.factors();
    }

    /// Energies and forces at the positions.
    pub(crate) fn evaluate(&mut self, isa: Isa, field: &ForceField) {
        dispatch(
            isa,
            Evaluate {
                copies: self,
                field,
            },
        );
    }

    /// The energies of a lane.
    pub(crate) fn terms(&self, lane: usize) -> EnergyTerms {
        let [
            bonds,
            angles,
            torsions,
            lennard_jones,
            coulomb,
            polar,
            surface,
        ] = self.terms.map(|term| term.0[lane]);
        EnergyTerms {
            bonds,
            angles,
            torsions,
            lennard_jones,
            coulomb,
            polar,
            surface,
        }
    }
}

struct Evaluate<'a, const L: usize> {
    copies: &'a mut Copies<L>,
    field: &'a ForceField,
}

impl<const L: usize> Loop for Evaluate<'_, L> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Copies {
            positions,
            forces,
            polar,
            surface,
            terms,
            scratch,
        } = self.copies;
        let field = self.field;
        let mut sums = [Lanes::ZERO; 7];
        forces.fill(Lanes::ZERO);
        bonded::bonds::<FMA, L>(&field.bonds, positions, forces, &mut sums[0]);
        bonded::angles::<FMA, L>(&field.angles, positions, forces, &mut sums[1]);
        bonded::torsions::<FMA, L>(&field.torsions, positions, forces, &mut sums[2]);
        let direct = match &field.born {
            None => pairs::vacuum::<FMA, L>(&field.pairs, positions, forces),
            Some((atoms, model)) => {
                let solvated = Solvated {
                    pairs: &field.pairs,
                    atoms,
                    constants: model.constants(),
                    polar: *polar,
                    surface: *surface,
                };
                let (direct, polar, surface) = solvated.run::<FMA>(positions, forces, scratch);
                (sums[5], sums[6]) = (polar, surface);
                direct
            }
        };
        (sums[3], sums[4]) = (direct.lennard_jones, direct.coulomb);
        *terms = sums;
    }
}
