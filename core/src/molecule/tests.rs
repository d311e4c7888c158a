//! The force field against OpenMM, term by term, and against its own differences; the readers against damaged files.

use super::*;
use crate::engine::Isa;
use crate::rng::{Purpose, Stream};
use serde_json::Value;
use std::path::Path;

/// Alanine dipeptide: its topology and coordinates.
pub(super) fn files() -> (Vec<u8>, Vec<u8>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/aldp-solvation");
    let read = |end: &str| std::fs::read(folder.join(format!("alanine-dipeptide.{end}"))).unwrap();
    (read("prmtop"), read("crd"))
}

pub(super) fn dipeptide() -> (Topology, Vec<f64>) {
    let (prmtop, crd) = files();
    (
        Topology::from_prmtop(&prmtop).unwrap(),
        read_coordinates(&crd).unwrap(),
    )
}

fn fixtures() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openmm/fixtures.json");
    let document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    document["cases"].as_array().unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect()
}

#[test]
fn the_file_says_what_the_molecule_is() {
    let (topology, positions) = dipeptide();
    assert_eq!((topology.atoms(), positions.len()), (22, 66));
    let (bonds, angles, torsions) = (&topology.bonds, &topology.angles, &topology.torsions);
    assert_eq!((bonds.len(), angles.len(), torsions.len()), (21, 36, 52));
    assert_eq!(topology.exceptions.len(), 98);
    assert_eq!(topology.elements.iter().filter(|z| **z == 1).count(), 12);
    assert_eq!(&topology.names[4..9], ["C", "O", "N", "H", "CA"]);
    // Neutral as far as the file's digits go.
    assert!(topology.charges.iter().sum::<f64>().abs() < 1e-6);
    let (phi, psi) = topology.backbone().unwrap();
    assert_eq!((phi, psi), ([4, 6, 8, 14], [6, 8, 14, 16]));
    // An extended chain; both angles near 180 degrees.
    for atoms in [phi, psi] {
        assert!(Topology::dihedral(&positions, atoms).abs() > 3.0);
    }
}

#[test]
fn energies_and_forces_are_those_of_openmm() {
    let (topology, _) = dipeptide();
    let field = ForceField::new(&topology, Some(SolventModel::Obc1)).unwrap();
    let dry = ForceField::new(&topology, None).unwrap();
    let near = |found: f64, expected: f64, what: &str| {
        assert!(
            (found - expected).abs() < 1e-6 * expected.abs().max(1.0),
            "{what}: {found} {expected}"
        );
    };
    for case in fixtures() {
        let positions = numbers(&case["positions"]);
        for isa in Isa::available() {
            for (name, solvent) in [
                ("vacuum", Solvent::Vacuum),
                ("lambda0", Solvent::Implicit { lambda: 0.0 }),
                ("lambda07", Solvent::Implicit { lambda: 0.7 }),
                ("obc1", Solvent::WATER),
            ] {
                let fields: &[&ForceField] = if solvent == Solvent::Vacuum {
                    &[&field, &dry]
                } else {
                    &[&field]
                };
                for field in fields {
                    let mut terms = [EnergyTerms::default()];
                    let mut forces = vec![0.0; 66];
                    field
                        .energies_and_forces(isa, &positions, &[solvent], &mut terms, &mut forces)
                        .unwrap();
                    let expected = |name: &str| case[name].as_f64().unwrap();
                    near(terms[0].bonds, expected("bonds"), "bonds");
                    near(terms[0].angles, expected("angles"), "angles");
                    near(terms[0].torsions, expected("torsions"), "torsions");
                    near(
                        terms[0].lennard_jones + terms[0].coulomb,
                        expected("nonbonded"),
                        "nonbonded",
                    );
                    if field.solvates() {
                        near(terms[0].surface, expected("surface"), "surface");
                        near(
                            terms[0].polar,
                            expected("born") - expected("surface"),
                            "polar",
                        );
                    }
                    near(
                        terms[0].total(solvent),
                        case[name]["energy"].as_f64().unwrap(),
                        name,
                    );
                    let theirs = numbers(&case[name]["forces"]);
                    let largest = theirs.iter().fold(0.0_f64, |m, f| m.max(f.abs()));
                    for (ours, theirs) in forces.iter().zip(theirs) {
                        assert!(
                            (ours - theirs).abs() < 1e-5 * theirs.abs().max(1e-2 * largest),
                            "{name}: {ours} {theirs}"
                        );
                    }
                }
            }
        }
    }
}

