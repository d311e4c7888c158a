//! The mixture sum_k w_k N(mu_k, Sigma_k) that an energy stands on, kept as axes and variances: what is added by noise is then a
//! change of the variances alone.

use super::wrapped::cost_of_one;
use crate::rng::Stream;
use crate::system::log_sum::log_sum_exp;
use crate::system::matrix::{add, dot, symmetric_eigen};
use crate::system::{Covariance, GaussianMixture};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// The most components a mixture may have; a file that announces more is refused.
pub const MOST_COMPONENTS: usize = 4096;

/// The covariances of all components.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spread {
    /// Diagonal in one basis that all components share.
    Diagonal {
        /// `dim` variances per component.
        variances: Vec<f64>,
        /// The basis, `dim` unit rows; absent: the coordinate axes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        basis: Option<Vec<f64>>,
    },
    /// `Sigma_k = sum_i variances_ki u_ki u_ki^T + rest_k (I - sum_i u_ki u_ki^T)`: every component has axes of its own. With as
    /// many axes as dimensions it is any covariance; with fewer, a probabilistic principal component analyser (Tipping and
    /// Bishop 1999).
    Axes {
        /// Axes per component.
        rank: usize,
        /// Orthonormal rows, `rank` per component.
        axes: Vec<f64>,
        /// Variances along them.
        variances: Vec<f64>,
        /// One variance per component in all other directions; empty if there are none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rest: Vec<f64>,
    },
}

/// What a file says of a mixture.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    dim: usize,
    weights: Vec<f64>,
    means: Vec<f64>,
    spread: Spread,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    periods: Vec<f64>,
}

/// A Gaussian mixture as a base: weights that sum to 1, means row after row, covariances as a [`Spread`]. Periodic coordinates are
/// wrapped: every component is the sum of its images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct MixtureBase {
    dim: usize,
    weights: Vec<f64>,
    means: Vec<f64>,
    spread: Spread,
    /// Period of each coordinate, 0 for none; empty if none has one.
    periods: Vec<f64>,
}

impl TryFrom<Settings> for MixtureBase {
    type Error = Error;
    fn try_from(s: Settings) -> Result<Self> {
        Self::new(s.dim, s.weights, s.means, s.spread)?.with_periods(s.periods)
    }
}

impl From<MixtureBase> for Settings {
    fn from(m: MixtureBase) -> Self {
        Self {
            dim: m.dim,
            weights: m.weights,
            means: m.means,
            spread: m.spread,
            periods: m.periods,
        }
    }
}

impl MixtureBase {
    /// A mixture from positive weights (normalised here), means and covariances. Everything is checked: sizes, signs, finite
    /// values, axes that are orthonormal to 1e-6.
    pub fn new(dim: usize, weights: Vec<f64>, means: Vec<f64>, spread: Spread) -> Result<Self> {
        let count = weights.len();
        let total: f64 = weights.iter().sum();
        let positive = |values: &[f64]| values.iter().all(|v| *v > 0.0 && v.is_finite());
        if dim == 0 || !(1..=MOST_COMPONENTS).contains(&count) || !positive(&weights) {
            return Err(wrong(
                format!("dimension {dim} and {count} weights"),
                format!(
                    "at least one dimension and 1 to {MOST_COMPONENTS} components, all weights positive and finite"
                ),
            ));
        }
        check_len("means", means.len(), count.checked_mul(dim))?;
        if !means.iter().all(|m| m.is_finite()) {
            return Err(wrong(
                "a mean that is not finite".into(),
                "finite means".into(),
            ));
        }
        let square = dim.checked_mul(dim);
        match &spread {
            Spread::Diagonal { variances, basis } => {
                check_len("variances", variances.len(), count.checked_mul(dim))?;
                if let Some(basis) = basis {
                    check_len("basis", basis.len(), square)?;
                    check_orthonormal(basis, dim)?;
                }
                check_variances(variances)?;
            }
            Spread::Axes {
                rank,
                axes,
                variances,
                rest,
            } => {
                if !(1..=dim).contains(rank) {
                    return Err(wrong(
                        format!("{rank} axes per component"),
                        format!("1 to {dim}, the number of dimensions"),
                    ));
                }
                let rests = if *rank < dim { count } else { 0 };
                let numbers = count.checked_mul(*rank);
                check_len("variances", variances.len(), numbers)?;
                check_len("axes", axes.len(), numbers.and_then(|n| n.checked_mul(dim)))?;
                check_len("variances of the rest", rest.len(), Some(rests))?;
                for axes in axes.chunks_exact(rank * dim) {
                    check_orthonormal(axes, dim)?;
                }
                check_variances(variances)?;
                check_variances(rest)?;
            }
        }
        let weights = weights.iter().map(|w| w / total).collect();
        Ok(Self {
            dim,
            weights,
            means,
            spread,
            periods: Vec::new(),
        })
    }

