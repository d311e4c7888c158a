//! Springs: what an energy over particles can stand on. Pairs of particles with a bond between them, or two bonds apart, keep their distance far better
//! than a network learns in few steps; their distances' energy is fitted beforehand and the network learns what is beyond it.
//!
//! ```text
//! U_s(t, y) = o(t) + sum over pairs of k(t) u^2 / 2 - f(t) u,      u = |x_i - x_j| - m(t)
//! ```
//! Rotations, translations and exchange of alike particles leave it as it is, so that it may stand below every network over particles, and it is smooth
//! wherever distances are. At each of some times the numbers are fitted to samples of the noisy points: `m` is their mean distance, `k` and `f` minimise
//! the score matching of Hyvärinen (2005), which is a quadratic function of them and needs no noise; on a molecule at rest `k` is one over the variance
//! of the distance, as far as its neighbours do not hold it already, and springs vanish by themselves where noise or mixing of two ends undoes the distances. The same rows
//! and noise serve all times, so that the numbers are smooth in time; between times they are monotone cubics (Fritsch and Carlson 1980). The offset `o` takes out what the springs' own strength adds to `log Z`:
//! along the samples the mean of `dU_s/dt` is zero.

use serde::{Deserialize, Serialize};

use crate::particles::Subspace;
use crate::process::Process;
use crate::rng::{Purpose, Stream};
use crate::system::matrix::inverse_and_log_det;
use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// Whom to cite.
pub const CITES: crate::citation::Cites = &["hyvarinen2005estimation"];

/// Added to squared distances before their roots, which have no slope at zero.
pub(crate) const ROOT: f64 = 1e-8;
/// Times at which springs are fitted.
const TIMES: usize = 49;
/// Most samples of a time.
const SAMPLES: usize = 4096;
/// Added to the diagonal of the fit's matrix, whose entries are about one.
const RIDGE: f64 = 1e-4;

/// A pair of particles that a spring joins, and which pairs share its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Both particles.
    pub ends: [u32; 2],
    /// Pairs of one class are alike.
    pub class: u32,
}

/// Numbers of a class at a time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spring {
    /// `m`, the mean distance.
    pub length: f64,
    /// `k`.
    pub stiffness: f64,
    /// `f`.
    pub force: f64,
}

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Springs {
    /// The pairs.
    pub pairs: Vec<Pair>,
    /// Times of the fit, rising.
    pub times: Vec<f64>,
    /// For each time, the springs of all classes.
    pub springs: Vec<Vec<Spring>>,
    /// `o` at each time.
    pub offsets: Vec<f64>,
}

/// Rows that springs are fitted to, in the model's coordinates.
#[derive(Debug, Clone, Copy)]
pub struct SpringRows<'a> {
    /// Rows of the data.
    pub start: &'a [f64],
    /// Rows of the second endpoint of an interpolant.
    pub end: Option<&'a [f64]>,
    /// What the rows' points are of, if particles come without their centre.
    pub subspace: Option<Subspace>,
    /// Numbers of a row.
    pub dim: usize,
    /// Particles of a row.
    pub particles: usize,
    /// Variance of the data, for the Gaussian that a diffusion has below the springs.
    pub variance: f64,
}

/// Pairs with a bond and pairs two bonds apart, in classes of alike ends: by the types of both (none: all alike), and by how far apart they are.
///
/// # Errors
/// [`Error::Value`] for bonds of particles that do not exist, or none.
pub fn pairs(particles: usize, types: &[u32], bonds: &[[u32; 2]]) -> Result<Vec<Pair>> {
    let fits =
        |bond: &[u32; 2]| bond[0] != bond[1] && bond.iter().all(|end| (*end as usize) < particles);
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
    let kind = |end: u32| types.get(end as usize).copied().unwrap_or(0);
    let sorted = |a: u32, b: u32| [a.min(b), a.max(b)];
    let mut found: Vec<([u32; 2], u32)> = bonds
        .iter()
        .map(|bond| (sorted(bond[0], bond[1]), 0))
        .collect();
    for (at, a) in bonds.iter().enumerate() {
        for b in &bonds[at + 1..] {
            for (i, k) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let ends = sorted(a[1 - i], b[1 - k]);
                if a[i] == b[k] && ends[0] != ends[1] {
                    found.push((ends, 1));
                }
            }
        }
    }
    found.sort_unstable();
    // A ring of three has pairs that are both; the bond counts.
    found.dedup_by_key(|pair| pair.0);
    let mut classes: Vec<([u32; 2], u32)> = Vec::new();
    let pairs = found.into_iter().map(|(ends, apart)| {
        let key = (sorted(kind(ends[0]), kind(ends[1])), apart);
        let class = classes.iter().position(|known| *known == key);
        let class = class.unwrap_or_else(|| {
            classes.push(key);
            classes.len() - 1
        });
        Pair {
            ends,
            class: class as u32,
        }
    });
    Ok(pairs.collect())
}

