//! Bonds, angles and torsions. Energies are added to `energy`, forces to `forces`.

use super::lanes::{Lanes, Vector};
use super::topology::{Angle, Bond, Torsion};

/// `k (r - r0)^2`.
#[inline(always)]
pub(super) fn bonds<const FMA: bool, const L: usize>(
    terms: &[Bond],
    positions: &[Lanes<L>],
    forces: &mut [Lanes<L>],
    energy: &mut Lanes<L>,
) {
    for term in terms {
        let [i, j] = term.atoms;
        let between = Vector::load(positions, i).sub(Vector::load(positions, j));
        let length = between.dot::<FMA>(between).sqrt();
        let excess = length - term.length;
        *energy += excess * excess * term.force;
        let force = between.times(excess * (-2.0 * term.force) / length);
        force.add_to(forces, i);
        force.times(Lanes::splat(-1.0)).add_to(forces, j);
    }
}

/// An angle with the sine and cosine of its rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct PreparedAngle {
    atoms: [usize; 3],
    force: f64,
    sine: f64,
    cosine: f64,
}

impl From<&Angle> for PreparedAngle {
    fn from(angle: &Angle) -> Self {
        let (sine, cosine) = angle.angle.sin_cos();
        PreparedAngle {
            atoms: angle.atoms,
            force: angle.force,
            sine,
            cosine,
        }
    }
}

/// `k (theta - theta0)^2`. The excess is `2 atan(s / (1 + c))` of its own sine and cosine: no digits are lost near rest.
#[inline(always)]
pub(super) fn angles<const FMA: bool, const L: usize>(
    terms: &[PreparedAngle],
    positions: &[Lanes<L>],
    forces: &mut [Lanes<L>],
    energy: &mut Lanes<L>,
) {
    for term in terms {
        let [i, j, k] = term.atoms;
        let vertex = Vector::load(positions, j);
        let (a, b) = (
            Vector::load(positions, i).sub(vertex),
            Vector::load(positions, k).sub(vertex),
        );
        let normal = a.cross(b);
        let (aa, bb, ab) = (a.dot::<FMA>(a), b.dot::<FMA>(b), a.dot::<FMA>(b));
        // |a x b|, kept from zero: a straight angle has no direction of its force.
        let area = normal.dot::<FMA>(normal).sqrt().max(1e-12);
        let inverse = (aa * bb).sqrt().recip();
        let (sine, cosine) = (area * inverse, ab * inverse);
        let s = sine * term.cosine - cosine * term.sine;
        let c = cosine * term.cosine + sine * term.sine;
        let excess = (s / (c + 1.0)).twice_atan();
        *energy += excess * excess * term.force;
        // d theta / d a = a x (a x b) / (a^2 |a x b|), and likewise for b.
        let slope = excess * (2.0 * term.force) / area;
        let first = normal.cross(a).times(slope / aa);
        let last = b.cross(normal).times(slope / bb);
        first.add_to(forces, i);
        last.add_to(forces, k);
        first.plus(last).times(Lanes::splat(-1.0)).add_to(forces, j);
    }
}

/// All torsions about the same four atoms.
#[derive(Debug, Clone)]
pub(super) struct TorsionGroup {
    atoms: [usize; 4],
    /// `k_n`, `k_n cos(phase)` and `k_n sin(phase)` of each periodicity n from 0 on.
    terms: Vec<[f64; 3]>,
}

/// Puts torsions of the same atoms together, in the order in which they first appear.
pub(super) fn group(torsions: &[Torsion]) -> Vec<TorsionGroup> {
    let mut groups: Vec<TorsionGroup> = Vec::new();
    let mut numbers = std::collections::HashMap::new();
    for torsion in torsions.iter().filter(|torsion| torsion.force != 0.0) {
        let number = *numbers.entry(torsion.atoms).or_insert(groups.len());
        if number == groups.len() {
            groups.push(TorsionGroup {
                atoms: torsion.atoms,
                terms: Vec::new(),
            });
        }
        let terms = &mut groups[number].terms;
        let n = torsion.periodicity as usize;
        if terms.len() <= n {
            terms.resize(n + 1, [0.0; 3]);
        }
        let (sine, cosine) = torsion.phase.sin_cos();
        terms[n][0] += torsion.force;
        terms[n][1] += torsion.force * cosine;
        terms[n][2] += torsion.force * sine;
    }
    groups
}

/// `sum_n k_n (1 + cos(n phi - phase_n))`, with cos(n phi) and sin(n phi) by recurrence: the angle itself is not needed.
#[inline(always)]
pub(super) fn torsions<const FMA: bool, const L: usize>(
    groups: &[TorsionGroup],
    positions: &[Lanes<L>],
    forces: &mut [Lanes<L>],
    energy: &mut Lanes<L>,
) {
    for group in groups {
        let [i, j, k, l] = group.atoms;
        let [xi, xj, xk, xl] = [i, j, k, l].map(|atom| Vector::load(positions, atom));
        let (ij, kj, kl) = (xi.sub(xj), xk.sub(xj), xk.sub(xl));
        let (m, n) = (ij.cross(kj), kj.cross(kl));
        let (mm, nn, axis) = (m.dot::<FMA>(m), n.dot::<FMA>(n), kj.dot::<FMA>(kj));
        let inverse = (mm * nn).sqrt().recip();
        let length = axis.sqrt();
        let cosine = m.dot::<FMA>(n) * inverse;
        let sine = ij.dot::<FMA>(n) * length * inverse;
        // (cos n phi, sin n phi), from n = 0 on.
        let (mut c, mut s) = (Lanes::splat(1.0), Lanes::ZERO);
        let mut slope = Lanes::ZERO;
        for (order, [k, along, across]) in group.terms.iter().enumerate() {
            if *k != 0.0 || *along != 0.0 || *across != 0.0 {
                *energy += c * *along + s * *across + *k;
                slope += (c * *across - s * *along) * order as f64;
            }
            (c, s) = (c * cosine - s * sine, s * cosine + c * sine);
        }
        // The gradient of phi (Blondel and Karplus 1996), written for the outer atoms and shared among the inner ones.
        let first = m.times(-slope * length / mm);
        let last = n.times(slope * length / nn);
        let shift = first
            .times(ij.dot::<FMA>(kj) / axis)
            .sub(last.times(kl.dot::<FMA>(kj) / axis));
        let minus = Lanes::splat(-1.0);
        first.add_to(forces, i);
        last.add_to(forces, l);
        shift.sub(first).add_to(forces, j);
        shift.plus(last).times(minus).add_to(forces, k);
    }
}
