//! Springs: what an energy over particles can stand on. Bonds and angles hold far better than a network learns in few steps, and close to the data torsions and
//! the distances of farther pairs say most of what is left; their energy is fitted beforehand and the network learns what is beyond it.
//!
//! ```text
//! U_s(t, y) = o(t) + sum over bonds and angles of s(t) u + k(t) u^2 / 2 + w(t) u^3 / 6,      u = x - m(t)
//!                  + sum over ends e of a_e(t) sum over torsions and pairs of c_e . f(x)
//! ```
//! The coordinates `x` and the functions `f` stand in `terms.rs`: `x` is the length of a bond or the cosine of an angle; `w` is zero for bonds, so that their energy rises
//! on both sides. Rotations, translations and exchange of alike particles leave it as it is, so that it may stand below every network over particles, and it is smooth. All numbers are fitted to
//! samples of the noisy points in closed form (`fit.rs`), at some times; on a molecule at rest they are what a classical force field has, and they vanish by themselves
//! where noise or mixing of two ends undoes the molecule. The same rows and noise serve all times, so that the numbers are smooth in time; between times they are monotone cubics (Fritsch and
//! Carlson 1980). `c_e` are the numbers at the data, one set for each end of an interpolant, and `a_e` how much is left of them. The offset `o` takes out what the
//! springs' own strength adds to `log Z`: along the samples the mean of `dU_s/dt` is zero.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

mod fit;
mod functions;
mod jet;
mod samples;
mod sums;
pub(crate) mod terms;
#[cfg(test)]
mod tests;
mod wells;

pub use samples::SpringRows;
pub use terms::{Term, Terms};

/// Whom to cite.
pub const CITES: crate::citation::Cites = &["hyvarinen2005estimation"];

/// Numbers of a class of bonds or angles at a time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spring {
    /// `m`, the mean of the coordinate.
    pub middle: f64,
    /// `s`.
    pub slope: f64,
    /// `k`.
    pub stiffness: f64,
    /// `w`.
    pub skew: f64,
}

/// Numbers of a spring.
const OF_SPRING: usize = 4;

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Springs {
    /// Bonds, then angles.
    pub held: Vec<Term>,
    /// Torsions, then pairs.
    pub soft: Vec<Term>,
    /// Mean length of a bond in the data.
    pub length: f64,
    /// Times of the fit, rising.
    pub times: Vec<f64>,
    /// For each time, the springs of all classes that are held.
    pub springs: Vec<Vec<Spring>>,
    /// `c` of each end: the numbers of all classes that are soft, one after the other.
    pub leaning: Vec<Vec<f64>>,
    /// For each time, `a` of each end.
    pub strengths: Vec<Vec<f64>>,
    /// `o` at each time.
    pub offsets: Vec<f64>,
    /// Mean of the second derivatives of `U_s` along the coordinates, at each time.
    pub curvatures: Vec<f64>,
}

impl Springs {
    /// Refuses what does not fit so many particles with so many numbers each.
    pub fn validate(&self, particles: usize, space: usize) -> Result<()> {
        let ends = self.leaning.len();
        // Files are not to be trusted: a class is one of at most as many as there are terms, and all its terms are of one kind.
        let sound = |terms: &[Term], sizes: &[usize]| {
            let mut kinds = vec![None; terms.len()];
            terms.iter().all(|term| {
                let of = &term.of;
                let apart = (0..of.len()).all(|k| !of[..k].contains(&of[k]));
                let one_kind = kinds
                    .get_mut(term.class as usize)
                    .is_some_and(|kind| *kind.get_or_insert(of.len()) == of.len());
                let there = of.iter().all(|end| (*end as usize) < particles);
                sizes.contains(&of.len()) && apart && one_kind && there
            })
        };
        let soft: &[usize] = if space == 3 { &[2, 4] } else { &[2] };
        let bonds_first = self.held.is_sorted_by_key(|term| term.of.len());
        let begins = self.held.first().is_some_and(|term| term.of.len() == 2);
        if !(sound(&self.held, &[2, 3]) && sound(&self.soft, soft) && bonds_first && begins) {
            return Err(self.wrong(particles));
        }
        let classes = terms::classes(&self.held);
        let functions = self.starts().1;
        let finite = |numbers: &[f64]| numbers.iter().all(|x| x.is_finite());
        let of_spring = |s: &Spring| finite(&[s.middle, s.slope, s.stiffness, s.skew]);
        let knots = self.times.len();
        let whole = knots >= 2
            && self.length > 0.0
            && self.times.windows(2).all(|pair| pair[0] < pair[1])
            && (1..=2).contains(&ends)
            && [
                self.springs.len(),
                self.offsets.len(),
                self.strengths.len(),
                self.curvatures.len(),
            ]
            .iter()
            .all(|len| *len == knots)
            && finite(&self.offsets)
            && finite(&self.curvatures)
            && self
                .strengths
                .iter()
                .all(|at| at.len() == ends && finite(at))
            && self
                .leaning
                .iter()
                .all(|end| end.len() == functions && finite(end))
            && self
                .springs
                .iter()
                .all(|at| at.len() == classes && at.iter().all(of_spring));
        if whole {
            Ok(())
        } else {
            Err(self.wrong(particles))
        }
    }

    fn wrong(&self, particles: usize) -> Error {
        Error::Value {
            name: "springs",
            found: format!(
                "{} bonds and angles, {} torsions and pairs at {} times",
                self.held.len(),
                self.soft.len(),
                self.times.len()
            ),
            expected: format!(
                "bonds, then angles, torsions in space alone, with finite numbers at rising times, for terms of {particles} particles"
            ),
        }
    }