    /// The same mixture with coordinates that are known up to whole periods, 0 for those that have none. Axes must be the coordinates':
    /// a direction across periodic ones has no period of its own.
    pub fn with_periods(mut self, periods: Vec<f64>) -> Result<Self> {
        if periods.iter().all(|p| *p == 0.0) {
            return Ok(self);
        }
        let sound = |p: &f64| *p >= 0.0 && p.is_finite();
        let straight = matches!(self.spread, Spread::Diagonal { basis: None, .. });
        if periods.len() != self.dim || !periods.iter().all(sound) || !straight {
            return Err(wrong(
                format!("periods {periods:?} and {} covariances", self.spread_name()),
                format!(
                    "{} periods, none negative, and diagonal covariances",
                    self.dim
                ),
            ));
        }
        self.periods = periods;
        Ok(self)
    }

    /// Period of each coordinate, 0 for none; empty if none has one.
    pub fn periods(&self) -> &[f64] {
        &self.periods
    }

    crate::system::component_parts!();

    /// The covariances.
    pub fn spread(&self) -> &Spread {
        &self.spread
    }

    /// What the covariances are, in a word or two.
    pub fn spread_name(&self) -> &'static str {
        match &self.spread {
            Spread::Diagonal { .. } => "diagonal",
            Spread::Axes { rank, .. } if *rank < self.dim => "low-rank",
            Spread::Axes { .. } => "full",
        }
    }

    /// Axes (unit rows), their variances, and the variance of the rest (0 if there is none), of component k. No axes: those of
    /// the coordinates.
    pub(super) fn component(&self, k: usize) -> (Option<&[f64]>, &[f64], f64) {
        match &self.spread {
            Spread::Diagonal { variances, basis } => (
                basis.as_deref(),
                &variances[k * self.dim..][..self.dim],
                0.0,
            ),
            Spread::Axes {
                rank,
                axes,
                variances,
                rest,
            } => (
                Some(&axes[k * rank * self.dim..][..rank * self.dim]),
                &variances[k * rank..][..*rank],
                rest.get(k).copied().unwrap_or(0.0),
            ),
        }
    }

    /// The variance that every component has in every direction, if each has only one.
    pub(super) fn isotropic(&self) -> Option<Vec<f64>> {
        (0..self.components())
            .map(|k| {
                let (_, variances, rest) = self.component(k);
                let first = variances[0];
                let same = variances.iter().all(|v| *v == first) && [0.0, first].contains(&rest);
                same.then_some(first)
            })
            .collect()
    }

    /// Standard deviation along the narrowest direction of any component: the finest scale that the mixture resolves.
    pub fn smallest_width(&self) -> f64 {
        let (Spread::Diagonal { variances, .. } | Spread::Axes { variances, .. }) = &self.spread;
        let rest: &[f64] = match &self.spread {
            Spread::Axes { rest, .. } => rest,
            Spread::Diagonal { .. } => &[],
        };
        let all = variances.iter().chain(rest);
        all.fold(f64::INFINITY, |a, b| a.min(*b)).sqrt()
    }

    /// log p(x), by the definition. [`Marginal`](super::Marginal) is the fast way for many points.
    pub fn log_density(&self, point: &[f64]) -> f64 {
        let term = |a: f64, v: f64| a * a / v + (TAU * v).ln();
        let mut terms: Vec<f64> = (0..self.components())
            .map(|k| {
                let (axes, variances, rest) = self.component(k);
                let mut away: Vec<f64> = point
                    .iter()
                    .zip(self.component_mean(k))
                    .map(|(x, m)| x - m)
                    .collect();
                let mut sum = 0.0;
                match axes {
                    None => {
                        for (i, (a, v)) in away.iter().zip(variances).enumerate() {
                            sum += match self.periods.get(i) {
                                Some(period) if *period > 0.0 => {
                                    cost_of_one(*a, *v, *period) + TAU.ln()
                                }
                                _ => term(*a, *v),
                            };
                        }
                    }
                    Some(axes) => {
                        for (axis, v) in axes.chunks_exact(self.dim).zip(variances) {
                            let along = dot(axis, &away);
                            sum += term(along, *v);
                            add(-along, axis, &mut away);
                        }
                        if variances.len() < self.dim {
                            let others = (self.dim - variances.len()) as f64;
                            sum += dot(&away, &away) / rest + others * (TAU * rest).ln();
                        }
                    }
                }
                self.weights[k].ln() - 0.5 * sum
            })
            .collect();
        log_sum_exp(&mut terms)
    }

    /// Draws a component.
    pub(super) fn sample_component(&self, stream: &mut Stream) -> usize {
        let u = stream.uniform();
        let mut sum = 0.0;
        let below = self.weights.iter().take_while(|w| {
            sum += **w;
            sum <= u
        });
        below.count().min(self.components() - 1)
    }

    /// Adds to `out` a draw of N(0, factor Sigma_k + noise I); `room` has as many numbers as `out`.
    pub(super) fn add_deviation(
        &self,
        k: usize,
        (factor, noise): (f64, f64),
        stream: &mut Stream,
        out: &mut [f64],
        room: &mut [f64],
    ) {
        let (axes, variances, rest) = self.component(k);
        stream.fill_normal_f64(room);
        let wide = |v: &f64| (factor * v + noise).sqrt();
        let Some(axes) = axes else {
            for ((x, v), z) in out.iter_mut().zip(variances).zip(room) {
                *x += wide(v) * *z;
            }
            return;
        };
        if variances.len() == self.dim {
            for ((axis, v), z) in axes.chunks_exact(self.dim).zip(variances).zip(room) {
                add(wide(v) * *z, axis, out);
            }
            return;
        }
        // Noise of the rest in all directions; along each axis its part is then stretched to the axis's width.
        let base = wide(&rest);
        add(base, room, out);
        for (axis, v) in axes.chunks_exact(self.dim).zip(variances) {
            add((wide(v) - base) * dot(axis, room), axis, out);
        }
    }

    /// Draws a point of the mixture whose covariances are multiplied by `inflation^2`; `room` has as many numbers as `out`.
    pub fn sample_point(
        &self,
        inflation: f64,
        stream: &mut Stream,
        out: &mut [f64],
        room: &mut [f64],
    ) {
        let k = self.sample_component(stream);
        out.copy_from_slice(self.component_mean(k));
        self.add_deviation(k, (inflation * inflation, 0.0), stream, out, room);
    }

    /// The covariance of component k as a matrix.
    pub fn component_covariance(&self, k: usize) -> Vec<f64> {
        let (dim, (axes, variances, rest)) = (self.dim, self.component(k));
        let mut matrix = vec![0.0; dim * dim];
        match axes {
            None => {
                for (i, v) in variances.iter().enumerate() {
                    matrix[i * dim + i] = *v;
                }
            }
            Some(axes) => {
                for i in 0..dim {
                    matrix[i * dim + i] = rest;
                }
                for (axis, v) in axes.chunks_exact(dim).zip(variances) {
                    for (i, a) in axis.iter().enumerate() {
                        add((v - rest) * a, axis, &mut matrix[i * dim..][..dim]);
                    }
                }
            }
        }
        matrix
    }

    /// The same mixture as a target with exact answers.
    pub fn to_gaussian_mixture(&self) -> Result<GaussianMixture> {
        let covariance = match &self.spread {
            Spread::Diagonal {
                variances,
                basis: None,
            } => Covariance::Diagonal(variances.clone()),
            _ => {
                let mut all = Vec::with_capacity(self.means.len() * self.dim);
                for k in 0..self.components() {
                    let mut matrix = self.component_covariance(k);
                    symmetrise(&mut matrix, self.dim);
                    all.append(&mut matrix);
                }
                Covariance::Full(all)
            }
        };
        GaussianMixture::new(
            self.dim,
            self.weights.clone(),
            self.means.clone(),
            covariance,
        )
    }
}

