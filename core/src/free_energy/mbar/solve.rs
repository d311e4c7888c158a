//! The MBAR equations: self-consistent steps from a [`start`](super::start), then Newton's method with a line search.
//!
//! The equations are those for the minimum of the convex function `sum_n log sum_k N_k exp(f_k - u_kn) - sum_k N_k f_k`
//! (Shirts and Chodera 2008, appendix C; Zhang, Gallicchio, Levy 2012), whose gradient is `sum_n p_nk - N_k` and whose
//! Hessian is `diag(sum_n p_nk) - sum_n p_nj p_nk`. One pass over the samples gives all of it.

use super::pass::{Pass, Sums};
use super::{Mbar, MbarSettings};
use crate::engine::{Isa, Pool};
use crate::free_energy::ReducedEnergies;
use crate::system::matrix::inverse_and_log_det;
use crate::{Error, Result};

/// Self-consistent steps end when every state's weight is right within this share.
const NEAR: f64 = 0.1;
/// And after so many steps in any case: Newton's method takes over.
const MOST_SELF_CONSISTENT: usize = 8;
/// Two groups of states that share less than this many samples are apart: their difference would have a standard
/// deviation above 100 kT.
const SHARED_SAMPLES: f64 = 1e-4;
/// A Newton step below this that no longer shrinks has met the rounding of the sums.
const ROUNDING: f64 = 1e-9;

/// The solution over the sampled states.
pub(super) struct Solution {
    /// f of the sampled states, the first one 0.
    pub f: Vec<f64>,
    /// The sums there, Gram matrix included.
    pub sums: Sums,
    pub iterations: usize,
}

/// The problem over the sampled states.
pub(super) struct Problem<'a> {
    pub energies: &'a dyn ReducedEnergies,
    pub sampled: &'a [usize],
    /// Samples (or their weight) of each of them.
    pub counts: &'a [f64],
    pub weights: Option<&'a [f64]>,
    pub pool: &'a Pool,
    pub isa: Isa,
}

