//! `ModelSpec`: everything that defines a learned energy except the values of its parameters.

use serde::{Deserialize, Serialize};

use super::{Prior, chart};
use crate::base::{BaseEnds, MixtureBase, Springs};
use crate::coupling::{Coupling, Shape};
use crate::network::{Init, Layout, Network, NetworkSpec, Output, Role, WithoutCentre};
use crate::particles::Subspace;
use crate::process::{Process, TimeGrid};
use crate::{Error, Result};

/// How the network's output becomes the scalar `s(t, x)`; `v` is a vector output, `n` a scalar one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `s = x . v`.
    InnerProduct,
    /// `s = x . v + n`, from two networks.
    InnerProductPlusScalar,
    /// `s = -|v|^2 / 2`.
    SquaredNorm,
    /// `s = x . v - |v|^2 / 2`: the energy `|x - v|^2 / 2` beyond that of the Gaussian.
    ResidualSquaredNorm,
    /// `s = n`.
    Scalar,
}

/// Definition of a learned energy.
///
/// For a diffusion (mean `mu`, variance `sd^2` of the data, `a^2 = S^2 sd^2 + gamma^2`, `x = (y - S mu) / a`):
/// `U = |x|^2 / 2 + d/2 log(2 pi a^2) - (sd / sigma) s(t, x)`: a zero network gives exactly the Gaussian `N(S mu, a^2)`.
/// For an interpolant `U = s(t, y)`, or `|v|^2 / 2` and `|y - v|^2 / 2` for the squared and residual squared norm.
///
/// With a [`base`](ModelSpec::base) both are `U = -log b_t(y) - g(x) B tanh(c(t) s(t, x) / B)`: `b_t` is the base's exact marginal, so
/// that a zero network gives the mixture, normalised at every time with F = 0. The correction is bounded by `B = 8 + 2 d` and fades
/// like `g = 1 / (1 + (|x|^2 / 16 d)^2)` away from the data: there the density decays as the base does, whatever the network says.
/// `c = sd / sqrt(sigma^2 + sd^2)` for a diffusion (1 for an interpolant): at no level is the network's error multiplied.
///
/// With [`springs`](ModelSpec::springs) the energy of the springs is added to that of the first two lines.
///
/// Columns that are periodic in the base are so in the energy: the network sees the point of a circle instead of the angle. Noise is added
/// to the angle as to any number, and since every density is periodic, losses average over all numbers that mean the same: the target
/// `-z / gamma` of score matching has as its mean, given the angle, the score of the wrapped density. That needs a process which does not
/// shrink (ve, edm).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Dimension of a point.
    pub dim: usize,
    /// The process whose marginals are learned.
    pub process: Process,
    /// Levels of time; F(t) has one number for each.
    pub grid: TimeGrid,
    /// The network.
    pub network: NetworkSpec,
    /// From the network's output to a scalar.
    pub form: Form,
    /// Number of sinusoidal time features (even).
    pub features: usize,
    /// Mean of the data (diffusions).
    pub mean: Vec<f64>,
    /// Scalar variance of the data (diffusions).
    pub variance: f64,
    /// Whether a vector network for the velocity stands beside the energy (interpolants).
    #[serde(default, skip_serializing_if = "is_false")]
    pub velocity: bool,
    /// Points are particles without their centre, `dim = space (particles - 1)` coordinates of the [`Subspace`]: noise, Gaussian and
    /// log-densities are those of the subspace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub without_centre: bool,
    /// The mixtures that the energy stands on instead of one Gaussian; see [`ModelSpec`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseEnds>,
    /// Springs between particles, whose energy is added to the network's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub springs: Option<Springs>,
    /// Which rows of both ends of an interpolant belong together; none: each to any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coupling: Option<Coupling>,
}

/// A log-density of points.
pub type LogDensity = Box<dyn Fn(&[f64]) -> f64>;

