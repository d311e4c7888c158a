//! Amber topology files (`.prmtop`, `.parm7`): sections of fixed-width columns, `%FLAG NAME`, `%FORMAT(5E16.8)`, numbers.
//!
//! What the file says of its own sizes is compared with what it holds before anything is made of it. Terms that this force field does not
//! have (periodic boxes, 10-12 potentials, CHARMM's terms, polarisation, virtual sites) are errors: left out in silence they would make
//! another molecule.

use super::topology::{Angle, Bond, BornRadius, PairTerm, Topology, Torsion};
use crate::Result;
use sections::{Sections, expect, wrong};
use std::collections::BTreeMap;

mod sections;

/// kJ in a kcal.
const CALORIE: f64 = 4.184;
/// Amber's charges are in units in which Coulomb's constant is one, kcal/mol and Angstrom.
const CHARGE_UNIT: f64 = 18.2223;
/// The largest periodicity of a torsion.
const MOST_PERIODS: f64 = 12.0;

/// Sections whose terms would change the energy and are not known here.
const UNKNOWN_TERMS: [(&str, &str); 8] = [
    ("CTITLE", "CHARMM force fields (chamber)"),
    ("FORCE_FIELD_TYPE", "CHARMM force fields (chamber)"),
    ("CHARMM_UREY_BRADLEY_COUNT", "Urey-Bradley terms"),
    ("CHARMM_NUM_IMPROPERS", "CHARMM's impropers"),
    ("CMAP_COUNT", "CMAP corrections"),
    ("CHARMM_CMAP_COUNT", "CMAP corrections"),
    ("LENNARD_JONES_CCOEF", "12-6-4 potentials"),
    ("BOX_DIMENSIONS", "periodic boxes"),
];

/// The counts of the section POINTERS that are used.
struct Counts {
    atoms: usize,
    types: usize,
    bonds: [usize; 2],
    angles: [usize; 2],
    torsions: [usize; 2],
    excluded: usize,
    bond_types: usize,
    angle_types: usize,
    torsion_types: usize,
}

impl Counts {
    fn read(sections: &Sections<'_>) -> Result<Self> {
        let name = "POINTERS";
        let found = sections.fields(name)?.count();
        if found < 30 {
            return Err(wrong(format!(
                "section {name} holds {found} numbers, expected at least 30"
            )));
        }
        let numbers = sections.numbers::<u32>(name, found)?;
        let at = |k: usize| numbers[k] as usize;
        for (k, what) in [
            (20, "perturbations (IFPERT)"),
            (27, "periodic boxes (IFBOX)"),
            (29, "water caps (IFCAP)"),
            (30, "extra points (NUMEXTRA)"),
        ] {
            if numbers.get(k).is_some_and(|n| *n != 0) {
                return Err(wrong(format!(
                    "it has {what}, which this force field does not know; strip the solvent and write a topology without them"
                )));
            }
        }
        if at(0) == 0 {
            return Err(wrong("it has no atoms"));
        }
        Ok(Counts {
            atoms: at(0),
            types: at(1),
            bonds: [at(2), at(3)],
            angles: [at(4), at(5)],
            torsions: [at(6), at(7)],
            excluded: at(10),
            bond_types: at(15),
            angle_types: at(16),
            torsion_types: at(17),
        })
    }
}

/// An index that Amber counts from 1.
fn index(name: &str, from_one: i64, count: usize) -> Result<usize> {
    match usize::try_from(from_one) {
        Ok(k) if (1..=count).contains(&k) => Ok(k - 1),
        _ => Err(wrong(format!(
            "section {name} refers to entry {from_one} of {count}"
        ))),
    }
}

/// An atom, which Amber writes as three times its number.
fn atom(name: &str, pointer: i64, atoms: usize) -> Result<usize> {
    match usize::try_from(pointer) {
        Ok(k) if k % 3 == 0 && k / 3 < atoms => Ok(k / 3),
        _ => Err(wrong(format!(
            "section {name} refers to the atom pointer {pointer}; expected three times a number below {atoms}"
        ))),
    }
}

