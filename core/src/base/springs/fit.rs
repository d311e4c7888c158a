//! Fits springs to rows noised by a process.
//!
//! At a time the numbers `c` of the functions `f` minimise `E |grad U_s + grad U_g + score|^2` over the noisy points, a quadratic function of them:
//! ```text
//! M c = b,      M = E[grad f . grad f],      b = E[laplacian f - grad f . grad U_g]
//! ```
//! (`U_g` the Gaussian below the springs of a diffusion.) The right-hand side is Hyvärinen's (2005), which knows points alone; where the exact score of the data is known at the rows,
//! `-E[grad f . (s / a + grad U_g)]` is the same number (`a` the share of the nearer end, De Bortoli et al. 2024), nearly without noise close to that end. Both are averaged by how
//! much of the score each leaves open: `b = w b_H + (1 - w) b_s`, `w = r / (r + q)` with `r` the mean square of what is left of the known scores and `q` that of `grad U_s` itself
//! (where rows belong together, known scores are off by a share of what is soft, whose square counts once for each sample).
//! At the data the exact energies take part beside them, `lambda var(U_s - u)` with `lambda` the ratio of what both leave open: scores within two basins say nothing about how deep one is beside the other.
//!
//! Torsions and pairs have many numbers, which say much close to the data and little elsewhere: all are fitted once at the data (with a ridge that makes the other half of the rows most likely to be
//! matched, or left out if they do not help), and at other times one number tells how much of them is left, of both ends by their shares in the point.
//!
//! The times of a diffusion are apart by equal steps of the noise level's logarithm: what is stiff goes soft within the first hundredths of the time, and between two times on both sides of
//! that a spring would be far too stiff. Numbers of few samples are off by chance, and score matching weighs the scores of a diffusion by the square of the noise level: where noise is large,
//! springs by chance would be all that a network sees. So they end at the first time at which those of one half of the rows serve the other half no better than none.
//!
//! Dynamics on the energy of a diffusion comes to where no rows are, and what is fitted to the rows says nothing there. No spring of a diffusion falls beyond them: angles rise to both ends of
//! the cosine, with a cubic term that is cut off where it would turn them, and a pair closer than in all samples is nowhere lower than at its shortest (`wells.rs`).

use super::functions::{Functions, Soft};
use super::samples::{Samples, SpringRows};
use super::sums::Sums;
use super::terms::{self, Term, Terms};
use super::wells::{Closest, without_wells};
use super::{Spring, Springs};
use crate::engine::Pool;
use crate::process::Process;
use crate::system::matrix::dot;
use crate::{Error, Result};

/// Times at which springs are fitted.
const TIMES: usize = 49;
/// Most samples of a time, and of the fit at the data.
const SAMPLES: usize = 2048;
const SAMPLES_AT_DATA: usize = 8192;
/// Added to the diagonal of a fit's matrix, whose entries are about one; at the data the best of these.
const RIDGE: f64 = 1e-5;
const RIDGES: [f64; 9] = [1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 1e-2, 1e-1, 1.0];
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
fn at_data(sums: &[Sums; 2], held: usize, dim: usize, shortest: &[Closest]) -> Option<Vec<f64>> {
    let size = sums[0].size;
    let all: Vec<usize> = (0..size).collect();
    let of_energies = Sums::mean_of(sums).energy_weight(&all, 1e-4, dim);
    let sums = &[0, 1].map(|half: usize| sums[half].with_energies(of_energies));
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
    let held = functions.of_held;
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
    if let (Soft::Together { shares, .. }, true) = (functions.what, leaning) {
        for (strength, share) in strengths.iter_mut().zip(shares) {
            *strength = share * numbers[held];
        }
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
        // Energies are known without noise.
        let ends = [(times[0], 0.0), (times[knots - 1], process.horizon())];
        let at_ends = (0..1 + usize::from(process.is_interpolant())).map(|end| {
            let (close, exact) = ends[end];
            let known = rows.energies[end].is_some();
            draw(if known { exact } else { close }, SAMPLES_AT_DATA)
        });
        let at_ends: Vec<Samples> = at_ends.collect();
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
            let held = functions.of_held;
            let none = vec![0.0; functions.size - held];
            let sums = Sums::halves(&functions, samples, pool);
            let shortest = match process.is_interpolant() {
                true => Vec::new(),
                false => Closest::of(&functions, samples),
            };
            soft.push(at_data(&sums, held, dim, &shortest).unwrap_or(none));
        }
        drop(at_ends);
        let mut over = false;
        let found = times.iter().enumerate().map(|(at, &time)| {
            let samples = draw(time, SAMPLES);
            let moments = Moments::of(&terms.held, &samples, length);
            let middle = moments.middle.clone();
            let (a, b) = (process.x0_scale(time), process.x1_scale(time));
            let what = Soft::Together {
                ends: &soft,
                shares: [a / (a + b), b / (a + b)],
            };
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
