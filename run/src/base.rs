//! The mixture that a model stands on, fitted to the rows that are trained on, in the model's coordinates.

use crate::data::DataSet;
use crate::edges;
use crate::error::{Error, Result};
use crate::resolve::Outline;
use crate::words;
use crate::words::Setting;
use diffclf::base::{BaseEnds, Fit, FitSettings, KernelDensity, MixtureBase, Rows, fit, fit_ends};
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
    /// Springs between bonded particles, fitted to the data, beside the Gaussian.
    Springs,
    /// Whichever of Gaussian and mixture makes held-out rows more likely; for particles springs, if they have bonds.
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
    /// How much more likely a kernel density makes rows that none of both saw, in nats per row; asked where the number of components speaks of edges.
    pub kernels_ahead: Option<f64>,
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
    if matches!(outline.base, BaseKind::Gaussian | BaseKind::Springs) {
        return Ok(None);
    }
    let (mut shares, mut held_out) = (Vec::with_capacity(sets.len()), None);
    for (k, set) in sets.iter().enumerate() {
        let rows = set.prepare(&outline.coordinates)?;
        let Some([train, rest]) = rows.in_order(k, outline.seed, outline.held_out) else {
            return Err(Error::Refused(words!(
                Setting::to("base", "mixture"),
                " needs a fixed set of rows, but the system is sampled afresh at every step; add ",
                Setting::to("samples", "N")
            )));
        };
        shares.push(train);
        held_out.get_or_insert(rest);
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
    let kernels_ahead = match (rows.as_slice(), held_out) {
        ([rows], Some(rest)) if edges::likely(&start.mixture, rows.rows(), &settings.periods) => {
            let kernels = KernelDensity::fit(rows, &settings, pool)?;
            kernels_ahead(&kernels, &start.mixture, &InOrder(&rest, dim), pool)
        }
        _ => None,
    };
    let finest = |fit: &Fit| fit.mixture.smallest_width();
    Ok(Some(FoundBase {
        shape: format!("{} {}", start.mixture.components(), start.chosen.shape),
        nats: (start.chosen.held_out, start.chosen.error),
        finest: finest(&start).min(end.as_ref().map_or(f64::INFINITY, finest)),
        multiplicity: start.multiplicity,
        kernels_ahead,
        ends: BaseEnds {
            start: start.mixture,
            end: end.map(|end| end.mixture),
        },
    }))
}

/// Mean of log kernels - log mixture over rows; none where there are no rows.
fn kernels_ahead(
    kernels: &KernelDensity,
    mixture: &MixtureBase,
    rows: &dyn Rows,
    pool: &Pool,
) -> Option<f64> {
    let (count, dim) = (rows.rows(), rows.dim());
    let mut points = vec![0.0; count * dim];
    for (k, point) in points.chunks_exact_mut(dim).enumerate() {
        rows.copy_row(k, point);
    }
    let leads = kernels
        .log_densities(&points, pool)
        .into_iter()
        .zip(points.chunks_exact(dim))
        .map(|(log_p, point)| log_p - mixture.log_density(point));
    (count > 0).then(|| leads.sum::<f64>() / count as f64)
}
