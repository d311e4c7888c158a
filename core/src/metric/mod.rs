//! How good a learned energy is, against the exact path of the system it was trained on: one file per metric.
//!
//! Every figure is an average over exact samples and carries its standard error. [`Evaluation`] computes all of them, level by
//! level and on average.

mod blindness;
mod classification;
mod compare;
pub mod diagnose;
mod discrepancy;
mod ess;
mod evaluate;
mod fisher;
mod jensen_shannon;
mod mode_weights;
mod noise_end;
mod plane;
mod pmf_error;
mod r2;
mod regions;
mod sliced;
mod states;

pub use blindness::{Blindness, BlindnessPanels, blindness, blindness_panels};
pub use classification::classification_losses;
pub use compare::{Comparison, ComparisonSettings, Distance, Sample, total_variation};
pub(crate) use compare::{DEALT_ROWS, Dealing, PAIR_ROWS, mean_floor, share_of};
pub(crate) use discrepancy::Pooled;
pub use discrepancy::{energy_distance, mmd_squared};
pub use ess::effective_sample_size;
pub use evaluate::{Average, Evaluation, EvaluationSettings, Level};
pub use fisher::fisher_divergence;
pub use jensen_shannon::jensen_shannon;
pub use mode_weights::{ModeWeights, mode_weights};
pub use noise_end::NoiseEnd;
pub use plane::{Plane, Surface};
pub use pmf_error::pmf_error;
pub use r2::{Agreement, agreement};
pub use regions::Regions;
pub use sliced::{Sliced, sliced};
pub use states::{States, state_of};

use serde::{Deserialize, Serialize};

/// Whom the methods of this folder cite, by file.
pub const CITES: crate::citation::Table = crate::citation::cited![
    blindness,
    classification,
    discrepancy,
    ess,
    fisher,
    jensen_shannon,
    mode_weights,
    noise_end,
    plane,
    pmf_error,
    r2,
    regions,
    sliced,
    states,
];

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// One standard deviation of the mean.
    pub error: f64,
}

impl Estimate {
    /// From independent values; the error of fewer than two values is not known (NaN).
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            mean,
            error: (squares / (n - 1.0) / n).sqrt(),
        }
    }

    /// The average of independent estimates of different quantities.
    pub fn average(parts: impl ExactSizeIterator<Item = Self>) -> Self {
        let n = parts.len() as f64;
        let (mean, variance) = parts.fold((0.0, 0.0), |(m, v), part| {
            (m + part.mean, v + part.error.powi(2))
        });
        Self {
            mean: mean / n,
            error: variance.sqrt() / n,
        }
    }
}

/// `t / 1.96` with t the 97.5 % point of Student's law for the spread of so many values (at least two): what a standard error from a
/// few values must be widened by so that 1.96 of it still cover 95 %. By the expansion in 1/degrees of freedom (Abramowitz and Stegun
/// 26.7.5), good to 1 % from four values on.
pub(crate) fn student_factor(values: usize) -> f64 {
    let nu = values.saturating_sub(1).max(1) as f64;
    let z = 1.959_964_f64;
    let (a, b, c) = (
        z * z * z + z,
        5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z,
        3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z,
    );
    1.0 + (a / (4.0 * nu) + b / (96.0 * nu * nu) + c / (384.0 * nu.powi(3))) / z
}

impl std::fmt::Display for Estimate {
    /// `1.234 ± 0.005`, to the precision asked for.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let precision = f.precision().unwrap_or(3);
        write!(f, "{:.precision$} ± {:.precision$}", self.mean, self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_widen_an_error() {
        // Student's 97.5 % points for 3, 7 and 30 degrees of freedom.
        for (values, t) in [(4, 3.182), (8, 2.365), (31, 2.042)] {
            assert!(
                (student_factor(values) * 1.95996 / t - 1.0).abs() < 0.01,
                "{values}"
            );
        }
    }

    #[test]
    fn estimates_carry_their_error() {
        let estimate = Estimate::of(&[1.0, 2.0, 6.0]);
        // Sample variance (4 + 1 + 9)/2 = 7, divided by 3 values.
        assert_eq!(
            (estimate.mean, estimate.error),
            (3.0, (7.0_f64 / 3.0).sqrt())
        );
        assert!(Estimate::of(&[1.0]).error.is_nan());
        let average = Estimate::average(
            [
                estimate,
                Estimate {
                    mean: 5.0,
                    error: 1.0,
                },
            ]
            .into_iter(),
        );
        assert_eq!(average.mean, 4.0);
        assert!((average.error - (7.0_f64 / 3.0 + 1.0).sqrt() / 2.0).abs() < 1e-15);
        assert_eq!(format!("{average:.1}"), "4.0 ± 0.9");
    }
}
