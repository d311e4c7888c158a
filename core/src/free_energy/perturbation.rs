//! Free-energy perturbation: the exponential average of works in one direction, also known as Zwanzig's formula, Jarzynski's
//! equality and the weights of annealed importance sampling.

use super::correlation::statistical_inefficiency;
use crate::metric::{Estimate, effective_sample_size};
use crate::{Error, Result};
use serde::Serialize;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites =
    &["zwanzig1954high", "jarzynski1997nonequilibrium"];

/// `delta = log(Z_B / Z_A)` from works of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Perturbation {
    /// `log <exp(-w)>`, with the error that first-order propagation gives.
    pub exponential: Estimate,
    /// Second-order cumulants, `-<w> + var(w) / 2`: exact for Gaussian works. A gap to `exponential` beyond the errors says
    /// that one of them is wrong, most often the exponential average for want of rare works.
    pub cumulant: Estimate,
    /// Samples that carry the exponential average, `(sum x)^2 / sum x^2` with `x = exp(-w)`.
    pub effective_samples: f64,
    /// Statistical inefficiency by which the errors were widened; 1 for independent works.
    pub inefficiency: f64,
}

impl Perturbation {
    /// Distance between the two estimates in units of their joint error.
    pub fn tension(&self) -> f64 {
        let error = self.exponential.error.hypot(self.cumulant.error);
        (self.exponential.mean - self.cumulant.mean).abs() / error
    }
}

/// From works `w = u_B - u_A` (kT) of samples of A: `delta = log <exp(-w)>` (Zwanzig 1954). For a process that drives A to B
/// in finite time, w is its work (Jarzynski 1997); for annealed importance sampling (Neal 2001) it is minus the log-weight.
///
/// For works of the reverse direction, `w = u_A - u_B` on samples of B, the result is `log(Z_A / Z_B)`.
///
/// With `correlated`, errors are widened by the statistical inefficiency of the series.
///
/// # Errors
/// [`Error::BadEnergy`] for works that are NaN or minus infinity, [`Error::Value`] if there are fewer than two or if all are
/// plus infinity.
pub fn perturbation(works: &[f64], correlated: bool) -> Result<Perturbation> {
    check_works(works, 1)?;
    let count = works.len() as f64;
    let lowest = works.iter().copied().fold(f64::INFINITY, f64::min);
    if lowest == f64::INFINITY {
        return Err(Error::Disconnected {
            groups: vec![vec![0], vec![1]],
        });
    }
    let x: Vec<f64> = works.iter().map(|w| (lowest - w).exp()).collect();
    let mean = x.iter().sum::<f64>() / count;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let inefficiency = |series: &[f64]| {
        if correlated {
            statistical_inefficiency(series)
        } else {
            1.0
        }
    };
    let (g, g_works) = (inefficiency(&x), inefficiency(works));
    let first = works.iter().sum::<f64>() / count;
    let second = works.iter().map(|w| (w - first).powi(2)).sum::<f64>() / count;
    let independent = count / g_works;
    Ok(Perturbation {
        exponential: Estimate {
            mean: mean.ln() - lowest,
            error: (variance * g / count).sqrt() / mean,
        },
        cumulant: Estimate {
            mean: 0.5 * second - first,
            error: (second / independent + 0.5 * second * second / (independent - 1.0)).sqrt(),
        },
        effective_samples: count
            * effective_sample_size(&works.iter().map(|w| -w).collect::<Vec<_>>()),
        inefficiency: g,
    })
}

/// Works must be numbers or plus infinity, and at least two. `state` is the number of the end they lead to.
pub(super) fn check_works(works: &[f64], state: usize) -> Result<()> {
    if works.len() < 2 {
        return Err(Error::Value {
            name: "works",
            found: format!("{} numbers", works.len()),
            expected: "at least two".into(),
        });
    }
    match works
        .iter()
        .position(|w| w.is_nan() || *w == f64::NEG_INFINITY)
    {
        None => Ok(()),
        Some(sample) => Err(Error::BadEnergy {
            state,
            sample,
            found: works[sample],
            expected: "a number or plus infinity",
        }),
    }
}