/// The literature's check energies, kJ/mol.
#[test]
fn the_shipped_coordinates_have_the_known_energies() {
    let (topology, positions) = dipeptide();
    let field = ForceField::new(&topology, Some(SolventModel::Obc1)).unwrap();
    let (mut terms, mut forces) = ([EnergyTerms::default()], vec![0.0; 66]);
    field
        .energies_and_forces(
            Isa::detect(),
            &positions,
            &[Solvent::WATER],
            &mut terms,
            &mut forces,
        )
        .unwrap();
    for (solvent, expected) in [
        (Solvent::Vacuum, -88.0886),
        (Solvent::WATER, -138.9697),
        (Solvent::Implicit { lambda: 0.0 }, -71.5628),
    ] {
        assert!((terms[0].total(solvent) - expected).abs() < 1e-4);
    }
}

/// Central differences of the energy along random directions; with both sets of radii, and terms that this molecule does not have.
#[test]
fn forces_are_minus_the_gradient() {
    let (mut topology, positions) = dipeptide();
    // Odd phases and periodicities, an improper with four of the same atoms in another order, a bent rest angle.
    topology.torsions.push(Torsion {
        atoms: [4, 6, 8, 10],
        force: 11.0,
        periodicity: 5,
        phase: 0.7,
    });
    topology.torsions.push(Torsion {
        atoms: [6, 4, 5, 1],
        force: 7.0,
        periodicity: 3,
        phase: -1.1,
    });
    topology.torsions.push(Torsion {
        atoms: [6, 4, 5, 1],
        force: 3.0,
        periodicity: 0,
        phase: 0.4,
    });
    topology.angles.push(Angle {
        atoms: [1, 4, 8],
        force: 40.0,
        angle: 0.3,
    });
    for (number, model) in [SolventModel::Obc1, SolventModel::Obc2]
        .into_iter()
        .enumerate()
    {
        let field = ForceField::new(&topology, Some(model)).unwrap();
        for (k, solvent) in [
            Solvent::Vacuum,
            Solvent::Implicit { lambda: 0.6 },
            Solvent::WATER,
        ]
        .into_iter()
        .enumerate()
        {
            let mut stream = Stream::new(5, Purpose::Test, number as u64, k as u64);
            let point: Vec<f64> = positions
                .iter()
                .map(|x| x + 0.006 * stream.normal())
                .collect();
            let (mut terms, mut forces) = ([EnergyTerms::default()], vec![0.0; 66]);
            let mut at = |x: &[f64], forces: &mut [f64]| {
                field
                    .energies_and_forces(Isa::detect(), x, &[solvent], &mut terms, forces)
                    .unwrap();
                terms[0].total(solvent)
            };
            for _ in 0..20 {
                let direction: Vec<f64> = (0..66).map(|_| stream.normal()).collect();
                let moved = |h: f64| -> Vec<f64> {
                    point
                        .iter()
                        .zip(&direction)
                        .map(|(x, e)| x + h * e)
                        .collect()
                };
                let mut spare = vec![0.0; 66];
                // Fourth order: h^4 terms of stiff bonds would show in the second.
                let h = 2e-5;
                let slope = (8.0 * (at(&moved(h), &mut spare) - at(&moved(-h), &mut spare))
                    - (at(&moved(2.0 * h), &mut spare) - at(&moved(-2.0 * h), &mut spare)))
                    / (12.0 * h);
                at(&point, &mut forces);
                let along: f64 = forces.iter().zip(&direction).map(|(f, e)| f * e).sum();
                let size: f64 = forces.iter().map(|f| f * f).sum::<f64>().sqrt();
                assert!(
                    (slope + along).abs() < 1e-6 * size,
                    "{model:?} {solvent:?}: {slope} {along}"
                );
            }
        }
    }
}

