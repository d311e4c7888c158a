//! Structure-based (Go) models of a chain of beads (Clementi, Nymeyer and Onuchic 2000): the native structure is the energy's minimum, contacts
//! that it has attract, all other pairs repel. Test molecules that fold, with an energy that is known.

use super::bonded::{PreparedAngle, TorsionGroup, angles, bonds, group, torsions};
use super::lanes::{Lanes, Vector};
use super::topology::{Angle, Bond, Torsion};
use crate::energy::Energy;
use crate::observable::Observable;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["clementi2000topological"];

/// Rows that are computed side by side.
const SIDE: usize = 4;
/// Beads of a chain that are fewer apart than this are no contact: bonds, angles and dihedrals hold them.
const NEAREST: usize = 4;

/// Strengths of a Go model, all energies in kT.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GoSettings {
    /// Depth of a native contact; bonds, angles, dihedrals and repulsion are multiples of it.
    pub epsilon: f64,
    /// Beads at least four apart along the chain and no farther than this in the native structure are a contact, nm.
    pub contact: f64,
    /// `k (r - r0)^2`: k in epsilon/nm^2.
    pub bond: f64,
    /// `k (theta - theta0)^2`: k in epsilon/rad^2.
    pub angle: f64,
    /// `k1 (1 - cos(phi - phi0)) + k3 (1 - cos 3 (phi - phi0))`: k1 and k3 in epsilon.
    pub dihedral: [f64; 2],
    /// `epsilon (sigma / r)^12` of all other pairs: sigma in nm.
    pub repulsion: f64,
}

impl Default for GoSettings {
    fn default() -> Self {
        GoSettings {
            epsilon: 1.0,
            contact: 0.65,
            bond: 1e4,
            angle: 20.0,
            dihedral: [1.0, 0.5],
            repulsion: 0.4,
        }
    }
}

/// The energy in kT, with `r0`, `theta0`, `phi0` and `s` of the native structure:
///
/// ```text
/// U = sum_bonds k (r - r0)^2 + sum_angles k (theta - theta0)^2
///     + sum_dihedrals [k1 (1 - cos(phi - phi0)) + k3 (1 - cos 3(phi - phi0))]
///     + sum_contacts epsilon (5 (s/r)^12 - 6 (s/r)^10) + sum_others epsilon (sigma/r)^12
/// ```
///
/// Rows are x, y, z of every bead in nm.
#[derive(Debug, Clone)]
pub struct GoModel {
    beads: usize,
    native: Vec<f64>,
    epsilon: f64,
    bonds: Vec<Bond>,
    angles: Vec<PreparedAngle>,
    torsions: Vec<TorsionGroup>,
    /// Pairs with the square of their native distance.
    contacts: Vec<([usize; 2], f64)>,
    /// All other pairs, and the square of their sigma.
    others: Vec<[usize; 2]>,
    sigma2: f64,
}

impl GoModel {
    /// The model of a native structure: x, y, z of the beads of one chain, in nm.
    pub fn new(native: &[f64], settings: GoSettings) -> Result<GoModel> {
        let beads = native.len() / 3;
        let refused = |found: String, expected: &str| {
            Err(Error::Value {
                name: "Go model",
                found,
                expected: expected.into(),
            })
        };
        if beads < 4 || !native.len().is_multiple_of(3) || !native.iter().all(|x| x.is_finite()) {
            return refused(
                format!("a structure of {} numbers", native.len()),
                "at least four beads of three finite numbers each",
            );
        }
        let GoSettings {
            epsilon,
            contact,
            bond,
            angle,
            dihedral: [once, thrice],
            repulsion,
        } = settings;
        for value in [epsilon, contact, bond, angle, once, thrice, repulsion] {
            if !(value.is_finite() && value > 0.0) {
                return refused(format!("a strength of {value}"), "positive finite numbers");
            }
        }
        let of = |observable: Observable| observable.of(native);
        let chain: Vec<Bond> = (1..beads)
            .map(|i| Bond {
                atoms: [i - 1, i],
                force: bond * epsilon,
                length: of(Observable::Distance([i - 1, i])),
            })
            .collect();
        if let Some(long) = chain.iter().find(|b| !(1e-3..1.0).contains(&b.length)) {
            return refused(
                format!("beads {:?} at {:.4} nm", long.atoms, long.length),
                "neighbours of one chain, between 0.001 and 1 nm; are the coordinates in nm, and is it one chain?",
            );
        }
        let bend = (2..beads).map(|i| {
            let atoms = [i - 2, i - 1, i];
            PreparedAngle::from(&Angle {
                atoms,
                force: angle * epsilon,
                angle: of(Observable::Angle(atoms)),
            })
        });
        let turn = (3..beads).flat_map(|i| {
            let atoms = [i - 3, i - 2, i - 1, i];
            let phi = of(Observable::Dihedral(atoms));
            // 1 - cos n(phi - phi0) = 1 + cos(n phi - (n phi0 + pi)).
            [(1, once), (3, thrice)].map(|(n, force)| Torsion {
                atoms,
                force: force * epsilon,
                periodicity: n,
                phase: f64::from(n) * phi + PI,
            })
        });
        let turns: Vec<Torsion> = turn.collect();
        let mut model = GoModel {
            beads,
            native: native.to_vec(),
            epsilon,
            bonds: chain,
            angles: bend.collect(),
            torsions: group(&turns),
            contacts: Vec::new(),
            others: Vec::new(),
            sigma2: repulsion * repulsion,
        };
        for i in 0..beads {
            for j in i + NEAREST..beads {
                let distance = of(Observable::Distance([i, j]));
                match distance <= contact {
                    true => model.contacts.push(([i, j], distance * distance)),
                    false => model.others.push([i, j]),
                }
            }
        }
        Ok(model)
    }

