//! Gaussian mixtures sum_k w_k N(mu_k, Sigma_k): density, score, responsibilities and samples, in double precision.

use super::Target;
use super::component_parts;
use super::log_sum::{log_softmax_sum, log_sum_exp};
use super::matrix::{self, add, symmetric_eigen};
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Covariances of all components.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "values", rename_all = "kebab-case")]
pub enum Covariance {
    /// One variance per component.
    Isotropic(Vec<f64>),
    /// `dim` variances per component.
    Diagonal(Vec<f64>),
    /// A symmetric matrix of `dim` rows per component.
    Full(Vec<f64>),
}

/// What a file says of a mixture.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MixtureText {
    dim: usize,
    weights: Vec<f64>,
    means: Vec<f64>,
    covariance: Covariance,
}

/// A mixture of Gaussians. Weights sum to 1; means and covariances are stored row after row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "MixtureText", into = "MixtureText")]
pub struct GaussianMixture {
    dim: usize,
    weights: Vec<f64>,
    /// Running sums of the weights, for drawing components.
    cumulative: Vec<f64>,
    means: Vec<f64>,
    covariance: Covariance,
    /// Variances along each component's axes: `dim` per component.
    variances: Vec<f64>,
    /// For full covariances the axes themselves: `dim` rows per component, each a unit eigenvector.
    axes: Option<Vec<f64>>,
}

impl TryFrom<MixtureText> for GaussianMixture {
    type Error = Error;
    fn try_from(text: MixtureText) -> Result<Self> {
        Self::new(text.dim, text.weights, text.means, text.covariance)
    }
}

impl From<GaussianMixture> for MixtureText {
    fn from(mixture: GaussianMixture) -> Self {
        let GaussianMixture {
            dim,
            weights,
            means,
            covariance,
            ..
        } = mixture;
        Self {
            dim,
            weights,
            means,
            covariance,
        }
    }
}

impl GaussianMixture {
    /// A mixture from positive weights (normalised here), `means` of `dim` numbers per component, and covariances.
    pub fn new(
        dim: usize,
        weights: Vec<f64>,
        means: Vec<f64>,
        covariance: Covariance,
    ) -> Result<Self> {
        let count = weights.len();
        let total: f64 = weights.iter().sum();
        if dim == 0 || count == 0 || !weights.iter().all(|w| *w > 0.0) || !total.is_finite() {
            return Err(Error::Value {
                name: "Gaussian mixture",
                found: format!("dimension {dim}, weights {weights:?}"),
                expected:
                    "at least one dimension and one component, all weights positive and finite"
                        .into(),
            });
        }
        let (values, per_component) = match &covariance {
            Covariance::Isotropic(values) => (values, 1),
            Covariance::Diagonal(values) => (values, dim),
            Covariance::Full(values) => (values, dim * dim),
        };
        check_rows("means of the Gaussian mixture", &means, count, dim)?;
        check_rows(
            "covariances of the Gaussian mixture",
            values,
            count,
            per_component,
        )?;
        let (variances, axes) = match &covariance {
            Covariance::Isotropic(values) => {
                (values.iter().flat_map(|v| vec![*v; dim]).collect(), None)
            }
            Covariance::Diagonal(values) => (values.clone(), None),
            Covariance::Full(values) => {
                let mut axes = Vec::with_capacity(values.len());
                let mut variances = Vec::with_capacity(count * dim);
                for component in values.chunks_exact(dim * dim) {
                    check_symmetric(component, dim)?;
                    let (eigenvalues, eigenvectors) = symmetric_eigen(component, dim);
                    variances.extend(eigenvalues);
                    axes.extend(eigenvectors);
                }
                (variances, Some(axes))
            }
        };
        if let Some(bad) = variances.iter().find(|v| v.is_nan() || **v <= 0.0) {
            return Err(Error::Value {
                name: "covariance of the Gaussian mixture",
                found: format!("variance {bad} along one axis"),
                expected: "positive definite covariances".into(),
            });
        }
        let weights: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let cumulative = weights
            .iter()
            .scan(0.0, |sum, w| {
                Some(*{
                    *sum += w;
                    sum
                })
            })
            .collect();
        Ok(Self {
            dim,
            weights,
            cumulative,
            means,
            covariance,
            variances,
            axes,
        })
    }

    component_parts!();

    /// Covariances of all components.
    pub fn covariance(&self) -> &Covariance {
        &self.covariance
    }

    /// Variances of component k along its axes.
    pub(crate) fn component_variances(&self, k: usize) -> &[f64] {
        &self.variances[k * self.dim..][..self.dim]
    }

