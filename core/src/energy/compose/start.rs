//! Where the particles of a composition start: the same algebra on the Gaussians that the members are at the noisiest level.

use super::Expression;
use crate::energy::{Prior, Scale};
use crate::system::matrix::{dot, inverse_and_log_det, multiply};
use crate::system::{Covariance, GaussianMixture};
use crate::{Error, Result};

/// Mixtures of more components are replaced by one Gaussian of the same mean and variance.
const MOST_COMPONENTS: usize = 64;

/// Precision of a Gaussian: one number for each column, or a whole matrix where columns are correlated.
#[derive(Debug, Clone, PartialEq)]
enum Precision {
    Columns(Vec<f64>),
    Full(Vec<f64>),
}

impl Precision {
    fn scaled(&self, factor: f64) -> Precision {
        let times = |values: &Vec<f64>| values.iter().map(|p| factor * p).collect();
        match self {
            Precision::Columns(values) => Precision::Columns(times(values)),
            Precision::Full(values) => Precision::Full(times(values)),
        }
    }

    fn plus(&self, other: &Precision) -> Precision {
        match (self, other) {
            (Precision::Columns(a), Precision::Columns(b)) => {
                Precision::Columns(zip(a, b, |a, b| a + b))
            }
            (a, b) => Precision::Full(zip(&a.full(), &b.full(), |a, b| a + b)),
        }
    }

    /// As a matrix.
    fn full(&self) -> Vec<f64> {
        match self {
            Precision::Full(matrix) => matrix.clone(),
            Precision::Columns(values) => {
                let dim = values.len();
                let mut matrix = vec![0.0; dim * dim];
                (0..dim).for_each(|i| matrix[i * dim + i] = values[i]);
                matrix
            }
        }
    }

    /// `P^-1 x` and `log det P`; none unless positive definite.
    fn solve(&self, x: &[f64]) -> Option<(Vec<f64>, f64)> {
        match self {
            Precision::Columns(values) => {
                let sane = values.iter().all(|p| *p > 0.0 && p.is_finite());
                let log_det = values.iter().map(|p| p.ln()).sum();
                sane.then(|| (zip(x, values, |x, p| x / p), log_det))
            }
            Precision::Full(matrix) => {
                let (inverse, log_det) = inverse_and_log_det(matrix, x.len())?;
                let mut out = vec![0.0; x.len()];
                multiply(&inverse, x, &mut out);
                Some((out, log_det))
            }
        }
    }

    /// `P^-1` of one that is positive definite, as a matrix.
    fn covariance(&self, dim: usize) -> Vec<f64> {
        match self {
            Precision::Columns(values) => {
                Precision::Columns(values.iter().map(|p| 1.0 / p).collect()).full()
            }
            Precision::Full(matrix) => {
                inverse_and_log_det(matrix, dim).map_or_else(Vec::new, |inverse| inverse.0)
            }
        }
    }
}

/// `exp(level + linear . y - y . precision y / 2)`: closed under products and powers, normalisable if the precision is positive
/// definite.
#[derive(Debug, Clone)]
struct Bell {
    level: f64,
    linear: Vec<f64>,
    precision: Precision,
}

impl Bell {
    /// The density of a Gaussian.
    fn of(prior: &Prior) -> Result<Bell> {
        let dim = prior.mean.len();
        let (precision, linear) = match &prior.std {
            Scale::Matrix(_) => {
                // S^-T S^-1, whose rows are those of S^-T S^-1 e_i, since it is symmetric.
                let mut matrix = vec![0.0; dim * dim];
                for (i, row) in matrix.chunks_exact_mut(dim).enumerate() {
                    row[i] = 1.0;
                    prior.std.solve(row);
                    prior.std.solve_transposed(row);
                }
                let mut linear = vec![0.0; dim];
                multiply(&matrix, &prior.mean, &mut linear);
                (Precision::Full(matrix), linear)
            }
            std => {
                let columns: Vec<f64> = (0..dim).map(|i| std.diagonal(i).powi(-2)).collect();
                let linear = zip(&columns, &prior.mean, |p, m| p * m);
                (Precision::Columns(columns), linear)
            }
        };
        let bell = Bell {
            level: 0.0,
            linear,
            precision,
        };
        Ok(Bell {
            level: -bell.log_mass()?,
            ..bell
        })
    }

    /// log of the integral.
    fn log_mass(&self) -> Result<f64> {
        let (mean, log_det) = self.solved()?;
        let square = dot(&mean, &self.linear);
        let around = self.linear.len() as f64 * std::f64::consts::TAU.ln();
        Ok(self.level + 0.5 * (square + around - log_det))
    }

    /// Mean and logarithm of the determinant of the precision.
    fn solved(&self) -> Result<(Vec<f64>, f64)> {
        self.precision.solve(&self.linear).ok_or_else(|| Error::Value {
            name: "start of the composition",
            found: "a precision at the noisiest level that is not positive".into(),
            expected: "a positive one: what is negated outweighs the rest; take smaller powers in not, or add a factor".into(),
        })
    }

    fn scaled(&self, factor: f64) -> Bell {
        Bell {
            level: factor * self.level,
            linear: self.linear.iter().map(|x| factor * x).collect(),
            precision: self.precision.scaled(factor),
        }
    }