    /// Number of beads.
    pub fn beads(&self) -> usize {
        self.beads
    }

    /// The native structure, nm.
    pub fn native(&self) -> &[f64] {
        &self.native
    }

    /// Pairs that are in contact in the native structure.
    pub fn contacts(&self) -> impl Iterator<Item = [usize; 2]> + '_ {
        self.contacts.iter().map(|(pair, _)| *pair)
    }

    /// Share of the native contacts that a row has, within 1.2 times their native distance.
    pub fn nativeness(&self, row: &[f64]) -> f64 {
        let made = self.contacts.iter().filter(|(pair, square)| {
            let distance = Observable::Distance(*pair).of(row);
            distance * distance < 1.44 * square
        });
        made.count() as f64 / self.contacts.len().max(1) as f64
    }

    /// U and -grad U of a few rows side by side.
    fn block(&self, positions: &[Lanes<SIDE>], forces: &mut [Lanes<SIDE>]) -> Lanes<SIDE> {
        let mut energy = Lanes::ZERO;
        forces.fill(Lanes::ZERO);
        bonds::<false, SIDE>(&self.bonds, positions, forces, &mut energy);
        angles::<false, SIDE>(&self.angles, positions, forces, &mut energy);
        torsions::<false, SIDE>(&self.torsions, positions, forces, &mut energy);
        let mut pair = |[i, j]: [usize; 2], square: f64, native: bool| {
            let between = Vector::load(positions, i).sub(Vector::load(positions, j));
            let inverse = between.dot::<false>(between).recip();
            // (s/r)^2, its fifth and sixth power.
            let q = inverse * square;
            let (q2, q4) = (q * q, q * q * q * q);
            let (q5, q6) = (q4 * q, q4 * q2);
            // Minus the slope of the energy by r, over r.
            let (value, push) = match native {
                true => (q6 * 5.0 - q5 * 6.0, (q6 - q5) * 60.0),
                false => (q6, q6 * 12.0),
            };
            energy += value * self.epsilon;
            let force = between.times(push * inverse * self.epsilon);
            force.add_to(forces, i);
            force.times(Lanes::splat(-1.0)).add_to(forces, j);
        };
        for (atoms, square) in &self.contacts {
            pair(*atoms, *square, true);
        }
        for atoms in &self.others {
            pair(*atoms, self.sigma2, false);
        }
        energy
    }

    /// All rows, block by block.
    fn evaluate(&self, points: &[f64], mut energy: impl FnMut(usize, f64), score: &mut [f64]) {
        let dim = 3 * self.beads;
        let mut positions = vec![Lanes::ZERO; dim];
        let mut forces = vec![Lanes::ZERO; dim];
        let rows = points.len() / dim;
        for first in (0..rows).step_by(SIDE) {
            for (k, position) in positions.iter_mut().enumerate() {
                // Lanes beyond the last row repeat it.
                let lane = |lane: usize| points[(first + lane).min(rows - 1) * dim + k];
                *position = Lanes(std::array::from_fn(lane));
            }
            let found = self.block(&positions, &mut forces);
            for lane in 0..SIDE.min(rows - first) {
                energy(first + lane, found.0[lane]);
                if let Some(out) = score.get_mut((first + lane) * dim..(first + lane + 1) * dim) {
                    let all = out.iter_mut().zip(&forces);
                    all.for_each(|(out, force)| *out = force.0[lane]);
                }
            }
        }
    }
}

