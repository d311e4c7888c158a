//! Graph transformer: particles attend to each other through their differences, after Plainer, Wu, Klein, Günnemann, Noé (2025).
//!
//! With `h_i` the features of particle i (its type's embedding and the time) and `e_ij = x_j - x_i`, for each head of a layer
//! ```text
//! a_ij = softmax_j(q_i . (k_j + E e_ij) / sqrt(c)),   o_i = sum_j a_ij (v_j + E e_ij)        q, k, v linear in LN(h)
//! h_i <- gate(o_i O + o, h_i),   h_i <- gate(gelu(LN(h_i) A + a) B + b, h_i)
//! gate(new, old) = g new + (1 - g) old,   g = sigmoid(new . u + old . w)
//! ```
//! over all pairs, each particle with itself too. Scalar: the sum of `h_i . out`. Vector: `h_i out`, without the mean of all. Translations
//! leave both, particles of one type may change places. **Rotations matter**: it learns what they do from rows that are turned at random.
//!
//! Differences of positions need no rows of their own. A softmax does not see what is common to all j, and its weights sum to one, so that
//! ```text
//! a_ij = softmax_j(q_i . (k_j + E x_j) / sqrt(c)),   o_i = sum_j a_ij (v_j + E x_j) - E x_i
//! ```
//! The parameters are those that the function needs: two linear maps of the differences in a row are one (`E`, 3 numbers wide), gain and offset
//! of a layer norm are those of the maps that follow, offsets of keys do nothing, those of differences are those of `v`, and the gate's
//! third part, `new - old`, is in the others.

use serde::{Deserialize, Serialize};

use super::layout::{Init, Layout};
use super::particles::{Roster, check_particles, declare_features, wrong};
use super::{Input, Network, Output, Role, Site};
use crate::Result;
use crate::citation::Cites;
use crate::engine::{Blocks, Function, Graph, Node, Rows};

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

/// Added to variances before their roots.
const EPSILON: f64 = 1e-6;
/// Hidden columns of the perceptron for each feature.
const WIDER: usize = 4;

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

    fn of_layer(&self, site: &mut Site<'_>, layer: usize, name: &str) -> Node {
        site.param(&self.name, &format!("l{layer}.{name}"))
    }

    /// `a W`.
    fn linear(&self, site: &mut Site<'_>, layer: usize, a: Node, w: &str) -> Node {
        let w = self.of_layer(site, layer, w);
        site.graph.matmul(a, w, false)
    }

    /// `a W + b`.
    fn affine(&self, site: &mut Site<'_>, layer: usize, a: Node, [w, b]: [&str; 2]) -> Node {
        let product = self.linear(site, layer, a, w);
        let b = self.of_layer(site, layer, b);
        site.graph.bias(product, b)
    }

    /// `o_i O + o`.
    fn attention(
        &self,
        site: &mut Site<'_>,
        layer: usize,
        (roster, positions): (&Roster, Node),
        normed: Node,
    ) -> Node {
        let (n, heads) = (self.spec.particles, self.spec.heads);
        let blocks = Blocks { rows: n, heads };
        let moved = self.linear(site, layer, positions, "e");
        let q = self.affine(site, layer, normed, ["q", "q0"]);
        let k = self.linear(site, layer, normed, "k");
        let v = self.affine(site, layer, normed, ["v", "v0"]);
        let g = &mut *site.graph;
        let (k, v) = (g.add(k, moved), g.add(v, moved));
        let scores = g.scores(q, k, blocks);
        let scores = g.scale(scores, 1.0 / (self.spec.head_width as f64).sqrt());
        let scores = g.reshape(scores, Rows::Unit(roster.owner.len() * heads), n);
        let weights = g.softmax(scores);
        let weights = g.reshape(weights, roster.all(), heads * n);
        let blend = g.blend(weights, v, blocks, false);
        let blend = g.sub(blend, moved);
        self.affine(site, layer, blend, ["o", "o0"])
    }

    /// `old + sigmoid(new . u + old . w) (new - old)`.
    fn gated(
        &self,
        site: &mut Site<'_>,
        layer: usize,
        [new, old]: [Node; 2],
        [u, w]: [&str; 2],
    ) -> Node {
        let (of_new, of_old) = (
            self.linear(site, layer, new, u),
            self.linear(site, layer, old, w),
        );
        let g = &mut *site.graph;
        let gate = g.add(of_new, of_old);
        let gate = g.unary(Function::Sigmoid, gate);
        let change = g.sub(new, old);
        let change = g.mul_column(change, gate);
        g.add(old, change)
    }
}

