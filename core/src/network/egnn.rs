//! EGNN: messages between particles that know their distances alone, and moves of the particles along their differences, after
//! Satorras, Hoogeboom, Welling (2021) with the gates and bounded moves that Boltzmann generators of molecules have.
//!
//! With `h_i` the features of particle i (its type's embedding and the time), in each layer
//! ```text
//! m_ij = silu(silu(h_i A + h_j B + |x_i - x_j|^2 c + |x_i - x_j|_0^2 c_0 + bond_ij + a) M + b),  gated by sigmoid(m_ij . g + g_0)
//! x_i += sum_j (x_i - x_j) / (|x_i - x_j| + 1) r tanh(phi(m_ij))  [+ sum_j (x_i x x_j) / (|x_i x x_j| + 1) r tanh(psi(m_ij))]
//! h_i += silu(h_i P + (sum_j m_ij) Q + p) N + n
//! ```
//! where `_0` is where the particles began. Vector: how far each has moved, without the mean of all. Scalar: a sum over particles of a
//! perceptron of `h_i`. Rotations turn the vectors and leave the scalar, translations leave both, particles of one type and equal bonds
//! may change places. Without the cross product reflections do as rotations do.

use serde::{Deserialize, Serialize};

use super::layout::{Init, Layout};
use super::particles::{Roster, check_particles, declare_features, wrong};
use super::{Input, Network, Output, Role, Site};
use crate::Result;
use crate::citation::Cites;
use crate::engine::{Function, Graph, Node, Rows};

/// Sizes of the network and what is known of the particles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgnnSpec {
    /// Number of particles; divides the dimension.
    pub particles: usize,
    /// Features of a particle and of a message.
    pub width: usize,
    /// Number of layers.
    pub depth: usize,
    /// The type of each particle, from 0 on; none: all alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<u32>,
    /// Pairs of particles with a bond, whose messages get an embedding of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bonds: Vec<[u32; 2]>,
    /// Move along cross products too, in space: mirror images are then told apart.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cross: bool,
    /// Farthest that one neighbour moves a particle in all layers together.
    #[serde(default = "usual_range", skip_serializing_if = "is_usual_range")]
    pub range: f64,
    /// Distance at which messages fade, by `sigmoid(10 (1 - |x_i - x_j| / cutoff))`; none: all count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutoff: Option<f64>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn usual_range() -> f64 {
    15.0
}

fn is_usual_range(range: &f64) -> bool {
    *range == usual_range()
}

/// Added to squared lengths before their roots, which have no slope at zero.
const ROOT: f64 = 1e-8;

impl EgnnSpec {
    /// All particles alike, no bonds.
    pub fn new(particles: usize, width: usize, depth: usize) -> EgnnSpec {
        EgnnSpec {
            particles,
            width,
            depth,
            types: Vec::new(),
            bonds: Vec::new(),
            cross: false,
            range: usual_range(),
            cutoff: None,
        }
    }
}

/// See the module's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Egnn {
    name: String,
    spec: EgnnSpec,
    output: Output,
    dim: usize,
    features: usize,
}

/// Which rows belong together, for so many rows of the input.
struct Rosters {
    of_particles: Roster,
    /// Both particles of each directed edge.
    ends: [Vec<u32>; 2],
}

/// Particles between two layers.
struct Moment {
    positions: Node,
    features: Node,
}

impl Rosters {
    fn new(of_particles: Roster) -> Rosters {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let particles = of_particles.particles;
        let at = |row: usize, i: usize| (row * particles + i) as u32;
        for row in 0..of_particles.rows {
            for i in 0..particles {
                for j in (0..particles).filter(|j| *j != i) {
                    first.push(at(row, i));
                    second.push(at(row, j));
                }
            }
        }
        Rosters {
            of_particles,
            ends: [first, second],
        }
    }
}

impl Egnn {
    /// A network of these sizes for a role.
    pub fn new(role: Role<'_>, spec: EgnnSpec) -> Egnn {
        Egnn {
            name: role.name.into(),
            spec,
            output: role.output,
            dim: role.dim,
            features: role.features,
        }
    }

