//! Coarse-grained topologies: what each bead is (name, type, mass) and which are bonded, from a `.pdb` structure or given as they are.

use crate::format::trajectory::Trajectory;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Masses of elements, in u (IUPAC 2021, abridged).
const MASSES: [(&str, f64); 8] = [
    ("H", 1.008),
    ("C", 12.011),
    ("N", 14.007),
    ("O", 15.999),
    ("P", 30.974),
    ("S", 32.06),
    ("SE", 78.971),
    ("ZN", 65.38),
];

/// Beads and bonds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Beads {
    /// Name of each bead.
    pub names: Vec<String>,
    /// Type of each bead, a number from 0 on: beads of one type are alike to a network.
    pub types: Vec<usize>,
    /// Mass of each bead, u.
    pub masses: Vec<f64>,
    /// Pairs of bonded beads.
    pub bonds: Vec<[usize; 2]>,
    /// A structure, x, y, z of each bead in nm; empty where there is none.
    pub structure: Vec<f64>,
}

impl Beads {
    /// Beads of a `.pdb` structure, one for each of its atoms. Bonds are those it names; a file without any is one chain in its order. Names are
    /// residue and atom, `TYR:CA`; beads of one name have one type, by the order in which names first appear; masses are those of the elements.
    pub fn of_structure(frames: &Trajectory) -> Result<Beads> {
        if frames.names.len() != frames.atoms || frames.atoms == 0 {
            return Err(Error::Value {
                name: "beads",
                found: format!("{} atoms with {} names", frames.atoms, frames.names.len()),
                expected: "a .pdb file, which names its atoms".into(),
            });
        }
        let mut known: Vec<String> = Vec::new();
        let mut beads = Beads::default();
        for atom in &frames.names {
            let name = format!("{}:{}", atom.residue, atom.name);
            let element = atom.element.to_ascii_uppercase();
            let Some((_, mass)) = MASSES.iter().find(|(symbol, _)| *symbol == element) else {
                return Err(Error::Value {
                    name: "element of a bead",
                    found: format!("'{}' of {name}", atom.element),
                    expected: format!(
                        "one of {}; give masses of other beads in a .toml file",
                        MASSES.map(|(symbol, _)| symbol).join(", ")
                    ),
                });
            };
            let place = known.iter().position(|other| *other == name);
            beads.types.push(place.unwrap_or(known.len()));
            if place.is_none() {
                known.push(name.clone());
            }
            beads.names.push(name);
            beads.masses.push(*mass);
        }
        beads.bonds = match frames.bonds.is_empty() {
            true => (1..frames.atoms).map(|i| [i - 1, i]).collect(),
            false => frames.bonds.iter().map(|(a, b)| [*a, *b]).collect(),
        };
        let first = frames.positions.iter().take(3 * frames.atoms);
        beads.structure = first.map(|x| f64::from(*x)).collect();
        beads.checked()
    }

    /// Number of beads.
    pub fn count(&self) -> usize {
        self.masses.len()
    }

    /// Itself, where its parts fit together: as many names, types and numbers of the structure as masses, positive masses, bonds of different
    /// beads that exist.
    pub fn checked(self) -> Result<Beads> {
        let beads = self.masses.len();
        let lengths = [
            ("names", self.names.len(), beads),
            ("types", self.types.len(), beads),
            ("numbers of the structure", self.structure.len(), 3 * beads),
        ];
        let refused = |found: String, expected: String| {
            Err(Error::Value {
                name: "beads",
                found,
                expected,
            })
        };
        if beads == 0 {
            return refused("none".into(), "masses of at least one".into());
        }
        let optional = |what: &str| what.starts_with("numbers");
        for (what, found, expected) in lengths {
            if found != expected && !(found == 0 && optional(what)) {
                return refused(
                    format!("{found} {what}"),
                    format!("{expected}, for {beads} masses"),
                );
            }
        }
        if let Some(mass) = self.masses.iter().find(|m| !(m.is_finite() && **m > 0.0)) {
            return refused(format!("a mass of {mass}"), "positive finite masses".into());
        }
        if let Some(kind) = self.types.iter().find(|kind| **kind >= beads) {
            return refused(
                format!("a bead of type {kind}"),
                format!("types below {beads}, the number of beads"),
            );
        }
        let wrong = |[a, b]: &&[usize; 2]| a == b || *a.max(b) >= beads;
        if let Some([a, b]) = self.bonds.iter().find(wrong) {
            return refused(
                format!("a bond {a}-{b}"),
                format!("bonds of different beads below {beads}"),
            );
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::trajectory::Kind;

    const STRUCTURE: &str = "\
ATOM      1  CA  TYR A   1      24.935  20.652  10.774  1.00  7.05           C
ATOM      2  N   TYR A   2      21.801  19.381   9.017  1.00  4.77           N
ATOM      3  CA  TYR A   3      18.477  20.539  10.432  1.00  5.27           C
END
";

    #[test]
    fn a_structure_says_what_its_beads_are() {
        let frames = Trajectory::read(Kind::Pdb, STRUCTURE.as_bytes()).unwrap();
        let beads = Beads::of_structure(&frames).unwrap();
        assert_eq!(beads.names, ["TYR:CA", "TYR:N", "TYR:CA"]);
        assert_eq!(beads.types, [0, 1, 0]);
        assert_eq!(beads.masses, [12.011, 14.007, 12.011]);
        assert_eq!(beads.bonds, [[0, 1], [1, 2]]);
        assert!((beads.structure[3] - 2.1801).abs() < 1e-6);
        // Bonds that the file names are the bonds.
        let named = STRUCTURE.replace("END", "CONECT    1    3\nEND");
        let frames = Trajectory::read(Kind::Pdb, named.as_bytes()).unwrap();
        assert_eq!(Beads::of_structure(&frames).unwrap().bonds, [[0, 2]]);
        let strange = STRUCTURE.replace("           N", "          XX");
        let frames = Trajectory::read(Kind::Pdb, strange.as_bytes()).unwrap();
        let message = Beads::of_structure(&frames).unwrap_err().to_string();
        assert!(
            message.contains("XX") && message.contains(".toml"),
            "{message}"
        );
        assert!(Beads::of_structure(&Trajectory::default()).is_err());
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let beads = Beads {
            names: vec!["A".into(), "B".into()],
            types: vec![0, 1],
            masses: vec![12.0, 3.0],
            bonds: vec![[0, 1]],
            structure: Vec::new(),
        };
        assert_eq!(beads.clone().checked().unwrap(), beads);
        let refused = |change: fn(&mut Beads)| {
            let mut beads = beads.clone();
            change(&mut beads);
            beads.checked().unwrap_err().to_string()
        };
        assert!(refused(|b| b.masses.clear()).contains("none"));
        assert!(refused(|b| b.types = vec![0]).contains("1 types"));
        assert!(refused(|b| b.masses[1] = -1.0).contains("-1"));
        assert!(refused(|b| b.types[1] = 2).contains("type 2"));
        assert!(refused(|b| b.bonds[0] = [1, 1]).contains("1-1"));
        assert!(refused(|b| b.structure = vec![0.0; 5]).contains("5 numbers"));
    }
}
