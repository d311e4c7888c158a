//! Is a model any good? A verdict from the model and data alone, where nobody knows the true density.
//!
//! Each check is a file: figures with their sampling error first, then [`Check`], a verdict in plain words. Thresholds ask
//! for two things at once: the deviation must be larger than chance explains (four standard errors), and large enough to
//! matter. A right model therefore passes whatever the size of the sample, and a small flaw is not called a failure
//! because there were many rows to find it with.
//!
//! | check | asks |
//! | --- | --- |
//! | [`Calibration`] | when the model says a point comes from a noise level with probability p, is that so in a share p of cases? |
//! | [`ModeAudit`] | do data, density and generated samples agree on how much probability each basin holds? |
//! | [`Normaliser`] | is the learned F(t) the one that the model's own energies call for? |
//! | [`TwoSample`] | can data and generated samples be told apart? |
//! | [`PathOverlap`] | do neighbouring levels overlap, and do their densities fit together? |
//! | [`Coverage`] | does the grid start below the finest structure of the data and end in pure noise? |
//! | [`OverFitting`] | are rows that were trained on more likely than rows that were not? |
//! | [`Normalisation`] | does exp(log p) integrate to one, as far out as three times the width of the data? |
//! | [`Tails`] | does the density fall away from the data? |
//! | [`HeldOut`] | how likely are rows that were not trained on, beside a fitted mixture and a kernel density? |
//!
//! **Dependent rows.** Rows may be correlated in their order, and points share rows: every error counts both, and
//! [`Diagnosis::effective_rows`] says how many independent rows there were. Give rows in the order in which they were made; a shuffled
//! trajectory looks independent and is not.
//!
//! **False alarms.** A right model gets a warning or worse in about 1 % of diagnoses: 2 of 200 exact models in the tests, half of them with correlated
//! rows, one by the two-sample test (which warns at a p-value of 0.01) and one because too few draws fell where the density is. The other limits are at four
//! standard errors, that of the likelihood beside a mixture's at three. Limits that are not statistical (overlap of levels, coverage of the grid) are about the grid.
//!
//! Everything is in the model's own coordinates, except that log-densities of [`HeldOut`] and [`Tails`] are those of the data's ([`Facts::log_volume`]).

mod basins;
mod calibration;
mod classifier;
mod coverage;
mod held_out;
mod mode_audit;
mod noised;
mod normalisation;
mod normaliser;
mod over_fitting;
mod path_overlap;
mod proposal;
mod reference;
mod remedy;
mod tails;
mod two_sample;

#[cfg(test)]
mod tests;

pub use basins::Basins;
pub use calibration::{Band, Bin, Calibration};
pub use coverage::Coverage;
pub use held_out::{HeldOut, Rival};
pub use mode_audit::{Basin, ModeAudit};
pub use noised::{Data, MakeNoise, Noised};
pub use normalisation::{Integral, IntegralLevel, Normalisation};
pub use normaliser::{Normaliser, NormaliserLevel};
pub use over_fitting::{Gap, History, OverFitting};
pub use path_overlap::{Link, PathOverlap};
pub use remedy::Facts;
pub use tails::{Shell, Tails};
pub use two_sample::TwoSample;

use serde::{Deserialize, Serialize};

pub(crate) use path_overlap::log_mean_exp;
use reference::Reference;
pub(crate) use reference::Table;
pub(crate) use remedy::Remedy;

use crate::energy::Energy;
use crate::metric::Estimate;
use crate::process::{Process, TimeGrid};
use crate::{Error, Result};

/// Deviations within so many standard errors are chance.
pub(crate) const SIGNIFICANT: f64 = 4.0;

/// Outcome of a check; the order is that of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// There was nothing to check it with.
    Skipped,
    /// As it should be.
    Pass,
    /// Usable, with a flaw that is named.
    Warn,
    /// Not to be trusted in this respect.
    Fail,
}

impl Verdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// A verdict in plain words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// The outcome.
    pub verdict: Verdict,
    /// What was found, with its figures.
    pub finding: String,
    /// What that means, and what to do about it.
    pub meaning: String,
    /// Where the limits between pass, warn and fail lie.
    pub limits: String,
}

/// The verdict of the worst check.
pub(crate) fn worst(checks: &[Check]) -> Verdict {
    let worst = checks.iter().map(|check| check.verdict).max();
    worst.unwrap_or(Verdict::Skipped)
}