    fn times(&self, other: &Bell) -> Bell {
        Bell {
            level: self.level + other.level,
            linear: zip(&self.linear, &other.linear, |a, b| a + b),
            precision: self.precision.plus(&other.precision),
        }
    }
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

/// What the bells have in common: as wide along one column as along another, without correlations, or neither.
fn covariance(bells: &[Bell]) -> Covariance {
    let columns = bells.iter().map(|bell| match &bell.precision {
        Precision::Columns(values) => Some(values),
        Precision::Full(_) => None,
    });
    let Some(columns) = columns.collect::<Option<Vec<_>>>() else {
        let dim = bells[0].linear.len();
        let matrices = bells.iter().map(|bell| bell.precision.covariance(dim));
        return Covariance::Full(matrices.flatten().collect());
    };
    let round = |values: &&Vec<f64>| values.iter().all(|p| *p == values[0]);
    if columns.iter().all(round) {
        Covariance::Isotropic(columns.iter().map(|values| 1.0 / values[0]).collect())
    } else {
        let all = columns.iter().flat_map(|values| values.iter());
        Covariance::Diagonal(all.map(|p| 1.0 / p).collect())
    }
}

fn mixture(bells: &[Bell]) -> Result<GaussianMixture> {
    let masses = bells.iter().map(Bell::log_mass);
    let masses = masses.collect::<Result<Vec<f64>>>()?;
    let top = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A component below this share of the largest is never drawn, but a weight must be positive.
    let weights = masses.iter().map(|m| (m - top).exp().max(1e-300)).collect();
    let mut means = Vec::new();
    for bell in bells {
        means.extend(bell.solved()?.0);
    }
    GaussianMixture::new(bells[0].linear.len(), weights, means, covariance(bells))
}

/// One bell of the same mass and mean, with the variance of each column, one for all where the bells are round, or the covariance where
/// columns are correlated.
fn single(bells: Vec<Bell>) -> Result<Vec<Bell>> {
    if bells.len() == 1 {
        return Ok(bells);
    }
    let whole = mixture(&bells)?;
    let (mean, dim) = (whole.mean(), bells[0].linear.len());
    let gap = |k: usize, i: usize| whole.component_mean(k)[i] - mean[i];
    let total = |of: &dyn Fn(usize) -> f64| -> f64 {
        (0..bells.len()).map(|k| whole.weights()[k] * of(k)).sum()
    };
    let std = match covariance(&bells) {
        Covariance::Isotropic(_) => Scale::Common(whole.variance().sqrt()),
        Covariance::Diagonal(of) => {
            let of_column = |i| total(&|k| of[k * dim + i] + gap(k, i).powi(2)).sqrt();
            Scale::Columns((0..dim).map(of_column).collect())
        }
        Covariance::Full(of) => {
            let entry = |at: usize| {
                let (i, j) = (at / dim, at % dim);
                total(&|k| of[k * dim * dim + at] + gap(k, i) * gap(k, j))
            };
            let matrix: Vec<f64> = (0..dim * dim).map(entry).collect();
            Scale::of_covariance(&matrix, dim).ok_or_else(|| Error::Value {
                name: "start of the composition",
                found: "a covariance that is not positive".into(),
                expected: "columns none of which follows from others".into(),
            })?
        }
    };
    let prior = Prior { mean, std };
    let masses = bells.iter().map(Bell::log_mass);
    let masses = masses.collect::<Result<Vec<f64>>>()?;
    let top = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mass: f64 = masses.iter().map(|m| (m - top).exp()).sum();
    let bell = Bell::of(&prior)?;
    Ok(vec![Bell {
        level: bell.level + top + mass.ln(),
        ..bell
    }])
}

fn bells(expression: &Expression, priors: &[(&str, Prior)]) -> Result<Vec<Bell>> {
    let parts = match expression {
        Expression::Name(name) => match priors.iter().find(|(known, _)| known == name) {
            Some((_, prior)) => vec![Bell::of(prior)?],
            None => {
                return Err(Error::Value {
                    name: "name in the composition",
                    found: format!("'{name}'"),
                    expected: "a name with a start".into(),
                });
            }
        },
        Expression::Power(part, exponent) => {
            let parts = single(bells(part, priors)?)?;
            parts.iter().map(|bell| bell.scaled(*exponent)).collect()
        }
        Expression::And(parts) => {
            let mut product: Option<Vec<Bell>> = None;
            for part in parts {
                let part = bells(part, priors)?;
                product = Some(match product {
                    None => part,
                    Some(product) => product
                        .iter()
                        .flat_map(|a| part.iter().map(move |b| a.times(b)))
                        .collect(),
                });
            }
            product.unwrap_or_default()
        }
        Expression::Or(parts) => {
            let total: f64 = parts.iter().map(|part| part.0).sum();
            let mut all = Vec::new();
            for (weight, part) in parts {
                all.extend(bells(part, priors)?.into_iter().map(|bell| Bell {
                    level: bell.level + (weight / total).ln(),
                    ..bell
                }));
            }
            all
        }
    };
    if parts.len() > MOST_COMPONENTS {
        return single(parts);
    }
    Ok(parts)
}

/// The law from which particles of a composition start, given that of every member at the noisiest level.
///
/// Exact if the members are those Gaussians; sequential Monte Carlo weights the difference away.
pub fn start_of(expression: &Expression, priors: &[(&str, Prior)]) -> Result<GaussianMixture> {
    mixture(&bells(expression, priors)?)
}
