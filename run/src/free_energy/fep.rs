//! Exponential averages of works, one direction or both.

use super::Resample;
use super::input::read_series;
use crate::error::Result;
use diffclf::free_energy::{Blocks, Perturbation, bootstrap, perturbation};
use std::path::Path;

/// One direction.
#[derive(Debug)]
pub struct Direction {
    /// The estimates, of the works as they are.
    pub result: Perturbation,
    /// Works.
    pub samples: usize,
    /// Error by the bootstrap, if it was asked for.
    pub bootstrap_error: Option<f64>,
}

/// What was found.
#[derive(Debug)]
pub struct FepFound {
    /// The works were taken as a time series, and their correlation was measured.
    pub correlated: bool,
    /// From A to B.
    pub forward: Direction,
    /// From B to A, if there are works.
    pub reverse: Option<Direction>,
}

impl FepFound {
    /// By how much the two directions differ, and the error of that.
    pub fn hysteresis(&self) -> Option<(f64, f64)> {
        let [forward, reverse] =
            [&self.forward, self.reverse.as_ref()?].map(|d| &d.result.exponential);
        Some((
            forward.mean + reverse.mean,
            forward.error.hypot(reverse.error),
        ))
    }
}

/// Perturbation from files of works in kT; `correlated` ones are a time series.
pub fn from_files(
    forward: &Path,
    reverse: Option<&Path>,
    correlated: bool,
    resample: Resample,
) -> Result<FepFound> {
    let reverse = reverse.map(read_series).transpose()?;
    of(
        &read_series(forward)?,
        reverse.as_deref(),
        correlated,
        resample,
    )
}

/// Perturbation from works in kT.
pub fn of(
    forward: &[f64],
    reverse: Option<&[f64]>,
    correlated: bool,
    resample: Resample,
) -> Result<FepFound> {
    let direction = |works: &[f64]| direction(works, correlated, resample);
    Ok(FepFound {
        correlated,
        forward: direction(forward)?,
        reverse: reverse.map(direction).transpose()?,
    })
}

fn direction(works: &[f64], correlated: bool, resample: Resample) -> Result<Direction> {
    let result = perturbation(works, correlated)?;
    let bootstrap_error = match resample.checked()? {
        Some(replicas) => {
            let blocks = if correlated {
                Blocks::of_series(works)
            } else {
                Blocks::SINGLE
            };
            let mut estimate = |weights: &[f64]| Ok(weighted(works, weights));
            let found = bootstrap(works.len(), blocks, replicas, resample.seed, &mut estimate)?;
            Some(found.error)
        }
        None => None,
    };
    Ok(Direction {
        result,
        samples: works.len(),
        bootstrap_error,
    })
}

/// log <exp(-w)> with weights.
fn weighted(works: &[f64], weights: &[f64]) -> f64 {
    let lowest = works.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = works
        .iter()
        .zip(weights)
        .map(|(w, n)| n * (lowest - w).exp())
        .sum();
    (sum / works.len() as f64).ln() - lowest
}