/// A diagnosis, of points or of states.
pub trait Verdicts {
    /// The worst of the checks.
    fn verdict(&self) -> Verdict;
    /// Each in plain words.
    fn checks(&self) -> &[Check];
    /// How many independent rows the rows are worth.
    fn effective_rows(&self) -> f64;
    /// Log-likelihood of rows that were not trained on.
    fn nats(&self) -> Estimate;
    /// The classification between levels.
    fn calibration(&self) -> &Calibration;
    /// Neighbouring levels.
    fn path(&self) -> &PathOverlap;
}

/// [`Verdicts`] of a diagnosis whose fields have these names.
macro_rules! impl_verdicts {
    ($of:ty) => {
        impl $crate::metric::diagnose::Verdicts for $of {
            fn verdict(&self) -> $crate::metric::diagnose::Verdict {
                self.verdict
            }
            fn checks(&self) -> &[$crate::metric::diagnose::Check] {
                &self.checks
            }
            fn effective_rows(&self) -> f64 {
                self.effective_rows
            }
            fn nats(&self) -> $crate::metric::Estimate {
                self.held_out.nats
            }
            fn calibration(&self) -> &$crate::metric::diagnose::Calibration {
                &self.calibration
            }
            fn path(&self) -> &$crate::metric::diagnose::PathOverlap {
                &self.path
            }
        }
    };
}
pub(crate) use impl_verdicts;

/// A model and rows as checks of its levels see them: rows of numbers (coordinates, or symbols), how they become noise, and log-densities of
/// noisy ones.
pub trait ByLevel {
    /// Times of the levels.
    fn times(&self) -> &[f64];
    /// Rows that were not trained on, as far as possible.
    fn rows(&self) -> Data<'_>;
    /// Rows that were trained on.
    fn trained(&self) -> Option<Data<'_>>;
    /// Losses during training.
    fn history(&self) -> Option<History>;
    /// How rows become noise.
    fn noise(&self) -> &dyn MakeNoise;
    /// Whether links are seen from their less noisy level: where noise hides all there is to see, as masks do, the noisier one tells nothing of the other.
    fn seen_from_below(&self) -> bool {
        false
    }
    /// Log-densities at one time.
    fn log_density(&self, time: f64, points: &[f64], out: &mut [f64]);
    /// Log-densities at all of these times: a row of as many numbers for each point.
    fn log_density_grid(&self, times: &[f64], points: &[f64], out: &mut [f64]);
}

impl ByLevel for Subject<'_> {
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
        self.process
    }
    fn log_density(&self, time: f64, points: &[f64], out: &mut [f64]) {
        self.energy.log_density(&[time], points, out);
    }
    fn log_density_grid(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.energy.log_density_grid(times, points, out);
    }
}

/// A model and the data it is judged by.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The model.
    pub energy: &'a dyn Energy,
    /// Its process.
    pub process: &'a Process,
    /// Its levels.
    pub grid: &'a TimeGrid,
    /// Rows that were not trained on, as far as possible.
    pub rows: Data<'a>,
    /// Rows that were trained on.
    pub trained: Option<Data<'a>>,
    /// Points generated by the model at the smallest time, row after row.
    pub generated: Option<&'a [f64]>,
    /// Losses during training.
    pub history: Option<History>,
    /// Period of each column, 0 for none; empty if none has one.
    pub periods: &'a [f64],
    /// What is known of the model besides its density.
    pub facts: Facts,
}

/// How much is computed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiagnosisSettings {
    /// Noised points whose level is guessed.
    pub classified: usize,
    /// Points per level along the path.
    pub path_points: usize,
    /// Rows in which basins are sought, and draws of the density's share in each.
    pub basin_points: usize,
    /// Rows of each kind in the two-sample test.
    pub compared: usize,
    /// Most components of the mixture that the model is compared with.
    #[serde(default = "components")]
    pub components: usize,
    /// Seed.
    pub seed: u64,
}

fn components() -> usize {
    DiagnosisSettings::default().components
}

impl Default for DiagnosisSettings {
    fn default() -> Self {
        Self {
            classified: 4096,
            path_points: 256,
            basin_points: 4096,
            compared: 768,
            components: 32,
            seed: 0,
        }
    }
}