    /// Covariance matrix of component k.
    pub fn component_covariance(&self, k: usize) -> Vec<f64> {
        let (dim, variances) = (self.dim, self.component_variances(k));
        let mut matrix = vec![0.0; dim * dim];
        match self.component_axes(k) {
            None => (0..dim).for_each(|i| matrix[i * dim + i] = variances[i]),
            Some(axes) => {
                for (axis, variance) in axes.chunks_exact(dim).zip(variances) {
                    for (row, x) in matrix.chunks_exact_mut(dim).zip(axis) {
                        add(variance * x, axis, row);
                    }
                }
            }
        }
        matrix
    }

    /// Axes of component k (unit rows), when its covariance is full.
    pub(crate) fn component_axes(&self, k: usize) -> Option<&[f64]> {
        let size = self.dim * self.dim;
        self.axes.as_ref().map(|axes| &axes[k * size..][..size])
    }

    /// Mean of the mixture.
    pub fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.dim];
        for (k, &weight) in self.weights.iter().enumerate() {
            matrix::add(weight, self.component_mean(k), &mut mean);
        }
        mean
    }

    /// Scalar variance of the mixture: trace of its covariance divided by the dimension.
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        let trace: f64 = (0..self.components())
            .map(|k| {
                let spread: f64 = self
                    .component_mean(k)
                    .iter()
                    .zip(&mean)
                    .map(|(a, b)| (a - b).powi(2))
                    .sum();
                self.weights[k] * (spread + self.component_variances(k).iter().sum::<f64>())
            })
            .sum();
        trace / self.dim as f64
    }

    /// The mixture with zero mean and unit scalar variance.
    pub fn standardised(&self) -> Result<Self> {
        self.rescaled(&self.mean(), &[self.variance().sqrt()])
    }

    /// The law of `(x - shift) / scale`; `scale` holds one number for all columns, or one for each.
    pub fn rescaled(&self, shift: &[f64], scale: &[f64]) -> Result<Self> {
        if shift.len() != self.dim || (scale.len() != 1 && scale.len() != self.dim) {
            return Err(Error::Shape {
                what: "the shift and scale of a mixture".into(),
                found: format!("{} and {} numbers", shift.len(), scale.len()),
                expected: format!("{0} numbers, and 1 or {0}", self.dim),
            });
        }
        let dim = self.dim;
        let at = |column: usize| scale[if scale.len() == 1 { 0 } else { column }];
        let means = (0..self.means.len()).map(|i| (self.means[i] - shift[i % dim]) / at(i % dim));
        let shrunk = |values: &[f64], factor: &dyn Fn(usize) -> f64| -> Vec<f64> {
            values
                .iter()
                .enumerate()
                .map(|(i, v)| v / factor(i))
                .collect()
        };
        let diagonal = |i: usize| at(i % dim) * at(i % dim);
        let covariance = match &self.covariance {
            Covariance::Isotropic(values) if scale.len() == 1 => {
                Covariance::Isotropic(shrunk(values, &diagonal))
            }
            Covariance::Isotropic(values) => {
                let spread = values.iter().flat_map(|v| std::iter::repeat_n(*v, dim));
                Covariance::Diagonal(shrunk(&spread.collect::<Vec<_>>(), &diagonal))
            }
            Covariance::Diagonal(values) => Covariance::Diagonal(shrunk(values, &diagonal)),
            Covariance::Full(values) => {
                let both = |i: usize| at(i / dim % dim) * at(i % dim);
                Covariance::Full(shrunk(values, &both))
            }
        };
        Self::new(dim, self.weights.clone(), means.collect(), covariance)
    }

    /// Writes log w_k + log N(y; mu_k, Sigma_k) for every component.
    pub fn log_components(&self, point: &[f64], out: &mut [f64]) {
        for (k, value) in out.iter_mut().enumerate() {
            let mean = self.component_mean(k);
            let term = |distance: f64, variance: &f64| {
                distance * distance / variance + (TAU * variance).ln()
            };
            let variances = self.component_variances(k);
            let sum: f64 = match self.component_axes(k) {
                None => point
                    .iter()
                    .zip(mean)
                    .zip(variances)
                    .map(|((y, m), v)| term(y - m, v))
                    .sum(),
                Some(axes) => axes
                    .chunks_exact(self.dim)
                    .zip(variances)
                    .map(|(axis, v)| {
                        term(
                            axis.iter()
                                .zip(point)
                                .zip(mean)
                                .map(|((a, y), m)| a * (y - m))
                                .sum(),
                            v,
                        )
                    })
                    .sum(),
            };
            *value = self.weights[k].ln() - 0.5 * sum;
        }
    }

    /// log p(y).
    pub fn log_density(&self, point: &[f64]) -> f64 {
        let mut terms = vec![0.0; self.components()];
        self.log_components(point, &mut terms);
        log_sum_exp(&mut terms)
    }

    /// Writes the probability of every component given the point.
    pub fn responsibilities(&self, point: &[f64], out: &mut [f64]) {
        self.log_components(point, out);
        log_softmax_sum(out);
    }

    /// Writes grad log p(y).
    pub fn score(&self, point: &[f64], out: &mut [f64]) {
        let mut shares = vec![0.0; self.components()];
        self.responsibilities(point, &mut shares);
        out.fill(0.0);
        for (k, share) in shares.into_iter().enumerate() {
            let (mean, variances) = (self.component_mean(k), self.component_variances(k));
            match self.component_axes(k) {
                None => {
                    for (i, value) in out.iter_mut().enumerate() {
                        *value -= share * (point[i] - mean[i]) / variances[i];
                    }
                }
                Some(axes) => {
                    for (axis, variance) in axes.chunks_exact(self.dim).zip(variances) {
                        let along: f64 = axis
                            .iter()
                            .zip(point)
                            .zip(mean)
                            .map(|((a, y), m)| a * (y - m))
                            .sum();
                        matrix::add(-share * along / variance, axis, out);
                    }
                }
            }
        }
    }

    /// The component whose mean is nearest.
    pub fn nearest(&self, point: &[f64]) -> usize {
        let distance = |k: usize| -> f64 {
            self.component_mean(k)
                .iter()
                .zip(point)
                .map(|(m, y)| (m - y).powi(2))
                .sum()
        };
        (0..self.components())
            .map(|k| (k, distance(k)))
            .fold((0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a })
            .0
    }

    /// Draws a component.
    pub fn sample_component(&self, stream: &mut Stream) -> usize {
        let u = stream.uniform();
        self.cumulative
            .partition_point(|&sum| sum <= u)
            .min(self.components() - 1)
    }

    /// Draws a point in double precision and returns the component it came from.
    pub fn sample_point(&self, stream: &mut Stream, out: &mut [f64]) -> usize {
        let k = self.sample_component(stream);
        let variances = self.component_variances(k);
        out.copy_from_slice(self.component_mean(k));
        match self.component_axes(k) {
            None => {
                for (value, variance) in out.iter_mut().zip(variances) {
                    *value += variance.sqrt() * stream.normal();
                }
            }
            Some(axes) => {
                for (axis, variance) in axes.chunks_exact(self.dim).zip(variances) {
                    matrix::add(variance.sqrt() * stream.normal(), axis, out);
                }
            }
        }
        k
    }

    /// `n` points, row after row, and the component of each.
    pub fn sample(&self, n: usize, seed: u64) -> (Vec<f64>, Vec<usize>) {
        let mut points = vec![0.0; n * self.dim];
        let labels = points
            .chunks_exact_mut(self.dim)
            .zip(0..)
            .map(|(point, row)| {
                self.sample_point(&mut Stream::new(seed, Purpose::Data, 0, row), point)
            })
            .collect();
        (points, labels)
    }
}