/// The rows of the two sections that list bonds, angles or torsions: `width` pointers, then the number of the type.
fn rows<const W: usize>(
    sections: &Sections<'_>,
    stem: &str,
    counts: [usize; 2],
) -> Result<Vec<(String, [i64; W])>> {
    let mut rows = Vec::new();
    for (end, count) in ["INC_HYDROGEN", "WITHOUT_HYDROGEN"].into_iter().zip(counts) {
        let name = format!("{stem}_{end}");
        let numbers = sections.numbers::<i64>(&name, W.saturating_mul(count))?;
        for row in numbers.chunks_exact(W) {
            let mut values = [0; W];
            values.copy_from_slice(row);
            rows.push((name.clone(), values));
        }
    }
    Ok(rows)
}

fn distinct(name: &str, atoms: &[usize]) -> Result<()> {
    let twice = |k: usize| atoms[..k].contains(&atoms[k]);
    match (1..atoms.len()).find(|&k| twice(k)) {
        Some(k) => Err(wrong(format!(
            "section {name} has a term with atom {} twice",
            atoms[k] + 1
        ))),
        None => Ok(()),
    }
}

impl Topology {
    /// Reads a `.prmtop` file.
    pub fn from_prmtop(bytes: &[u8]) -> Result<Topology> {
        let sections = Sections::parse(bytes)?;
        for (name, what) in UNKNOWN_TERMS {
            if sections.0.contains_key(name) {
                return Err(wrong(format!(
                    "it has {what} (section {name}), which this force field does not know"
                )));
            }
        }
        if sections.0.contains_key("IPOL") && sections.numbers::<i64>("IPOL", 1)?[0] != 0 {
            return Err(wrong(
                "it is polarisable (IPOL), which this force field does not know",
            ));
        }
        let counts = Counts::read(&sections)?;
        let masses = sections.reals("MASS", counts.atoms)?;
        if let Some(k) = masses.iter().position(|m| *m <= 0.0) {
            return Err(wrong(format!(
                "atom {} has mass {}, expected a positive number",
                k + 1,
                masses[k]
            )));
        }
        let charges = sections.reals("CHARGE", counts.atoms)?;
        let LennardJones { types, pairs } = lennard_jones(&sections, &counts)?;
        let mut topology = Topology {
            names: names(&sections, counts.atoms)?,
            elements: elements(&sections, &masses)?,
            charges: charges.iter().map(|q| q / CHARGE_UNIT).collect(),
            masses,
            bonds: bonds(&sections, &counts)?,
            angles: angles(&sections, &counts)?,
            torsions: Vec::new(),
            types,
            type_count: counts.types,
            lennard_jones: pairs,
            exceptions: Vec::new(),
            born: born(&sections, counts.atoms)?,
        };
        let mut exceptions = excluded(&sections, &counts)?;
        torsions(&sections, &counts, &mut topology, &mut exceptions)?;
        topology.exceptions = exceptions.into_values().collect();
        Ok(topology)
    }
}

fn names(sections: &Sections<'_>, atoms: usize) -> Result<Vec<String>> {
    let section = sections.get("ATOM_NAME")?;
    let fields = section
        .lines
        .iter()
        .flat_map(|line| line.chunks(section.width));
    let names: Vec<String> = fields
        .take(atoms)
        .map(|field| String::from_utf8_lossy(field.trim_ascii()).into_owned())
        .collect();
    expect("ATOM_NAME", names.len(), atoms)?;
    Ok(names)
}

/// Atomic numbers where the file has them, else those of the elements of organic molecules by their masses.
fn elements(sections: &Sections<'_>, masses: &[f64]) -> Result<Vec<u32>> {
    const KNOWN: [(f64, u32); 9] = [
        (1.008, 1),
        (12.011, 6),
        (14.007, 7),
        (15.999, 8),
        (18.998, 9),
        (30.974, 15),
        (32.06, 16),
        (35.45, 17),
        (79.904, 35),
    ];
    if sections.0.contains_key("ATOMIC_NUMBER") {
        let numbers = sections.numbers::<i64>("ATOMIC_NUMBER", masses.len())?;
        return Ok(numbers
            .iter()
            .map(|z| u32::try_from(*z).unwrap_or(0))
            .collect());
    }
    let of = |mass: &f64| {
        KNOWN
            .iter()
            .find(|(known, _)| (known - mass).abs() < 0.1)
            .map_or(0, |(_, z)| *z)
    };
    Ok(masses.iter().map(of).collect())
}

/// Types of the atoms, and the coefficients of every two types.
struct LennardJones {
    types: Vec<usize>,
    pairs: Vec<(f64, f64)>,
}

