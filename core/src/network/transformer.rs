//! Graph transformer: particles attend to each other through their differences, after Plainer, Wu, Klein, Günnemann, Noé (2025).
//!
//! The [layers](super::attention) see `h_i`, the features of particle i (its type's embedding and the time), and `e_ij = x_j - x_i`, which is
//! added to keys and values, in groups of all particles, each with itself too. Scalar: the sum of `h_i . out`. Vector: `h_i out`, without the
//! mean of all. Translations leave both, particles of one type may change places. **Rotations matter**: it learns what they do from rows
//! that are turned at random.
//!
//! Differences of positions need no rows of their own. A softmax does not see what is common to all j, and its weights sum to one, so that
//! ```text
//! a_ij = softmax_j(q_i . (k_j + E x_j) / sqrt(c)),   o_i = sum_j a_ij (v_j + E x_j) - E x_i
//! ```
//! The parameters are those that the function needs: two linear maps of the differences in a row are one (`E`, 3 numbers wide), and offsets
//! of differences are those of `v`.

use serde::{Deserialize, Serialize};

use super::attention::Attention;
use super::layout::{Init, Layout};
use super::particles::{Roster, check_particles, declare_features};
use super::{Input, Network, Output, Role, Site};
use crate::Result;
use crate::citation::Cites;
use crate::engine::{Node, Rows};

/// Sizes of the network and what is known of the particles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerSpec {
    /// Number of particles; divides the dimension.
    pub particles: usize,
    /// Features of a particle.
    pub width: usize,
    /// Number of layers.
    pub depth: usize,
    /// Heads of attention.
    #[serde(default = "usual_heads")]
    pub heads: usize,
    /// Columns of a head.
    #[serde(default = "usual_head_width")]
    pub head_width: usize,
    /// The type of each particle, from 0 on; none: all alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<u32>,
}

fn usual_heads() -> usize {
    8
}

fn usual_head_width() -> usize {
    64
}

impl TransformerSpec {
    /// All particles alike, eight heads of 64 columns.
    pub fn new(particles: usize, width: usize, depth: usize) -> TransformerSpec {
        TransformerSpec {
            particles,
            width,
            depth,
            heads: usual_heads(),
            head_width: usual_head_width(),
            types: Vec::new(),
        }
    }

    /// Columns of all heads.
    pub fn inner(&self) -> usize {
        self.heads * self.head_width
    }
}

/// See the module's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Transformer {
    name: String,
    spec: TransformerSpec,
    output: Output,
    dim: usize,
    features: usize,
}

impl Transformer {
    /// A network of these sizes for a role.
    pub fn new(role: Role<'_>, spec: TransformerSpec) -> Transformer {
        Transformer {
            name: role.name.into(),
            spec,
            output: role.output,
            dim: role.dim,
            features: role.features,
        }
    }

    fn attention(&self) -> Attention<'_> {
        Attention {
            name: &self.name,
            width: self.spec.width,
            depth: self.spec.depth,
            heads: self.spec.heads,
            head_width: self.spec.head_width,
        }
    }
}

impl Network for Transformer {
    fn cites(&self) -> Cites {
        &["vaswani2017attention", "plainer2025consistent"]
    }

    fn validate(&self) -> Result<()> {
        let spec = &self.spec;
        let sizes = (spec.width, spec.depth);
        check_particles(self.dim, spec.particles, &spec.types, sizes)?;
        self.attention().validate()
    }

    /// What is read out starts at zero.
    fn declare(&self, layout: &mut Layout) {
        let (n, w) = (&self.name, self.spec.width);
        let space = self.dim / self.spec.particles.max(1);
        declare_features(layout, n, self.features, w, &self.spec.types);
        self.attention().declare(layout, Some(space));
        let out = match self.output {
            Output::Scalar => 1,
            Output::Vector => space,
        };
        layout.add(format!("{n}.out"), w, out, Init::Zero);
    }

    fn output(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let roster = Roster::new(site.graph, x, self.spec.particles);
        let positions = roster.positions(site.graph, x);
        // Differences alone count; about their centre they lose no digits.
        let positions = roster.centred(site.graph, positions);
        let h = roster.features(site, &self.name, &self.spec.types);
        let group = self.spec.particles;
        let h = self.attention().layers(site, h, group, Some(positions));
        let out = site.param(&self.name, "out");
        let g = &mut *site.graph;
        if self.output == Output::Scalar {
            // The sum first: one product for each row of the input.
            let sum = g.segment_sum(h, &roster.owner, roster.rows);
            return g.matmul(sum, out, false);
        }
        let of_particles = g.matmul(h, out, false);
        let of_particles = roster.centred(g, of_particles);
        g.reshape(of_particles, Rows::Unit(roster.rows), self.dim)
    }
}
