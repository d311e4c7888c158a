//! The loops over all pairs of atoms: Lennard-Jones, Coulomb, and the three passes of generalised Born.
//!
//! The first pass adds up the screening integrals and keeps their slopes, the second the polar energy with its derivative in the Born
//! radii, the third turns that derivative into forces (see [`super::solvent`] for the formulas).

use super::lanes::{Lanes, Vector};
use super::solvent::{OFFSET, POLAR, PROBE, SCREENING, SURFACE};
use super::topology::{BornRadius, PairTerm};

/// An atom as generalised Born sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct BornAtom {
    /// R.
    radius: f64,
    /// rho = R - offset.
    rho: f64,
    /// screen times rho.
    scaled: f64,
    /// k (1/eps_in - 1/eps_out) q^2 / 2: its own polar energy is minus that over B.
    own: f64,
    charge: f64,
}

impl BornAtom {
    pub(super) fn new(born: BornRadius, charge: f64) -> Self {
        let rho = born.radius - OFFSET;
        BornAtom {
            radius: born.radius,
            rho,
            scaled: born.screen * rho,
            own: 0.5 * POLAR * SCREENING * charge * charge,
            charge,
        }
    }
}

/// What pairs leave for the next pass.
#[derive(Debug, Clone, Default)]
pub(super) struct PairScratch<const L: usize> {
    /// (dE/dr)/r, pair by pair.
    slope: Vec<Lanes<L>>,
    /// (dI_i/dr)/r and (dI_j/dr)/r.
    screening: Vec<[Lanes<L>; 2]>,
    /// Screening integrals, then dE/dI.
    integral: Vec<Lanes<L>>,
    /// Born radii.
    radius: Vec<Lanes<L>>,
    /// dE/dB from the pairs.
    rise: Vec<Lanes<L>>,
}

impl<const L: usize> PairScratch<L> {
    pub(super) fn fit(&mut self, atoms: usize, pairs: usize) {
        self.slope.resize(pairs, Lanes::ZERO);
        self.screening.resize(pairs, [Lanes::ZERO; 2]);
        for values in [&mut self.integral, &mut self.radius, &mut self.rise] {
            values.resize(atoms, Lanes::ZERO);
        }
    }
}

/// Lennard-Jones and Coulomb energies, added up apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Direct<const L: usize> {
    pub lennard_jones: Lanes<L>,
    pub coulomb: Lanes<L>,
}

/// One over the distance, and what its square is.
#[inline(always)]
fn inverse_distance<const FMA: bool, const L: usize>(between: Vector<L>) -> (Lanes<L>, Lanes<L>) {
    let square = between.dot::<FMA>(between);
    (square.sqrt().recip(), square)
}

/// Energies of a pair, and (dE/dr)/r.
#[inline(always)]
fn direct<const FMA: bool, const L: usize>(
    term: &PairTerm,
    inverse: Lanes<L>,
    sums: &mut Direct<L>,
) -> Lanes<L> {
    let inverse2 = inverse * inverse;
    let inverse6 = inverse2 * inverse2 * inverse2;
    let electric = inverse * term.charge;
    let repulsion = inverse6 * inverse6 * term.repulsion;
    let attraction = inverse6 * term.attraction;
    sums.coulomb += electric;
    sums.lennard_jones += repulsion - attraction;
    let contact = attraction.mul_add::<FMA>(Lanes::splat(6.0), repulsion * -12.0);
    (contact - electric) * inverse2
}

/// Without solvent: one loop.
#[inline(always)]
pub(super) fn vacuum<const FMA: bool, const L: usize>(
    pairs: &[PairTerm],
    positions: &[Lanes<L>],
    forces: &mut [Lanes<L>],
) -> Direct<L> {
    let mut sums = Direct {
        lennard_jones: Lanes::ZERO,
        coulomb: Lanes::ZERO,
    };
    for term in pairs {
        if term.charge == 0.0 && term.repulsion == 0.0 && term.attraction == 0.0 {
            continue;
        }
        let [i, j] = term.atoms;
        let between = Vector::load(positions, i).sub(Vector::load(positions, j));
        let (inverse, _) = inverse_distance::<FMA, L>(between);
        let slope = direct::<FMA, L>(term, inverse, &mut sums);
        let force = between.times(slope);
        force.add_to(forces, j);
        force.times(Lanes::splat(-1.0)).add_to(forces, i);
    }
    sums
}

/// The part of `I_i` that an atom of scaled radius `s` at distance `r` screens from one of radius `rho`, and `(dI_i/dr)/r`:
///
/// `I = 1/2 (1/l - 1/u + (r - s^2/r)/4 (1/u^2 - 1/l^2) + ln(l/u)/(2r))`, `u = r + s`, `l = max(rho, |r - s|)`; zero when `u < rho`.
#[inline(always)]
fn screened<const FMA: bool, const L: usize>(
    rho: f64,
    s: f64,
    r: Lanes<L>,
    inverse: Lanes<L>,
) -> (Lanes<L>, Lanes<L>) {
    let upper = r + s;
    let apart = r - s;
    let lower = apart.abs().max(rho);
    let product = (lower * upper).recip();
    let (il, iu) = (upper * product, lower * product);
    let (il2, iu2) = (il * il, iu * iu);
    let log = (lower * iu).ln() * inverse;
    let squares = iu2 - il2;
    // s^2 / r.
    let share = inverse * (s * s);
    let value = (il - iu) + (r - share) * squares * 0.25 + log * 0.5;
    // dl/dr: the sign of r - s where l is |r - s|, zero where it is rho.
    let moves = apart.zip(lower, |apart, lower| {
        if apart.abs() < lower {
            0.0
        } else {
            1.0_f64.copysign(apart)
        }
    });
    let first = iu2 - moves * il2;
    let second = share.mul_add::<FMA>(inverse, Lanes::splat(1.0)) * squares * 0.25;
    let third = (r - share) * (moves * il2 * il - iu2 * iu) * 0.5;
    let fourth = (moves * il - iu - log) * inverse * 0.5;
    let slope = (first + second + third + fourth) * inverse;
    let reaches = |x: Lanes<L>| x.zip(upper, |x, upper| if upper < rho { 0.0 } else { 0.5 * x });
    (reaches(value), reaches(slope))
}

