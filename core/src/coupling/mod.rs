//! Which rows of the two ends of an interpolant belong together.
//!
//! A path between two sets of rows is the law of `alpha x_0 + beta x_1 + gamma z`; any joint law of `(x_0, x_1)` with the right marginals gives one. Where pairs are drawn at random, points
//! halfway are means of rows that have nothing to do with each other. Here as many rows of each end as a block has are drawn and assigned to each other, so that the sum of
//! squared distances is least (Tong et al. 2024; Pooladian et al. 2023): the path is short, and what lies halfway between two molecules is close to one. For particles distances are those
//! after turning and after exchanging particles that are alike (Klein, Krämer and Noé 2023): an energy that does not know them does not see the difference.
//!
//! The law of the pairs depends on how many rows a block has, not on how many there are in all.

mod assignment;

pub use assignment::assignment;

use crate::particles::{Subspace, superposition};
use crate::rng::{Permutation, Purpose};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whom to cite.
pub const CITES: crate::citation::Cites = &[
    "tong2024improving",
    "pooladian2023multisample",
    "klein2023equivariant",
];

/// Most rows of a block: the time of an assignment grows as their cube.
pub const MOST_ROWS: usize = 8192;

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coupling {
    /// Rows of each end that are assigned to each other at once.
    pub rows: usize,
    /// Rows of particles without their centre are turned onto their partners.
    #[serde(default, skip_serializing_if = "is_false")]
    pub turn: bool,
    /// Sets of particles that may be exchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<Vec<u32>>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// What the numbers of a row are.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Numbers of a row.
    pub dim: usize,
    /// Particles of a row; none: plain numbers.
    pub particles: Option<usize>,
    /// What the rows are points of, if particles come without their centre.
    pub subspace: Option<Subspace>,
}

impl Shape {
    fn columns(&self) -> usize {
        self.subspace.map_or(self.dim, |of| of.columns())
    }

    fn space(&self) -> usize {
        self.columns() / self.particles.unwrap_or(1).max(1)
    }
}

/// Sets of particles that may be exchanged without a change of the bonds: those of one type, or where bonds are known, those of one type with one bond each to the same particle (hydrogens of a methyl group).
/// Without types all are of one.
pub fn alike(particles: usize, types: &[u32], bonds: &[[u32; 2]]) -> Vec<Vec<u32>> {
    let mut kinds: Vec<(u32, Option<u32>, Vec<u32>)> = Vec::new();
    for particle in 0..particles as u32 {
        let kind = types.get(particle as usize).copied().unwrap_or(0);
        let mut neighbours = bonds.iter().filter(|bond| bond.contains(&particle));
        let parent = match (neighbours.next(), neighbours.next()) {
            (Some(bond), None) => Some(bond[usize::from(bond[0] == particle)]),
            _ if bonds.is_empty() => None,
            _ => continue,
        };
        match kinds
            .iter_mut()
            .find(|(t, p, _)| (*t, *p) == (kind, parent))
        {
            Some((_, _, members)) => members.push(particle),
            None => kinds.push((kind, parent, vec![particle])),
        }
    }
    let sets = kinds.into_iter().map(|(_, _, members)| members);
    sets.filter(|members| members.len() > 1).collect()
}

/// Rows of one end and, for each, its partner of the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    /// Numbers of the rows, of both ends.
    pub rows: Vec<[u32; 2]>,
    /// The first of each pair.
    pub start: Vec<f64>,
    /// Its partner, turned and exchanged.
    pub end: Vec<f64>,
}

impl Coupling {
    /// How far from an end, as the share of the other end over its own, exact scores of the end's rows tell those of the path.
    ///
    /// For rows paired at random `score(y) = E[grad log q(x) | y] / a` holds at all times (De Bortoli et al. 2024). With a law `k(x' | x)` of partners the score of the pair is
    /// `grad log q(x) + grad_x log k(x' | x)`; given x the mean of the second is zero, given y it is off by about the share of the other end in y (for Gaussians with correlation `rho` it is
    /// `rho (b / a)` of the score itself): two per cent here, in the directions by which partners were chosen, and less in stiff ones.
    pub const REACH: f64 = 0.02;

