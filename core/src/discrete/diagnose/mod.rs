//! Is a model of states any good? The checks of [`crate::metric::diagnose`] that know nothing but levels and rows, and three of their own.
//!
//! | check | asks |
//! | --- | --- |
//! | [`Sum`] | do the probabilities of all rows add up to one: by adding them, or by draws where they are too many? |
//! | [`HeldOut`] | how likely are rows that were not trained on, beside independent sites and a tree of pairs? |
//! | [`Calibration`] | are guesses of the noise level as certain as they claim to be? |
//! | [`Shares`] | do data, density and generated rows agree on how often sites, pairs and majorities show each state? |
//! | [`TwoSample`] | can data and generated rows be told apart? |
//! | [`PathOverlap`] | do neighbouring levels overlap? |
//! | [`OverFitting`] | are rows that were trained on more likely than rows that were not? |
//!
//! Equal rows are draws of their own here, and no copies: a small space has no others.

mod held_out;
mod shares;
mod sum;
mod tree;

#[cfg(test)]
mod tests;

pub use held_out::{HeldOut, Rival};
pub use shares::{Share, Shares};
pub use sum::{LevelSum, Sum};
pub use tree::Tree;

use super::{Energy, Space};
use crate::metric::Estimate;
use crate::metric::diagnose::{
    ByLevel, Calibration, Check, Data, DiagnosisSettings, History, MakeNoise, Noised, OverFitting,
    PathOverlap, Remedy, TwoSample, Verdict, impl_verdicts, worst,
};
use crate::process::TimeGrid;
use crate::rng::Stream;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whom to cite.
pub const CITES: crate::citation::Cites = tree::CITES;

/// A model of states and the rows it is judged by. Symbols stand as numbers.
#[derive(Clone, Copy)]
pub struct StatesSubject<'a> {
    /// The model.
    pub energy: &'a dyn Energy,
    /// Its levels.
    pub grid: &'a TimeGrid,
    /// Rows that were not trained on, as far as possible.
    pub rows: Data<'a>,
    /// Rows that were trained on.
    pub trained: Option<Data<'a>>,
    /// Rows that the model made at the smallest time.
    pub generated: Option<&'a [u8]>,
    /// Losses during training.
    pub history: Option<History>,
    /// Whether its objective compares levels; unknown if absent.
    pub compares_levels: Option<bool>,
    /// The rows judged by were trained on: there are no others.
    pub only_trained: bool,
    /// How much F(t) was moved when the training ended.
    pub levelled: Option<Estimate>,
}

fn symbols_of(points: &[f64]) -> Vec<u8> {
    points.iter().map(|x| *x as u8).collect()
}

impl MakeNoise for StatesSubject<'_> {
    fn rows_repeat(&self) -> bool {
        true
    }

    fn make_noise(
        &self,
        time: f64,
        start: &[f64],
        _end: Option<&[f64]>,
        stream: &mut Stream,
        out: &mut [f64],
    ) {
        let (process, states) = (self.energy.process(), self.energy.space().states);
        let keep = process.keep(time);
        for (y, x) in out.iter_mut().zip(start) {
            *y = f64::from(process.draw(states, keep, *x as u8, stream));
        }
    }
}

impl ByLevel for StatesSubject<'_> {
    fn times(&self) -> &[f64] {
        self.grid.times()
    }
    fn rows(&self) -> Data<'_> {
        self.rows
    }
    fn trained(&self) -> Option<Data<'_>> {
        self.trained
    }
    fn history(&self) -> Option<History> {
        self.history
    }
    fn noise(&self) -> &dyn MakeNoise {
        self
    }
    fn seen_from_below(&self) -> bool {
        self.energy.process().is_masked()
    }
    fn log_density(&self, time: f64, points: &[f64], out: &mut [f64]) {
        self.energy.log_density(time, &symbols_of(points), out);
    }
    fn log_density_grid(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        let rows = symbols_of(points);
        self.energy.log_density_grid(times, &rows, out);
    }
}

/// All checks of a model of states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatesDiagnosis {
    /// The worst of the checks.
    pub verdict: Verdict,
    /// Each in plain words.
    pub checks: Vec<Check>,
    /// How many independent rows the rows are worth, by their correlation in the order given.
    pub effective_rows: f64,
    /// Sums of all probabilities.
    pub sum: Sum,
    /// Log-likelihood of the rows.
    pub held_out: HeldOut,
    /// Guesses of the level.
    pub calibration: Calibration,
    /// How often sites, pairs and majorities show each state.
    pub shares: Shares,
    /// Data against generated rows, if there are any.
    pub two_sample: Option<TwoSample>,
    /// Neighbouring levels.
    pub path: PathOverlap,
    /// Trained rows against others.
    pub over_fitting: OverFitting,
}