impl<'a> Problem<'a> {
    pub fn pass(&self, f: &[f64]) -> Pass<'a> {
        Pass {
            energies: self.energies,
            sampled: self.sampled,
            offsets: f.iter().zip(self.counts).map(|(f, n)| f + n.ln()).collect(),
            weights: self.weights,
            pool: self.pool,
            isa: self.isa,
        }
    }

    fn objective(&self, f: &[f64], sums: &Sums) -> f64 {
        let linear: f64 = f.iter().zip(self.counts).map(|(f, n)| f * n).sum();
        sums.log_denominators - linear
    }

    /// Largest relative error of a state's weight, and whose it is.
    fn residual(&self, sums: &Sums) -> (f64, usize) {
        largest(
            sums.totals
                .iter()
                .zip(self.counts)
                .map(|(total, n)| total / n - 1.0),
        )
    }

    /// f from the start `f`.
    pub fn solve(&self, mut f: Vec<f64>, settings: &MbarSettings) -> Result<Solution> {
        let states = self.sampled.len();
        for _ in 0..MOST_SELF_CONSISTENT {
            let sums = self.pass(&f).sums(false, None);
            for ((f, total), n) in f.iter_mut().zip(&sums.totals).zip(self.counts) {
                // A state that lost all its weight would go to infinity in one step.
                *f -= (total / n).max(1e-10).ln();
            }
            anchor(&mut f);
            if self.residual(&sums).0 < NEAR {
                break;
            }
        }
        let mut sums = self.pass(&f).sums(true, None);
        let mut previous = f64::INFINITY;
        for iteration in 1..=settings.max_iterations {
            let step = self.newton_step(&sums);
            let (size, _) = largest(step.iter().copied());
            let scale = 1.0 + largest(f.iter().copied()).0;
            let stalled = size < ROUNDING * scale && size > 0.5 * previous;
            if size <= settings.tolerance * scale || stalled {
                self.refuse_disconnected(&sums)?;
                f.iter_mut().zip(&step).for_each(|(f, step)| *f += step);
                return Ok(Solution {
                    f,
                    sums,
                    iterations: iteration,
                });
            }
            previous = size;
            let here = self.objective(&f, &sums);
            let slope: f64 = (0..states)
                .map(|k| (sums.totals[k] - self.counts[k]) * step[k])
                .sum();
            let norm = self.residual(&sums).0;
            let mut length = 1.0;
            loop {
                let trial: Vec<f64> = f.iter().zip(&step).map(|(f, s)| f + length * s).collect();
                let there = self.pass(&trial).sums(true, None);
                // Near the minimum the objective is all rounding; there the residual decides.
                let lower = self.objective(&trial, &there) <= here + 1e-4 * length * slope;
                if lower || self.residual(&there).0 < norm {
                    (f, sums) = (trial, there);
                    break;
                }
                length *= 0.5;
                if length < 1e-9 {
                    self.refuse_disconnected(&sums)?;
                    return Err(self.not_converged(iteration, &step));
                }
            }
        }
        self.refuse_disconnected(&sums)?;
        let step = self.newton_step(&sums);
        Err(self.not_converged(settings.max_iterations, &step))
    }

    fn not_converged(&self, iterations: usize, step: &[f64]) -> Error {
        let (change, worst) = largest(step.iter().copied());
        Error::NotConverged {
            method: "MBAR",
            iterations,
            change,
            state: self.sampled[worst],
        }
    }

    /// `-H^-1 gradient` with the first state held fixed. A Hessian that is singular to rounding gets a small ridge.
    fn newton_step(&self, sums: &Sums) -> Vec<f64> {
        let states = self.sampled.len();
        let mut step = vec![0.0; states];
        let free = states - 1;
        if free == 0 {
            return step;
        }
        let hessian = |i: usize, j: usize| {
            let own = if i == j { sums.totals[i] } else { 0.0 };
            own - 0.5 * (sums.gram[i * states + j] + sums.gram[j * states + i])
        };
        let mut ridge = 0.0;
        for _ in 0..12 {
            let mut matrix = vec![0.0; free * free];
            for i in 0..free {
                for j in 0..free {
                    matrix[i * free + j] = hessian(i + 1, j + 1);
                }
                matrix[i * free + i] += ridge * self.counts[i + 1];
            }
            if let Some((inverse, _)) = inverse_and_log_det(&matrix, free) {
                for i in 0..free {
                    step[i + 1] = (0..free)
                        .map(|j| inverse[i * free + j] * (self.counts[j + 1] - sums.totals[j + 1]))
                        .sum();
                }
                if step.iter().all(|x| x.is_finite()) {
                    return step;
                }
            }
            ridge = if ridge == 0.0 { 1e-14 } else { ridge * 10.0 };
        }
        step
    }

    /// States that share samples, directly or through others, form a group; more than one group is an error.
    fn refuse_disconnected(&self, sums: &Sums) -> Result<()> {
        let states = self.sampled.len();
        let all = sums.totals.len();
        let mut group: Vec<usize> = (0..states).collect();
        for i in 0..states {
            for j in 0..i {
                // Not a number counts as apart.
                if sums.gram[i * all + j] > SHARED_SAMPLES {
                    let (a, b) = (group[i], group[j]);
                    group.iter_mut().filter(|g| **g == a).for_each(|g| *g = b);
                }
            }
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut names: Vec<usize> = Vec::new();
        for (state, name) in group.iter().enumerate() {
            match names.iter().position(|n| n == name) {
                Some(at) => groups[at].push(self.sampled[state]),
                None => {
                    names.push(*name);
                    groups.push(vec![self.sampled[state]]);
                }
            }
        }
        if groups.len() > 1 {
            return Err(Error::Disconnected { groups });
        }
        Ok(())
    }
}

/// Makes the first entry 0.
fn anchor(f: &mut [f64]) {
    let first = f[0];
    f.iter_mut().for_each(|f| *f -= first);
}

/// Largest magnitude and where it is; NaN counts as the largest.
fn largest(values: impl Iterator<Item = f64>) -> (f64, usize) {
    values.enumerate().fold((0.0, 0), |(most, at), (i, x)| {
        if x.is_nan() || x.abs() > most {
            (if x.is_nan() { f64::INFINITY } else { x.abs() }, i)
        } else {
            (most, at)
        }
    })
}

impl<'a> Mbar<'a> {
    /// Solves again with other weights of the samples, from the present solution; gives f of all states.
    pub(super) fn resolve(&self, weights: &[f64], counts: &[f64]) -> Result<Vec<f64>> {
        let problem = Problem {
            energies: self.energies,
            sampled: &self.sampled,
            counts,
            weights: Some(weights),
            pool: &self.pool,
            isa: self.isa,
        };
        let start = self.sampled.iter().map(|&k| self.f[k]).collect();
        let solution = problem.solve(start, &self.settings)?;
        Ok(self.all_states(&problem, &solution))
    }
}