    /// Terms with this many particles: 2 for bonds, 3 for angles.
    pub fn held_of(&self, particles: usize) -> impl Iterator<Item = &Term> + Clone {
        let terms = self.held.iter();
        terms.filter(move |term| term.of.len() == particles)
    }

    /// The same of torsions, 4, and pairs, 2.
    pub fn soft_of(&self, particles: usize) -> impl Iterator<Item = &Term> + Clone {
        let terms = self.soft.iter();
        terms.filter(move |term| term.of.len() == particles)
    }

    /// Where the numbers of each soft class begin, and how many there are.
    fn starts(&self) -> (Vec<usize>, usize) {
        terms::starts(&self.soft, 0, terms::functions)
    }

    /// The numbers `c` of one function of all soft terms with so many particles: a row for each term, a column for each end.
    pub(crate) fn leaning_of(&self, particles: usize, function: usize) -> Vec<f64> {
        let starts = self.starts().0;
        self.soft_of(particles)
            .flat_map(|term| {
                let at = starts[term.class as usize] + function;
                self.leaning.iter().map(move |end| end[at])
            })
            .collect()
    }

    /// Numbers that the energy needs of a time: `m`, `s`, `k` and `w` of all bonds and angles, `a` of all ends, `o`.
    pub fn columns(&self) -> usize {
        OF_SPRING * self.held.len() + self.leaning.len() + 1
    }

    /// Mean of the second derivatives of `U_s` along the coordinates, at the first time or the last.
    pub fn mean_stiffness(&self, first: bool) -> f64 {
        let at = if first {
            self.curvatures.first()
        } else {
            self.curvatures.last()
        };
        at.copied().unwrap_or(0.0)
    }

    /// Bonds without a spring at the first time.
    pub fn loose(&self) -> usize {
        let loose = |bond: &&Term| self.springs[0][bond.class as usize].stiffness == 0.0;
        self.held_of(2).filter(loose).count()
    }

    /// Where these numbers are asked for; they are constant beyond the first and the last time.
    pub fn at(&self, time: f64) -> SpringsAt<'_> {
        SpringsAt {
            springs: self,
            cell: Cell::of(&self.times, time),
        }
    }
}

/// [`Springs`] at a time.
pub struct SpringsAt<'a> {
    springs: &'a Springs,
    cell: Cell,
}

impl SpringsAt<'_> {
    /// Number so many of [`Springs::columns`], and its derivative in time.
    pub fn number(&self, column: usize) -> (f64, f64) {
        let all = self.springs;
        let held = all.held.len();
        let knot = |of: &dyn Fn(usize) -> f64| self.cell.monotone(&all.times, of);
        if column < OF_SPRING * held {
            let class = all.held[column % held].class as usize;
            return knot(&|k| {
                let spring = all.springs[k][class];
                match column / held {
                    0 => spring.middle,
                    1 => spring.slope,
                    2 => spring.stiffness,
                    _ => spring.skew,
                }
            });
        }
        match column - OF_SPRING * held {
            end if end < all.leaning.len() => knot(&|k| all.strengths[k][end]),
            _ => knot(&|k| all.offsets[k]),
        }
    }
}

/// Where a time lies between others.
struct Cell {
    /// Number of the time below, the first or the last but one beyond the ends.
    below: usize,
    /// From 0 to 1.
    share: f64,
    /// Before the first time or after the last, where numbers stay as they are.
    beyond: bool,
}

impl Cell {
    fn of(times: &[f64], time: f64) -> Cell {
        let last = times.len() - 1;
        let below = times.partition_point(|t| *t <= time).clamp(1, last) - 1;
        let share = (time - times[below]) / (times[below + 1] - times[below]);
        Cell {
            below,
            share: share.clamp(0.0, 1.0),
            beyond: !(0.0..=1.0).contains(&share),
        }
    }

    /// Value and slope of the monotone cubic through `knot(k)` at `times[k]`.
    fn monotone(&self, times: &[f64], knot: &dyn Fn(usize) -> f64) -> (f64, f64) {
        let (k, x) = (self.below, self.share);
        let width = times[k + 1] - times[k];
        let [from, to] = [knot(k), knot(k + 1)];
        let [start, end] = [k, k + 1].map(|k| width * slope(times, knot, k));
        let (square, cube) = (x * x, x * x * x);
        let value = from * (2.0 * cube - 3.0 * square + 1.0)
            + to * (3.0 * square - 2.0 * cube)
            + start * (cube - 2.0 * square + x)
            + end * (cube - square);
        if self.beyond {
            return (value, 0.0);
        }
        let rate = 6.0 * (from - to) * (square - x)
            + start * (3.0 * square - 4.0 * x + 1.0)
            + end * (3.0 * square - 2.0 * x);
        (value, rate / width)
    }
}

/// Slope at a knot: the harmonic mean of those on both sides, zero where they differ in sign (Fritsch and Butland 1984); at the ends that of the one side.
fn slope(times: &[f64], knot: &dyn Fn(usize) -> f64, k: usize) -> f64 {
    let secant = |k: usize| (knot(k + 1) - knot(k)) / (times[k + 1] - times[k]);
    let last = times.len() - 1;
    if k == 0 {
        return secant(0);
    }
    if k == last {
        return secant(last - 1);
    }
    let (before, after) = (secant(k - 1), secant(k));
    if before * after <= 0.0 {
        return 0.0;
    }
    let (left, right) = (times[k] - times[k - 1], times[k + 1] - times[k]);
    let (a, b) = (2.0 * right + left, right + 2.0 * left);
    (a + b) / (a / before + b / after)
}
