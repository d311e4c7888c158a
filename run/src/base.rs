//! The mixture that a model stands on, fitted to the rows that are trained on, in the model's coordinates.

use crate::data::DataSet;
use crate::error::{Error, Result};
use crate::resolve::Outline;
use crate::words;
use crate::words::Setting;
use diffclf::base::{BaseEnds, Fit, FitSettings, Rows, fit, fit_ends};
use diffclf::engine::{Isa, Pool};
use diffclf::train::Shuffled;
use serde::{Deserialize, Serialize};

/// What the energy stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseKind {
    /// One Gaussian with the mean and the variance of the data, as in the paper.
    Gaussian,
    /// A mixture fitted to the data.
    Mixture,
    /// Whichever of them makes held-out rows more likely; a Gaussian where a mixture cannot be fitted.
    Auto,
}

/// A fitted base and what it tells of the data.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundBase {
    /// The mixtures, in the model's coordinates.
    pub ends: BaseEnds,
    /// Structure of their covariances.
    pub shape: String,
    /// Mean log-density of rows that were held out while it was chosen, in nats per row, with its standard error.
    pub nats: (f64, f64),
    /// Smallest standard deviation along any axis of a component.
    pub finest: f64,
    /// Rows per distinct row.
    pub multiplicity: f64,
}

/// Rows of a share in the order of the file.
struct InOrder<'a>(&'a Shuffled, usize);

impl Rows for InOrder<'_> {
    fn dim(&self) -> usize {
        self.1
    }
    fn rows(&self) -> usize {
        self.0.rows()
    }
    fn copy_row(&self, row: usize, out: &mut [f64]) {
        let mut single = vec![0f32; out.len()];
        self.0.copy_in_order(row, &mut single);
        for (out, x) in out.iter_mut().zip(single) {
            *out = f64::from(x);
        }
    }
    fn weight(&self, row: usize) -> Option<f64> {
        self.0.is_weighted().then(|| self.0.weight(row))
    }
}

/// Fits the base that the outline of a run asks for.
pub fn fit_base(
    outline: &Outline,
    sets: &[DataSet],
    pool: &Pool,
    isa: Isa,
) -> Result<Option<FoundBase>> {
    if outline.base == BaseKind::Gaussian {
        return Ok(None);
    }
    let mut shares = Vec::with_capacity(sets.len());
    for (k, set) in sets.iter().enumerate() {
        let rows = set.prepare(&outline.coordinates)?;
        let Some([train, _]) = rows.in_order(k, outline.seed, outline.held_out) else {
            return Err(Error::Refused(words!(
                Setting::to("base", "mixture"),
                " needs a fixed set of rows, but the system is sampled afresh at every step; add ",
                Setting::to("samples", "N")
            )));
        };
        shares.push(train);
    }
    let settings = FitSettings {
        seed: outline.seed,
        periods: outline.coordinates.model_periods(),
        ..FitSettings::default()
    };
    let dim = outline.coordinates.dim();
    let rows: Vec<InOrder<'_>> = shares.iter().map(|share| InOrder(share, dim)).collect();
    let (start, end): (Fit, Option<Fit>) = match rows.as_slice() {
        [start, end] => {
            let ends = fit_ends(start, end, &settings, pool, isa)?;
            (ends.start, Some(ends.end))
        }
        [start] => (fit(start, &settings, pool, isa)?, None),
        _ => return Err(Error::Nothing),
    };
    let finest = |fit: &Fit| fit.mixture.smallest_width();
    Ok(Some(FoundBase {
        shape: format!("{} {}", start.mixture.components(), start.chosen.shape),
        nats: (start.chosen.held_out, start.chosen.error),
        finest: finest(&start).min(end.as_ref().map_or(f64::INFINITY, finest)),
        multiplicity: start.multiplicity,
        ends: BaseEnds {
            start: start.mixture,
            end: end.map(|end| end.mixture),
        },
    }))
}