impl Energy for GoModel {
    fn dim(&self) -> usize {
        3 * self.beads
    }

    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }

    fn energy(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
        self.evaluate(points, |row, u| out[row] = u, &mut []);
    }

    fn score(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
        self.evaluate(points, |_, _| (), out);
    }

    fn energy_and_score(
        &self,
        _times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        self.evaluate(points, |row, u| energy[row] = u, score);
    }

    fn time_score(&self, _times: &[f64], _points: &[f64], out: &mut [f64]) {
        out.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    /// An asymmetric chain of seven beads that comes back upon itself.
    fn native() -> Vec<f64> {
        vec![
            0.00, 0.00, 0.00, 0.37, 0.05, 0.02, 0.70, 0.22, -0.06, 0.93, 0.05, 0.18, 0.80, -0.27,
            0.34, 0.45, -0.33, 0.25, 0.10, -0.36, 0.12,
        ]
    }

    fn settings() -> GoSettings {
        GoSettings {
            epsilon: 1.3,
            contact: 0.6,
            bond: 4000.0,
            angle: 17.0,
            dihedral: [0.9, 0.4],
            repulsion: 0.35,
        }
    }

    /// Plain formulas, one row, without anything shared with the model but the observables.
    fn plain(native: &[f64], s: &GoSettings, row: &[f64]) -> f64 {
        let n = native.len() / 3;
        let off = |o: Observable| o.of(row) - o.of(native);
        let mut u = 0.0;
        for i in 1..n {
            u += s.bond * off(Observable::Distance([i - 1, i])).powi(2);
        }
        for i in 2..n {
            u += s.angle * off(Observable::Angle([i - 2, i - 1, i])).powi(2);
        }
        for i in 3..n {
            let turn = off(Observable::Dihedral([i - 3, i - 2, i - 1, i]));
            u += s.dihedral[0] * (1.0 - turn.cos()) + s.dihedral[1] * (1.0 - (3.0 * turn).cos());
        }
        for i in 0..n {
            for j in i + 4..n {
                let pair = Observable::Distance([i, j]);
                let (r, r0) = (pair.of(row), pair.of(native));
                u += match r0 <= s.contact {
                    true => 5.0 * (r0 / r).powi(12) - 6.0 * (r0 / r).powi(10),
                    false => (s.repulsion / r).powi(12),
                };
            }
        }
        s.epsilon * u
    }

    fn disturbed(rows: usize) -> Vec<f64> {
        let mut stream = Stream::new(3, Purpose::Test, 0, 0);
        let all = native().repeat(rows);
        all.iter().map(|x| x + 0.05 * stream.normal()).collect()
    }

    #[test]
    fn energies_are_the_formulas_and_scores_their_slopes() {
        let (native, settings) = (native(), settings());
        let model = GoModel::new(&native, settings).unwrap();
        // Both kinds of pairs are there.
        assert!(model.contacts().count() >= 2 && !model.others.is_empty());
        // Seven rows: a block and a part of one.
        let rows = disturbed(7);
        let (mut u, mut score) = ([0.0; 7], vec![0.0; rows.len()]);
        model.energy_and_score(&[0.0], &rows, &mut u, &mut score);
        for (row, u) in rows.chunks_exact(21).zip(&u) {
            let expected = plain(&native, &settings, row);
            assert!((u / expected - 1.0).abs() < 1e-12, "{u} {expected}");
        }
        let h = 1e-6;
        let mut moved = rows.clone();
        for k in 0..rows.len() {
            let mut at = |x: f64| {
                moved[k] = x;
                plain(&native, &settings, &moved[k / 21 * 21..][..21])
            };
            let slope = (at(rows[k] + h) - at(rows[k] - h)) / (2.0 * h);
            moved[k] = rows[k];
            let scale = 1e-6 * (1.0 + slope.abs());
            assert!(
                (score[k] + slope).abs() < 10.0 * scale,
                "{k}: {} {slope}",
                score[k]
            );
        }
        let mut alone = [0.0; 7];
        model.energy(&[0.0], &rows, &mut alone);
        assert_eq!(alone, u);
    }

    #[test]
    fn the_native_structure_is_at_rest() {
        let (native, mut settings) = (native(), settings());
        // No pairs that only repel: every other term is at its minimum.
        settings.contact = 5.0;
        let model = GoModel::new(&native, settings).unwrap();
        let (mut u, mut score) = ([0.0], vec![0.0; 21]);
        model.energy_and_score(&[0.0], &native, &mut u, &mut score);
        assert!((u[0] + settings.epsilon * model.contacts().count() as f64).abs() < 1e-9);
        assert!(score.iter().all(|s| s.abs() < 1e-6), "{score:?}");
        assert_eq!(model.nativeness(&native), 1.0);
        let stretched: Vec<f64> = native.iter().map(|x| 1.5 * x).collect();
        assert_eq!(model.nativeness(&stretched), 0.0);
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        let native = native();
        let refused =
            |native: &[f64], settings| GoModel::new(native, settings).err().unwrap().to_string();
        assert!(refused(&native[..9], settings()).contains("four beads"));
        let mut broken = native.clone();
        broken[9] += 3.0;
        assert!(refused(&broken, settings()).contains("in nm"));
        let weak = GoSettings {
            epsilon: 0.0,
            ..settings()
        };
        assert!(refused(&native, weak).contains("positive"));
    }
}