fn lennard_jones(sections: &Sections<'_>, counts: &Counts) -> Result<LennardJones> {
    let name = "ATOM_TYPE_INDEX";
    let raw = sections.numbers::<i64>(name, counts.atoms)?;
    let types = raw
        .iter()
        .map(|k| index(name, *k, counts.types))
        .collect::<Result<Vec<_>>>()?;
    let square = counts.types.saturating_mul(counts.types);
    let entries = counts.types.saturating_mul(counts.types.saturating_add(1)) / 2;
    let table = sections.numbers::<i64>("NONBONDED_PARM_INDEX", square)?;
    let a = sections.reals("LENNARD_JONES_ACOEF", entries)?;
    let b = sections.reals("LENNARD_JONES_BCOEF", entries)?;
    let mut pairs = Vec::with_capacity(table.len());
    for &k in &table {
        if k < 0 {
            // A 10-12 potential: all of them are zero in today's force fields.
            for name in ["HBOND_ACOEF", "HBOND_BCOEF"] {
                let count = sections.fields(name)?.count();
                if sections.reals(name, count)?.iter().any(|x| *x != 0.0) {
                    return Err(wrong(
                        "it has 10-12 potentials (HBOND_ACOEF), which this force field does not know",
                    ));
                }
            }
            pairs.push((0.0, 0.0));
            continue;
        }
        let k = index("NONBONDED_PARM_INDEX", k, entries)?;
        // kcal Angstrom^12 to kJ nm^12, and likewise.
        pairs.push((a[k] * CALORIE * 1e-12, b[k] * CALORIE * 1e-6));
    }
    Ok(LennardJones { types, pairs })
}

fn bonds(sections: &Sections<'_>, counts: &Counts) -> Result<Vec<Bond>> {
    let force = sections.reals("BOND_FORCE_CONSTANT", counts.bond_types)?;
    let length = sections.reals("BOND_EQUIL_VALUE", counts.bond_types)?;
    let mut bonds = Vec::new();
    for (name, [i, j, kind]) in rows::<3>(sections, "BONDS", counts.bonds)? {
        let atoms = [atom(&name, i, counts.atoms)?, atom(&name, j, counts.atoms)?];
        distinct(&name, &atoms)?;
        let kind = index(&name, kind, counts.bond_types)?;
        bonds.push(Bond {
            atoms,
            force: force[kind] * CALORIE * 100.0,
            length: length[kind] * 0.1,
        });
    }
    Ok(bonds)
}

fn angles(sections: &Sections<'_>, counts: &Counts) -> Result<Vec<Angle>> {
    let force = sections.reals("ANGLE_FORCE_CONSTANT", counts.angle_types)?;
    let rest = sections.reals("ANGLE_EQUIL_VALUE", counts.angle_types)?;
    if let Some(angle) = rest
        .iter()
        .find(|a| !(0.0..=std::f64::consts::PI + 1e-4).contains(*a))
    {
        return Err(wrong(format!(
            "section ANGLE_EQUIL_VALUE holds {angle}; expected angles from 0 to pi"
        )));
    }
    let mut angles = Vec::new();
    for (name, [i, j, k, kind]) in rows::<4>(sections, "ANGLES", counts.angles)? {
        let atoms = [
            atom(&name, i, counts.atoms)?,
            atom(&name, j, counts.atoms)?,
            atom(&name, k, counts.atoms)?,
        ];
        distinct(&name, &atoms)?;
        let kind = index(&name, kind, counts.angle_types)?;
        angles.push(Angle {
            atoms,
            force: force[kind] * CALORIE,
            angle: rest[kind],
        });
    }
    Ok(angles)
}

