//! What springs are put on: bonds and angles, which hold, and torsions and pairs farther apart, which lean.
//!
//! | coordinate | of | is |
//! | --- | --- | --- |
//! | bond | two particles | `r = sqrt(\|d\|^2 + 1e-8)` |
//! | angle | three, the middle one second | `a . b / sqrt((\|a\|^2 + e) (\|b\|^2 + e))`, `e = (0.16 l)^2`: its cosine |
//! | torsion | four in a row | `C = n . m / w`, `S = \|b\| a . m / w` with `n = a x b`, `m = b x c`, `w = sqrt((\|n\|^2 + h) (\|m\|^2 + h))`, `h = (0.16 l^2)^2`: cosine and sine |
//! | pair | two, three bonds apart or more | `q = 1 + \|d\|^2 / l^2` |
//!
//! `l` is the mean length of a bond in the data. What is added below the roots keeps every slope finite where particles fall onto each other, as they do on the way between two molecules.

use super::jet::{Jet, MOST};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Added to squared distances before their roots, which have no slope at zero.
pub(crate) const ROOT: f64 = 1e-8;
/// Share of a bond's length below which angles fade, and of its square for torsions.
pub(crate) const SOFT: f64 = 0.16;
/// Functions of a torsion: `cos k phi` for k = 1, 2, 3, then the sines.
pub(crate) const OF_TORSION: usize = 6;
/// Functions of a pair: powers of q with their factors.
pub(crate) const OF_PAIR: [(f64, f64); 3] = [(-0.5, 1.0), (-3.0, 3.0), (-6.0, 10.0)];

/// Particles that an energy is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Two of a bond or a pair, three of an angle, four of a torsion.
    pub of: Vec<u32>,
    /// Terms of one class are alike and share their numbers.
    pub class: u32,
}

/// All terms between some particles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// Bonds, then angles.
    pub held: Vec<Term>,
    /// Torsions, then pairs.
    pub soft: Vec<Term>,
}

/// Terms of one kind in classes of alike ones.
#[derive(Default)]
struct Classes {
    keys: Vec<(Vec<u32>, usize)>,
    terms: Vec<Term>,
}

impl Classes {
    /// Read forwards and backwards a term is the same; `mark` tells apart what types do not.
    fn add(&mut self, of: Vec<u32>, types: &[u32], mark: usize) {
        let kinds = of.iter().map(|end| types.get(*end as usize).copied());
        let forwards: Vec<u32> = kinds.map(|kind| kind.unwrap_or(0)).collect();
        let backwards = forwards.iter().rev().copied().collect();
        let key = (forwards.min(backwards), mark);
        let class = self.keys.iter().position(|known| *known == key);
        let class = class.unwrap_or_else(|| {
            self.keys.push(key);
            self.keys.len() - 1
        }) as u32;
        self.terms.push(Term { of, class });
    }
}

impl Terms {
    /// Terms between particles with these bonds, in classes by the types of their particles (none: all alike), and pairs by whether they are three bonds apart or more.
    /// Torsions need three dimensions. No more than `most` functions lean: pairs are left out first.
    ///
    /// # Errors
    /// [`Error::Value`] for bonds of particles that do not exist, or none.
    pub fn between(
        particles: usize,
        types: &[u32],
        bonds: &[[u32; 2]],
        space: usize,
        most: usize,
    ) -> Result<Terms> {
        let fits = |bond: &[u32; 2]| {
            bond[0] != bond[1] && bond.iter().all(|end| (*end as usize) < particles)
        };
        let wrong = bonds.iter().find(|bond| !fits(bond));
        if bonds.is_empty() || wrong.is_some() {
            return Err(Error::Value {
                name: "bonds",
                found: wrong.map_or("none".into(), |bond| format!("{bond:?}")),
                expected: format!(
                    "pairs of different particles from 0 to {}",
                    particles.saturating_sub(1)
                ),
            });
        }
        let mut bonds: Vec<[u32; 2]> = bonds.iter().map(|&[a, b]| [a.min(b), a.max(b)]).collect();
        bonds.sort_unstable();
        bonds.dedup();
        let mut near = vec![Vec::new(); particles];
        for [a, b] in &bonds {
            near[*a as usize].push(*b);
            near[*b as usize].push(*a);
        }
        near.iter_mut().for_each(|near| near.sort_unstable());
        let of = |end: u32| near[end as usize].iter().copied();
        let (mut held, mut torsions, mut pairs) =
            (Classes::default(), Classes::default(), Classes::default());
        for [a, b] in &bonds {
            held.add(vec![*a, *b], types, 2);
        }
        for middle in 0..particles as u32 {
            for a in of(middle) {
                for b in of(middle).filter(|b| *b > a) {
                    held.add(vec![a, middle, b], types, 3);
                }
            }
        }
        for [a, b] in bonds.iter().filter(|_| space == 3) {
            for first in of(*a).filter(|end| end != b) {
                for last in of(*b).filter(|end| end != a && *end != first) {
                    torsions.add(vec![first, *a, *b, last], types, 4);
                }
            }
        }
        for a in 0..particles as u32 {
            let apart = bonds_apart(&near, a);
            for b in a + 1..particles as u32 {
                let apart = apart[b as usize].min(4);
                if apart > 2 {
                    pairs.add(vec![a, b], types, apart);
                }
            }
        }
        let of_torsions = torsions.keys.len() * OF_TORSION;
        let mut soft = Classes::default();
        if of_torsions <= most {
            soft = torsions;
        }
        if soft.keys.len() * OF_TORSION + pairs.keys.len() * OF_PAIR.len() <= most {
            let first = soft.keys.len() as u32;
            soft.keys.append(&mut pairs.keys);
            soft.terms.extend(pairs.terms.into_iter().map(|term| Term {
                class: first + term.class,
                ..term
            }));
        }
        Ok(Terms {
            held: held.terms,
            soft: soft.terms,
        })
    }
}