/// The networks of a model, by what they are for.
pub(crate) struct Networks {
    /// `v` of the form.
    pub vector: Option<Box<dyn Network>>,
    /// `n` of the form.
    pub scalar: Option<Box<dyn Network>>,
    /// The velocity: the same architecture as the energy's, so that an invariant energy gets an equivariant velocity.
    pub velocity: Option<Box<dyn Network>>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl ModelSpec {
    /// The usual choices for data of mean zero and unit variance.
    pub fn new(dim: usize, process: Process) -> ModelSpec {
        ModelSpec {
            dim,
            grid: TimeGrid::default_for(&process),
            network: NetworkSpec::default(),
            form: if process.is_interpolant() {
                Form::InnerProductPlusScalar
            } else {
                Form::InnerProduct
            },
            features: 64,
            mean: vec![0.0; dim],
            variance: 1.0,
            velocity: false,
            without_centre: false,
            base: None,
            springs: None,
            coupling: None,
            process,
        }
    }

    /// Refuses what cannot be built.
    pub fn validate(&self) -> Result<()> {
        let wrong = |name: &'static str, found: String, expected: &str| {
            Err(Error::Value {
                name,
                found,
                expected: expected.to_string(),
            })
        };
        self.process.validate()?;
        self.grid.validate(&self.process)?;
        if self.dim == 0 || self.dim > 1 << 20 {
            return wrong("dim", self.dim.to_string(), "between 1 and 1048576");
        }
        if self.mean.len() != self.dim || self.mean.iter().any(|m| !m.is_finite()) {
            return wrong(
                "mean",
                format!("{} numbers", self.mean.len()),
                "one finite number per dimension",
            );
        }
        if !(self.variance.is_finite() && self.variance > 0.0) {
            return wrong("variance", self.variance.to_string(), "a positive number");
        }
        if self.features < 2 || !self.features.is_multiple_of(2) || self.features > 4096 {
            return wrong(
                "features",
                self.features.to_string(),
                "an even number between 2 and 4096",
            );
        }
        if self.velocity && !self.process.is_interpolant() {
            return wrong(
                "velocity",
                format!("true with the {} process", self.process.name()),
                "an interpolant (linear, trigonometric): the velocity of a diffusion follows from its score",
            );
        }
        if let Some(base) = &self.base {
            base.validate(self.dim, self.process.is_interpolant())?;
            if self.network.particles().is_some() {
                return wrong(
                    "base",
                    "a mixture under a network of particles".into(),
                    "a Gaussian: a mixture knows places and names of particles",
                );
            }
        }
        if let Some(springs) = &self.springs {
            let Some(particles) = self.network.particles().filter(|_| self.base.is_none()) else {
                return wrong(
                    "springs",
                    "springs without particles, or under a mixture".into(),
                    "a network over particles, on a Gaussian",
                );
            };
            let columns = self.subspace().map_or(self.dim, |of| of.columns());
            springs.validate(particles, columns / particles.max(1))?;
        }
        if let Some(coupling) = &self.coupling {
            if !self.process.is_interpolant() || self.base.is_some() {
                return wrong(
                    "coupling",
                    "rows that belong together, of one end or on mixtures".into(),
                    "an interpolant on a Gaussian or on springs",
                );
            }
            coupling.validate(self.shape())?;
        }
        if self.without_centre {
            let fits = |n: &usize| *n > 1 && self.dim.is_multiple_of(n - 1);
            if !self.network.particles().as_ref().is_some_and(fits) {
                return wrong(
                    "without_centre",
                    format!("{} numbers, {:?}", self.dim, self.network),
                    "a network over at least 2 particles, and a multiple of one less than there are",
                );
            }
            if self.mean.iter().any(|m| *m != 0.0) {
                return wrong(
                    "mean",
                    "numbers that are not zero, without a centre".into(),
                    "zeros: what has no centre has no place",
                );
            }
        }
        if !self.periods().is_empty() {
            let end = self.process.horizon();
            if self.process.is_interpolant() || self.process.x0_scale(end) != 1.0 {
                return wrong(
                    "process",
                    format!("{} for periodic columns", self.process.name()),
                    "ve or edm: a process that shrinks does not know where a period ends",
                );
            }
            let centred = self.periods().iter().zip(&self.mean);
            if centred.clone().any(|(p, m)| *p > 0.0 && *m != 0.0) {
                return wrong(
                    "mean",
                    "another number than 0 in a periodic column".into(),
                    "0: a circle has no mean",
                );
            }
        }
        self.network("net", Output::Scalar).validate()
    }