/// Pairs without interaction.
fn excluded(sections: &Sections<'_>, counts: &Counts) -> Result<BTreeMap<[usize; 2], PairTerm>> {
    let name = "EXCLUDED_ATOMS_LIST";
    let numbers = sections.numbers::<u32>("NUMBER_EXCLUDED_ATOMS", counts.atoms)?;
    let list = sections.numbers::<i64>(name, counts.excluded)?;
    let mut rest = list.as_slice();
    let mut pairs = BTreeMap::new();
    for (i, &number) in numbers.iter().enumerate() {
        let Some((mine, after)) = rest.split_at_checked(number as usize) else {
            return Err(wrong(format!(
                "section {name} ends before the exclusions of atom {}",
                i + 1
            )));
        };
        rest = after;
        for &j in mine {
            // An atom without exclusions has a single zero.
            if j == 0 {
                continue;
            }
            let j = index(name, j, counts.atoms)?;
            if j == i {
                return Err(wrong(format!(
                    "section {name} excludes atom {} from itself",
                    i + 1
                )));
            }
            let atoms = [i.min(j), i.max(j)];
            pairs.insert(
                atoms,
                PairTerm {
                    atoms,
                    charge: 0.0,
                    repulsion: 0.0,
                    attraction: 0.0,
                },
            );
        }
    }
    Ok(pairs)
}

/// The torsions, and the scaled 1-4 pairs at the ends of those that are not marked by a negative third or fourth pointer.
fn torsions(
    sections: &Sections<'_>,
    counts: &Counts,
    topology: &mut Topology,
    exceptions: &mut BTreeMap<[usize; 2], PairTerm>,
) -> Result<()> {
    let kinds = counts.torsion_types;
    let force = sections.reals("DIHEDRAL_FORCE_CONSTANT", kinds)?;
    let periodicity = sections.reals("DIHEDRAL_PERIODICITY", kinds)?;
    let phase = sections.reals("DIHEDRAL_PHASE", kinds)?;
    let scales = |name: &str, usual: f64| match sections.0.contains_key(name) {
        true => sections.reals(name, kinds),
        false => Ok(vec![usual; kinds]),
    };
    let (electric, contact) = (
        scales("SCEE_SCALE_FACTOR", 1.2)?,
        scales("SCNB_SCALE_FACTOR", 2.0)?,
    );
    let mut scaled = std::collections::BTreeSet::new();
    for (name, [i, j, k, l, kind]) in rows::<5>(sections, "DIHEDRALS", counts.torsions)? {
        let pointer = |p: i64| atom(&name, p, counts.atoms);
        let magnitude = |p: i64| pointer(p.checked_abs().unwrap_or(-1));
        let atoms = [pointer(i)?, pointer(j)?, magnitude(k)?, magnitude(l)?];
        distinct(&name, &atoms)?;
        let kind = index(&name, kind, kinds)?;
        let periods = periodicity[kind].abs().round();
        if periods > MOST_PERIODS || (periods - periodicity[kind].abs()).abs() > 1e-3 {
            return Err(wrong(format!(
                "section DIHEDRAL_PERIODICITY holds {}; expected a whole number up to {MOST_PERIODS}",
                periodicity[kind]
            )));
        }
        topology.torsions.push(Torsion {
            atoms,
            force: force[kind] * CALORIE,
            periodicity: periods as u32,
            phase: phase[kind],
        });
        if k <= 0 || l <= 0 {
            continue;
        }
        let ends = [atoms[0].min(atoms[3]), atoms[0].max(atoms[3])];
        if !scaled.insert(ends) {
            return Err(wrong(format!(
                "the 1-4 pair of atoms {} and {} is listed twice in {name}",
                ends[0] + 1,
                ends[1] + 1
            )));
        }
        if electric[kind] == 0.0 || contact[kind] == 0.0 {
            return Err(wrong(format!(
                "a torsion in {name} has a 1-4 pair and a scale factor of zero (SCEE or SCNB)"
            )));
        }
        let at = topology.types[ends[0]] * topology.type_count + topology.types[ends[1]];
        let (repulsion, attraction) = topology.lennard_jones[at];
        let term = PairTerm {
            atoms: ends,
            charge: topology.charges[ends[0]] * topology.charges[ends[1]] / electric[kind],
            repulsion: repulsion / contact[kind],
            attraction: attraction / contact[kind],
        };
        exceptions.insert(ends, term);
    }
    Ok(())
}

fn born(sections: &Sections<'_>, atoms: usize) -> Result<Option<Vec<BornRadius>>> {
    if !sections.0.contains_key("RADII") || !sections.0.contains_key("SCREEN") {
        return Ok(None);
    }
    let (radii, screens) = (
        sections.reals("RADII", atoms)?,
        sections.reals("SCREEN", atoms)?,
    );
    let of = |(radius, screen): (f64, f64)| BornRadius {
        radius: radius * 0.1,
        screen,
    };
    Ok(Some(radii.into_iter().zip(screens).map(of).collect()))
}