/// Atoms so near that one is inside the other: the branches of the screening integral join with the right slopes.
#[test]
fn screening_is_right_for_overlapping_atoms() {
    let (mut topology, _) = dipeptide();
    topology.masses.truncate(2);
    topology.charges = vec![0.4, -0.3];
    topology.types.truncate(2);
    topology.born = Some(vec![
        BornRadius {
            radius: 0.12,
            screen: 0.8,
        },
        BornRadius {
            radius: 0.3,
            screen: 0.9,
        },
    ]);
    (
        topology.bonds,
        topology.angles,
        topology.torsions,
        topology.exceptions,
    ) = Default::default();
    let field = ForceField::new(&topology, Some(SolventModel::Obc1)).unwrap();
    for r in [0.09, 0.13, 0.2, 0.26, 0.3, 0.38, 0.45] {
        let at = |r: f64, forces: &mut [f64]| {
            let mut terms = [EnergyTerms::default()];
            let positions = [0.0, 0.0, 0.0, r * 0.6, 0.0, r * 0.8];
            field
                .energies_and_forces(
                    Isa::detect(),
                    &positions,
                    &[Solvent::WATER],
                    &mut terms,
                    forces,
                )
                .unwrap();
            terms[0].total(Solvent::WATER)
        };
        let (mut forces, h) = (vec![0.0; 6], 1e-6);
        let slope = (at(r + h, &mut forces) - at(r - h, &mut forces)) / (2.0 * h);
        at(r, &mut forces);
        let along = 0.6 * forces[3] + 0.8 * forces[5];
        assert!(
            (slope + along).abs() < 1e-6 * along.abs().max(1.0),
            "{r}: {slope} {along}"
        );
    }
}

/// A copy's numbers do not depend on how many others are computed with it, nor on its place among them.
#[test]
fn copies_do_not_see_each_other() {
    let (topology, positions) = dipeptide();
    let field = ForceField::new(&topology, Some(SolventModel::Obc1)).unwrap();
    let rows = 11;
    let mut all = vec![0.0; rows * 66];
    let mut solvents = Vec::new();
    for (row, copy) in all.chunks_exact_mut(66).enumerate() {
        let mut stream = Stream::new(8, Purpose::Test, 0, row as u64);
        for (x, start) in copy.iter_mut().zip(&positions) {
            *x = start + 0.005 * stream.normal();
        }
        solvents.push(match row % 3 {
            0 => Solvent::Vacuum,
            k => Solvent::Implicit {
                lambda: 0.4 * k as f64,
            },
        });
    }
    for isa in Isa::available() {
        let (mut terms, mut forces) = (vec![EnergyTerms::default(); rows], vec![0.0; rows * 66]);
        field
            .energies_and_forces(isa, &all, &solvents, &mut terms, &mut forces)
            .unwrap();
        for row in 0..rows {
            let (mut one, mut force) = ([EnergyTerms::default()], vec![0.0; 66]);
            let at = row * 66..(row + 1) * 66;
            field
                .energies_and_forces(
                    isa,
                    &all[at.clone()],
                    &solvents[row..=row],
                    &mut one,
                    &mut force,
                )
                .unwrap();
            assert_eq!(one[0], terms[row]);
            assert_eq!(force, forces[at]);
        }
    }
}

