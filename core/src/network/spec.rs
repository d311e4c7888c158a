//! `NetworkSpec`: the networks by name and size, as files hold them.

use serde::{Deserialize, Serialize};

use super::{
    Egnn, EgnnSpec, Mlp, Network, Output, PairSum, Role, Transformer, TransformerSpec, Waves,
};
use crate::citation::Cites;

/// The network of an energy; its velocity, if it has one, is made of the same.
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
    /// Perceptron over all coordinates and waves of them.
    Waves {
        /// Columns of a hidden layer.
        width: usize,
        /// Number of hidden layers.
        depth: usize,
        /// Number of waves.
        waves: usize,
    },
    /// Sum over pairs of particles of a perceptron of the squared distance.
    Pairs {
        /// Number of particles; divides the dimension.
        particles: usize,
        /// Columns of a hidden layer.
        width: usize,
        /// Number of hidden layers.
        depth: usize,
    },
    /// Messages between particles, and moves along their differences.
    Egnn(EgnnSpec),
    /// Attention between particles, through their differences.
    Transformer(TransformerSpec),
}

impl Default for NetworkSpec {
    fn default() -> Self {
        NetworkSpec::Mlp {
            width: 128,
            depth: 4,
        }
    }
}

impl NetworkSpec {
    /// The names of all networks, as files and documents have them.
    pub const NAMES: [&'static str; 5] = ["mlp", "waves", "pairs", "egnn", "transformer"];

    /// The number of particles, for a network over them.
    pub fn particles(&self) -> Option<usize> {
        match self {
            NetworkSpec::Mlp { .. } | NetworkSpec::Waves { .. } => None,
            NetworkSpec::Pairs { particles, .. } => Some(*particles),
            NetworkSpec::Egnn(spec) => Some(spec.particles),
            NetworkSpec::Transformer(spec) => Some(spec.particles),
        }
    }

    /// Rows that it makes of one point.
    pub fn rows_of_point(&self) -> u128 {
        match self {
            NetworkSpec::Mlp { .. } | NetworkSpec::Waves { .. } => 1,
            NetworkSpec::Pairs { particles, .. } => {
                let particles = *particles as u128;
                particles * particles.saturating_sub(1) / 2
            }
            NetworkSpec::Egnn(spec) => {
                let particles = spec.particles as u128;
                particles * particles.saturating_sub(1)
            }
            NetworkSpec::Transformer(spec) => spec.particles as u128,
        }
    }

    /// Columns and number of its hidden layers.
    pub fn size(&self) -> (usize, usize) {
        match self {
            NetworkSpec::Mlp { width, depth } | NetworkSpec::Pairs { width, depth, .. } => {
                (*width, *depth)
            }
            // Two more products, of sines and cosines.
            NetworkSpec::Waves { width, depth, .. } => (*width, depth + 2),
            // Six products of a layer have the width of a hidden layer.
            NetworkSpec::Egnn(spec) => (spec.width, 6 * spec.depth),
            // Query, key, value and what is blended; two wide layers of the perceptron.
            NetworkSpec::Transformer(spec) => (spec.inner().max(4 * spec.width), 6 * spec.depth),
        }
    }

    /// Whom to cite: keys of BibTeX entries.
    pub fn cites(&self) -> Cites {
        let any = Role {
            name: "",
            output: Output::Scalar,
            dim: 1,
            features: 1,
        };
        self.network(any).cites()
    }

    /// The network for a role.
    pub fn network(&self, role: Role<'_>) -> Box<dyn Network> {
        match self.clone() {
            NetworkSpec::Mlp { width, depth } => Box::new(Mlp::new(role, width, depth)),
            NetworkSpec::Waves {
                width,
                depth,
                waves,
            } => Box::new(Waves::new(role, width, depth, waves)),
            NetworkSpec::Pairs {
                particles,
                width,
                depth,
            } => Box::new(PairSum::new(role, particles, width, depth)),
            NetworkSpec::Egnn(spec) => Box::new(Egnn::new(role, spec)),
            NetworkSpec::Transformer(spec) => Box::new(Transformer::new(role, spec)),
        }
    }
}