    /// Whether particles move in a layer: a scalar does not ask where they are after the last.
    fn moves(&self, layer: usize) -> bool {
        self.output == Output::Vector || layer + 1 < self.spec.depth
    }

    /// Whether features change in a layer: a vector does not ask for them after the last.
    fn learns(&self, layer: usize) -> bool {
        self.output == Output::Scalar || layer + 1 < self.spec.depth
    }

    fn of_layer(&self, site: &mut Site<'_>, layer: usize, name: &str) -> Node {
        site.param(&self.name, &format!("l{layer}.{name}"))
    }

    /// `a W + b`.
    fn affine(&self, site: &mut Site<'_>, layer: usize, a: Node, [w, b]: [&str; 2]) -> Node {
        let [w, b] = [w, b].map(|name| self.of_layer(site, layer, name));
        let product = site.graph.matmul(a, w, false);
        site.graph.bias(product, b)
    }

    /// The embedding of bonds on the edges that have one.
    fn bonds(&self, site: &mut Site<'_>, layer: usize, rosters: &Rosters) -> Option<Node> {
        if self.spec.bonds.is_empty() {
            return None;
        }
        let particles = self.spec.particles as u32;
        let bonded = |i: u32, j: u32| {
            let pair = [i % particles, j % particles];
            let turned = [pair[1], pair[0]];
            self.spec.bonds.iter().any(|b| *b == pair || *b == turned)
        };
        let [first, second] = &rosters.ends;
        let ends = first.iter().zip(second).enumerate();
        let with_bond: Vec<u32> = ends
            .filter(|(_, (i, j))| bonded(**i, **j))
            .map(|(edge, _)| edge as u32)
            .collect();
        let embedding = self.of_layer(site, layer, "bond");
        let g = &mut *site.graph;
        let rows = g.broadcast_rows(embedding, Rows::Unit(with_bond.len()));
        Some(g.segment_sum(rows, &with_bond, first.len()))
    }

    /// `m_ij`.
    fn messages(
        &self,
        site: &mut Site<'_>,
        layer: usize,
        (rosters, moment): (&Rosters, &Moment),
        squares: [Node; 2],
    ) -> Node {
        let [first, second] = &rosters.ends;
        // Two products over particles instead of one over their pairs.
        let own = self.affine(site, layer, moment.features, ["own", "a"]);
        let other = self.of_layer(site, layer, "other");
        let other = site.graph.matmul(moment.features, other, false);
        let c = self.of_layer(site, layer, "squares");
        let g = &mut *site.graph;
        let (own, other) = (g.gather(own, first), g.gather(other, second));
        let pair = g.add(own, other);
        // Before the first layer both squares are the same.
        let squares = if layer == 0 {
            squares[0]
        } else {
            g.concat(squares[0], squares[1])
        };
        let of_squares = g.matmul(squares, c, false);
        let mut z = g.add(pair, of_squares);
        if let Some(bonds) = self.bonds(site, layer, rosters) {
            z = site.graph.add(z, bonds);
        }
        let hidden = site.graph.unary(Function::Silu(0), z);
        let message = self.affine(site, layer, hidden, ["m", "b"]);
        let message = site.graph.unary(Function::Silu(0), message);
        let gate = self.affine(site, layer, message, ["g", "g0"]);
        let gate = site.graph.unary(Function::Sigmoid, gate);
        site.graph.mul_column(message, gate)
    }

    /// `r tanh(phi(m))`, a column.
    fn pull(&self, site: &mut Site<'_>, layer: usize, messages: Node, name: &str) -> Node {
        let [w, b, out] = ["w", "b", "o"].map(|part| format!("{name}_{part}"));
        let hidden = self.affine(site, layer, messages, [&w, &b]);
        let hidden = site.graph.unary(Function::Silu(0), hidden);
        let out = self.of_layer(site, layer, &out);
        let g = &mut *site.graph;
        let phi = g.matmul(hidden, out, false);
        // tanh z = 2 sigmoid(2 z) - 1.
        let twice = g.scale(phi, 2.0);
        let sigmoid = g.unary(Function::Sigmoid, twice);
        let range = self.spec.range / self.spec.depth as f64;
        g.affine(sigmoid, 2.0 * range, -range)
    }
}

