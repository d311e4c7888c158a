//! Where the particles of a composition start: the same algebra on the Gaussians that the members are at the noisiest level.

use super::Expression;
use crate::sample::Prior;
use crate::system::{Covariance, GaussianMixture};
use crate::{Error, Result};

/// Mixtures of more components are replaced by one Gaussian of the same mean and variance.
const MOST_COMPONENTS: usize = 64;

/// `exp(level + linear . y - precision |y|^2 / 2)`: closed under products and powers, normalisable if the precision is positive.
#[derive(Debug, Clone)]
struct Bell {
    level: f64,
    linear: Vec<f64>,
    precision: f64,
}

impl Bell {
    fn of(prior: &Prior) -> Bell {
        let precision = prior.std.powi(-2);
        let bell = Bell {
            level: 0.0,
            linear: prior.mean.iter().map(|m| precision * m).collect(),
            precision,
        };
        Bell {
            level: -bell.log_mass(),
            ..bell
        }
    }

    /// log of the integral.
    fn log_mass(&self) -> f64 {
        let square: f64 = self.linear.iter().map(|x| x * x).sum();
        let dim = self.linear.len() as f64;
        self.level
            + 0.5 * square / self.precision
            + 0.5 * dim * (std::f64::consts::TAU / self.precision).ln()
    }

    fn scaled(&self, factor: f64) -> Bell {
        Bell {
            level: factor * self.level,
            linear: self.linear.iter().map(|x| factor * x).collect(),
            precision: factor * self.precision,
        }
    }

    fn times(&self, other: &Bell) -> Bell {
        Bell {
            level: self.level + other.level,
            linear: self
                .linear
                .iter()
                .zip(&other.linear)
                .map(|(a, b)| a + b)
                .collect(),
            precision: self.precision + other.precision,
        }
    }
}

fn mixture(bells: &[Bell]) -> Result<GaussianMixture> {
    if let Some(bell) = bells
        .iter()
        .find(|bell| !(bell.precision > 0.0 && bell.precision.is_finite()))
    {
        return Err(Error::Value {
            name: "start of the composition",
            found: format!("a precision of {} at the noisiest level", bell.precision),
            expected: "a positive one: what is negated outweighs the rest; take smaller powers in not, or add a factor".into(),
        });
    }
    let masses: Vec<f64> = bells.iter().map(Bell::log_mass).collect();
    let top = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A component below this share of the largest is never drawn, but a weight must be positive.
    let weights = masses.iter().map(|m| (m - top).exp().max(1e-300)).collect();
    let means = bells
        .iter()
        .flat_map(|bell| bell.linear.iter().map(|x| x / bell.precision))
        .collect();
    let variances = bells.iter().map(|bell| 1.0 / bell.precision).collect();
    GaussianMixture::new(
        bells[0].linear.len(),
        weights,
        means,
        Covariance::Isotropic(variances),
    )
}

/// One bell of the same mass, mean and variance.
fn single(bells: Vec<Bell>) -> Result<Vec<Bell>> {
    if bells.len() == 1 {
        return Ok(bells);
    }
    let whole = mixture(&bells)?;
    let prior = Prior {
        mean: whole.mean(),
        std: whole.variance().sqrt(),
    };
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
