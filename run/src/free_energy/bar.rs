//! Bennett's acceptance ratio from works in both directions.

use super::input::read_series;
use super::{Resample, tenths};
use crate::error::Result;
use diffclf::free_energy::{
    Bar, Blocks, Convergence, bar, bar_bootstrap, convergence, statistical_inefficiency, subsample,
};
use std::path::Path;

/// What was found.
#[derive(Debug)]
pub struct BarFound {
    /// The estimate.
    pub bar: Bar,
    /// Works that were used, forward and reverse.
    pub samples: [usize; 2],
    /// Statistical inefficiencies of the works as they were given.
    pub inefficiency: [f64; 2],
    /// Only independent works were kept.
    pub subsampled: bool,
    /// Error by the bootstrap, if it was asked for.
    pub bootstrap_error: Option<f64>,
    /// Estimates from growing shares of the works. Few works may not connect the ends in a tenth of them.
    pub convergence: diffclf::Result<Convergence>,
}

/// BAR from two files of works in kT; with `independent`, only as many are kept as are.
pub fn from_files(
    forward: &Path,
    reverse: &Path,
    independent: bool,
    resample: Resample,
) -> Result<BarFound> {
    of(
        [read_series(forward)?, read_series(reverse)?],
        independent,
        resample,
    )
}

/// BAR from forward and reverse works in kT.
pub fn of(mut series: [Vec<f64>; 2], independent: bool, resample: Resample) -> Result<BarFound> {
    let inefficiency = series
        .each_ref()
        .map(|works| statistical_inefficiency(works));
    if independent {
        for (works, g) in series.iter_mut().zip(inefficiency) {
            *works = subsample(works.len(), g)
                .iter()
                .map(|n| works[*n])
                .collect();
        }
    }
    let [forward, reverse] = &series;
    let found = bar(forward, reverse)?;
    let bootstrap_error = match resample.checked()? {
        Some(replicas) => {
            let blocks = if independent {
                [Blocks::SINGLE; 2]
            } else {
                [
                    Blocks::of(forward.len(), inefficiency[0]),
                    Blocks::of(reverse.len(), inefficiency[1]),
                ]
            };
            Some(bar_bootstrap(forward, reverse, blocks, replicas, resample.seed)?.error)
        }
        None => None,
    };
    let convergence = convergence(&tenths(), &mut |range| {
        let part = |works: &[f64]| works[range(works.len())].to_vec();
        Ok(bar(&part(forward), &part(reverse))?.delta)
    });
    Ok(BarFound {
        bar: found,
        samples: [forward.len(), reverse.len()],
        inefficiency,
        subsampled: independent,
        bootstrap_error,
        convergence,
    })
}
