//! Fits springs to rows noised by a process.
//!
//! At a time the numbers `c` of the functions `f` minimise `E |grad U_s + grad U_g + score|^2` over the noisy points, a quadratic function of them:
//! ```text
//! M c = b,      M = E[grad f . grad f],      b = E[laplacian f - grad f . grad U_g]
//! ```
//! (`U_g` the Gaussian below the springs of a diffusion.) The right-hand side is Hyvärinen's (2005), which knows points alone; where the exact score of the data is known at the rows,
//! `-E[grad f . (s / a + grad U_g)]` is the same number (`a` the share of the nearer end, De Bortoli et al. 2024), nearly without noise close to that end. Both are averaged by how
//! much of the score each leaves open: `b = w b_H + (1 - w) b_s`, `w = r / (r + q)` with `r` the mean square of what is left of the known scores and `q` that of `grad U_s` itself.
//!
//! Torsions and pairs have many numbers, which say much close to the data and little elsewhere: all are fitted once at the data (with a ridge that makes the other half of the rows most likely to be
//! matched, or left out if they do not help), and at other times one number tells how much of them is left.
//!
//! The times of a diffusion are apart by equal steps of the noise level's logarithm: what is stiff goes soft within the first hundredths of the time, and between two times on both sides of
//! that a spring would be far too stiff. Numbers of few samples are off by chance, and score matching weighs the scores of a diffusion by the square of the noise level: where noise is large,
//! springs by chance would be all that a network sees. So they end at the first time at which those of one half of the rows serve the other half no better than none.
//!
//! Dynamics on the energy of a diffusion comes to where no rows are, and what is fitted to the rows says nothing there. No spring of a diffusion falls beyond them: angles rise to both ends of
//! the cosine, with a cubic term that is cut off where it would turn them, and a pair closer than in all samples is nowhere [`DIP`] lower than at its shortest, with as much more of its steepest function as that takes.

use std::sync::Mutex;

use super::terms::{self, OF_PAIR, Term, Terms, starts};
use super::{Spring, Springs};
use crate::engine::Pool;
use crate::particles::Subspace;
use crate::process::Process;
use crate::rng::{Purpose, Stream};
use crate::system::matrix::{add, cholesky, dot};
use crate::{Error, Result};

/// Times at which springs are fitted.
const TIMES: usize = 49;
/// Most samples of a time, and of the fit at the data.
const SAMPLES: usize = 2048;
const SAMPLES_AT_DATA: usize = 4096;
/// Added to the diagonal of a fit's matrix, whose entries are about one; at the data the best of these.
const RIDGE: f64 = 1e-5;
const RIDGES: [f64; 9] = [1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 1e-2, 1e-1, 1.0];
/// How much lower a pair's energy may be at distances shorter than those of the samples, in kT.
const DIP: f64 = 1.0;
/// Places between nothing and the shortest distance at which this is seen to, and rounds of doing so before the rest of the numbers stay as they are.
const PLACES: usize = 64;
const ROUNDS: usize = 8;
/// Parts of the samples whose sums are made alone.
const PARTS: usize = 16;

/// Rows that springs are fitted to, in the model's coordinates.
#[derive(Debug, Clone, Copy)]
pub struct SpringRows<'a> {
    /// Rows of the data.
    pub start: &'a [f64],
    /// Rows of the second endpoint of an interpolant.
    pub end: Option<&'a [f64]>,
    /// Exact scores of the data at both kinds of rows, where they are known.
    pub scores: [Option<&'a [f64]>; 2],
    /// What the rows' points are of, if particles come without their centre.
    pub subspace: Option<Subspace>,
    /// Numbers of a row.
    pub dim: usize,
    /// Particles of a row.
    pub particles: usize,
    /// Mean and variance of the data, for the Gaussian that a diffusion has below the springs.
    pub mean: &'a [f64],
    /// See there.
    pub variance: f64,
    /// Whether mirror images may differ.
    pub chiral: bool,
}

/// Noisy particles at a time.
struct Samples {
    columns: usize,
    space: usize,
    rows: Vec<f64>,
    /// Slope of the Gaussian below the springs; empty if there is none.
    gaussian: Vec<f64>,
    /// Exact scores of the sources divided by their share; empty if unknown.
    scores: Vec<f64>,
}

impl Samples {
    fn count(&self) -> usize {
        self.rows.len() / self.columns
    }

