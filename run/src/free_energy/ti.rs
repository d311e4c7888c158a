//! Thermodynamic integration of measured slopes.

use super::input::read_series;
use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::words;
use crate::words::Setting;
use diffclf::free_energy::{Rule, integrate, statistical_inefficiency};
use diffclf::metric::Estimate;
use std::path::PathBuf;

/// What was found.
#[derive(Debug, Clone)]
pub struct TiFound {
    /// The values of lambda.
    pub lambdas: Vec<f64>,
    /// Mean slopes.
    pub slopes: Vec<Estimate>,
    /// Statistical inefficiency of each series.
    pub inefficiency: Vec<f64>,
    /// delta by each rule.
    pub results: Vec<(Rule, Estimate)>,
}

impl TiFound {
    /// By how much the rules differ.
    pub fn spread(&self) -> f64 {
        let values = || self.results.iter().map(|(_, e)| e.mean);
        values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
    }
}

/// Integration of samples of du/dlambda: one file with a row for each lambda, or a file for each. `independent` samples have no
/// correlation to look for.
pub fn from_files(files: &[PathBuf], lambdas: Vec<f64>, independent: bool) -> Result<TiFound> {
    of(&read(files)?, lambdas, independent)
}

/// Integration of series of du/dlambda, one for each lambda.
pub fn of(series: &[Vec<f64>], lambdas: Vec<f64>, independent: bool) -> Result<TiFound> {
    if series.len() != lambdas.len() {
        return Err(Error::Refused(words!(
            Setting::new("lambdas"),
            " has ",
            lambdas.len(),
            " values, but there are ",
            series.len(),
            " series of slopes; expected one for each (one row of the file, or one file)"
        )));
    }
    let mut slopes = Vec::with_capacity(series.len());
    let mut inefficiency = Vec::with_capacity(series.len());
    for (values, lambda) in series.iter().zip(&lambdas) {
        if values.len() < 2 || values.iter().any(|x| !x.is_finite()) {
            return Err(Error::Usage(format!(
                "the slopes at lambda {lambda} are {} numbers, expected at least two, all finite",
                values.len()
            )));
        }
        let g = if independent {
            1.0
        } else {
            statistical_inefficiency(values)
        };
        let plain = Estimate::of(values);
        slopes.push(Estimate {
            mean: plain.mean,
            error: plain.error * g.sqrt(),
        });
        inefficiency.push(g);
    }
    let results = Rule::ALL
        .into_iter()
        .map(|rule| Ok((rule, integrate(&lambdas, &slopes, rule)?.delta)))
        .collect::<Result<Vec<_>>>()?;
    Ok(TiFound {
        lambdas,
        slopes,
        inefficiency,
        results,
    })
}

fn read(files: &[PathBuf]) -> Result<Vec<Vec<f64>>> {
    let [path] = files else {
        return files.iter().map(|path| read_series(path)).collect();
    };
    let mapped = MappedNpy::open(path)?;
    let view = mapped.view()?;
    let mut row = vec![0.0; view.dim()];
    let rows = (0..view.rows()).map(|i| {
        view.copy_row_f64(i, &mut row);
        row.clone()
    });
    Ok(rows.collect())
}
