//! What a molecule is made of: atoms, bonded terms, pairs that are excluded or scaled, radii for implicit solvent.

use crate::{Error, Result};
use serde::Serialize;

/// `force (r - length)^2`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bond {
    /// The two atoms.
    pub atoms: [usize; 2],
    /// kJ/mol/nm^2.
    pub force: f64,
    /// nm.
    pub length: f64,
}

/// `force (theta - angle)^2`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Angle {
    /// The three atoms, the vertex in the middle.
    pub atoms: [usize; 3],
    /// kJ/mol/rad^2.
    pub force: f64,
    /// rad, from 0 to pi.
    pub angle: f64,
}

/// `force (1 + cos(periodicity phi - phase))`, proper or improper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Torsion {
    /// The four atoms; phi is the dihedral angle between the planes of the first three and the last three.
    pub atoms: [usize; 4],
    /// kJ/mol.
    pub force: f64,
    /// How often the term repeats in a turn.
    pub periodicity: u32,
    /// rad.
    pub phase: f64,
}

/// What generalised Born needs of an atom.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BornRadius {
    /// Intrinsic radius, nm.
    pub radius: f64,
    /// Factor on the radius where the atom screens others.
    pub screen: f64,
}

/// A pair of atoms that interact otherwise than by their charges and types: `charge / r + repulsion / r^12 - attraction / r^6`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairTerm {
    /// The two atoms, the smaller number first.
    pub atoms: [usize; 2],
    /// Product of the charges, scaled; e^2.
    pub charge: f64,
    /// kJ/mol nm^12.
    pub repulsion: f64,
    /// kJ/mol nm^6.
    pub attraction: f64,
}

/// A molecule without periodic box. [`Topology::from_prmtop`] makes one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topology {
    /// Names of the atoms, as in the file.
    pub names: Vec<String>,
    /// Atomic numbers, 0 where unknown.
    pub elements: Vec<u32>,
    /// amu.
    pub masses: Vec<f64>,
    /// Elementary charges.
    pub charges: Vec<f64>,
    /// Bonds.
    pub bonds: Vec<Bond>,
    /// Angles.
    pub angles: Vec<Angle>,
    /// Torsions, improper ones too.
    pub torsions: Vec<Torsion>,
    /// Type of each atom, a row and column of the Lennard-Jones table.
    pub types: Vec<usize>,
    /// Number of types.
    pub type_count: usize,
    /// `(repulsion, attraction)` of two types, row after row.
    pub lennard_jones: Vec<(f64, f64)>,
    /// Pairs with an interaction of their own: none (excluded), or scaled (1-4). Sorted, each pair once.
    pub exceptions: Vec<PairTerm>,
    /// Radii for implicit solvent, if the file has them.
    pub born: Option<Vec<BornRadius>>,
}

/// kJ/mol/nm times e^-2: Coulomb's constant (CODATA 2018).
pub(super) const COULOMB: f64 = 138.935_457_644_382;

impl Topology {
    /// Number of atoms.
    pub fn atoms(&self) -> usize {
        self.masses.len()
    }

    /// Every pair of atoms, `(0, 1), (0, 2), ..., (1, 2), ...`, with what it interacts by: the charges in kJ/mol nm.
    pub fn pairs(&self) -> Vec<PairTerm> {
        let n = self.atoms();
        let mut pairs = Vec::with_capacity(n * n.saturating_sub(1) / 2);
        let mut exceptions = self.exceptions.iter().peekable();
        for i in 0..n {
            for j in i + 1..n {
                let term = match exceptions.next_if(|term| term.atoms == [i, j]) {
                    Some(term) => *term,
                    None => {
                        let at = self.types[i] * self.type_count + self.types[j];
                        let (repulsion, attraction) = self.lennard_jones[at];
                        PairTerm {
                            atoms: [i, j],
                            charge: self.charges[i] * self.charges[j],
                            repulsion,
                            attraction,
                        }
                    }
                };
                pairs.push(PairTerm {
                    charge: COULOMB * term.charge,
                    ..term
                });
            }
        }
        pairs
    }

    /// The dihedral angle of four atoms in (-pi, pi], by the sign convention of IUPAC: trans is pi.
    pub fn dihedral(positions: &[f64], atoms: [usize; 4]) -> f64 {
        let at = |k: usize, axis: usize| positions[3 * atoms[k] + axis];
        let between = |a: usize, b: usize| -> [f64; 3] {
            std::array::from_fn(|axis| at(a, axis) - at(b, axis))
        };
        let (ij, kj, kl) = (between(0, 1), between(2, 1), between(2, 3));
        let (m, n) = (cross(ij, kj), cross(kj, kl));
        let sine = dot(ij, n) * dot(kj, kj).sqrt();
        sine.atan2(dot(m, n))
    }

    /// The backbone angles phi (C-N-CA-C) and psi (N-CA-C-N) of the first residue that has both, by the names of its atoms and their
    /// bonds.
    pub fn backbone(&self) -> Option<([usize; 4], [usize; 4])> {
        let bonded = |a: usize, b: usize| {
            let found = |bond: &Bond| bond.atoms == [a, b] || bond.atoms == [b, a];
            self.bonds.iter().any(found)
        };
        let neighbours = |of: usize, name: &str| -> Vec<usize> {
            let named = |&k: &usize| self.names[k].trim() == name && bonded(of, k);
            (0..self.atoms()).filter(named).collect()
        };
        for ca in (0..self.atoms()).filter(|&k| self.names[k].trim() == "CA") {
            let (nitrogen, carbon) = (neighbours(ca, "N"), neighbours(ca, "C"));
            let (Some(&n), Some(&c)) = (nitrogen.first(), carbon.first()) else {
                continue;
            };
            let (before, after) = (neighbours(n, "C"), neighbours(c, "N"));
            if let (Some(&before), Some(&after)) = (before.first(), after.first()) {
                return Some(([before, n, ca, c], [n, ca, c, after]));
            }
        }
        None
    }

    /// Radii for implicit solvent, or the error that says what is missing.
    pub(super) fn born(&self) -> Result<&[BornRadius]> {
        self.born.as_deref().ok_or_else(|| Error::Amber {
            what: "topology",
            problem: "implicit solvent needs the sections RADII and SCREEN, which it does not have; write it with \
                      LEaP's 'set default PBRadii mbondi2', or take vacuum"
                .into(),
        })
    }
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
