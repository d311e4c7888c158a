//! `ModelSpec`: everything that defines a learned energy except the values of its parameters.

use serde::{Deserialize, Serialize};

use crate::network::{Init, Layout, Mlp, Pairs};
use crate::process::{Process, TimeGrid};
use crate::{Error, Result};

/// The network inside the energy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum NetworkSpec {
    /// Perceptron over all coordinates.
    Mlp {
        /// Columns of a hidden layer.
        width: usize,
        /// Number of hidden layers.
        depth: usize,
    },
    /// Sum over pairs of particles of a perceptron of the squared distance (form `scalar`).
    Pairs {
        /// Number of particles; divides the dimension.
        particles: usize,
        /// Columns of a hidden layer.
        width: usize,
        /// Number of hidden layers.
        depth: usize,
    },
}

impl Default for NetworkSpec {
    fn default() -> Self {
        NetworkSpec::Mlp {
            width: 128,
            depth: 4,
        }
    }
}

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
        let (width, depth) = match self.network {
            NetworkSpec::Mlp { width, depth } => (width, depth),
            NetworkSpec::Pairs {
                particles,
                width,
                depth,
            } => {
                if particles < 2 || !self.dim.is_multiple_of(particles) {
                    return wrong(
                        "particles",
                        particles.to_string(),
                        "at least 2, and a divisor of the dimension",
                    );
                }
                if self.form != Form::Scalar {
                    return wrong(
                        "form",
                        format!("{:?}", self.form),
                        "\"scalar\" for a network over pairs",
                    );
                }
                (width, depth)
            }
        };
        if width == 0 || width > 1 << 14 {
            return wrong("width", width.to_string(), "between 1 and 16384");
        }
        if depth == 0 || depth > 64 {
            return wrong("depth", depth.to_string(), "between 1 and 64");
        }
        Ok(())
    }

    fn mlp(&self, name: &str, output: usize, width: usize, depth: usize) -> Mlp {
        Mlp {
            name: name.into(),
            input: self.dim,
            output,
            width,
            depth,
            features: self.features,
        }
    }

    /// The vector network of the form, if it has one.
    pub(crate) fn vector_network(&self) -> Option<Mlp> {
        match (&self.network, self.form) {
            (NetworkSpec::Pairs { .. }, _) | (_, Form::Scalar) => None,
            (&NetworkSpec::Mlp { width, depth }, Form::InnerProductPlusScalar) => {
                Some(self.mlp("net1", self.dim, width, depth))
            }
            (&NetworkSpec::Mlp { width, depth }, _) => {
                Some(self.mlp("net", self.dim, width, depth))
            }
        }
    }

    /// The scalar perceptron of the form, if it has one.
    pub(crate) fn scalar_network(&self) -> Option<Mlp> {
        match (&self.network, self.form) {
            (&NetworkSpec::Mlp { width, depth }, Form::InnerProductPlusScalar) => {
                Some(self.mlp("net2", 1, width, depth))
            }
            (&NetworkSpec::Mlp { width, depth }, Form::Scalar) => {
                Some(self.mlp("net", 1, width, depth))
            }
            _ => None,
        }
    }

    /// The perceptron of the velocity, if there is one: as wide and deep as the energy's network.
    pub(crate) fn velocity_network(&self) -> Option<Mlp> {
        let (NetworkSpec::Mlp { width, depth } | NetworkSpec::Pairs { width, depth, .. }) =
            self.network;
        self.velocity
            .then(|| self.mlp("velocity", self.dim, width, depth))
    }

    /// The network over pairs, if that is what the spec says.
    pub(crate) fn pair_network(&self) -> Option<Pairs> {
        match self.network {
            NetworkSpec::Pairs {
                particles,
                width,
                depth,
            } => Some(Pairs {
                mlp: Mlp {
                    input: 1,
                    ..self.mlp("net", 1, width, depth)
                },
                particles,
            }),
            NetworkSpec::Mlp { .. } => None,
        }
    }

    /// Names and ranges of all parameters; the last entry is F(t), one number per level.
    pub fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        for mlp in [self.vector_network(), self.scalar_network()]
            .into_iter()
            .flatten()
        {
            mlp.declare(&mut layout);
        }
        if let Some(pairs) = self.pair_network() {
            pairs.declare(&mut layout);
        }
        if let Some(mlp) = self.velocity_network() {
            mlp.declare(&mut layout);
        }
        layout.add("free_energy", self.grid.levels(), 1, Init::Zero);
        layout
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