    /// Draws: the same rows and noise at all times. Even samples are of the first half of the rows, odd ones of the second.
    fn at(process: &Process, time: f64, of: &SpringRows<'_>, count: usize, seed: u64) -> Samples {
        let dim = of.dim;
        let columns = of.subspace.map_or(dim, |of| of.columns());
        let (a, b, noise) = (
            process.x0_scale(time),
            process.x1_scale(time),
            process.noise(time),
        );
        let (share, known) = if a >= b {
            (a, of.scores[0])
        } else {
            (b, of.scores[1])
        };
        let below = (!process.is_interpolant()).then_some(a * a * of.variance + noise * noise);
        let outward = |point: &[f64], out: &mut Vec<f64>| {
            let from = out.len();
            out.resize(from + columns, 0.0);
            match of.subspace {
                Some(subspace) => subspace.outward(point, &mut out[from..]),
                None => out[from..].copy_from_slice(point),
            }
        };
        let mut samples = Samples {
            columns,
            space: columns / of.particles,
            rows: Vec::with_capacity(count * columns),
            gaussian: Vec::new(),
            scores: Vec::new(),
        };
        let mut point = vec![0.0; dim];
        for number in 0..count {
            let mut stream = Stream::new(seed, Purpose::Springs, 0, number as u64);
            let mut pick = |rows: &[f64]| {
                let all = rows.len() / dim;
                let (from, to) = match number % 2 {
                    0 => (0, all / 2),
                    _ => (all / 2, all),
                };
                (from + stream.below((to - from) as u64) as usize) * dim
            };
            let first = pick(of.start);
            let second = of.end.map(|end| (end, pick(end)));
            for (i, y) in point.iter_mut().enumerate() {
                let other = second.map_or(0.0, |(end, at)| end[at + i]);
                *y = a * of.start[first + i] + b * other + noise * stream.normal();
            }
            outward(&point, &mut samples.rows);
            if let Some(below) = below {
                let slope = point.iter().zip(of.mean).map(|(y, m)| (y - a * m) / below);
                outward(&slope.collect::<Vec<_>>(), &mut samples.gaussian);
            }
            if let Some(known) = known {
                let at = if a >= b {
                    first
                } else {
                    second.map_or(0, |(_, at)| at)
                };
                let score = known[at..at + dim].iter().map(|s| s / share);
                outward(&score.collect::<Vec<_>>(), &mut samples.scores);
            }
        }
        samples
    }
}

/// What becomes of torsions and pairs in a fit.
#[derive(Clone, Copy)]
enum Soft<'a> {
    /// A number for each function of each class.
    Each { chiral: bool },
    /// One number for all of them together, with these of each end; that of this end is fitted.
    Together { ends: &'a [Vec<f64>], of: usize },
}

/// The functions of a fit.
struct Functions<'a> {
    terms: &'a Terms,
    length: f64,
    /// Middles of the classes that are held.
    middles: &'a [f64],
    /// First function of each class that is held, and of each that is soft; their number in all.
    held: Vec<usize>,
    soft: Vec<usize>,
    size: usize,
    what: Soft<'a>,
}

/// A bond has `u` and `u^2 / 2`, an angle `u^3 / 6` too.
fn of_held(term: &Term) -> usize {
    term.of.len()
}

/// Functions at a point: values, Laplacians, and for each coordinate the slopes of all.
struct Values {
    value: Vec<f64>,
    laplacian: Vec<f64>,
    slopes: Vec<f64>,
    /// Values of all that is soft with the numbers of each end.
    ends: [f64; 2],
}

impl<'a> Functions<'a> {
    fn new(terms: &'a Terms, length: f64, middles: &'a [f64], what: Soft<'a>) -> Self {
        let (held, next) = starts(&terms.held, 0, of_held);
        let (soft, each) = starts(&terms.soft, next, terms::functions);
        Functions {
            terms,
            length,
            middles,
            held,
            soft,
            size: match what {
                Soft::Each { .. } => each,
                Soft::Together { .. } => next + 1,
            },
            what,
        }
    }

    /// See [`Sums`]: a pair that is far apart in all rows has no slope to speak of, and a number that would throw it about where it is not. A kT over the length of a bond is what counts.
    fn weak(&self) -> (usize, f64) {
        match self.what {
            Soft::Each { .. } => (self.of_held(), self.length.powi(-2)),
            Soft::Together { .. } => (self.size, 0.0),
        }
    }

