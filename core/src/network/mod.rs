//! Architectures on the [`engine`](crate::engine): networks that energies and velocities are made of.
//!
//! A [`Network`] gets points and a way to ask for its time branch, and returns one number for each point, or a vector: as many
//! numbers as the point has, over particles one vector for each of them. It knows nothing of preconditioning, forms or losses.
//! [`NetworkSpec`] names the members in files.

mod attention;
mod egnn;
mod input;
mod layout;
mod mlp;
mod pairs;
mod particles;
mod spec;
mod transformer;
mod waves;
pub(crate) mod without_centre;

pub(crate) use attention::Attention;
pub(crate) use egnn::cross;
pub use egnn::{Egnn, EgnnSpec};
pub use input::ScaledRows;
pub use layout::{Entry, Init, Layout};
pub use mlp::Mlp;
pub use pairs::PairSum;
pub(crate) use particles::rows_of_table;
pub use spec::NetworkSpec;
pub use transformer::{Transformer, TransformerSpec};
pub use waves::Waves;
pub(crate) use without_centre::WithoutCentre;

use crate::Result;
use crate::citation::Cites;
use crate::engine::{Graph, Node};

/// What a network gives for each point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// One number.
    Scalar,
    /// As many numbers as the point has; over particles one vector of space for each, in their order.
    Vector,
}

/// What a network is made for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Role<'a> {
    /// Prefix of the parameters' names.
    pub name: &'a str,
    /// What it gives.
    pub output: Output,
    /// Numbers of a point.
    pub dim: usize,
    /// Time features.
    pub features: usize,
}

/// What a network looks at. What is known of each particle beside its place (a type, bonds) belongs here as well.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The points.
    pub points: &'a ScaledRows,
}

/// Gives a network its time.
pub trait TimeBranch {
    /// `phi(t) W_t + b_0` for the rows of the network's input, from the nodes of `W_t` (features x width) and `b_0`.
    fn rows(&mut self, graph: &mut Graph, wt: Node, b0: Node) -> Node;
}

/// Where a network is built: the graph, the places of its parameters, and its time.
pub struct Site<'a> {
    /// The graph under construction.
    pub graph: &'a mut Graph,
    /// The parameters.
    pub layout: &'a Layout,
    /// The time branch of the input's rows.
    pub time: &'a mut dyn TimeBranch,
}

impl Site<'_> {
    /// The node of a parameter.
    pub fn param(&mut self, network: &str, name: &str) -> Node {
        self.layout.node(self.graph, &format!("{network}.{name}"))
    }
}

/// An architecture with its sizes and the names of its parameters.
pub trait Network {
    /// Whom to cite: keys of BibTeX entries.
    fn cites(&self) -> Cites;

    /// Refuses sizes that cannot be built.
    fn validate(&self) -> Result<()>;

    /// Declares the parameters. A network starts with output zero.
    fn declare(&self, layout: &mut Layout);

    /// The output, a row for each row of the input: a column, or as many columns as the points have.
    fn output(&self, site: &mut Site<'_>, x: Input<'_>) -> Node;

    /// `x . output` of a network with vector output, a column; without forming the output where that is cheaper.
    fn inner_product(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let output = self.output(site, x);
        let full = x.points.full(site.graph);
        site.graph.row_dot(full, output)
    }
}

#[cfg(test)]
mod tests;
