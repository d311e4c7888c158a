//! MBAR: free energies of many states from all samples of all of them at once.
//!
//! Shirts and Chodera, J. Chem. Phys. 129, 124105 (2008). With N_k samples of state k and reduced energies u_kn,
//! `exp(-f_k) = sum_n exp(-u_kn) / sum_j N_j exp(f_j - u_jn)`. Here every result is given as `log Z_k = -f_k`, relative to
//! state 0.

mod bootstrap;
mod covariance;
mod pass;
mod solve;
mod start;
mod target;

pub use bootstrap::Bootstrapped;
pub use target::{Ensemble, Perturbed, Surface};

use super::{Overlap, ReducedEnergies};
use crate::engine::kernel::softmax::TILE;
use crate::engine::{Isa, Pool};
use crate::metric::Estimate;
use crate::{Error, Result};
use covariance::{Covariance, difference_error};
use pass::{Columns, Sums};
use solve::{Problem, Solution};
use std::sync::Arc;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["shirts2008statistically"];

/// How to solve the equations.
#[derive(Clone)]
pub struct MbarSettings {
    /// Largest Newton step, relative to 1 + the largest f, at which the solution counts as found.
    pub tolerance: f64,
    /// Newton steps before giving up.
    pub max_iterations: usize,
    /// Threads; absent: one per core. The result does not depend on them.
    pub pool: Option<Arc<Pool>>,
    /// Instruction set of the kernels.
    pub isa: Isa,
}

impl Default for MbarSettings {
    fn default() -> Self {
        Self {
            tolerance: 1e-12,
            max_iterations: 200,
            pool: None,
            isa: Isa::detect(),
        }
    }
}

/// The solved equations. States without samples are allowed and get their free energy from the samples of the others.
pub struct Mbar<'a> {
    energies: &'a dyn ReducedEnergies,
    counts: Vec<usize>,
    sampled: Vec<usize>,
    /// f of all states, that of state 0 being 0.
    f: Vec<f64>,
    /// Of the sampled states first, then of those without samples.
    sums: Sums,
    covariance: Covariance,
    theta: Vec<f64>,
    iterations: usize,
    settings: MbarSettings,
    pool: Arc<Pool>,
    isa: Isa,
}

impl<'a> Mbar<'a> {
    /// Solves for `counts[k]` samples of state k, which stand in this order in `energies`.
    ///
    /// # Errors
    /// [`Error::Value`] for counts that do not fit, [`Error::BadEnergy`], [`Error::Disconnected`] with the groups of states
    /// that share no samples, [`Error::NotConverged`].
    pub fn solve(
        energies: &'a dyn ReducedEnergies,
        counts: &[usize],
        settings: &MbarSettings,
    ) -> Result<Self> {
        let wrong = |found: String, expected: String| Error::Value {
            name: "sample counts",
            found,
            expected,
        };
        if counts.len() != energies.states() {
            return Err(wrong(
                format!("{} numbers", counts.len()),
                format!("one for each of the {} states", energies.states()),
            ));
        }
        let total = counts.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
        if total != Some(energies.samples()) || total == Some(0) {
            let total = total.map_or("more than fit".into(), |n| n.to_string());
            return Err(wrong(
                format!("{total} in sum"),
                format!("in sum the {} samples of the energies", energies.samples()),
            ));
        }
        if !(settings.tolerance > 0.0 && settings.tolerance < 1.0) {
            return Err(Error::Value {
                name: "tolerance",
                found: settings.tolerance.to_string(),
                expected: "between 0 and 1".into(),
            });
        }
        let sampled: Vec<usize> = (0..counts.len()).filter(|&k| counts[k] > 0).collect();
        let weights: Vec<f64> = sampled.iter().map(|&k| counts[k] as f64).collect();
        let pool = settings
            .pool
            .clone()
            .unwrap_or_else(|| Arc::new(Pool::with_all_cores()));
        let problem = Problem {
            energies,
            sampled: &sampled,
            counts: &weights,
            weights: None,
            pool: &pool,
            isa: settings.isa,
        };
        let solution = problem.solve(problem.start()?, settings)?;
        let covariance =
            Covariance::new(&solution.sums, &weights).ok_or_else(|| Error::NotConverged {
                method: "the covariance of MBAR",
                iterations: solution.iterations,
                change: 0.0,
                state: sampled[0],
            })?;
        let mut mbar = Self {
            energies,
            counts: counts.to_vec(),
            f: vec![0.0; counts.len()],
            sums: Sums::default(),
            covariance,
            theta: Vec::new(),
            iterations: solution.iterations,
            settings: settings.clone(),
            isa: settings.isa,
            pool: pool.clone(),
            sampled: sampled.clone(),
        };
        mbar.f = mbar.all_states(&problem, &solution);
        mbar.sums = mbar.all_sums(solution);
        let columns: Vec<Vec<(usize, f64)>> = (0..counts.len())
            .map(|state| vec![mbar.column(state)])
            .collect();
        mbar.theta = mbar.covariance.matrix(&mbar.sums, &columns);
        Ok(mbar)
    }