    /// Number of functions of bonds and angles.
    fn of_held(&self) -> usize {
        starts(&self.terms.held, 0, of_held).1
    }

    fn at(&self, row: &[f64], space: usize, out: &mut Values) {
        out.value.fill(0.0);
        out.laplacian.fill(0.0);
        out.slopes.fill(0.0);
        out.ends = [0.0; 2];
        let size = self.size;
        let mut add = |term: &Term, k: usize, jet: &super::jet::Jet, factor: f64| {
            out.value[k] += factor * jet.value;
            out.laplacian[k] += factor * jet.laplacian;
            for (p, end) in term.of.iter().enumerate() {
                for axis in 0..space {
                    out.slopes[(*end as usize * space + axis) * size + k] +=
                        factor * jet.gradient[p * space + axis];
                }
            }
        };
        for term in &self.terms.held {
            let class = term.class as usize;
            let jet = terms::held(term, row, space, self.length);
            let u = jet.shifted(-self.middles[class]);
            let first = self.held[class];
            add(term, first, &u, 1.0);
            add(term, first + 1, &(u * u), 0.5);
            if of_held(term) == 3 {
                add(term, first + 2, &(u * u * u), 1.0 / 6.0);
            }
        }
        let before = self.of_held();
        let mut ends = [0.0; 2];
        for term in &self.terms.soft {
            let first = self.soft[term.class as usize];
            terms::soft(term, row, space, self.length, |k, jet| match self.what {
                Soft::Each { chiral } => {
                    if chiral || term.of.len() == 2 || k < 3 {
                        add(term, first + k, &jet, 1.0);
                    }
                }
                Soft::Together { ends: numbers, of } => {
                    let place = first + k - before;
                    add(term, before, &jet, numbers[of][place]);
                    for (end, numbers) in ends.iter_mut().zip(numbers) {
                        *end += numbers[place] * jet.value;
                    }
                }
            });
        }
        out.ends = ends;
    }
}

/// Means over samples, from which numbers follow.
#[derive(Clone)]
struct Sums {
    size: usize,
    /// Functions from here on are penalised as if their mean square slope were at least this much.
    weak: (usize, f64),
    count: f64,
    /// `M`, below the diagonal and on it.
    matrix: Vec<f64>,
    /// Both right-hand sides.
    hyvarinen: Vec<f64>,
    known: Vec<f64>,
    /// Mean square of the known scores with the Gaussian's slope.
    square: f64,
    /// Means of the Laplacians and of what is soft.
    laplacian: Vec<f64>,
    ends: [f64; 2],
}

impl Sums {
    fn zero(functions: &Functions<'_>) -> Sums {
        let size = functions.size;
        Sums {
            size,
            weak: functions.weak(),
            count: 0.0,
            matrix: vec![0.0; size * size],
            hyvarinen: vec![0.0; size],
            known: vec![0.0; size],
            square: 0.0,
            laplacian: vec![0.0; size],
            ends: [0.0; 2],
        }
    }

