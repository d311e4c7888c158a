//! A network over particles that looks at their distances alone, through one perceptron `phi(t, |x_i - x_j|^2)`: the sum over pairs
//! is unchanged by rotations, translations and exchange of particles, and the vectors turn and change places with them.

use super::input::ScaledRows;
use super::layout::Layout;
use super::mlp::Mlp;
use super::{Input, Network, Output, Role, Site, TimeBranch};
use crate::citation::{Cites, OURS};
use crate::engine::{Graph, Node, Rows};
use crate::{Error, Result};

/// Scalar: `sum_{i<j} phi_ij`. Vector: `v_i = sum_j (x_i - x_j) phi_ij`, whose sum over the particles is zero.
#[derive(Debug, Clone, PartialEq)]
pub struct PairSum {
    /// Perceptron of one input (the squared distance) and one output.
    mlp: Mlp,
    /// What is made of it.
    output: Output,
    /// Numbers of a point.
    dim: usize,
    /// Number of particles.
    particles: usize,
}

/// The pairs of a built graph.
struct BuiltPairs {
    /// Rows of the input.
    rows: usize,
    /// Which row of the input each pair belongs to.
    owner: Vec<u32>,
    /// The particles of each pair.
    ends: [Vec<u32>; 2],
    /// `x_i - x_j` needs them: positions of the particles of each pair.
    positions: [Node; 2],
    /// `|x_i - x_j|^2`, a column.
    squares: Node,
    /// `phi_ij`, a column.
    values: Node,
}

/// Time of the rows, handed on to their pairs.
struct OfPairs<'a> {
    rows: &'a mut dyn TimeBranch,
    owner: &'a [u32],
}

impl TimeBranch for OfPairs<'_> {
    fn rows(&mut self, graph: &mut Graph, wt: Node, b0: Node) -> Node {
        let per_row = self.rows.rows(graph, wt, b0);
        graph.gather(per_row, self.owner)
    }
}

impl PairSum {
    /// A network over so many particles.
    pub fn new(role: Role<'_>, particles: usize, width: usize, depth: usize) -> PairSum {
        let of_distance = Role {
            dim: 1,
            output: Output::Scalar,
            ..role
        };
        PairSum {
            mlp: Mlp::new(of_distance, width, depth),
            output: role.output,
            dim: role.dim,
            particles,
        }
    }

    fn pairs(&self, site: &mut Site<'_>, x: Input<'_>) -> BuiltPairs {
        let Rows::Unit(rows) = x.points.rows(site.graph) else {
            unreachable!("points belong to units")
        };
        let full = x.points.full(site.graph);
        let g = &mut *site.graph;
        let space = self.dim / self.particles;
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
        let squares = g.squared_distance(a, b);
        let distances = ScaledRows {
            points: squares,
            pattern: None,
            scale: None,
            mean: None,
        };
        let mut time = OfPairs {
            rows: &mut *site.time,
            owner: &owner,
        };
        let mut of_pairs = Site {
            graph: &mut *site.graph,
            layout: site.layout,
            time: &mut time,
        };
        let input = Input { points: &distances };
        let values = self.mlp.output(&mut of_pairs, input);
        BuiltPairs {
            rows,
            owner,
            ends: [first, second],
            positions: [a, b],
            squares,
            values,
        }
    }
}

impl Network for PairSum {
    fn cites(&self) -> Cites {
        OURS
    }

    fn validate(&self) -> Result<()> {
        if self.particles < 2 || !self.dim.is_multiple_of(self.particles) {
            return Err(Error::Value {
                name: "particles",
                found: self.particles.to_string(),
                expected: "at least 2, and a divisor of the dimension".into(),
            });
        }
        self.mlp.validate()
    }

    fn declare(&self, layout: &mut Layout) {
        self.mlp.declare(layout);
    }

    fn output(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let pairs = self.pairs(site, x);
        let g = &mut *site.graph;
        if self.output == Output::Scalar {
            return g.segment_sum(pairs.values, &pairs.owner, pairs.rows);
        }
        let [a, b] = pairs.positions;
        let gap = g.sub(a, b);
        let pull = g.mul_column(gap, pairs.values);
        let all = pairs.rows * self.particles;
        let [first, second] = pairs.ends.map(|end| g.segment_sum(pull, &end, all));
        let per_particle = g.sub(first, second);
        g.reshape(per_particle, Rows::Unit(pairs.rows), self.dim)
    }

    /// `sum_i x_i . v_i = sum_{i<j} |x_i - x_j|^2 phi_ij`.
    fn inner_product(&self, site: &mut Site<'_>, x: Input<'_>) -> Node {
        let pairs = self.pairs(site, x);
        let per_pair = site.graph.mul(pairs.squares, pairs.values);
        site.graph.segment_sum(per_pair, &pairs.owner, pairs.rows)
    }
}