/// Each row without its mean, over its standard deviation.
fn layer_norm(g: &mut Graph, a: Node) -> Node {
    let cols = g.shape(a).cols;
    let sum = g.row_sum(a);
    let mean = g.scale(sum, 1.0 / cols as f64);
    let mean = g.broadcast_columns(mean, cols);
    let centred = g.sub(a, mean);
    let square = g.row_dot(centred, centred);
    let variance = g.affine(square, 1.0 / cols as f64, EPSILON);
    let inverse = g.power(variance, -0.5);
    g.mul_column(centred, inverse)
}

impl Network for Transformer {
    fn cites(&self) -> Cites {
        &["vaswani2017attention", "plainer2025consistent"]
    }

    fn validate(&self) -> Result<()> {
        let spec = &self.spec;
        let sizes = (spec.width, spec.depth);
        check_particles(self.dim, spec.particles, &spec.types, sizes)?;
        if spec.heads == 0 || spec.heads > 256 {
            return wrong("heads", spec.heads.to_string(), "between 1 and 256");
        }
        if spec.head_width == 0 || spec.head_width > 1 << 10 {
            return wrong(
                "head_width",
                spec.head_width.to_string(),
                "between 1 and 1024",
            );
        }
        Ok(())
    }

    /// Weights of variance 1 / fan-in; what is read out starts at zero.
    fn declare(&self, layout: &mut Layout) {
        let (n, w, inner) = (&self.name, self.spec.width, self.spec.inner());
        let space = self.dim / self.spec.particles.max(1);
        let fan = |k: usize| Init::Normal(1.0 / (k as f64).sqrt());
        declare_features(layout, n, self.features, w, &self.spec.types);
        for layer in 0..self.spec.depth {
            let mut add = |name: &str, rows: usize, cols: usize, init: Init| {
                layout.add(format!("{n}.l{layer}.{name}"), rows, cols, init);
            };
            add("q", w, inner, fan(w));
            add("q0", 1, inner, Init::Zero);
            add("k", w, inner, fan(w));
            add("v", w, inner, fan(w));
            add("v0", 1, inner, Init::Zero);
            add("e", space, inner, fan(space));
            add("o", inner, w, fan(inner));
            add("o0", 1, w, Init::Zero);
            // As if [new, old, new - old] had independent weights.
            let gate = Init::Normal((2.0 / (3 * w) as f64).sqrt());
            add("gu", w, 1, gate);
            add("gw", w, 1, gate);
            add("a", w, WIDER * w, fan(w));
            add("a0", 1, WIDER * w, Init::Zero);
            add("b", WIDER * w, w, fan(WIDER * w));
            add("b0", 1, w, Init::Zero);
            add("hu", w, 1, gate);
            add("hw", w, 1, gate);
        }
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
        let mut h = roster.features(site, &self.name, &self.spec.types);
        for layer in 0..self.spec.depth {
            let normed = layer_norm(site.graph, h);
            let new = self.attention(site, layer, (&roster, positions), normed);
            h = self.gated(site, layer, [new, h], ["gu", "gw"]);
            let normed = layer_norm(site.graph, h);
            let hidden = self.affine(site, layer, normed, ["a", "a0"]);
            let hidden = site.graph.unary(Function::Gelu(0), hidden);
            let new = self.affine(site, layer, hidden, ["b", "b0"]);
            h = self.gated(site, layer, [new, h], ["hu", "hw"]);
        }
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