    /// Of the even samples and of the odd ones.
    fn halves(functions: &Functions<'_>, samples: &Samples, pool: &Pool) -> [Sums; 2] {
        let count = samples.count();
        let size = functions.size;
        let parts: Vec<Mutex<Option<[Sums; 2]>>> = (0..PARTS).map(|_| Mutex::new(None)).collect();
        pool.run(PARTS, &|_, part| {
            let mut halves = [Sums::zero(functions), Sums::zero(functions)];
            let mut values = Values {
                value: vec![0.0; size],
                laplacian: vec![0.0; size],
                slopes: vec![0.0; samples.columns * size],
                ends: [0.0; 2],
            };
            let mut present = Vec::with_capacity(size);
            for number in part * count / PARTS..(part + 1) * count / PARTS {
                let columns = samples.columns;
                let of = |all: &'_ Vec<f64>| -> Option<std::ops::Range<usize>> {
                    (!all.is_empty()).then(|| number * columns..(number + 1) * columns)
                };
                let row = &samples.rows[number * columns..][..columns];
                functions.at(row, samples.space, &mut values);
                let gaussian = of(&samples.gaussian).map(|range| &samples.gaussian[range]);
                let scores = of(&samples.scores).map(|range| &samples.scores[range]);
                halves[number % 2].take(&values, gaussian, scores, &mut present);
            }
            if let Ok(mut place) = parts[part].lock() {
                *place = Some(halves);
            }
        });
        let mut whole = [Sums::zero(functions), Sums::zero(functions)];
        for part in parts {
            let part = part.into_inner().ok().flatten();
            for (whole, part) in whole.iter_mut().zip(part.into_iter().flatten()) {
                whole.add(&part, 1.0);
            }
        }
        whole.map(|mut sums| {
            let count = sums.count.max(1.0);
            sums.scale(1.0 / count);
            sums
        })
    }

    fn take(
        &mut self,
        values: &Values,
        gaussian: Option<&[f64]>,
        scores: Option<&[f64]>,
        present: &mut Vec<usize>,
    ) {
        let size = self.size;
        self.count += 1.0;
        add(1.0, &values.laplacian, &mut self.laplacian);
        add(1.0, &values.laplacian, &mut self.hyvarinen);
        for (axis, slopes) in values.slopes.chunks_exact(size).enumerate() {
            present.clear();
            present.extend((0..size).filter(|k| slopes[*k] != 0.0));
            let below = gaussian.map_or(0.0, |slope| slope[axis]);
            let wanted = scores.map_or(0.0, |score| -score[axis] - below);
            self.square += wanted * wanted;
            for (i, &k) in present.iter().enumerate() {
                let slope = slopes[k];
                self.hyvarinen[k] -= slope * below;
                self.known[k] += slope * wanted;
                let row = &mut self.matrix[k * size..][..size];
                for &l in &present[..=i] {
                    row[l] += slope * slopes[l];
                }
            }
        }
        for (sum, value) in self.ends.iter_mut().zip(values.ends) {
            *sum += value;
        }
    }

    fn add(&mut self, other: &Sums, factor: f64) {
        self.count += factor * other.count;
        self.square += factor * other.square;
        add(factor, &other.matrix, &mut self.matrix);
        add(factor, &other.hyvarinen, &mut self.hyvarinen);
        add(factor, &other.known, &mut self.known);
        add(factor, &other.laplacian, &mut self.laplacian);
        for (sum, value) in self.ends.iter_mut().zip(other.ends) {
            *sum += factor * value;
        }
    }

    fn scale(&mut self, factor: f64) {
        let numbers = [
            &mut self.matrix,
            &mut self.hyvarinen,
            &mut self.known,
            &mut self.laplacian,
        ];
        for x in numbers.into_iter().flatten().chain(&mut self.ends) {
            *x *= factor;
        }
        self.count *= factor;
        self.square *= factor;
    }

    fn mean_of([a, b]: &[Sums; 2]) -> Sums {
        let mut mean = a.clone();
        mean.add(b, 1.0);
        mean.scale(0.5);
        mean
    }

    /// `M c`.
    fn times(&self, c: &[f64]) -> Vec<f64> {
        let size = self.size;
        (0..size)
            .map(|k| {
                let below = dot(&self.matrix[k * size..][..=k], &c[..=k]);
                let above = (k + 1..size).map(|l| self.matrix[l * size + k] * c[l]);
                below + above.sum::<f64>()
            })
            .collect()
    }

    /// The right-hand side; see the module's text.
    fn side(&self, weight: f64) -> Vec<f64> {
        let both = self.hyvarinen.iter().zip(&self.known);
        both.map(|(h, k)| weight * h + (1.0 - weight) * k).collect()
    }

    /// `w`: 1 where no scores are known.
    fn weight(&self, used: &[usize], ridge: f64) -> f64 {
        if self.square == 0.0 {
            return 1.0;
        }
        let mut weight = 0.5;
        for _ in 0..4 {
            let c = self.solve(used, &self.side(weight), ridge);
            let own = dot(&c, &self.times(&c));
            let left = (self.square - 2.0 * dot(&c, &self.known) + own).max(0.0);
            weight = left / (left + own).max(f64::MIN_POSITIVE);
        }
        weight
    }

    /// Numbers of the functions that are used, zero for others. Every entry is in units of its own diagonal (or more, if it is weak), so that the ridge means the same for all.
    fn solve(&self, used: &[usize], side: &[f64], ridge: f64) -> Vec<f64> {
        let (n, size) = (used.len(), self.size);
        let mut numbers = vec![0.0; size];
        let inverse = |&k: &usize| {
            let (first, least) = self.weak;
            let square = self.matrix[k * size + k].max(if k < first { 0.0 } else { least });
            if square > 0.0 {
                square.sqrt().recip()
            } else {
                0.0
            }
        };
        let unit: Vec<f64> = used.iter().map(inverse).collect();
        let mut matrix = vec![0.0; n * n];
        for (i, &k) in used.iter().enumerate() {
            for (j, &l) in used[..=i].iter().enumerate() {
                let entry = self.matrix[k.max(l) * size + k.min(l)] * unit[i] * unit[j];
                matrix[i * n + j] = entry;
                matrix[j * n + i] = entry;
            }
            matrix[i * n + i] += if unit[i] > 0.0 { ridge } else { 1.0 };
        }
        let Some(factor) = cholesky(&matrix, n) else {
            return numbers;
        };
        let mut x: Vec<f64> = used.iter().zip(&unit).map(|(&k, u)| side[k] * u).collect();
        for i in 0..n {
            let known = dot(&factor[i * n..][..i], &x[..i]);
            x[i] = (x[i] - known) / factor[i * n + i];
        }
        for i in (0..n).rev() {
            x[i] /= factor[i * n + i];
            let value = x[i];
            add(-value, &factor[i * n..][..i], &mut x[..i]);
        }
        for ((&k, x), u) in used.iter().zip(x).zip(unit) {
            numbers[k] = x * u;
        }
        numbers
    }

    /// What score matching makes of some numbers here: the less, the better.
    fn misfit(&self, c: &[f64], side: &[f64]) -> f64 {
        0.5 * dot(c, &self.times(c)) - dot(c, side)
    }
}