/// All checks of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The worst of the checks.
    pub verdict: Verdict,
    /// Each in plain words.
    pub checks: Vec<Check>,
    /// How many independent rows the rows are worth, by their correlation in the order given.
    #[serde(default)]
    pub effective_rows: f64,
    /// Figures behind the first check, and so on.
    pub calibration: Calibration,
    /// Shares of the basins.
    pub modes: ModeAudit,
    /// F(t) against MBAR.
    pub normaliser: Normaliser,
    /// Data against generated samples, if there are any.
    pub two_sample: Option<TwoSample>,
    /// Neighbouring levels.
    pub path: PathOverlap,
    /// Ends of the grid.
    pub coverage: Coverage,
    /// Trained rows against others.
    pub over_fitting: OverFitting,
    /// Integrals of the density.
    pub normalisation: Normalisation,
    /// The density away from the data.
    pub tails: Tails,
    /// Log-likelihood of the rows.
    pub held_out: HeldOut,
}

impl_verdicts!(Diagnosis);

impl Diagnosis {
    /// Number of the parts that `progress` counts.
    pub const PARTS: usize = 10;

    /// Runs all checks; `progress` is told how many parts are done.
    pub fn run(
        subject: &Subject<'_>,
        settings: DiagnosisSettings,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Self> {
        validate(subject, &settings)?;
        let mut done = 0;
        let mut part = || {
            done += 1;
            progress(done);
        };
        let seed = settings.seed;
        // No mixture is a finding, not a failure of the diagnosis.
        let reference = Reference::of(subject, &settings);
        let reference = reference.map_err(|error| format!("no mixture fits the rows: {error}"));
        let draws = (settings.basin_points / 2).max(1024);
        let calibration = Calibration::of(subject, settings.classified, seed)?;
        part();
        let path = PathOverlap::of(subject, settings.path_points, seed)?;
        part();
        let modes = ModeAudit::of(subject, settings.basin_points, seed)?;
        part();
        let normaliser = Normaliser::of(subject, settings.path_points, seed)?;
        part();
        let two_sample = match subject.generated {
            Some(generated) => {
                let sizes = (settings.compared, seed);
                Some(TwoSample::of(subject, &reference, generated, sizes)?)
            }
            None => None,
        };
        part();
        let coverage = Coverage::of(subject, &reference);
        part();
        let over_fitting = OverFitting::of(subject, settings.basin_points, seed)?;
        part();
        let normalisation = Normalisation::of(subject, &reference, draws, seed);
        part();
        let tails = Tails::of(subject, &reference, settings.basin_points, seed)?;
        part();
        let sizes = (settings.basin_points, seed);
        let held_out = HeldOut::of(subject, &reference, &normalisation, sizes)?;
        part();
        let remedy = Remedy {
            compares_levels: subject.facts.compares_levels,
            over_fitted: over_fitting.check().verdict > Verdict::Pass,
            usual: "dsm+diffclf",
        };
        let integral = normalisation.check(&remedy);
        let density = integral.verdict != Verdict::Fail;
        let checks = vec![
            integral,
            tails.check(&remedy),
            held_out.check(&remedy, subject.facts.only_trained, density),
            calibration.check(&remedy),
            modes.check(&remedy),
            normaliser.check(&remedy, subject.facts.levelled),
            TwoSample::check(two_sample.as_ref(), &remedy),
            path.check(&remedy),
            coverage.check(),
            over_fitting.check(),
        ];
        Ok(Self {
            verdict: worst(&checks),
            checks,
            effective_rows: subject.rows.len() as f64 / subject.rows.inefficiency(),
            calibration,
            modes,
            normaliser,
            two_sample,
            path,
            coverage,
            over_fitting,
            normalisation,
            tails,
            held_out,
        })
    }
}

fn validate(subject: &Subject<'_>, settings: &DiagnosisSettings) -> Result<()> {
    /// Fewer rows say nothing about a density.
    const FEWEST: usize = 20;
    let dim = subject.energy.dim();
    subject.grid.validate(subject.process)?;
    for data in [Some(&subject.rows), subject.trained.as_ref()]
        .into_iter()
        .flatten()
    {
        data.validate(dim, subject.process)?;
    }
    if subject.rows.len() < FEWEST {
        return Err(Error::Value {
            name: "number of rows to judge by",
            found: subject.rows.len().to_string(),
            expected: format!("at least {FEWEST}"),
        });
    }
    let smallest = [
        settings.classified,
        settings.path_points,
        settings.basin_points,
        settings.compared,
    ];
    match smallest.iter().min() {
        Some(&least) if least < FEWEST => Err(Error::Value {
            name: "number of points of a check",
            found: least.to_string(),
            expected: format!("at least {FEWEST}"),
        }),
        _ => Ok(()),
    }
}

/// Refuses densities that are not numbers.
pub(crate) fn check_finite(what: &'static str, time: f64, values: &[f64]) -> Result<()> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(Error::ModelNotFinite { what, time })
    }
}
