//! An invariant network over particles: the sum over pairs of a perceptron of the squared distance. Unchanged by
//! rotations, translations and exchange of particles.

use super::input::ScaledRows;
use super::layout::Layout;
use super::mlp::Mlp;
use crate::engine::{Graph, Node, Rows};

/// Shape of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    /// Perceptron of one input (the squared distance) and one output.
    pub mlp: Mlp,
    /// Number of particles.
    pub particles: usize,
}

impl Pairs {
    /// Declares the parameters.
    pub fn declare(&self, layout: &mut Layout) {
        self.mlp.declare(layout);
    }

    /// `sum_{i<j} mlp(t, |x_i - x_j|^2)`, a column. `time` is asked for the time branch of the input's rows.
    pub fn scalar(
        &self,
        g: &mut Graph,
        layout: &Layout,
        x: &ScaledRows,
        time: &mut dyn FnMut(&mut Graph, Node, Node) -> Node,
    ) -> Node {
        let Rows::Unit(rows) = x.rows(g) else {
            unreachable!("points belong to units")
        };
        let full = x.full(g);
        let space = g.shape(full).cols / self.particles;
        let positions = g.reshape(full, Rows::Unit(rows * self.particles), space);
        let (mut first, mut second, mut owner) = (Vec::new(), Vec::new(), Vec::new());
        for r in 0..rows {
            for i in 0..self.particles {
                for j in i + 1..self.particles {
                    first.push((r * self.particles + i) as u32);
                    second.push((r * self.particles + j) as u32);
                    owner.push(r as u32);
                }
            }
        }
        let (a, b) = (g.gather(positions, &first), g.gather(positions, &second));
        let distances = ScaledRows {
            points: g.squared_distance(a, b),
            pattern: None,
            scale: None,
            mean: None,
        };
        let mut time_of_pair = |g: &mut Graph, wt: Node, b0: Node| {
            let per_row = time(g, wt, b0);
            g.gather(per_row, &owner)
        };
        let hidden = self.mlp.hidden(g, layout, &distances, &mut time_of_pair);
        let per_pair = self.mlp.output(g, layout, hidden);
        g.segment_sum(per_pair, &owner, rows)
    }
}