/// Every cut and every altered byte is an error or another molecule, never a panic.
#[test]
fn damaged_files_are_refused_in_words() {
    let (prmtop, crd) = files();
    // What stands after the exclusions (radii among it) can be done without.
    let text = String::from_utf8(prmtop.clone()).unwrap();
    let needed = text.find("%FLAG HBOND_ACOEF").unwrap();
    for cut in (0..needed - 80).step_by(37) {
        let message = Topology::from_prmtop(&prmtop[..cut])
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("the Amber topology cannot be used: "),
            "{message}"
        );
    }
    for at in (0..prmtop.len()).step_by(11) {
        for byte in [b'9', b'-', b' ', b'%', 0xff] {
            let mut altered = prmtop.clone();
            altered[at] = byte;
            if let Ok(topology) = Topology::from_prmtop(&altered) {
                let _ = ForceField::new(&topology, Some(SolventModel::Obc1));
            }
        }
    }
    for cut in 0..crd.len() - 14 {
        assert!(read_coordinates(&crd[..cut]).is_err(), "{cut}");
    }
    for at in 0..crd.len() {
        let mut altered = crd.clone();
        altered[at] = b'x';
        let _ = read_coordinates(&altered);
    }
}

#[test]
fn refusals_say_what_to_do() {
    let (prmtop, _) = files();
    let text = String::from_utf8(prmtop).unwrap();
    let after = |from: &str, to: &str| {
        let altered = text.replacen(from, to, 1);
        assert_ne!(altered, text, "{from}");
        altered
    };
    let refused = |text: &str, words: &str| {
        let message = Topology::from_prmtop(text.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(message.contains(words), "{message}");
    };
    refused("", "no %FLAG lines");
    refused(
        "%FLAG POINTERS\n%FORMAT(10I8)\n 1 2\n",
        "expected at least 30",
    );
    refused(&text.replace("%FLAG MASS", "%FLAG MESS"), "no section MASS");
    refused(&text.replace("%FLAG SOLTY", "%FLAG MASS"), "appears twice");
    refused(
        &text.replace("%FLAG SOLTY", "%FLAG CMAP_COUNT"),
        "CMAP corrections",
    );
    refused(&after("(5E16.8)", "(5Q16.8)"), "cannot be read");
    refused(
        &after("  2.04636429E+00 -6.67", "  2.0463642xE+00 -6.67"),
        "where a number was expected",
    );
    refused(
        &after(
            "       0       0       0       0       0       0       0       0      10       0",
            "       0       0       0       0       0       0       0       1      10       0",
        ),
        "periodic boxes",
    );
    refused(
        &after("      22       7", "      21       7"),
        "by the section POINTERS",
    );
    refused(
        &after(
            "  1.00800000E+00  1.20100000E+01",
            " -1.00800000E+00  1.20100000E+01",
        ),
        "expected a positive number",
    );
    let bare = text.replace("%FLAG RADII", "%FLAG OTHER");
    let topology = Topology::from_prmtop(bare.as_bytes()).unwrap();
    assert!(ForceField::new(&topology, None).is_ok());
    let message = ForceField::new(&topology, Some(SolventModel::Obc1))
        .unwrap_err()
        .to_string();
    assert!(message.contains("RADII and SCREEN"), "{message}");
    for (bytes, words) in [
        (&b"title\n"[..], "number of atoms"),
        (
            b"title\n 2\n   1.0000000   2.0000000   3.0000000\n",
            "holds 3 coordinates, expected 6",
        ),
        (
            b"title\n 1\n   1.0000000   2.0x00000   3.0000000\n",
            "where coordinate 2 was expected",
        ),
        (b"CDF\x01rest", "NetCDF"),
        (b"title\n 99999999999\n", "number of atoms"),
    ] {
        let message = read_coordinates(bytes).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    assert!(SolventModel::by_name("obc3").is_err() && SolventModel::by_name("obc2").is_ok());
    assert!(Solvent::Implicit { lambda: 1.5 }.validate().is_err());
}
