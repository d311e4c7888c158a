//! The scene: what one source row offers to the objectives. It has N times, N independent noises `z_i`, N noisy points
//! `y_i` (and their mirror images for antithetic estimates), and the N x N grid of energies `U(t_j, y_i)`.

use crate::energy::{Builder, Column, EnergyNodes, ModelSpec, Points, TimeMode, Wiring};
use crate::network::{Graph, Layout, Node, Rows};

/// Input slots that the training step fills besides the times.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    /// Source row `x_0`, `Unit(1) x d`: room for the filler; the graph does not read it.
    pub start: usize,
    /// Source row `x_1` of an interpolant.
    pub end: Option<usize>,
    /// Noises `z_i`, `Unit(N) x d`.
    pub noise: usize,
    /// Noisy points `y_i = X_{t_i} + gamma z_i`.
    pub points: usize,
    /// Mirror points `X_{t_i} - gamma z_i`, if an objective asked for them.
    pub mirror: Option<usize>,
}

/// See the module's text.
pub struct Scene<'a> {
    builder: Builder<'a>,
    levels: usize,
    slots: Slots,
    noise: Node,
    points: Node,
    mirror: Option<Node>,
    /// Rows at the point's own time.
    own_group: usize,
    /// Rows at the N - 1 other times.
    other_group: Option<usize>,
}

impl<'a> Scene<'a> {
    /// Rows of `levels` times.
    pub fn new(spec: &'a ModelSpec, mode: TimeMode, levels: usize) -> Scene<'a> {
        let mut builder = Builder::new(spec, mode);
        let (_, start) = builder.graph.input(Rows::Unit(1), spec.dim);
        let end = spec
            .process
            .is_interpolant()
            .then(|| builder.graph.input(Rows::Unit(1), spec.dim).1);
        let (noise, noise_slot) = builder.graph.input(Rows::Unit(levels), spec.dim);
        let (points, points_slot) = builder.graph.input(Rows::Unit(levels), spec.dim);
        let own_group = builder.group((0..levels as u32).collect());
        let slots = Slots {
            start,
            end,
            noise: noise_slot,
            points: points_slot,
            mirror: None,
        };
        Scene {
            builder,
            levels,
            slots,
            noise,
            points,
            mirror: None,
            own_group,
            other_group: None,
        }
    }

    /// The graph, for building a loss.
    pub fn graph(&mut self) -> &mut Graph {
        &mut self.builder.graph
    }

    /// Number of levels N of a row.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// The model.
    pub fn spec(&self) -> &'a ModelSpec {
        self.builder.spec
    }

    /// Noises `z_i`, `Unit(N) x d`.
    pub fn noise(&self) -> Node {
        self.noise
    }

    /// A function of `t_i`, `Unit(N) x 1`.
    pub fn column(&mut self, column: Column) -> Node {
        self.builder.column(self.own_group, column)
    }

    fn own(&mut self) -> EnergyNodes {
        let (points, group) = (self.points, self.own_group);
        self.builder.energy(&Points {
            points,
            pattern: None,
            group,
        })
    }

    /// Score at `(t_i, y_i)`, `Unit(N) x d`.
    pub fn score(&mut self) -> Node {
        let own = self.own();
        self.builder.score(&own)
    }

    /// Score at the mirror points, `Unit(N) x d`.
    pub fn mirror_score(&mut self) -> Node {
        let (levels, dim) = (self.levels, self.builder.spec.dim);
        let points = match self.mirror {
            Some(points) => points,
            None => {
                let (points, slot) = self.builder.graph.input(Rows::Unit(levels), dim);
                self.slots.mirror = Some(slot);
                *self.mirror.insert(points)
            }
        };
        let nodes = self.builder.energy(&Points {
            points,
            pattern: None,
            group: self.own_group,
        });
        self.builder.score(&nodes)
    }

    /// `log p_{t_i}(y_i)`, `Unit(N) x 1`.
    pub fn own_log_density(&mut self) -> Node {
        let own = self.own();
        self.builder.log_density(&own)
    }

    /// `log p_{t_j}(y_i)` for `j != i` in order, `Unit(N) x (N - 1)`. One point serves its N - 1 times.
    pub fn other_log_densities(&mut self) -> Node {
        let n = self.levels as u32;
        let group = match self.other_group {
            Some(group) => group,
            None => {
                let times = (0..n)
                    .flat_map(|i| (0..n).filter(move |&j| j != i))
                    .collect();
                *self.other_group.insert(self.builder.group(times))
            }
        };
        let pattern = (0..n)
            .flat_map(|i| std::iter::repeat_n(i, n as usize - 1))
            .collect();
        let nodes = self.builder.energy(&Points {
            points: self.points,
            pattern: Some(pattern),
            group,
        });
        let column = self.builder.log_density(&nodes);
        self.builder
            .graph
            .reshape(column, Rows::Unit(self.levels), self.levels - 1)
    }

    /// Mean over the N levels of a `Unit(N) x 1` column: the loss of the source row.
    pub fn mean_over_levels(&mut self, column: Node) -> Node {
        let levels = self.levels as f64;
        let sum = self.builder.graph.unit_sum(column);
        self.builder.graph.scale(sum, 1.0 / levels)
    }

    /// All parameters, in the layout's order.
    pub fn parameters(&mut self) -> Vec<Node> {
        self.builder.parameters()
    }

    /// The finished graph with what must be filled.
    pub fn finish(self) -> (Graph, Wiring, Slots, Layout) {
        (
            self.builder.graph,
            self.builder.wiring,
            self.slots,
            self.builder.layout,
        )
    }
}