impl Target for GaussianMixture {
    fn dim(&self) -> usize {
        self.dim
    }

    fn sample_row(&self, stream: &mut Stream, out: &mut [f32]) {
        let k = self.sample_component(stream);
        let (mean, variances) = (self.component_mean(k), self.component_variances(k));
        match self.component_axes(k) {
            None => {
                stream.fill_normal(out);
                for (i, value) in out.iter_mut().enumerate() {
                    *value = (mean[i] + variances[i].sqrt() * f64::from(*value)) as f32;
                }
            }
            Some(axes) => {
                for (value, mean) in out.iter_mut().zip(mean) {
                    *value = *mean as f32;
                }
                for (axis, variance) in axes.chunks_exact(self.dim).zip(variances) {
                    let step = variance.sqrt() * stream.normal();
                    for (value, a) in out.iter_mut().zip(axis) {
                        *value += (step * a) as f32;
                    }
                }
            }
        }
    }

    fn log_density(&self, point: &[f64]) -> Option<f64> {
        Some(self.log_density(point))
    }

    fn mixture(&self) -> Option<&GaussianMixture> {
        Some(self)
    }
}

fn check_rows(what: &str, values: &[f64], rows: usize, width: usize) -> Result<()> {
    if values.len() != rows * width {
        return Err(Error::Shape {
            what: what.into(),
            found: format!("{} numbers", values.len()),
            expected: format!("{width} for each of {rows} components"),
        });
    }
    if let Some(bad) = values.iter().find(|value| !value.is_finite()) {
        return Err(Error::Value {
            name: "Gaussian mixture",
            found: format!("{bad} among the {what}"),
            expected: "finite numbers".into(),
        });
    }
    Ok(())
}

fn check_symmetric(matrix: &[f64], dim: usize) -> Result<()> {
    for i in 0..dim {
        for j in 0..i {
            let (a, b) = (matrix[i * dim + j], matrix[j * dim + i]);
            if (a - b).abs() > 1e-9 * (a.abs() + b.abs()) {
                return Err(Error::Value {
                    name: "covariance of the Gaussian mixture",
                    found: format!("entries {a} and {b} at ({i}, {j}) and ({j}, {i})"),
                    expected: "a symmetric matrix".into(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