    /// f of all states from that of the sampled ones; that of state 0 becomes 0.
    fn all_states(&self, problem: &Problem<'_>, solution: &Solution) -> Vec<f64> {
        let mut f = vec![0.0; self.counts.len()];
        for (&state, value) in self.sampled.iter().zip(&solution.f) {
            f[state] = *value;
        }
        let rest = self.unsampled();
        if !rest.is_empty() {
            let pass = problem.pass(&solution.f);
            for (state, log_z) in rest.iter().zip(pass.log_sums(self.energies, &rest)) {
                f[*state] = -log_z;
            }
        }
        let first = f[0];
        f.iter_mut().for_each(|f| *f -= first);
        f
    }

    fn unsampled(&self) -> Vec<usize> {
        (0..self.counts.len())
            .filter(|&k| self.counts[k] == 0)
            .collect()
    }

    /// The sums of the solution, extended by the states without samples if there are any.
    fn all_sums(&self, solution: Solution) -> Sums {
        let rest = self.unsampled();
        if rest.is_empty() {
            return solution.sums;
        }
        self.further_sums(rest.len(), &|samples, log_denominators, rows| {
            for (row, &state) in rows.chunks_exact_mut(TILE).zip(&rest) {
                let row = &mut row[..samples.len()];
                self.energies.read(state, samples.start, row);
                for (x, denominator) in row.iter_mut().zip(log_denominators) {
                    *x = (self.f[state] - *x - denominator).exp();
                }
            }
        })
    }

    /// One more pass at the solution with `count` further columns. Log-denominators are those of `sum_k N_k exp(f_k - u_k)`
    /// with f relative to state 0.
    #[allow(clippy::type_complexity)]
    fn further_sums(
        &self,
        count: usize,
        fill: &(dyn Fn(std::ops::Range<usize>, &[f64; TILE], &mut [f64]) + Sync),
    ) -> Sums {
        let weights = self.sampled_counts();
        let f: Vec<f64> = self.sampled.iter().map(|&k| self.f[k]).collect();
        self.problem(&weights)
            .pass(&f)
            .sums(true, Some(&Columns { count, fill }))
    }

    fn sampled_counts(&self) -> Vec<f64> {
        self.sampled
            .iter()
            .map(|&k| self.counts[k] as f64)
            .collect()
    }

    fn problem<'b>(&'b self, counts: &'b [f64]) -> Problem<'b> {
        Problem {
            energies: self.energies,
            sampled: &self.sampled,
            counts,
            weights: None,
            pool: &self.pool,
            isa: self.isa,
        }
    }

    /// The column of W that belongs to a state: its number in the sums, and the factor from there to W.
    fn column(&self, state: usize) -> (usize, f64) {
        match self.sampled.iter().position(|s| *s == state) {
            Some(at) => (at, 1.0 / self.counts[state] as f64),
            None => {
                let rest = self.unsampled();
                let at = rest.iter().position(|s| *s == state).unwrap_or(0);
                (self.sampled.len() + at, 1.0)
            }
        }
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.counts.len()
    }

    /// Samples of each state.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Newton steps it took.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// log(Z_k / Z_0) of every state.
    pub fn log_z(&self) -> Vec<f64> {
        self.f.iter().map(|f| 0.0 - f).collect()
    }

    /// `delta = log(Z_to / Z_from)` with its asymptotic standard deviation (pymbar's `Delta_f` is minus that).
    pub fn difference(&self, from: usize, to: usize) -> Estimate {
        Estimate {
            mean: self.f[from] - self.f[to],
            error: difference_error(&self.theta, self.states(), from, to),
        }
    }

    /// Asymptotic covariance of the log Z_k, row-major. Only combinations that sum to zero have a meaning.
    pub fn covariance(&self) -> &[f64] {
        &self.theta
    }

    /// Effective number of samples of each state, `1 / sum_n W_nk^2`: how many samples drawn from the state itself would
    /// carry as much information.
    pub fn effective_samples(&self) -> Vec<f64> {
        let all = self.sums.totals.len();
        (0..self.states())
            .map(|state| {
                let (column, factor) = self.column(state);
                1.0 / (self.sums.gram[column * all + column] * factor * factor)
            })
            .collect()
    }

    /// How much the sampled states share with each other.
    pub fn overlap(&self) -> Overlap {
        let states = self.sampled.len();
        let all = self.sums.totals.len();
        let gram: Vec<f64> = (0..states * states)
            .map(|at| self.sums.gram[at / states * all + at % states])
            .collect();
        Overlap::new(self.sampled.clone(), &gram, &self.sampled_counts())
    }
}