/// Mean, variance and third moment of the coordinate of each class.
struct Moments {
    middle: Vec<f64>,
    second: Vec<f64>,
    third: Vec<f64>,
}

impl Moments {
    fn of(held: &[Term], samples: &Samples, length: f64) -> Moments {
        let classes = terms::classes(held);
        let mut members = vec![0.0; classes];
        held.iter()
            .for_each(|term| members[term.class as usize] += samples.count() as f64);
        let rows = samples.rows.chunks_exact(samples.columns);
        let values: Vec<f64> = rows
            .flat_map(|row| {
                held.iter()
                    .map(|term| terms::held(term, row, samples.space, length).value)
            })
            .collect();
        let mean = |of: &dyn Fn(usize, f64) -> f64| {
            let mut sums = vec![0.0; classes];
            for (k, value) in values.iter().enumerate() {
                let class = held[k % held.len()].class as usize;
                sums[class] += of(class, *value) / members[class];
            }
            sums
        };
        let middle = mean(&|_, value| value);
        let second = mean(&|class, value| (value - middle[class]).powi(2));
        let third = mean(&|class, value| (value - middle[class]).powi(3));
        Moments {
            middle,
            second,
            third,
        }
    }

    /// Mean of a spring's energy over these samples.
    fn energy(&self, class: usize, spring: &Spring) -> f64 {
        let (second, third) = (self.second[class], self.third[class]);
        let by = self.middle[class] - spring.middle;
        spring.slope * by
            + spring.stiffness * (second + by * by) / 2.0
            + spring.skew * (third + 3.0 * second * by + by.powi(3)) / 6.0
    }
}

/// The numbers of all that is soft, at the data: those that match the scores of the other half of the samples best. None if they are matched better without. Pairs have
/// no wells at distances shorter than `shortest`.
fn at_data(sums: &[Sums; 2], held: usize, shortest: &[Closest]) -> Option<Vec<f64>> {
    let size = sums[0].size;
    let all: Vec<usize> = (0..size).collect();
    let weight = Sums::mean_of(sums).weight(&all, 1e-4);
    let sides = [0, 1].map(|half: usize| sums[half].side(weight));
    let misfit = |used: &[usize], ridge: f64| -> f64 {
        let crossed = [(0, 1), (1, 0)].map(|(a, b): (usize, usize)| {
            let c = sums[a].solve(used, &sides[a], ridge);
            sums[b].misfit(&c, &sides[b])
        });
        crossed.iter().sum()
    };
    let without = misfit(&all[..held], RIDGE);
    let (best, ridge) = RIDGES
        .map(|ridge| (misfit(&all, ridge), ridge))
        .into_iter()
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    (best < without).then(|| {
        let mean = Sums::mean_of(sums);
        let c = without_wells(&mean, &mean.side(weight), ridge, shortest);
        c[held..].to_vec()
    })
}