/// How many bonds every particle is away from one.
fn bonds_apart(near: &[Vec<u32>], from: u32) -> Vec<usize> {
    let mut apart = vec![usize::MAX; near.len()];
    apart[from as usize] = 0;
    let mut shell = vec![from];
    for steps in 1.. {
        let mut next = Vec::new();
        for end in shell.iter().flat_map(|end| &near[*end as usize]) {
            if apart[*end as usize] == usize::MAX {
                apart[*end as usize] = steps;
                next.push(*end);
            }
        }
        if next.is_empty() {
            break;
        }
        shell = next;
    }
    apart
}

/// Number of classes.
pub(super) fn classes(terms: &[Term]) -> usize {
    terms
        .iter()
        .map(|term| term.class as usize + 1)
        .max()
        .unwrap_or(0)
}

/// First number of each class, from `first` on, and the end of them all.
pub(super) fn starts(
    terms: &[Term],
    first: usize,
    of: impl Fn(&Term) -> usize,
) -> (Vec<usize>, usize) {
    let mut starts = vec![0; classes(terms)];
    let mut next = first;
    for (class, start) in starts.iter_mut().enumerate() {
        let member = terms.iter().find(|term| term.class as usize == class);
        *start = next;
        next += member.map_or(0, &of);
    }
    (starts, next)
}

/// Functions of a soft term.
pub(super) fn functions(term: &Term) -> usize {
    if term.of.len() == 4 {
        OF_TORSION
    } else {
        OF_PAIR.len()
    }
}

type Vector = [Jet; 3];

/// Particles of a term as jets; a coordinate that a plane or a line lacks is zero.
fn places<const N: usize>(term: &Term, row: &[f64], space: usize) -> [Vector; N] {
    std::array::from_fn(|p| {
        std::array::from_fn(|axis| {
            if axis < space && p * space + axis < MOST {
                let value = row[term.of[p] as usize * space + axis];
                Jet::coordinate(value, p * space + axis)
            } else {
                Jet::constant(0.0)
            }
        })
    })
}

fn between(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|k| a[k] - b[k])
}

fn inner(a: Vector, b: Vector) -> Jet {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|i| {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        a[j] * b[k] - a[k] * b[j]
    })
}

/// The coordinate of a bond or an angle; see the module's table.
pub(super) fn held(term: &Term, row: &[f64], space: usize, length: f64) -> Jet {
    if term.of.len() == 2 {
        let [i, j] = places(term, row, space);
        let d = between(i, j);
        return inner(d, d).shifted(ROOT).power(0.5);
    }
    let [i, j, k] = places(term, row, space);
    let (a, b) = (between(i, j), between(k, j));
    let floor = (SOFT * length).powi(2);
    let norm = inner(a, a).shifted(floor) * inner(b, b).shifted(floor);
    inner(a, b) * norm.power(-0.5)
}

/// The functions of a torsion or a pair.
pub(super) fn soft(
    term: &Term,
    row: &[f64],
    space: usize,
    length: f64,
    mut each: impl FnMut(usize, Jet),
) {
    if term.of.len() == 2 {
        let [i, j] = places(term, row, space);
        let d = between(i, j);
        let q = inner(d, d).scaled(length.powi(-2)).shifted(1.0);
        for (k, (power, factor)) in OF_PAIR.iter().enumerate() {
            each(k, q.power(*power).scaled(*factor));
        }
        return;
    }
    let [i, j, k, l] = places(term, row, space);
    let (a, b, c) = (between(j, i), between(k, j), between(l, k));
    let (n, m) = (cross(a, b), cross(b, c));
    let floor = (SOFT * length * length).powi(2);
    let norm = inner(n, n).shifted(floor) * inner(m, m).shifted(floor);
    let norm = norm.power(-0.5);
    let cosine = inner(n, m) * norm;
    let sine = inner(a, m) * inner(b, b).shifted(ROOT).power(0.5) * norm;
    let square = cosine * cosine;
    each(0, cosine);
    each(1, square.scaled(2.0).shifted(-1.0));
    each(2, (square.scaled(4.0).shifted(-3.0)) * cosine);
    each(3, sine);
    each(4, (sine * cosine).scaled(2.0));
    each(5, (square.scaled(4.0).shifted(-1.0)) * sine);
}