/// `sqrt(square + 1e-8)`.
fn root(g: &mut Graph, square: Node) -> Node {
    let above = g.affine(square, 1.0, ROOT);
    g.power(above, 0.5)
}

/// `vector / (length + 1) factor`, row by row.
fn per_length(g: &mut Graph, vector: Node, length: Node, factor: Node) -> Node {
    let above = g.affine(length, 1.0, 1.0);
    let inverse = g.power(above, -1.0);
    let factor = g.mul(factor, inverse);
    g.mul_column(vector, factor)
}

/// The cross product of rows of three numbers.
pub(crate) fn cross(g: &mut Graph, a: Node, b: Node) -> Node {
    let part = |g: &mut Graph, i: usize| {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        let [aj, ak] = [j, k].map(|c| g.slice(a, c, 1));
        let [bj, bk] = [j, k].map(|c| g.slice(b, c, 1));
        let (up, down) = (g.mul(aj, bk), g.mul(ak, bj));
        g.sub(up, down)
    };
    let [x, y, z] = [0, 1, 2].map(|i| part(g, i));
    let xy = g.concat(x, y);
    g.concat(xy, z)
}

impl Network for Egnn {
    fn cites(&self) -> Cites {
        &["satorras2021egnn"]
    }

    fn validate(&self) -> Result<()> {
        let spec = &self.spec;
        let n = spec.particles;
        let sizes = (spec.width, spec.depth);
        check_particles(self.dim, n, &spec.types, sizes)?;
        let fits = |bond: &[u32; 2]| bond[0] != bond[1] && bond.iter().all(|i| (*i as usize) < n);
        if let Some(bond) = spec.bonds.iter().find(|bond| !fits(bond)) {
            return wrong(
                "bonds",
                format!("{bond:?}"),
                "two different particles, counted from 0",
            );
        }
        if spec.cross && self.dim != 3 * n {
            return wrong(
                "cross",
                format!("true with {} numbers a particle", self.dim / n),
                "particles in three dimensions",
            );
        }
        let sane = |x: f64| x.is_finite() && x > 0.0;
        if !sane(spec.range) {
            return wrong("range", spec.range.to_string(), "a positive number");
        }
        match spec.cutoff {
            Some(cutoff) if !sane(cutoff) => {
                wrong("cutoff", cutoff.to_string(), "a positive number")
            }
            _ => Ok(()),
        }
    }

    /// Weights of variance 1 / fan-in; what moves particles and what is read out start at zero.
    fn declare(&self, layout: &mut Layout) {
        let (n, w) = (&self.name, self.spec.width);
        let fan = |k: usize| Init::Normal(1.0 / (k as f64).sqrt());
        declare_features(layout, n, self.features, w, &self.spec.types);
        for layer in 0..self.spec.depth {
            let squares = if layer == 0 { 1 } else { 2 };
            let mut add = |name: &str, rows: usize, cols: usize, init: Init| {
                layout.add(format!("{n}.l{layer}.{name}"), rows, cols, init);
            };
            let pair = fan(2 * w + squares);
            add("own", w, w, pair);
            add("a", 1, w, Init::Zero);
            add("other", w, w, pair);
            add("squares", squares, w, pair);
            if !self.spec.bonds.is_empty() {
                add("bond", 1, w, Init::Normal(1.0));
            }
            add("m", w, w, fan(w));
            add("b", 1, w, Init::Zero);
            add("g", w, 1, fan(w));
            add("g0", 1, 1, Init::Zero);
            let heads: &[&str] = match (self.moves(layer), self.spec.cross) {
                (false, _) => &[],
                (true, false) => &["phi"],
                (true, true) => &["phi", "psi"],
            };
            for head in heads {
                add(&format!("{head}_w"), w, w, fan(w));
                add(&format!("{head}_b"), 1, w, Init::Zero);
                add(&format!("{head}_o"), w, 1, Init::Zero);
            }
            if self.learns(layer) {
                add("p", w, w, fan(2 * w));
                add("p0", 1, w, Init::Zero);
                add("q", w, w, fan(2 * w));
                add("n", w, w, fan(w));
                add("n0", 1, w, Init::Zero);
            }
        }
        if self.output == Output::Scalar {
            layout.add(format!("{n}.wo"), w, w, fan(w));
            layout.add(format!("{n}.bo"), 1, w, Init::Zero);
            layout.add(format!("{n}.out"), w, 1, Init::Zero);
        }
    }