/// Sums over the samples of a time, from which its springs follow.
struct Moments {
    /// Mean and variance of the distance of each class.
    length: Vec<f64>,
    variance: Vec<f64>,
    /// Matrix and right-hand side of the fit, in units of the distances' spread: first all `u^2 / 2`, then all `u`.
    matrix: Vec<f64>,
    side: Vec<f64>,
}

/// Which pairs meet in a particle: numbers of both, and the sign of the product of their directions.
struct Meeting {
    pairs: [usize; 2],
    sign: f64,
}

fn meetings(pairs: &[Pair]) -> Vec<Meeting> {
    let mut found = Vec::new();
    for (p, a) in pairs.iter().enumerate() {
        for (q, b) in pairs.iter().enumerate() {
            let sign: f64 = (0..4)
                .filter(|k| a.ends[k / 2] == b.ends[k % 2])
                .map(|k| if k / 2 == k % 2 { 1.0 } else { -1.0 })
                .sum();
            if sign != 0.0 {
                found.push(Meeting {
                    pairs: [p, q],
                    sign,
                });
            }
        }
    }
    found
}

impl Moments {
    /// Of particles in rows; `a2` is the variance of the Gaussian below the springs, if there is one.
    fn of(
        pairs: &[Pair],
        meetings: &[Meeting],
        rows: &[f64],
        columns: usize,
        space: usize,
        a2: Option<f64>,
    ) -> Moments {
        let classes = pairs
            .iter()
            .map(|pair| pair.class as usize + 1)
            .max()
            .unwrap_or(0);
        let count = (rows.len() / columns) as f64;
        let mut members = vec![0.0; classes];
        pairs
            .iter()
            .for_each(|pair| members[pair.class as usize] += count);
        let gap = |row: &[f64], pair: &Pair, axis: usize| {
            let [i, j] = pair.ends.map(|end| row[end as usize * space + axis]);
            i - j
        };
        let mut distances = Vec::with_capacity(rows.len() / columns * pairs.len());
        for row in rows.chunks_exact(columns) {
            for pair in pairs {
                let square: f64 = (0..space).map(|axis| gap(row, pair, axis).powi(2)).sum();
                distances.push((square + ROOT).sqrt());
            }
        }
        let by_class = |of: &dyn Fn(usize, f64) -> f64| {
            let mut sums = vec![0.0; classes];
            for (k, d) in distances.iter().enumerate() {
                let class = pairs[k % pairs.len()].class as usize;
                sums[class] += of(class, *d) / members[class];
            }
            sums
        };
        let length = by_class(&|_, d| d);
        let variance = by_class(&|class, d| (d - length[class]).powi(2));
        let spread: Vec<f64> = variance.iter().map(|v| v.sqrt().max(1e-6)).collect();
        let size = 2 * classes;
        let (mut matrix, mut side) = (vec![0.0; size * size], vec![0.0; size]);
        let mut direction = vec![0.0; pairs.len() * space];
        let mut slope = vec![0.0; pairs.len()];
        for (row, distances) in rows
            .chunks_exact(columns)
            .zip(distances.chunks_exact(pairs.len()))
        {
            for (p, (pair, d)) in pairs.iter().zip(distances).enumerate() {
                let class = pair.class as usize;
                let (u, s) = (d - length[class], spread[class]);
                for axis in 0..space {
                    direction[p * space + axis] = gap(row, pair, axis) / d;
                }
                slope[p] = u / s;
                // Laplacians of u^2 / 2 and of u, without what the Gaussian's own slope does.
                let bend = 2.0 * (space as f64 - 1.0) / d - a2.map_or(0.0, |a2| d / a2);
                side[class] += (2.0 + u * bend) / (s * s * count);
                side[classes + class] += bend / (s * count);
            }
            for meeting in meetings {
                let [p, q] = meeting.pairs;
                let [c, e] = meeting.pairs.map(|p| pairs[p].class as usize);
                let product: f64 = (0..space)
                    .map(|axis| direction[p * space + axis] * direction[q * space + axis])
                    .sum();
                let product = meeting.sign * product / (spread[c] * spread[e] * count);
                matrix[c * size + e] += product * slope[p] * slope[q];
                matrix[c * size + classes + e] += product * slope[p];
                matrix[(classes + c) * size + e] += product * slope[q];
                matrix[(classes + c) * size + classes + e] += product;
            }
        }
        Moments {
            length,
            variance,
            matrix,
            side,
        }
    }