/// The shortest distance of the pairs of a class.
pub(super) struct Closest {
    /// First function of the class.
    pub(super) first: usize,
    /// Its square, in units of that of the mean bond.
    pub(super) square: f64,
}

impl Closest {
    /// Of all classes of pairs in some samples.
    fn of(functions: &Functions<'_>, samples: &Samples) -> Vec<Closest> {
        let mut found: Vec<Closest> = Vec::new();
        let pairs = functions
            .terms
            .soft
            .iter()
            .filter(|term| term.of.len() == 2);
        for pair in pairs {
            let first = functions.soft[pair.class as usize];
            let ends = [0, 1].map(|end: usize| pair.of[end] as usize * samples.space);
            let rows = samples.rows.chunks_exact(samples.columns);
            let squares = rows.map(|row| {
                let gap = |axis: usize| row[ends[0] + axis] - row[ends[1] + axis];
                (0..samples.space)
                    .map(|axis| gap(axis).powi(2))
                    .sum::<f64>()
            });
            let square = squares.fold(f64::INFINITY, f64::min) / functions.length.powi(2);
            match found.iter_mut().find(|known| known.first == first) {
                Some(known) => known.square = known.square.min(square),
                None => found.push(Closest { first, square }),
            }
        }
        found
    }

    /// How much more of the steepest function keeps a pair with these numbers from wells; 0 if there are none.
    pub(super) fn lacks(&self, c: &[f64]) -> f64 {
        const LAST: usize = OF_PAIR.len() - 1;
        let function = |k: usize, square: f64| {
            let (power, factor) = OF_PAIR[k];
            factor * (1.0 + square).powf(power)
        };
        let energy = |square: f64| -> f64 {
            let values = (0..OF_PAIR.len()).map(|k| c[self.first + k] * function(k, square));
            values.sum()
        };
        let most = (0..PLACES).map(|place| {
            let square = self.square * (place as f64 / PLACES as f64).powi(2);
            let well = energy(self.square) - DIP - energy(square);
            well / (function(LAST, square) - function(LAST, self.square))
        });
        most.fold(0.0, f64::max)
    }
}

/// The numbers of all functions, where a pair that would have a well at distances that no sample has gets what it lacks and the others are fitted beside it.
fn without_wells(sums: &Sums, side: &[f64], ridge: f64, shortest: &[Closest]) -> Vec<f64> {
    let size = sums.size;
    let mut given = vec![None; size];
    let mut round = 0;
    loop {
        let used: Vec<usize> = (0..size).filter(|k| given[*k].is_none()).collect();
        let known: Vec<f64> = given.iter().map(|c| c.unwrap_or(0.0)).collect();
        let taken = sums.times(&known);
        let left: Vec<f64> = side.iter().zip(&taken).map(|(s, t)| s - t).collect();
        let mut c = sums.solve(&used, &left, ridge);
        add(1.0, &known, &mut c);
        round += 1;
        let mut whole = true;
        for pair in shortest {
            let lacks = pair.lacks(&c);
            if lacks > 0.0 {
                let steepest = pair.first + OF_PAIR.len() - 1;
                c[steepest] += lacks;
                given[steepest] = Some(c[steepest]);
                whole = false;
            }
        }
        if whole || round == ROUNDS {
            return c;
        }
    }
}

/// Whether the numbers of each half of the samples match the scores of the other half better than none do.
fn serves(sums: &[Sums; 2]) -> bool {
    let all: Vec<usize> = (0..sums[0].size).collect();
    let weight = Sums::mean_of(sums).weight(&all, RIDGE);
    let sides = [0, 1].map(|half: usize| sums[half].side(weight));
    let crossed = [(0, 1), (1, 0)].map(|(a, b): (usize, usize)| {
        let c = sums[a].solve(&all, &sides[a], RIDGE);
        sums[b].misfit(&c, &sides[b])
    });
    crossed.iter().sum::<f64>() < 0.0
}

