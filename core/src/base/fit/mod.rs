//! Fitting a Gaussian mixture to rows: structure and number of components by held-out likelihood, then once more on all rows.
//!
//! The same rows, settings and machine type give the same bytes with any number of threads.

mod axes;
mod data;
mod em;
mod ends;
mod seed;
mod select;

pub use ends::{FitEnds, fit_ends};

use super::mixture::{MixtureBase, Spread, symmetrise};
use crate::engine::{Isa, Pool};
use crate::rng::Purpose;
use crate::system::matrix::symmetric_eigen;
use crate::{Error, Result};
use axes::leading_axes;
pub(super) use data::Data;
use em::Model;
use select::Search;
pub(super) use select::mean_and_error;
use serde::{Deserialize, Serialize};

/// The purpose of all draws of a fit.
const PURPOSE: Purpose = Purpose::Base;

/// Numbers of components that are tried, in this order.
pub const COMPONENTS: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Dimensions up to which covariances are full matrices while they are fitted.
pub const MOST_DENSE: usize = 128;

/// Rows to fit: in memory, or read one by one from a file larger than it.
pub trait Rows: Sync {
    /// Numbers of a row.
    fn dim(&self) -> usize;
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Copies row `row`.
    fn copy_row(&self, row: usize, out: &mut [f64]);
    /// Weight of row `row`; none where all count the same.
    fn weight(&self, row: usize) -> Option<f64> {
        let _ = row;
        None
    }
}

/// Rows in memory, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct RowSlice<'a> {
    values: &'a [f64],
    dim: usize,
    weights: &'a [f64],
}

impl<'a> RowSlice<'a> {
    /// Rows of `dim` numbers; a last row that is not whole is left out.
    pub fn new(values: &'a [f64], dim: usize) -> RowSlice<'a> {
        RowSlice {
            values,
            dim,
            weights: &[],
        }
    }

    /// The same rows, each with a weight.
    pub fn weighted(self, weights: &'a [f64]) -> RowSlice<'a> {
        RowSlice { weights, ..self }
    }
}

impl Rows for RowSlice<'_> {
    fn dim(&self) -> usize {
        self.dim
    }
    fn rows(&self) -> usize {
        self.values.len() / self.dim.max(1)
    }
    fn copy_row(&self, row: usize, out: &mut [f64]) {
        out.copy_from_slice(&self.values[row * self.dim..][..self.dim]);
    }
    fn weight(&self, row: usize) -> Option<f64> {
        self.weights.get(row).copied()
    }
}

/// The structure of the covariances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Any matrix.
    Full,
    /// Diagonal in the coordinates (or in [`FitSettings::basis`]).
    Diagonal,
    /// So many axes per component with variances of their own, one variance for all other directions.
    LowRank(usize),
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shape::Full => f.write_str("full"),
            Shape::Diagonal => f.write_str("diagonal"),
            Shape::LowRank(rank) => write!(f, "low-rank({rank})"),
        }
    }
}

/// How to fit.
#[derive(Clone, Debug, PartialEq)]
pub struct FitSettings {
    /// Structures to try; empty: by dimension.
    pub shapes: Vec<Shape>,
    /// Most components.
    pub most_components: usize,
    /// Most rows: of more, a subsample spread over the whole file is used.
    pub most_rows: usize,
    /// Share of the rows that is held out, where not every row is held out in turn (as it is for up to 5000 rows).
    pub held_out: f64,
    /// Neighbouring rows that are held out together; `None`: from their correlation. Give 1 for rows without order.
    pub block: Option<usize>,
    /// Orthonormal rows: the fit is made in these axes, with diagonal covariances.
    pub basis: Option<Vec<f64>>,
    /// Period of each column, 0 for none; empty if none has one. Components are then wrapped, with diagonal covariances.
    pub periods: Vec<f64>,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for FitSettings {
    fn default() -> Self {
        Self {
            shapes: vec![],
            most_components: 64,
            most_rows: 50_000,
            held_out: 0.2,
            block: None,
            basis: None,
            periods: vec![],
            seed: 0,
        }
    }
}

/// A structure that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Structure of the covariances.
    pub shape: Shape,
    /// Number of components of each member.
    pub components: usize,
    /// How many rows' worth of the common covariance each component borrows, in units of `dim + 2` rows.
    pub tie: f64,
    /// Fits from different starts whose mean density is taken: 1 or 2.
    pub members: usize,
    /// Weight of a broad component over everything.
    pub background: f64,
    /// Mean log-density of held-out rows, in nats per row.
    pub held_out: f64,
    /// Its standard error, from blocks of neighbouring rows.
    pub error: f64,
}