/// Makes a matrix that is symmetric up to rounding symmetric to the bit.
pub(super) fn symmetrise(matrix: &mut [f64], dim: usize) {
    for i in 0..dim {
        for j in 0..i {
            let mean = 0.5 * (matrix[i * dim + j] + matrix[j * dim + i]);
            (matrix[i * dim + j], matrix[j * dim + i]) = (mean, mean);
        }
    }
}

impl TryFrom<&GaussianMixture> for MixtureBase {
    type Error = Error;

    /// The same mixture with its axes written out.
    fn try_from(mixture: &GaussianMixture) -> Result<Self> {
        let dim = mixture.dim();
        let spread = match mixture.covariance() {
            Covariance::Isotropic(values) => Spread::Diagonal {
                variances: values.iter().flat_map(|v| vec![*v; dim]).collect(),
                basis: None,
            },
            Covariance::Diagonal(values) => Spread::Diagonal {
                variances: values.clone(),
                basis: None,
            },
            Covariance::Full(values) => {
                let (mut axes, mut variances) = (vec![], vec![]);
                for matrix in values.chunks_exact(dim * dim) {
                    let (values, vectors) = symmetric_eigen(matrix, dim);
                    variances.extend(values);
                    axes.extend(vectors);
                }
                Spread::Axes {
                    rank: dim,
                    axes,
                    variances,
                    rest: vec![],
                }
            }
        };
        Self::new(
            dim,
            mixture.weights().to_vec(),
            mixture.means().to_vec(),
            spread,
        )
    }
}