/// Times of the fit: out of the levels of an interpolant, between the first and the last level of a diffusion.
fn times_of_fit(process: &Process, levels: &[f64]) -> Vec<f64> {
    let last = levels.len() - 1;
    let noise = [levels[0], levels[last]].map(|time| process.noise_level(time).ln());
    let apart = (noise[1] - noise[0]) / (TIMES - 1) as f64;
    if !process.is_interpolant() && apart.is_finite() && apart > 0.0 {
        let between = (1..TIMES - 1).filter_map(|k| {
            let noise_level = (noise[0] + k as f64 * apart).exp();
            process.time_of_noise_level(noise_level)
        });
        let between = between.filter(|time| levels[0] < *time && *time < levels[last]);
        return std::iter::once(levels[0])
            .chain(between)
            .chain([levels[last]])
            .collect();
    }
    let knots = TIMES.min(levels.len());
    (0..knots).map(|k| levels[last * k / (knots - 1)]).collect()
}

/// What a time's fit gives.
struct Knot {
    springs: Vec<Spring>,
    strengths: Vec<f64>,
    moments: Moments,
    ends: [f64; 2],
    curvature: f64,
}

/// The springs that match the scores best; a bond that would rather be pushed than held gets none, nor does what is soft. `rising`: nor does an angle, and the others rise to both ends.
fn knot(
    functions: &Functions<'_>,
    moments: Moments,
    sums: &Sums,
    ends: usize,
    dim: usize,
    rising: bool,
) -> Knot {
    let held = functions.of_held();
    let classes = functions.held.len();
    let is_bond = |class: usize| {
        let mut terms = functions.terms.held.iter();
        terms.any(|term| term.class as usize == class && term.of.len() == 2)
    };
    let mut loose = vec![false; classes];
    let mut leaning = !functions.terms.soft.is_empty();
    let mut numbers = loop {
        let left_out = |k: usize| {
            let class = functions.held.partition_point(|first| *first <= k) - 1;
            if k < held { loose[class] } else { !leaning }
        };
        let used: Vec<usize> = (0..sums.size).filter(|k| !left_out(*k)).collect();
        let weight = sums.weight(&used, RIDGE);
        let numbers = sums.solve(&used, &sums.side(weight), RIDGE);
        let pushed: Vec<usize> = (0..classes)
            .filter(|class| (rising || is_bond(*class)) && !loose[*class])
            .filter(|class| numbers[functions.held[*class] + 1] <= 0.0)
            .collect();
        if leaning && numbers[held] <= 0.0 {
            leaning = false;
        } else if pushed.is_empty() {
            break numbers;
        }
        pushed.into_iter().for_each(|class| loose[class] = true);
    };
    // With as much of the cubic term as leaves the energy level at an end, and the same mean slope.
    for class in (0..classes).filter(|class| rising && !is_bond(*class)) {
        let first = functions.held[class];
        let (middle, stiffness) = (moments.middle[class], numbers[first + 1]);
        let skew = numbers[first + 2];
        let least = -2.0 * stiffness / (1.0 - middle);
        let most = skew.max(least).min(2.0 * stiffness / (1.0 + middle));
        numbers[first] += (skew - most) * moments.second[class] / 2.0;
        numbers[first + 2] = most;
    }
    let springs = (0..classes).map(|class| {
        let first = functions.held[class];
        Spring {
            middle: moments.middle[class],
            slope: numbers[first],
            stiffness: numbers[first + 1],
            skew: if is_bond(class) {
                0.0
            } else {
                numbers[first + 2]
            },
        }
    });
    let springs = springs.collect();
    let mut strengths = vec![0.0; ends];
    if let (Soft::Together { of, .. }, true) = (functions.what, leaning) {
        strengths[of] = numbers[held];
    }
    Knot {
        springs,
        strengths,
        moments,
        ends: sums.ends,
        curvature: dot(&numbers, &sums.laplacian) / dim as f64,
    }
}

impl Knot {
    /// The same time without springs.
    fn without(mut self) -> Knot {
        for spring in &mut self.springs {
            *spring = Spring {
                middle: spring.middle,
                ..Spring::default()
            };
        }
        self.strengths.fill(0.0);
        self
    }
}