/// A fitted mixture and how it was chosen.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The mixture, fitted to all rows that were used.
    pub mixture: MixtureBase,
    /// What was chosen.
    pub chosen: Candidate,
    /// Everything that was tried.
    pub tried: Vec<Candidate>,
    /// Rows that were used.
    pub rows: usize,
    /// Rows whose log-density was held out.
    pub held_out_rows: usize,
    /// Neighbouring rows that were held out together.
    pub block: usize,
    /// Rows per distinct row.
    pub multiplicity: f64,
    /// Smallest standard deviation that was allowed in each column: for values on a grid that of their rounding.
    pub finest: Vec<f64>,
}

/// Fits a mixture to rows. Threads share the rows (or the parts that are held out); sums keep their order.
///
/// ```
/// use diffclf::base::{FitSettings, RowSlice, fit};
/// use diffclf::engine::{Isa, Pool};
/// let (rows, _) = diffclf::system::two_modes()?.sample(500, 1);
/// let fitted = fit(&RowSlice::new(&rows, 2), &FitSettings::default(), &Pool::new(1), Isa::detect())?;
/// assert_eq!(fitted.mixture.components(), 2);
/// # Ok::<(), diffclf::Error>(())
/// ```
pub fn fit(rows: &dyn Rows, settings: &FitSettings, pool: &Pool, isa: Isa) -> Result<Fit> {
    let periods = &settings.periods;
    if !periods.is_empty() && (periods.len() != rows.dim() || settings.basis.is_some()) {
        return Err(Error::Value {
            name: "periods of the columns",
            found: format!("{} periods", periods.len()),
            expected: format!(
                "one for each of {} columns, and no basis of their own",
                rows.dim()
            ),
        });
    }
    let data = Data::new(rows, settings)?;
    let shapes = shapes(&data, settings)?;
    let mut search = Search::new(&data, settings, pool, isa);
    let mut chosen = search.choose(&shapes)?;
    let model = search.refit(&chosen)?;
    let held_out_rows = search.held_out_rows();
    // From the units of the fit to those of the rows.
    let jacobian: f64 = data.scale.iter().map(|s| s.ln()).sum();
    let mut tried = search.tried;
    for candidate in tried.iter_mut().chain([&mut chosen]) {
        candidate.held_out -= jacobian;
    }
    let mixture = mixture_of(&data, model, settings.basis.as_deref())?;
    let mixture = mixture.with_periods(settings.periods.clone())?;
    Ok(Fit {
        mixture,
        rows: data.len(),
        held_out_rows,
        block: data.block,
        multiplicity: data.multiplicity,
        finest: data
            .floor
            .iter()
            .zip(&data.scale)
            .map(|(v, s)| v.sqrt() * s)
            .collect(),
        tried,
        chosen,
    })
}

/// The structures to try: given, or by dimension and number of rows.
fn shapes(data: &Data, settings: &FitSettings) -> Result<Vec<Shape>> {
    let dim = data.dim;
    let one_scale = data.scale.iter().all(|s| *s == data.scale[0]);
    if !settings.shapes.is_empty() {
        let aligned = settings.basis.is_some() || !settings.periods.is_empty();
        let fits = |shape: &Shape| match shape {
            Shape::Full => dim <= MOST_DENSE && !aligned,
            Shape::Diagonal => true,
            Shape::LowRank(rank) => (1..dim).contains(rank) && dim <= MOST_DENSE && !aligned,
        };
        return match settings.shapes.iter().find(|shape| !fits(shape)) {
            None => Ok(settings.shapes.clone()),
            Some(shape) => Err(Error::Value {
                name: "structure of the covariances",
                found: format!("{shape} in {dim} dimensions"),
                expected: format!(
                    "diagonal, or (without a common basis or periods and up to {MOST_DENSE} dimensions) full or of lower rank"
                ),
            }),
        };
    }
    let aligned = settings.basis.is_some() || !settings.periods.is_empty();
    if dim == 1 || dim > MOST_DENSE || aligned {
        return Ok(vec![Shape::Diagonal]);
    }
    let mut shapes = vec![Shape::Full, Shape::Diagonal];
    // A full matrix that borrows from the common one has been better than few axes wherever both were measured, unless the rows
    // do not even span the space.
    if one_scale && dim >= 8 && data.len() < 2 * dim {
        shapes.extend([dim / 8, dim / 4].map(Shape::LowRank));
    }
    Ok(shapes)
}