    /// The springs that match the scores best; a class that would rather be pushed than held gets none.
    fn springs(&self) -> Vec<Spring> {
        let classes = self.length.len();
        let size = 2 * classes;
        let mut held: Vec<usize> = (0..classes).collect();
        let mut springs: Vec<Spring> = self
            .length
            .iter()
            .map(|&length| Spring {
                length,
                ..Spring::default()
            })
            .collect();
        while !held.is_empty() {
            let places: Vec<usize> = held
                .iter()
                .copied()
                .chain(held.iter().map(|c| classes + c))
                .collect();
            let n = places.len();
            // Every entry in units of its own diagonal, so that the ridge means the same for all.
            let unit: Vec<f64> = places
                .iter()
                .map(|&a| self.matrix[a * size + a].sqrt().max(f64::MIN_POSITIVE))
                .collect();
            let mut matrix = vec![0.0; n * n];
            for (i, &a) in places.iter().enumerate() {
                for (j, &b) in places.iter().enumerate() {
                    matrix[i * n + j] = self.matrix[a * size + b] / (unit[i] * unit[j]);
                }
                matrix[i * n + i] += RIDGE;
            }
            let Some((inverse, _)) = inverse_and_log_det(&matrix, n) else {
                return springs;
            };
            let solved: Vec<f64> = (0..n)
                .map(|i| {
                    let sum: f64 = (0..n)
                        .map(|j| inverse[i * n + j] * self.side[places[j]] / unit[j])
                        .sum();
                    sum / unit[i]
                })
                .collect();
            let before = held.len();
            let kept: Vec<usize> = held
                .iter()
                .enumerate()
                .filter(|(i, _)| solved[*i] > 0.0)
                .map(|(_, c)| *c)
                .collect();
            if kept.len() == before {
                for (i, &class) in held.iter().enumerate() {
                    let s2 = self.variance[class].max(1e-12);
                    springs[class].stiffness = solved[i] / s2;
                    springs[class].force = -solved[held.len() + i] / s2.sqrt();
                }
                break;
            }
            held = kept;
        }
        springs
    }
}

impl Springs {
    /// Fits springs to rows noised by a process, at times out of `levels`; the noisiest time of a diffusion has none, its law is known.
    ///
    /// # Errors
    /// [`Error::Value`] for no rows or pairs that are not in them.
    pub fn fit(
        process: &Process,
        levels: &[f64],
        pairs: Vec<Pair>,
        rows: SpringRows<'_>,
        seed: u64,
    ) -> Result<Springs> {
        let SpringRows {
            start,
            end,
            subspace,
            dim,
            particles,
            variance,
        } = rows;
        let count = (start.len() / dim).min(end.map_or(usize::MAX, |end| end.len() / dim));
        if count < 2 || levels.len() < 2 {
            return Err(Error::Value {
                name: "springs",
                found: format!("{count} rows at {} times", levels.len()),
                expected: "at least two of both".into(),
            });
        }
        let columns = subspace.map_or(dim, |of| of.columns());
        let space = columns / particles;
        let last = levels.len() - 1;
        let knots = TIMES.min(levels.len());
        let times: Vec<f64> = (0..knots).map(|k| levels[last * k / (knots - 1)]).collect();
        let meetings = meetings(&pairs);
        let samples = SAMPLES.min(4 * count);
        let mut springs: Vec<Vec<Spring>> = Vec::with_capacity(knots);
        let mut spreads: Vec<Vec<f64>> = Vec::with_capacity(knots);
        let mut particles_of = vec![0.0; samples * columns];
        let mut point = vec![0.0; dim];
        for &time in &times {
            let (a, b, noise) = (
                process.x0_scale(time),
                process.x1_scale(time),
                process.noise(time),
            );
            for (row, out) in particles_of.chunks_exact_mut(columns).enumerate() {
                // The same rows and noise at all times.
                let mut stream = Stream::new(seed, Purpose::Springs, 0, row as u64);
                let mut pick =
                    |rows: &[f64]| stream.below((rows.len() / dim) as u64) as usize * dim;
                let first = pick(start);
                let second = end.map(|end| (end, pick(end)));
                for (i, y) in point.iter_mut().enumerate() {
                    let other = second.map_or(0.0, |(end, at)| end[at + i]);
                    *y = a * start[first + i] + b * other + noise * stream.normal();
                }
                match subspace {
                    Some(subspace) => subspace.outward(&point, out),
                    None => out.copy_from_slice(&point),
                }
            }
            let a2 = (!process.is_interpolant()).then_some(a * a * variance + noise * noise);
            let moments = Moments::of(&pairs, &meetings, &particles_of, columns, space, a2);
            springs.push(moments.springs());
            spreads.push(moments.variance);
        }
        if !process.is_interpolant() {
            for spring in &mut springs[knots - 1] {
                (spring.stiffness, spring.force) = (0.0, 0.0);
            }
        }
        let offsets = offsets(process, &pairs, &springs, &spreads);
        Ok(Springs {
            pairs,
            times,
            springs,
            offsets,
        })
    }

