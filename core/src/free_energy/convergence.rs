//! Has the estimate settled? The same estimate from growing shares of the data, from the front and from the back.

use crate::metric::Estimate;
use crate::{Error, Result};
use serde::Serialize;
use std::ops::Range;

/// Estimates from shares of the data.
#[derive(Debug, Clone, Serialize)]
pub struct Convergence {
    /// Share of each series that was used.
    pub shares: Vec<f64>,
    /// From the first samples of each series.
    pub forward: Vec<Estimate>,
    /// From the last samples of each series.
    pub backward: Vec<Estimate>,
}

impl Convergence {
    /// Largest distance, in joint errors, between the forward and the backward estimate from the same share, over shares up
    /// to one half: these have no samples in common. Beyond 3 the start of the series differs from its end.
    pub fn tension(&self) -> f64 {
        self.shares
            .iter()
            .zip(self.forward.iter().zip(&self.backward))
            .filter(|(share, _)| **share <= 0.5)
            .map(|(_, (a, b))| (a.mean - b.mean).abs() / a.error.hypot(b.error))
            .fold(0.0, f64::max)
    }
}

/// Calls `estimate` with a rule that says which samples of a series of n to use, for each share in both directions.
///
/// # Errors
/// [`Error::Value`] for shares outside (0, 1], and what `estimate` returns.
#[allow(clippy::type_complexity)]
pub fn convergence(
    shares: &[f64],
    estimate: &mut dyn FnMut(&dyn Fn(usize) -> Range<usize>) -> Result<Estimate>,
) -> Result<Convergence> {
    if let Some(share) = shares.iter().find(|s| !(**s > 0.0 && **s <= 1.0)) {
        return Err(Error::Value {
            name: "share of the data",
            found: share.to_string(),
            expected: "above 0 and at most 1".into(),
        });
    }
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for &share in shares {
        // A share of a series that has samples has at least one.
        let kept = move |n: usize| ((n as f64 * share).round() as usize).clamp(n.min(1), n);
        forward.push(estimate(&move |n| 0..kept(n))?);
        backward.push(estimate(&move |n| n - kept(n)..n)?);
    }
    Ok(Convergence {
        shares: shares.to_vec(),
        forward,
        backward,
    })
}

/// How many times as many samples bring an error to `wanted`: errors shrink with the root of the number of samples. At most
/// 1 if it is there already.
pub fn factor_for(error: f64, wanted: f64) -> f64 {
    (error / wanted).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_run_from_both_ends_and_see_a_drift() {
        let run = |data: &[f64]| {
            convergence(&[0.1, 0.5, 1.0], &mut |range| {
                Ok(Estimate::of(&data[range(data.len())]))
            })
            .unwrap()
        };
        let steady: Vec<f64> = (0..1000).map(|i| f64::from(i * 7919 % 1000)).collect();
        let found = run(&steady);
        assert_eq!(found.forward[2], found.backward[2]);
        assert_eq!(found.forward[0], Estimate::of(&steady[..100]));
        assert_eq!(found.backward[1], Estimate::of(&steady[500..]));
        assert!(found.tension() < 3.0, "{}", found.tension());
        let drifting: Vec<f64> = (0..1000).map(f64::from).collect();
        assert!(run(&drifting).tension() > 20.0);
        assert!(
            convergence(&[0.0], &mut |_| Ok(Estimate {
                mean: 0.0,
                error: 1.0
            }))
            .is_err()
        );
        assert!((factor_for(0.3, 0.1) - 9.0).abs() < 1e-12);
    }
}