    /// Refuses what cannot be meant for rows of this shape.
    ///
    /// # Errors
    /// [`Error::Value`].
    pub fn validate(&self, shape: Shape) -> Result<()> {
        let wrong = |name: &'static str, found: String, expected: String| {
            Err(Error::Value {
                name,
                found,
                expected,
            })
        };
        if !(2..=MOST_ROWS).contains(&self.rows) {
            let expected = format!("between 2 and {MOST_ROWS} rows");
            return wrong("coupling", format!("{} rows", self.rows), expected);
        }
        if self.turn && (shape.subspace.is_none() || !(2..=3).contains(&shape.space())) {
            let expected = "particles of the plane or of space without their centre".into();
            return wrong("coupling.turn", "other rows".into(), expected);
        }
        let particles = shape.particles.unwrap_or(0);
        let mut all: Vec<u32> = self.alike.concat();
        all.sort_unstable();
        let twice = all.windows(2).any(|pair| pair[0] == pair[1]);
        if twice || all.iter().any(|particle| *particle as usize >= particles) {
            let expected = format!("each of {particles} particles at most once");
            return wrong("coupling.alike", format!("{:?}", self.alike), expected);
        }
        Ok(())
    }

    /// Assigns as many rows of one end to those of the other: the partner of each, and the partners turned and exchanged, in the order of the first.
    pub fn pair(&self, shape: Shape, start: &[f64], end: &[f64]) -> (Vec<u32>, Vec<f64>) {
        let (columns, space) = (shape.columns(), shape.space());
        let outward = |rows: &[f64]| match shape.subspace {
            Some(subspace) => subspace.rows_outward(rows),
            None => rows.to_vec(),
        };
        let (first, second) = (outward(start), outward(end));
        let mut exchange = Exchange::new(&self.alike, columns, space);
        // For the costs all are turned onto one, by the particles that keep their names; the chosen ones onto their partners afterwards.
        let named = |row: &[f64]| -> Vec<f64> {
            match exchange.kept.len() {
                few if few < 3 * space => row.to_vec(),
                _ => exchange.kept.iter().map(|column| row[*column]).collect(),
            }
        };
        let reference = named(&first[..columns]);
        let turned = |rows: &[f64]| {
            let mut rows = rows.to_vec();
            if self.turn {
                for row in rows.chunks_exact_mut(columns) {
                    superposition(&named(row), &reference, space).turn(row, space);
                }
            }
            rows
        };
        let (a, b) = (turned(&first), turned(&second));
        let n = start.len() / shape.dim;
        let mut costs = Vec::with_capacity(n * n);
        for x in a.chunks_exact(columns) {
            // Squares of both rows are the same whoever is whose partner.
            costs.extend(b.chunks_exact(columns).map(|y| -exchange.overlap(x, y)));
        }
        let partners = assignment(&costs, n);
        let mut out = Vec::with_capacity(end.len());
        for (row, partner) in partners.iter().enumerate() {
            let x = &first[row * columns..][..columns];
            let at = *partner as usize * columns;
            exchange.overlap(&a[row * columns..][..columns], &b[at..][..columns]);
            let mut y = exchange.exchanged(&second[at..][..columns]);
            if self.turn {
                superposition(&y, x, space).turn(&mut y, space);
            }
            match shape.subspace {
                Some(subspace) => {
                    let from = out.len();
                    out.resize(from + shape.dim, 0.0);
                    subspace.inward(&y, &mut out[from..]);
                }
                None => out.extend(y),
            }
        }
        (partners, out)
    }

    /// Pairs of all rows of both ends, block by block in a random order: as many as the larger end has rows, so that those of the smaller come again.
    pub fn pairs(&self, shape: Shape, start: &[f64], end: &[f64], seed: u64) -> Pairs {
        let dim = shape.dim;
        let counts = [start, end].map(|rows| (rows.len() / dim) as u64);
        let order = [0, 1]
            .map(|end: usize| Permutation::new(seed, Purpose::Couple(end as u32), 0, counts[end]));
        let all = counts[0].max(counts[1]);
        let blocks = all.div_ceil(self.rows as u64).max(1);
        let mut pairs = Pairs {
            rows: Vec::with_capacity(all as usize),
            start: Vec::with_capacity(all as usize * dim),
            end: Vec::with_capacity(all as usize * dim),
        };
        for block in 0..blocks {
            let places = all * block / blocks..all * (block + 1) / blocks;
            let rows = [0, 1].map(|end: usize| -> Vec<u32> {
                let row = |place: u64| order[end].at(place % counts[end]) as u32;
                places.clone().map(row).collect()
            });
            let taken = |rows: &[u32], of: &[f64]| -> Vec<f64> {
                let row = |row: &u32| &of[*row as usize * dim..][..dim];
                rows.iter().flat_map(row).copied().collect()
            };
            let first = taken(&rows[0], start);
            let (partners, second) = self.pair(shape, &first, &taken(&rows[1], end));
            let both = rows[0].iter().zip(partners);
            pairs
                .rows
                .extend(both.map(|(row, partner)| [*row, rows[1][partner as usize]]));
            pairs.start.extend(first);
            pairs.end.extend(second);
        }
        pairs
    }
}

