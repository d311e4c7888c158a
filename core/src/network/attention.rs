//! Layers of attention: what transformers over particles and over the sites of states share.
//!
//! For each head of a layer, over the rows of a group, with `E x_j`, linear in positions, added to keys and values (where there are positions)
//! ```text
//! a_ij = softmax_j(q_i . (k_j + E x_j) / sqrt(c)),   o_i = sum_j a_ij (v_j + E x_j) - E x_i        q, k, v linear in LN(h)
//! h_i <- gate(o_i O + o, h_i),   h_i <- gate(gelu(LN(h_i) A + a) B + b, h_i)
//! gate(new, old) = g new + (1 - g) old,   g = sigmoid(new . u + old . w)
//! ```
//! No position is made as wide as a head: `q_i . E x_j = (q_i E) . x_j` and `E x O = x (E O)`, where `Q E` and `E O` are products of parameters, so
//! that places enter as three numbers for each head. What is left of keys, queries and values knows nothing of positions in the first layer.
//!
//! Gain and offset of a layer norm are those of the maps that follow, offsets of keys do nothing, and the gate's third part of other
//! implementations, `new - old`, is in the two that are here.

use super::Site;
use super::layout::{Init, Layout};
use super::particles::{check_sizes, wrong};
use crate::Result;
use crate::engine::{Blocks, Function, Graph, Node, Rows};

/// Added to variances before their roots.
const EPSILON: f64 = 1e-6;
/// Hidden columns of the perceptron for each feature.
const WIDER: usize = 4;

/// Sizes of the layers, and the prefix of their parameters' names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attention<'a> {
    pub(crate) name: &'a str,
    pub(crate) width: usize,
    pub(crate) depth: usize,
    pub(crate) heads: usize,
    pub(crate) head_width: usize,
}

impl Attention<'_> {
    /// Refuses sizes that cannot be.
    pub(crate) fn validate(&self) -> Result<()> {
        check_sizes((self.width, self.depth))?;
        if self.heads == 0 || self.heads > 256 {
            return wrong("heads", self.heads.to_string(), "between 1 and 256");
        }
        if self.head_width == 0 || self.head_width > 1 << 10 {
            let found = self.head_width.to_string();
            return wrong("head_width", found, "between 1 and 1024");
        }
        Ok(())
    }

    /// Weights of variance 1 / fan-in; `space` columns of positions, if rows have any.
    pub(crate) fn declare(&self, layout: &mut Layout, space: Option<usize>) {
        let (w, inner) = (self.width, self.heads * self.head_width);
        let fan = |k: usize| Init::Normal(1.0 / (k as f64).sqrt());
        for layer in 0..self.depth {
            let mut add = |name: &str, rows: usize, cols: usize, init: Init| {
                layout.add(format!("{}.l{layer}.{name}", self.name), rows, cols, init);
            };
            add("q", w, inner, fan(w));
            add("q0", 1, inner, Init::Zero);
            add("k", w, inner, fan(w));
            add("v", w, inner, fan(w));
            add("v0", 1, inner, Init::Zero);
            if let Some(space) = space {
                add("e", space, inner, fan(space));
            }
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
    }

    /// All layers, over groups of so many consecutive rows of `h`; `m` is linear in the positions, if there are any.
    pub(crate) fn layers(
        &self,
        site: &mut Site<'_>,
        mut h: Node,
        group: usize,
        positions: Option<Node>,
    ) -> Node {
        for layer in 0..self.depth {
            let normed = layer_norm(site.graph, h);
            let new = self.attention(site, layer, (group, positions), normed);
            h = self.gated(site, layer, [new, h], ["gu", "gw"]);
            let normed = layer_norm(site.graph, h);
            let hidden = self.affine(site, layer, normed, ["a", "a0"]);
            let hidden = site.graph.unary(Function::Gelu(0), hidden);
            let new = self.affine(site, layer, hidden, ["b", "b0"]);
            h = self.gated(site, layer, [new, h], ["hu", "hw"]);
        }
        h
    }

    fn of_layer(&self, site: &mut Site<'_>, layer: usize, name: &str) -> Node {
        site.param(self.name, &format!("l{layer}.{name}"))
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
        (group, positions): (usize, Option<Node>),
        normed: Node,
    ) -> Node {
        let heads = self.heads;
        let blocks = Blocks { rows: group, heads };
        let places = positions.map(|positions| self.places(site, layer, positions));
        let q = self.affine(site, layer, normed, ["q", "q0"]);
        let k = self.linear(site, layer, normed, "k");
        let v = self.affine(site, layer, normed, ["v", "v0"]);
        let mut scores = site.graph.scores(q, k, blocks);
        if let Some(places) = &places {
            let g = &mut *site.graph;
            let looks = g.matmul(normed, places.turn, false);
            let looks = g.bias(looks, places.offset);
            let of_places = g.scores(looks, places.rows, blocks);
            scores = g.add(scores, of_places);
        }
        let g = &mut *site.graph;
        let scores = g.scale(scores, 1.0 / (self.head_width as f64).sqrt());
        let rows = g.shape(normed).rows;
        let Rows::Unit(count) = rows else {
            unreachable!("points belong to units")
        };
        let scores = g.reshape(scores, Rows::Unit(count * heads), group);
        let weights = g.softmax(scores);
        let weights = g.reshape(weights, rows, heads * group);
        let blend = g.blend(weights, v, blocks, false);
        let new = self.affine(site, layer, blend, ["o", "o0"]);
        let Some(places) = places else { return new };
        let g = &mut *site.graph;
        let mean = g.blend(weights, places.rows, blocks, false);
        let away = g.sub(mean, places.rows);
        let moved = g.matmul(away, places.read, false);
        g.add(new, moved)
    }

    /// What positions need, made before the products of rows: gradients of rows are then summed before those of these few parameters are added.
    fn places(&self, site: &mut Site<'_>, layer: usize, positions: Node) -> Places {
        let [e, q, q0, o] = ["e", "q", "q0", "o"].map(|name| self.of_layer(site, layer, name));
        let g = &mut *site.graph;
        let map = g.head_by_head(e, self.heads);
        let Rows::Unit(count) = g.shape(positions).rows else {
            unreachable!("points belong to units")
        };
        let space = g.shape(positions).cols;
        let heads = self.heads as u32;
        let pattern: Vec<u32> = (0..count as u32 * heads).map(|k| k / heads).collect();
        let each = g.gather(positions, &pattern);
        Places {
            rows: g.reshape(each, Rows::Unit(count), self.heads * space),
            turn: g.matmul(q, map, true),
            offset: g.matmul(q0, map, true),
            read: g.matmul(map, o, false),
        }
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

/// Where particles are, as one layer of attention takes it.
struct Places {
    /// The positions once for each head.
    rows: Node,
    /// `Q E`, and `E` of the offset of queries: three columns for each head.
    turn: Node,
    offset: Node,
    /// `E O`, three rows for each head.
    read: Node,
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