/// The mixture in the coordinates of the rows.
fn mixture_of(data: &Data, mut model: Model, basis: Option<&[f64]>) -> Result<MixtureBase> {
    let dim = data.dim;
    let mut means = model.means.clone();
    for mean in means.chunks_exact_mut(dim) {
        for ((m, shift), scale) in mean.iter_mut().zip(&data.shift).zip(&data.scale) {
            *m = shift + scale * *m;
        }
    }
    if let Some(basis) = basis {
        // From the turned coordinates back: x = basis^T turned.
        for mean in means.chunks_exact_mut(dim) {
            let turned = mean.to_vec();
            mean.fill(0.0);
            crate::system::matrix::add_transposed(basis, 1.0, &turned, mean);
        }
    }
    let one_scale = data.scale.iter().all(|s| *s == data.scale[0]);
    let spread = match model.shape {
        Shape::Diagonal => Spread::Diagonal {
            variances: model
                .covariances
                .iter()
                .zip(data.scale.iter().cycle())
                .map(|(v, s)| v * s * s)
                .collect(),
            basis: basis.map(<[f64]>::to_vec),
        },
        shape => {
            let rank = match shape {
                // Few axes are quicker than all only if they are very few.
                Shape::LowRank(rank) if one_scale && 6 * rank <= dim => rank,
                _ => dim,
            };
            let (mut axes, mut variances, mut rest) = (vec![], vec![], vec![]);
            for matrix in model.covariances.chunks_exact_mut(dim * dim) {
                for (ij, value) in matrix.iter_mut().enumerate() {
                    *value *= data.scale[ij / dim] * data.scale[ij % dim];
                }
                symmetrise(matrix, dim);
                if rank == dim {
                    let (values, vectors) = symmetric_eigen(matrix, dim);
                    variances.extend(values);
                    axes.extend(vectors);
                    continue;
                }
                let mut own = vec![0.0; rank * dim];
                let mut order: Vec<usize> = (0..dim).collect();
                order.sort_by(|a, b| matrix[b * dim + b].total_cmp(&matrix[a * dim + a]));
                for (axis, i) in own.chunks_exact_mut(dim).zip(order) {
                    axis[i] = 1.0;
                }
                let values = leading_axes(matrix, dim, &mut own, 60);
                let trace: f64 = (0..dim).map(|i| matrix[i * dim + i]).sum();
                rest.push((trace - values.iter().sum::<f64>()) / (dim - rank) as f64);
                variances.extend(values);
                axes.append(&mut own);
            }
            Spread::Axes {
                rank,
                axes,
                variances,
                rest,
            }
        }
    };
    MixtureBase::new(dim, model.weights, means, spread)
}

/// The inverse of a lower triangular matrix.
pub(super) fn lower_inverse(factor: &[f64], dim: usize) -> Vec<f64> {
    let mut lower = vec![0.0; dim * dim];
    for i in 0..dim {
        // Row i of the inverse: (e_i - sum_{k<i} L_ik row_k) / L_ii.
        let (before, rest) = lower.split_at_mut(i * dim);
        let row = &mut rest[..dim];
        for (k, other) in before.chunks_exact(dim).enumerate() {
            let factor = factor[i * dim + k];
            for (x, y) in row[..=k].iter_mut().zip(other) {
                *x -= factor * y;
            }
        }
        row[i] = 1.0;
        let inverse = 1.0 / factor[i * dim + i];
        row[..=i].iter_mut().for_each(|x| *x *= inverse);
    }
    lower
}

#[cfg(test)]
mod tests;