/// The molecule and its solvent, lane by lane.
pub(super) struct Solvated<'a, const L: usize> {
    pub pairs: &'a [PairTerm],
    pub atoms: &'a [BornAtom],
    /// alpha, beta, gamma.
    pub constants: [f64; 3],
    /// Factors on the polar and the surface energy.
    pub polar: Lanes<L>,
    pub surface: Lanes<L>,
}

impl<const L: usize> Solvated<'_, L> {
    /// Adds the forces; returns the direct energies, and the polar and surface energies without their factors.
    #[inline(always)]
    pub(super) fn run<const FMA: bool>(
        &self,
        positions: &[Lanes<L>],
        forces: &mut [Lanes<L>],
        scratch: &mut PairScratch<L>,
    ) -> (Direct<L>, Lanes<L>, Lanes<L>) {
        let PairScratch {
            slope,
            screening,
            integral,
            radius,
            rise,
        } = scratch;
        let n = self.atoms.len();
        let mut sums = Direct {
            lennard_jones: Lanes::ZERO,
            coulomb: Lanes::ZERO,
        };
        integral.fill(Lanes::ZERO);
        let mut at = 0;
        for i in 0..n {
            let (here, mine) = (Vector::load(positions, i), self.atoms[i]);
            let mut own = integral[i];
            for (j, other) in self.atoms.iter().enumerate().skip(i + 1) {
                let (inverse, square) =
                    inverse_distance::<FMA, L>(here.sub(Vector::load(positions, j)));
                slope[at] = direct::<FMA, L>(&self.pairs[at], inverse, &mut sums);
                let r = square * inverse;
                let (value, first) = screened::<FMA, L>(mine.rho, other.scaled, r, inverse);
                own += value;
                let (value, second) = screened::<FMA, L>(other.rho, mine.scaled, r, inverse);
                integral[j] += value;
                screening[at] = [first, second];
                at += 1;
            }
            integral[i] = own;
        }
        let (mut polar, mut surface) = (Lanes::ZERO, Lanes::ZERO);
        let [alpha, beta, gamma] = self.constants;
        for (i, atom) in self.atoms.iter().enumerate() {
            let psi = integral[i] * atom.rho;
            let argument = psi * ((psi * gamma - beta) * psi + alpha);
            let tanh = argument.tanh::<FMA>();
            let born = (-tanh * (1.0 / atom.radius) + 1.0 / atom.rho).recip();
            let inverse = born.recip();
            radius[i] = born;
            polar -= inverse * atom.own;
            let ratio = inverse * atom.radius;
            let cube = ratio * ratio * ratio;
            let area = cube * cube * (SURFACE * (atom.radius + PROBE) * (atom.radius + PROBE));
            surface += area;
            rise[i] = inverse * (inverse * atom.own * self.polar - area * self.surface * 6.0);
            // dB/dI, in place of I.
            let inner = (psi * (3.0 * gamma) - 2.0 * beta) * psi + alpha;
            integral[i] = born * born * (-tanh * tanh + 1.0) * inner * (atom.rho / atom.radius);
        }
        at = 0;
        for i in 0..n {
            let (here, mine) = (Vector::load(positions, i), self.atoms[i]);
            let (born, mut own) = (radius[i], rise[i]);
            for j in i + 1..n {
                let between = here.sub(Vector::load(positions, j));
                let square = between.dot::<FMA>(between);
                let product = born * radius[j];
                let quarter = square * 0.25 / product;
                let shrink = (-quarter).exp::<FMA>();
                let inverse = product.mul_add::<FMA>(shrink, square).sqrt().recip();
                let energy = inverse * (-POLAR * SCREENING * mine.charge * self.atoms[j].charge);
                polar += energy;
                // dE/d(f^2) = -E / (2 f^2), with the factor of the polar energy.
                let steep = energy * inverse * inverse * self.polar * -0.5;
                slope[at] += (shrink * -0.25 + 1.0) * steep * 2.0;
                let radial = steep * shrink * (quarter + 1.0);
                own += radial * radius[j];
                rise[j] += radial * born;
                at += 1;
            }
            rise[i] = own;
        }
        for (rise, slope) in rise.iter_mut().zip(&*integral) {
            *rise = *rise * *slope;
        }
        at = 0;
        for i in 0..n {
            let here = Vector::load(positions, i);
            let mut own = Vector::ZERO;
            for j in i + 1..n {
                let between = here.sub(Vector::load(positions, j));
                let [first, second] = screening[at];
                let total =
                    first.mul_add::<FMA>(rise[i], second.mul_add::<FMA>(rise[j], slope[at]));
                let force = between.times(total);
                own = own.sub(force);
                force.add_to(forces, j);
                at += 1;
            }
            own.add_to(forces, i);
        }
        (sums, polar, surface)
    }
}
