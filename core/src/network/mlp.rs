//! The multilayer perceptron with sinusoidal time features: `h_0 = silu(x W_x + phi(t) W_t + b_0)`,
//! `h_l = silu(h_{l-1} W_l + b_l)`, output `h W_o + b_o` with `W_o`, `b_o` starting at zero.

use super::input::ScaledRows;
use super::layout::{Init, Layout};
use crate::engine::{Function, Graph, Node};

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
    /// Declares the parameters: hidden weights of variance 1 / fan-in, last layer zero.
    pub fn declare(&self, layout: &mut Layout) {
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

    fn param(&self, g: &mut Graph, layout: &Layout, name: &str) -> Node {
        layout.node(g, &format!("{}.{name}", self.name))
    }

    /// The last hidden layer. `time` gives `phi(t) W_t + b_0` for the rows, from the nodes of `W_t` and `b_0`.
    pub fn hidden(
        &self,
        g: &mut Graph,
        layout: &Layout,
        x: &ScaledRows,
        time: &mut dyn FnMut(&mut Graph, Node, Node) -> Node,
    ) -> Node {
        let (wx, wt, b0) = (
            self.param(g, layout, "wx"),
            self.param(g, layout, "wt"),
            self.param(g, layout, "b0"),
        );
        let space = x.linear(g, wx, false);
        let time = time(g, wt, b0);
        let mut z = g.add(space, time);
        for l in 1..self.depth {
            let h = g.unary(Function::Silu(0), z);
            let (w, b) = (
                self.param(g, layout, &format!("w{l}")),
                self.param(g, layout, &format!("b{l}")),
            );
            z = g.matmul(h, w, false);
            z = g.bias(z, b);
        }
        g.unary(Function::Silu(0), z)
    }

    /// Output rows `h W_o + b_o`.
    pub fn output(&self, g: &mut Graph, layout: &Layout, hidden: Node) -> Node {
        let (wo, bo) = (self.param(g, layout, "wo"), self.param(g, layout, "bo"));
        let out = g.matmul(hidden, wo, false);
        g.bias(out, bo)
    }

    /// `x . output` as `h . (x W_o^T) + x . b_o`: the output rows are never formed, and both maps of `x` cost one
    /// product per point.
    pub fn inner_product(
        &self,
        g: &mut Graph,
        layout: &Layout,
        x: &ScaledRows,
        hidden: Node,
    ) -> Node {
        let (wo, bo) = (self.param(g, layout, "wo"), self.param(g, layout, "bo"));
        let projected = x.linear(g, wo, true);
        let inner = g.row_dot(hidden, projected);
        let constant = x.dot(g, bo);
        g.add(inner, constant)
    }
}
