//! Where the particles of a composition start: the same algebra on the Gaussians that the members are at the noisiest level.

use super::Expression;
use crate::energy::{Prior, Scale};
use crate::system::{Covariance, GaussianMixture};
use crate::{Error, Result};

/// Mixtures of more components are replaced by one Gaussian of the same mean and variance.
const MOST_COMPONENTS: usize = 64;

/// `exp(level + linear . y - sum_i precision_i y_i^2 / 2)`: closed under products and powers, normalisable if the precisions are
/// positive.
#[derive(Debug, Clone)]
struct Bell {
    level: f64,
    linear: Vec<f64>,
    precision: Vec<f64>,
}

impl Bell {
    fn of(prior: &Prior) -> Bell {
        let precision: Vec<f64> = (0..prior.mean.len())
            .map(|i| prior.std.at(i).powi(-2))
            .collect();
        let bell = Bell {
            level: 0.0,
            linear: zip(&precision, &prior.mean, |p, m| p * m),
            precision,
        };
        Bell {
            level: -bell.log_mass(),
            ..bell
        }
    }

    /// log of the integral.
    fn log_mass(&self) -> f64 {
        let columns = self.linear.iter().zip(&self.precision);
        let log = |(x, p): (&f64, &f64)| x * x / p + (std::f64::consts::TAU / p).ln();
        self.level + 0.5 * columns.map(log).sum::<f64>()
    }

    fn scaled(&self, factor: f64) -> Bell {
        Bell {
            level: factor * self.level,
            linear: self.linear.iter().map(|x| factor * x).collect(),
            precision: self.precision.iter().map(|p| factor * p).collect(),
        }
    }

    fn times(&self, other: &Bell) -> Bell {
        Bell {
            level: self.level + other.level,
            linear: zip(&self.linear, &other.linear, |a, b| a + b),
            precision: zip(&self.precision, &other.precision, |a, b| a + b),
        }
    }
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

/// Whether every bell is as wide along one column as along another.
fn round(bells: &[Bell]) -> bool {
    let round = |bell: &Bell| bell.precision.iter().all(|p| *p == bell.precision[0]);
    bells.iter().all(round)
}

fn mixture(bells: &[Bell]) -> Result<GaussianMixture> {
    let mut precisions = bells.iter().flat_map(|bell| &bell.precision);
    if let Some(precision) = precisions.find(|p| !(**p > 0.0 && p.is_finite())) {
        return Err(Error::Value {
            name: "start of the composition",
            found: format!("a precision of {precision} at the noisiest level"),
            expected: "a positive one: what is negated outweighs the rest; take smaller powers in not, or add a factor".into(),
        });
    }
    let masses: Vec<f64> = bells.iter().map(Bell::log_mass).collect();
    let top = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A component below this share of the largest is never drawn, but a weight must be positive.
    let weights = masses.iter().map(|m| (m - top).exp().max(1e-300)).collect();
    let means = bells
        .iter()
        .flat_map(|bell| zip(&bell.linear, &bell.precision, |x, p| x / p))
        .collect();
    let covariance = if round(bells) {
        Covariance::Isotropic(bells.iter().map(|bell| 1.0 / bell.precision[0]).collect())
    } else {
        let precisions = bells.iter().flat_map(|bell| &bell.precision);
        Covariance::Diagonal(precisions.map(|p| 1.0 / p).collect())
    };
    GaussianMixture::new(bells[0].linear.len(), weights, means, covariance)
}

/// One bell of the same mass and mean, with the variance of each column, or one for all where the bells are round.
fn single(bells: Vec<Bell>) -> Result<Vec<Bell>> {
    if bells.len() == 1 {
        return Ok(bells);
    }
    let whole = mixture(&bells)?;
    let mean = whole.mean();
    let std = if round(&bells) {
        Scale::Common(whole.variance().sqrt())
    } else {
        let of_column = |i: usize| -> f64 {
            let part = |k: usize| {
                let gap = whole.component_mean(k)[i] - mean[i];
                whole.weights()[k] * (1.0 / bells[k].precision[i] + gap * gap)
            };
            (0..bells.len()).map(part).sum::<f64>().sqrt()
        };
        Scale::Columns((0..mean.len()).map(of_column).collect())
    };
    let prior = Prior { mean, std };
    let top = bells
        .iter()
        .map(Bell::log_mass)
        .fold(f64::NEG_INFINITY, f64::max);
    let mass: f64 = bells.iter().map(|bell| (bell.log_mass() - top).exp()).sum();
    let bell = Bell::of(&prior);
    Ok(vec![Bell {
        level: bell.level + top + mass.ln(),
        ..bell
    }])
}

fn bells(expression: &Expression, priors: &[(&str, Prior)]) -> Result<Vec<Bell>> {
    let parts = match expression {
        Expression::Name(name) => match priors.iter().find(|(known, _)| known == name) {
            Some((_, prior)) => vec![Bell::of(prior)],
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
