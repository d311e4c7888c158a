//! The multilayer perceptron with sinusoidal time features: `h_0 = silu(x W_x + phi(t) W_t + b_0)`,
//! `h_l = silu(h_{l-1} W_l + b_l)`, output `h W_o + b_o` with `W_o`, `b_o` starting at zero.

use super::layout::{Init, Layout};
use super::{Input, Network, Output, Role, Site};
use crate::citation::{Cites, OURS};
use crate::engine::{Function, Node};
use crate::{Error, Result};

/// Shape and name of one perceptron.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    /// Prefix of the parameters' names.
    pub name: String,
    /// Columns of the input `x`.
    pub input: usize,
    /// Columns of the output.
    pub output: usize,
    /// Columns of a hidden layer.
    pub width: usize,
    /// Number of hidden layers.
    pub depth: usize,
    /// Number of time features.
    pub features: usize,
}

impl Mlp {
    /// A perceptron over all coordinates.
    pub fn new(role: Role<'_>, width: usize, depth: usize) -> Mlp {
        Mlp {
            name: role.name.into(),
            input: role.dim,
            output: match role.output {
                Output::Scalar => 1,
                Output::Vector => role.dim,
            },
            width,
            depth,
            features: role.features,
        }
    }

    /// The last hidden layer, `more` added to what the first one takes.
    pub(super) fn hidden(&self, site: &mut Site<'_>, x: Input<'_>, more: Option<Node>) -> Node {
        let mut z = self.first(site, x);
        if let Some(more) = more {
            z = site.graph.add(z, more);
        }
        self.after_first(site, z)
    }

    /// What the first layer takes, `x W_x + phi(t) W_t + b_0`: linear in `x`, so that rows which differ in a few places share it.
    pub(crate) fn first(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let [wx, wt, b0] = ["wx", "wt", "b0"].map(|name| site.param(&self.name, name));
        let space = x.points.linear(site.graph, wx, false);
        let time = site.time.rows(site.graph, wt, b0);
        site.graph.add(space, time)
    }

    /// The last hidden layer from what the first one takes.
    pub(crate) fn after_first(&self, site: &mut Site<'_>, mut z: Node) -> Node {
        for l in 1..self.depth {
            let h = site.graph.unary(Function::Silu(0), z);
            let w = site.param(&self.name, &format!("w{l}"));
            let b = site.param(&self.name, &format!("b{l}"));
            z = site.graph.matmul(h, w, false);
            z = site.graph.bias(z, b);
        }
        site.graph.unary(Function::Silu(0), z)
    }

    /// `h W_o + b_o` of the last hidden layer.
    pub(crate) fn read_out(&self, site: &mut Site<'_>, hidden: Node) -> Node {
        let [wo, bo] = ["wo", "bo"].map(|name| site.param(&self.name, name));
        let out = site.graph.matmul(hidden, wo, false);
        site.graph.bias(out, bo)
    }

    /// `h . (x W_o^T) + x . b_o`: the output rows are never formed, and both maps of `x` cost one product per point.
    pub(super) fn inner(&self, site: &mut Site<'_>, x: Input<'_>, hidden: Node) -> Node {
        let [wo, bo] = ["wo", "bo"].map(|name| site.param(&self.name, name));
        let projected = x.points.linear(site.graph, wo, true);
        let inner = site.graph.row_dot(hidden, projected);
        let constant = x.points.dot(site.graph, bo);
        site.graph.add(inner, constant)
    }
}

/// Refuses a size.
pub(super) fn wrong(name: &'static str, found: usize, expected: &str) -> Result<()> {
    Err(Error::Value {
        name,
        found: found.to_string(),
        expected: expected.into(),
    })
}

impl Network for Mlp {
    fn cites(&self) -> Cites {
        OURS
    }

    fn validate(&self) -> Result<()> {
        if self.width == 0 || self.width > 1 << 14 {
            return wrong("width", self.width, "between 1 and 16384");
        }
        if self.depth == 0 || self.depth > 64 {
            return wrong("depth", self.depth, "between 1 and 64");
        }
        Ok(())
    }

    /// Hidden weights of variance 1 / fan-in, last layer zero.
    fn declare(&self, layout: &mut Layout) {
        let (n, w) = (&self.name, self.width);
        let fan = |k: usize| Init::Normal(1.0 / (k as f64).sqrt());
        layout.add(format!("{n}.wx"), self.input, w, fan(self.input));
        layout.add(format!("{n}.wt"), self.features, w, fan(self.features));
        layout.add(format!("{n}.b0"), 1, w, Init::Zero);
        for l in 1..self.depth {
            layout.add(format!("{n}.w{l}"), w, w, fan(w));
            layout.add(format!("{n}.b{l}"), 1, w, Init::Zero);
        }
        layout.add(format!("{n}.wo"), w, self.output, Init::Zero);
        layout.add(format!("{n}.bo"), 1, self.output, Init::Zero);
    }

    fn output(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let hidden = self.hidden(site, x, None);
        self.read_out(site, hidden)
    }

    fn inner_product(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let hidden = self.hidden(site, x, None);
        self.inner(site, x, hidden)
    }
}