    /// Where points of a model without a centre belong; none if points are whole rows.
    pub fn subspace(&self) -> Option<Subspace> {
        let particles = self.network.particles().filter(|_| self.without_centre)?;
        Subspace::new(particles, self.dim / particles.checked_sub(1)?).ok()
    }

    /// What the numbers of a row are.
    pub fn shape(&self) -> Shape {
        Shape {
            dim: self.dim,
            particles: self.network.particles(),
            subspace: self.subspace(),
        }
    }

    fn network(&self, name: &str, output: Output) -> Box<dyn Network> {
        let role = Role {
            name,
            output,
            dim: self.subspace().map_or(self.seen(), |of| of.columns()),
            features: self.features,
        };
        let inner = self.network.network(role);
        match (self.subspace(), self.network.particles()) {
            (Some(subspace), Some(particles)) => Box::new(WithoutCentre {
                inner,
                output,
                particles,
                space: subspace.columns() / particles,
            }),
            _ => inner,
        }
    }

    /// Period of each column, 0 for none; empty if none has one.
    pub fn periods(&self) -> &[f64] {
        match &self.base {
            Some(base) => base.start.periods(),
            None => &[],
        }
    }

    /// Columns that a network sees: one more for each that is periodic.
    pub(super) fn seen(&self) -> usize {
        chart::width(self.dim, self.periods())
    }

    /// The mean as a network sees it.
    pub(super) fn seen_mean(&self) -> Vec<f64> {
        let mut mean = self.mean.clone();
        mean.resize(self.seen(), 0.0);
        mean
    }

    /// The networks that the form and the velocity ask for.
    pub(crate) fn networks(&self) -> Networks {
        let network = |name: &str, output| Some(self.network(name, output));
        let (vector, scalar) = match self.form {
            Form::Scalar => (None, network("net", Output::Scalar)),
            Form::InnerProductPlusScalar => (
                network("net1", Output::Vector),
                network("net2", Output::Scalar),
            ),
            Form::InnerProduct | Form::SquaredNorm | Form::ResidualSquaredNorm => {
                (network("net", Output::Vector), None)
            }
        };
        Networks {
            vector,
            scalar,
            velocity: self
                .velocity
                .then(|| self.network("velocity", Output::Vector)),
        }
    }

    /// Names and ranges of all parameters; the last entry is F(t), one number per level.
    pub fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        let Networks {
            vector,
            scalar,
            velocity,
        } = self.networks();
        for network in [vector, scalar, velocity].into_iter().flatten() {
            network.declare(&mut layout);
        }
        layout.add("free_energy", self.grid.levels(), 1, Init::Zero);
        layout
    }

    /// Bytes that an evaluation at one point needs at least, in single precision: two layers of all rows that the network makes of it.
    pub fn bytes_of_point(&self) -> u128 {
        let (width, _) = self.network.size();
        // Of each layer the one before must stay.
        let columns = 2 * width as u128;
        4 * (columns * self.network.rows_of_point() + self.dim as u128)
    }

    /// The log-density of a diffusion's last level as it is known beforehand: the Gaussian of [`Prior`], around the circles of periodic columns.
    pub fn last_law(&self) -> Result<LogDensity> {
        let prior = Prior::of(self).mixture()?;
        if self.periods().is_empty() {
            return Ok(Box::new(move |point| prior.log_density(point)));
        }
        let wrapped = MixtureBase::try_from(&prior)?.with_periods(self.periods().to_vec())?;
        Ok(Box::new(move |point| wrapped.log_density(point)))
    }

    /// The level where F is pinned to zero: the noisiest for a diffusion, the first for an interpolant.
    pub fn reference_level(&self) -> usize {
        if self.process.is_interpolant() {
            0
        } else {
            self.grid.levels() - 1
        }
    }
}
