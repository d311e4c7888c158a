//! Held-out log-likelihood: how likely are rows that were not trained on, beside what classical densities make of them?
//!
//! All densities are those of rows noised to the smallest time, in nats per row and in the data's coordinates. The mixture and the kernels
//! have seen the trained rows alone. Differences are taken row by row, so that what makes a row unlikely for both is no error; errors
//! count that rows may be correlated and repeated. The density of an interpolant is divided by its measured integral first.

use serde::{Deserialize, Serialize};

use super::noised::Noised;
use super::normalisation::Normalisation;
use super::reference::{Reference, ceiling};
use super::remedy::Remedy;
use super::{Check, SIGNIFICANT, Subject, Verdict, check_finite};
use crate::Result;
use crate::base::{FitSettings, KernelDensity, MOST_COLUMNS, RowSlice};
use crate::engine::Pool;
use crate::metric::Estimate;

/// Rows that carry a kernel.
const KERNELS: usize = 3000;
/// A mixture that is better by so many standard errors is better: the model is given the benefit of a smaller doubt than elsewhere.
const DOUBT: f64 = 3.0;

/// A classical density on the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rival {
    /// Its nats per row.
    pub nats: Estimate,
    /// The model's minus its own, row by row.
    pub lead: Estimate,
}

/// Figures of the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// The smallest time.
    pub time: f64,
    /// Rows judged by.
    pub rows: usize,
    /// Mean log-density of the model.
    pub nats: Estimate,
    /// The fitted mixture's; absent where none could be fitted.
    pub mixture: Option<Rival>,
    /// Components of the mixture, and rows it was fitted to.
    pub fitted: [usize; 2],
    /// The kernel density's, up to 20 columns.
    pub kernels: Option<Rival>,
    /// Largest log-density of a row, noised or not.
    pub largest: f64,
    /// The largest log-density that noised rows can have.
    pub ceiling: f64,
}

impl HeldOut {
    /// Looks at up to `count` rows.
    pub(super) fn of(
        subject: &Subject<'_>,
        reference: &std::result::Result<Reference, String>,
        normalisation: &Normalisation,
        (count, seed): (usize, u64),
    ) -> Result<Self> {
        let (time, dim) = (subject.grid.t_min(), subject.energy.dim());
        let reference = reference.as_ref().ok();
        let data = reference.map_or(subject.rows, |found| found.unseen(subject));
        let noised = Noised::new(data, subject.process, seed);
        let rows = count.min(data.len());
        let (points, of) = noised.points_and_rows(time, rows);
        let constant = subject.facts.log_volume + normalisation.unit;
        let model = |points: &[f64]| {
            let mut out = vec![0.0; points.len() / dim];
            subject.energy.log_density(&[time], points, &mut out);
            out.iter_mut().for_each(|value| *value -= constant);
            out
        };
        let own = model(&points);
        check_finite("log-density", time, &own)?;
        // Rows as they are, too: this is where a density is asked for. Those of an interpolant are not at its smallest time.
        let mut largest = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if data.end.is_none() {
            let scale = subject.process.x0_scale(time);
            let plain: Vec<f64> = data.start.iter().map(|x| scale * x).collect();
            largest = model(&plain).into_iter().fold(largest, f64::max);
        }
        let rival = |mut other: Vec<f64>| {
            other
                .iter_mut()
                .for_each(|value| *value -= subject.facts.log_volume);
            let lead: Vec<f64> = own.iter().zip(&other).map(|(a, b)| a - b).collect();
            Rival {
                nats: noised.estimate(&other, &of),
                lead: noised.estimate(&lead, &of),
            }
        };
        let kernels = reference.filter(|_| dim <= MOST_COLUMNS).and_then(|found| {
            let rows = found.fitted();
            let rows = Noised::of_set(1, rows, subject.process, seed)
                .points(time, rows.len().min(KERNELS));
            let (pool, settings) = (
                Pool::new(1),
                FitSettings {
                    block: Some(1),
                    ..FitSettings::default()
                },
            );
            let kernels = KernelDensity::fit(&RowSlice::new(&rows, dim), &settings, &pool).ok()?;
            Some(rival(kernels.log_densities(&points, &pool)))
        });
        Ok(Self {
            time,
            rows,
            nats: noised.estimate(&own, &of),
            mixture: reference.map(|found| rival(found.log_density(time, 1.0, &points))),
            fitted: reference.map_or([0; 2], |found| [found.components, found.rows]),
            kernels,
            largest,
            ceiling: ceiling(subject.process, time, dim) - subject.facts.log_volume,
        })
    }

    /// The verdict; `density` says whether the integral is one.
    pub(super) fn check(&self, remedy: &Remedy, only_trained: bool, density: bool) -> Check {
        // A nat more than the limit: it is that of the process, and rounding has a part in it.
        let impossible = self.largest > self.ceiling + 1.0;
        let lead = self.mixture.map(|rival| rival.lead);
        let behind = lead.map_or(0.0, |lead| -lead.mean);
        let doubt = lead.map_or(0.0, |lead| lead.error);
        let verdict = if impossible || (behind > 0.5 && behind > SIGNIFICANT * doubt) {
            Verdict::Fail
        } else if behind > 0.01 && behind > DOUBT * doubt {
            Verdict::Warn
        } else if self.mixture.is_none() {
            Verdict::Skipped
        } else {
            Verdict::Pass
        };
        let mut finding = format!("{:.3} nats per row over {} rows", self.nats, self.rows);
        if let Some(mixture) = self.mixture {
            finding += &format!(
                "; a mixture of {} Gaussians fitted to {} other rows {:.3}, the model is {} by {:.3} ± {:.3}",
                self.fitted[0],
                self.fitted[1],
                mixture.nats.mean,
                if mixture.lead.mean < 0.0 {
                    "worse"
                } else {
                    "better"
                },
                mixture.lead.mean.abs(),
                mixture.lead.error
            );
        }
        if let Some(kernels) = self.kernels {
            finding += &format!("; a kernel density {:.3}", kernels.nats.mean);
        }
        if impossible {
            finding += &format!(
                "; the most likely row has {:.1}, more than any row can have at this noise ({:.1})",
                self.largest, self.ceiling
            );
        }
        let meaning = match verdict {
            Verdict::Skipped => "there is no mixture to compare with.".to_string(),
            Verdict::Pass if !density => "rows are not less likely than by a fitted mixture, but what is no density (see the normalisation) can give any value.".into(),
            Verdict::Pass if only_trained => "the model is not worse than a mixture that has seen half of these rows; it was trained on all of them, though.".into(),
            Verdict::Pass => "rows that were not trained on are not less likely than by a fitted mixture.".into(),
            Verdict::Warn => format!(
                "the model is worse than a Gaussian mixture that is fitted in seconds: use that one, or {}.",
                remedy.further()
            ),
            Verdict::Fail if impossible => format!(
                "some rows have densities that no density can have: the model has spikes; take a larger t_min, then {}.",
                remedy.further()
            ),
            Verdict::Fail => format!(
                "the model is much worse than a Gaussian mixture that is fitted in seconds, so it is not a density of these rows: {}.",
                remedy.further()
            ),
        };
        Check {
            name: "held-out log-likelihood".into(),
            verdict,
            finding,
            meaning,
            limits: "warn where the mixture is better by 0.01 nats and three standard errors of the difference, fail by 0.5 nats and four; fail where a row is \
                     more likely than noise allows"
                .into(),
        }
    }
}