impl Springs {
    /// Fits springs to rows noised by a process, at times between the first and the last of `levels`; the noisiest time of a diffusion has none, its law is known.
    ///
    /// # Errors
    /// [`Error::Value`] for fewer than four rows or two times.
    pub fn fit(
        process: &Process,
        levels: &[f64],
        terms: Terms,
        rows: SpringRows<'_>,
        seed: u64,
        pool: &Pool,
    ) -> Result<Springs> {
        let dim = rows.dim;
        let count = rows.start.len() / dim;
        let count = count.min(rows.end.map_or(usize::MAX, |end| end.len() / dim));
        if count < 4 || levels.len() < 2 {
            return Err(Error::Value {
                name: "springs",
                found: format!("{count} rows at {} times", levels.len()),
                expected: "at least four rows and two times".into(),
            });
        }
        let times = times_of_fit(process, levels);
        let knots = times.len();
        let draw =
            |time: f64, most: usize| Samples::at(process, time, &rows, most.min(8 * count), seed);
        // The data: where soft terms are fitted. The length does not enter bonds.
        let mut at_ends = vec![draw(times[0], SAMPLES_AT_DATA)];
        if process.is_interpolant() {
            at_ends.push(draw(times[knots - 1], SAMPLES_AT_DATA));
        }
        let bonds = terms.held.iter().filter(|term| term.of.len() == 2);
        let bonds: Vec<Term> = bonds.cloned().collect();
        let lengths = Moments::of(&bonds, &at_ends[0], 1.0).middle;
        let length = bonds.iter().map(|bond| lengths[bond.class as usize]);
        let length = length.sum::<f64>() / bonds.len() as f64;
        let mut soft = Vec::with_capacity(at_ends.len());
        for samples in &at_ends {
            let middle = Moments::of(&terms.held, samples, length).middle;
            let chiral = rows.chiral;
            let functions = Functions::new(&terms, length, &middle, Soft::Each { chiral });
            let held = functions.of_held();
            let none = vec![0.0; functions.size - held];
            let sums = Sums::halves(&functions, samples, pool);
            let shortest = match process.is_interpolant() {
                true => Vec::new(),
                false => Closest::of(&functions, samples),
            };
            soft.push(at_data(&sums, held, &shortest).unwrap_or(none));
        }
        drop(at_ends);
        let mut over = false;
        let found = times.iter().enumerate().map(|(at, &time)| {
            let samples = draw(time, SAMPLES);
            let moments = Moments::of(&terms.held, &samples, length);
            let middle = moments.middle.clone();
            let of = usize::from(process.x0_scale(time) < process.x1_scale(time));
            let what = Soft::Together { ends: &soft, of };
            let functions = Functions::new(&terms, length, &middle, what);
            let halves = Sums::halves(&functions, &samples, pool);
            over |= !process.is_interpolant() && (at == knots - 1 || !serves(&halves));
            let sums = Sums::mean_of(&halves);
            let rising = !process.is_interpolant();
            let knot = knot(&functions, moments, &sums, soft.len(), dim, rising);
            if over { knot.without() } else { knot }
        });
        let found: Vec<Knot> = found.collect();
        Ok(Springs {
            offsets: offsets(process, &terms.held, &found),
            curvatures: found.iter().map(|knot| knot.curvature).collect(),
            strengths: found.iter().map(|knot| knot.strengths.clone()).collect(),
            springs: found.into_iter().map(|knot| knot.springs).collect(),
            held: terms.held,
            soft: terms.soft,
            length,
            times,
            leaning: soft,
        })
    }
}

/// `o`: minus the integral of the mean of `dU_s/dt` over the samples, zero where the springs' law is known: at the noisiest time of a diffusion, at time 0 of an
/// interpolant. Within a step in time its mean is that of the rise of `U_s` over the samples of both times.
fn offsets(process: &Process, held: &[Term], knots: &[Knot]) -> Vec<f64> {
    let energy = |springs: &Knot, over: &Knot| -> f64 {
        let of_term = |term: &Term| {
            let class = term.class as usize;
            over.moments.energy(class, &springs.springs[class])
        };
        held.iter().map(of_term).sum::<f64>()
            + dot(&springs.strengths, &over.ends[..springs.strengths.len()])
    };
    let rise = |a: &Knot, b: &Knot| {
        let over = |samples: &Knot| energy(b, samples) - energy(a, samples);
        0.5 * (over(a) + over(b))
    };
    let mut offsets = vec![0.0; knots.len()];
    for k in 1..knots.len() {
        offsets[k] = offsets[k - 1] - rise(&knots[k - 1], &knots[k]);
    }
    if !process.is_interpolant() {
        let last = offsets[knots.len() - 1];
        offsets.iter_mut().for_each(|o| *o -= last);
    }
    offsets
}