/// The best exchange of particles that are alike.
struct Exchange<'a> {
    alike: &'a [Vec<u32>],
    /// Columns of particles that stay.
    kept: Vec<usize>,
    /// For each set, which member takes whose place.
    places: Vec<Vec<u32>>,
    costs: Vec<f64>,
    columns: usize,
    space: usize,
}

impl<'a> Exchange<'a> {
    fn new(alike: &'a [Vec<u32>], columns: usize, space: usize) -> Exchange<'a> {
        let moved = |column: &usize| {
            alike
                .iter()
                .flatten()
                .any(|p| *p as usize == column / space)
        };
        Exchange {
            alike,
            kept: (0..columns).filter(|column| !moved(column)).collect(),
            places: alike
                .iter()
                .map(|set| (0..set.len() as u32).collect())
                .collect(),
            costs: Vec::new(),
            columns,
            space,
        }
    }

    /// `x . y` after the exchange of particles of y that makes it largest, which is remembered.
    fn overlap(&mut self, x: &[f64], y: &[f64]) -> f64 {
        let space = self.space;
        let mut sum = match self.alike {
            [] => x.iter().zip(y).map(|(x, y)| x * y).sum(),
            _ => self
                .kept
                .iter()
                .map(|column| x[*column] * y[*column])
                .sum::<f64>(),
        };
        for (set, places) in self.alike.iter().zip(&mut self.places) {
            let n = set.len();
            let at = |member: u32| member as usize * space..(member as usize + 1) * space;
            self.costs.clear();
            for &i in set {
                let p = &x[at(i)];
                self.costs.extend(set.iter().map(|j| {
                    let q = &y[at(*j)];
                    -p.iter().zip(q).map(|(p, q)| p * q).sum::<f64>()
                }));
            }
            let costs = &self.costs;
            if n == 3 {
                const ALL: [[u32; 3]; 6] = [
                    [0, 1, 2],
                    [1, 2, 0],
                    [2, 0, 1],
                    [0, 2, 1],
                    [2, 1, 0],
                    [1, 0, 2],
                ];
                let cost = |p: &[u32; 3]| {
                    costs[p[0] as usize] + costs[3 + p[1] as usize] + costs[6 + p[2] as usize]
                };
                let (mut best, mut least) = (0, f64::INFINITY);
                for (k, order) in ALL.iter().enumerate() {
                    let cost = cost(order);
                    if cost < least {
                        (best, least) = (k, cost);
                    }
                }
                places.copy_from_slice(&ALL[best]);
            } else {
                places.copy_from_slice(&assignment(costs, n));
            }
            let taken = places
                .iter()
                .enumerate()
                .map(|(i, j)| costs[i * n + *j as usize]);
            sum -= taken.sum::<f64>();
        }
        sum
    }

    /// A row with its particles exchanged as they were in the last overlap.
    fn exchanged(&self, y: &[f64]) -> Vec<f64> {
        let mut out = y[..self.columns].to_vec();
        let space = self.space;
        for (set, places) in self.alike.iter().zip(&self.places) {
            for (i, place) in set.iter().zip(places) {
                let (to, from) = (*i as usize * space, set[*place as usize] as usize * space);
                out[to..to + space].copy_from_slice(&y[from..from + space]);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests;