    fn output(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let roster = Roster::new(site.graph, x, self.spec.particles);
        let Rows::Unit(all) = roster.all() else {
            unreachable!("particles belong to units")
        };
        let mut begin = roster.positions(site.graph, x);
        if self.spec.cross {
            // A cross product knows where the origin is.
            begin = roster.centred(site.graph, begin);
        }
        let mut moment = Moment {
            positions: begin,
            features: roster.features(site, &self.name, &self.spec.types),
        };
        let rosters = Rosters::new(roster);
        let roster = &rosters.of_particles;
        let [first, second] = &rosters.ends;
        let mut at_begin = None;
        for layer in 0..self.spec.depth {
            let g = &mut *site.graph;
            let (a, b) = (
                g.gather(moment.positions, first),
                g.gather(moment.positions, second),
            );
            let square = g.squared_distance(a, b);
            let squares = [square, *at_begin.get_or_insert(square)];
            let length = root(g, square);
            let mut messages = self.messages(site, layer, (&rosters, &moment), squares);
            if let Some(cutoff) = self.spec.cutoff {
                let g = &mut *site.graph;
                let inside = g.affine(length, -10.0 / cutoff, 10.0);
                let inside = g.unary(Function::Sigmoid, inside);
                messages = g.mul_column(messages, inside);
            }
            if self.moves(layer) {
                let pull = self.pull(site, layer, messages, "phi");
                let gap = site.graph.sub(a, b);
                let mut step = per_length(site.graph, gap, length, pull);
                if self.spec.cross {
                    let turn = self.pull(site, layer, messages, "psi");
                    let cross = cross(site.graph, a, b);
                    let square = site.graph.row_dot(cross, cross);
                    let length = root(site.graph, square);
                    let aside = per_length(site.graph, cross, length, turn);
                    step = site.graph.add(step, aside);
                }
                let g = &mut *site.graph;
                let step = g.segment_sum(step, first, all);
                moment.positions = g.add(moment.positions, step);
            }
            if self.learns(layer) {
                let sum = site.graph.segment_sum(messages, first, all);
                let own = self.affine(site, layer, moment.features, ["p", "p0"]);
                let q = self.of_layer(site, layer, "q");
                let g = &mut *site.graph;
                let of_others = g.matmul(sum, q, false);
                let hidden = g.add(own, of_others);
                let hidden = g.unary(Function::Silu(0), hidden);
                let change = self.affine(site, layer, hidden, ["n", "n0"]);
                moment.features = site.graph.add(moment.features, change);
            }
        }
        if self.output == Output::Scalar {
            let [w, b, out] = ["wo", "bo", "out"].map(|name| site.param(&self.name, name));
            let g = &mut *site.graph;
            let hidden = g.matmul(moment.features, w, false);
            let hidden = g.bias(hidden, b);
            let hidden = g.unary(Function::Silu(0), hidden);
            let of_particles = g.matmul(hidden, out, false);
            return g.segment_sum(of_particles, &roster.owner, roster.rows);
        }
        let g = &mut *site.graph;
        let moved = g.sub(moment.positions, begin);
        let moved = roster.centred(g, moved);
        g.reshape(moved, Rows::Unit(roster.rows), self.dim)
    }
}