fn wrong(found: String, expected: String) -> Error {
    Error::Value {
        name: "mixture base",
        found,
        expected,
    }
}

fn check_len(what: &str, found: usize, expected: Option<usize>) -> Result<()> {
    if Some(found) == expected {
        return Ok(());
    }
    Err(Error::Shape {
        what: format!("{what} of the mixture base"),
        found: format!("{found} numbers"),
        expected: expected.map_or("a size that fits in memory".into(), |n| n.to_string()),
    })
}

fn check_variances(variances: &[f64]) -> Result<()> {
    // Far inside the range of doubles, so that neither products of a few variances nor their inverses overflow.
    match variances.iter().find(|v| !(1e-30..=1e30).contains(*v)) {
        None => Ok(()),
        Some(bad) => Err(wrong(
            format!("a variance of {bad}"),
            "variances between 1e-30 and 1e30".into(),
        )),
    }
}

fn check_orthonormal(axes: &[f64], dim: usize) -> Result<()> {
    for (i, a) in axes.chunks_exact(dim).enumerate() {
        for (j, b) in axes.chunks_exact(dim).enumerate().take(i + 1) {
            let (product, expected) = (dot(a, b), f64::from(u8::from(i == j)));
            if product.is_nan() || (product - expected).abs() > 1e-6 {
                return Err(wrong(
                    format!("axes {j} and {i} with the scalar product {product}"),
                    "orthonormal axes".into(),
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests;