impl_verdicts!(StatesDiagnosis);

impl StatesDiagnosis {
    /// Number of the parts that `progress` counts.
    pub const PARTS: usize = 7;

    /// Runs all checks; `progress` is told how many parts are done.
    pub fn run(
        subject: &StatesSubject<'_>,
        settings: DiagnosisSettings,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Self> {
        validate(subject)?;
        let mut done = 0;
        let mut part = || {
            done += 1;
            progress(done);
        };
        let seed = settings.seed;
        let calibration = Calibration::of(subject, settings.classified, seed)?;
        part();
        let path = PathOverlap::of(subject, settings.path_points, seed)?;
        part();
        let over_fitting = OverFitting::of(subject, settings.basin_points, seed)?;
        part();
        let (sum, law) = Sum::of(subject, settings.path_points, seed)?;
        part();
        let held_out = HeldOut::of(subject, &sum, (settings.basin_points, seed))?;
        part();
        let shares = Shares::of(subject, &law, settings.basin_points, seed);
        part();
        let two_sample = match subject.generated {
            Some(made) => Some(compared(subject, made, settings.compared, seed)?),
            None => None,
        };
        part();
        let remedy = Remedy {
            compares_levels: subject.compares_levels,
            over_fitted: over_fitting.check().verdict > Verdict::Pass,
            usual: "score-entropy+diffclf",
        };
        let checks = vec![
            sum.check(&remedy, subject.levelled),
            held_out.check(&remedy, subject.only_trained),
            calibration.check(&remedy),
            shares.check(&remedy),
            TwoSample::check(two_sample.as_ref(), &remedy),
            path.check(&remedy),
            over_fitting.check(),
        ];
        Ok(Self {
            verdict: worst(&checks),
            checks,
            effective_rows: subject.worth(),
            sum,
            held_out,
            calibration,
            shares,
            two_sample,
            path,
            over_fitting,
        })
    }
}

impl StatesSubject<'_> {
    /// Independent rows that the rows are worth.
    fn worth(&self) -> f64 {
        self.rows.len() as f64 / self.rows.inefficiency_of_order()
    }

    fn symbols(&self) -> usize {
        self.energy.process().symbols(self.energy.space().states)
    }
}

fn validate(subject: &StatesSubject<'_>) -> Result<()> {
    /// Fewer rows say nothing about a density.
    const FEWEST: usize = 20;
    let Space { sites, states } = subject.energy.space();
    for data in [Some(subject.rows), subject.trained].into_iter().flatten() {
        let fits = data.dim == sites && data.end.is_none();
        let known = |x: &f64| (0.0..states as f64).contains(x) && x.fract() == 0.0;
        if !fits || data.start.len() % sites != 0 || !data.start.iter().all(known) {
            return Err(Error::Shape {
                what: "the rows to judge by".into(),
                found: format!("{} numbers in rows of {}", data.start.len(), data.dim),
                expected: format!("rows of {sites} symbols from 0 to {}", states - 1),
            });
        }
    }
    if subject.rows.len() < FEWEST {
        return Err(Error::Value {
            name: "number of rows to judge by",
            found: subject.rows.len().to_string(),
            expected: format!("at least {FEWEST}"),
        });
    }
    Ok(())
}

/// Indicators of all symbols but the first, for distances and classifiers: `|x - y|^2` counts the sites that differ.
pub fn indicators(rows: impl Iterator<Item = u8>, symbols: usize) -> Vec<f64> {
    let site = |s: u8| (1..symbols).map(move |k| f64::from(u8::from(usize::from(s) == k)));
    rows.flat_map(site).collect()
}

/// Noisy rows at the smallest time beside those that the model made. Of correlated rows only as many as they are worth.
fn compared(
    subject: &StatesSubject<'_>,
    made: &[u8],
    count: usize,
    seed: u64,
) -> Result<TwoSample> {
    let (sites, symbols) = (subject.energy.space().sites, subject.symbols());
    let rows = subject.rows.len();
    let count = count.min((subject.worth() as usize).max(2));
    let count = count.min(made.len() / sites);
    let spread = (0..count).flat_map(|k| &subject.rows.start[k * rows / count * sites..][..sites]);
    let spread: Vec<f64> = spread.copied().collect();
    let thin = Data {
        start: &spread,
        ..subject.rows
    };
    let noisy = Noised::new(thin, subject, seed).points(subject.grid.t_min(), count);
    let data = indicators(noisy.iter().map(|x| *x as u8), symbols);
    let made = indicators(made[..count * sites].iter().copied(), symbols);
    TwoSample::between(&data, &made, sites * (symbols - 1), seed)
}