    /// Refuses what does not fit so many particles.
    pub fn validate(&self, particles: usize) -> Result<()> {
        let classes = self.springs.first().map_or(0, Vec::len);
        let in_range = |pair: &Pair| {
            pair.ends.iter().all(|end| (*end as usize) < particles)
                && pair.ends[0] != pair.ends[1]
                && (pair.class as usize) < classes
        };
        let finite = |spring: &Spring| {
            [spring.length, spring.stiffness, spring.force]
                .iter()
                .all(|x| x.is_finite())
        };
        let whole = self.times.len() >= 2
            && self.times.windows(2).all(|pair| pair[0] < pair[1])
            && self.springs.len() == self.times.len()
            && self.offsets.len() == self.times.len()
            && self.offsets.iter().all(|x| x.is_finite())
            && self
                .springs
                .iter()
                .all(|at| at.len() == classes && at.iter().all(finite));
        if whole && !self.pairs.is_empty() && self.pairs.iter().all(in_range) {
            return Ok(());
        }
        Err(Error::Value {
            name: "springs",
            found: format!("{} pairs at {} times", self.pairs.len(), self.times.len()),
            expected: format!("finite numbers at rising times, for pairs of {particles} particles"),
        })
    }

    /// Numbers that the energy needs of a time: `m` of all pairs, `k` of all, `f` of all, `o`.
    pub fn columns(&self) -> usize {
        3 * self.pairs.len() + 1
    }

    /// Mean of the second derivatives of `U_s` along the coordinates, at the first time or the last: each spring holds both its ends.
    pub fn mean_stiffness(&self, first: bool, dim: usize) -> f64 {
        let at = if first {
            self.springs.first()
        } else {
            self.springs.last()
        };
        let of = |pair: &Pair| at.map_or(0.0, |at| at[pair.class as usize].stiffness);
        2.0 * self.pairs.iter().map(of).sum::<f64>() / dim as f64
    }

    /// Pairs without a spring at the first time.
    pub fn loose(&self) -> usize {
        let loose = |pair: &&Pair| self.springs[0][pair.class as usize].stiffness == 0.0;
        self.pairs.iter().filter(loose).count()
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
        let Springs {
            pairs,
            times,
            springs,
            offsets,
        } = self.springs;
        let Some(pair) = pairs
            .get(column % pairs.len())
            .filter(|_| column < 3 * pairs.len())
        else {
            return self.cell.monotone(times, &|k| offsets[k]);
        };
        let of = |k: usize| springs[k][pair.class as usize];
        match column / pairs.len() {
            0 => self.cell.monotone(times, &|k| of(k).length),
            1 => self.cell.monotone(times, &|k| of(k).stiffness),
            _ => self.cell.monotone(times, &|k| of(k).force),
        }
    }
}

/// `o`: minus the integral of the mean of `dU_s/dt` over the samples, zero where the springs' law is known: at the noisiest time of a diffusion, at time 0 of an
/// interpolant. Within a time step `U_s` is linear in `k` and `f`, whose factors have the means `var / 2` and 0, and a change of `m` costs `f`.
fn offsets(
    process: &Process,
    pairs: &[Pair],
    springs: &[Vec<Spring>],
    spreads: &[Vec<f64>],
) -> Vec<f64> {
    let step = |k: usize| -> f64 {
        let (now, next) = (&springs[k], &springs[k + 1]);
        let of_pair = |pair: &Pair| {
            let c = pair.class as usize;
            let variance = 0.5 * (spreads[k][c] + spreads[k + 1][c]);
            let force = 0.5 * (now[c].force + next[c].force);
            0.5 * variance * (next[c].stiffness - now[c].stiffness)
                + force * (next[c].length - now[c].length)
        };
        pairs.iter().map(of_pair).sum()
    };
    let mut offsets = vec![0.0; springs.len()];
    for k in 1..springs.len() {
        offsets[k] = offsets[k - 1] - step(k - 1);
    }
    if !process.is_interpolant() {
        let last = offsets[springs.len() - 1];
        offsets.iter_mut().for_each(|o| *o -= last);
    }
    offsets
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
