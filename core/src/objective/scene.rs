//! The scene: what one source row offers to the objectives. It has N times, N independent noises `z_i`, N noisy points
//! `y_i` (and their mirror images for antithetic estimates), and the N x N grid of energies `U(t_j, y_i)`; on request partners at
//! close times, random probes, points at known ends, and what is known exactly. A request leaves a slot that the step fills.

use super::LevelScene;
use super::column::ObjectiveColumn;
use super::fill::{Filled, Filler, RowSlots};
use super::mirror::Mirror;
use super::partner::Partner;
use crate::energy::{Builder, Column, EnergyNodes, ModelSpec, Points, TimeMode, Wiring};
use crate::engine::{Graph, Node, Rows};
use crate::network::Layout;
use std::sync::Arc;

/// Input slots that the training step fills besides the times.
#[derive(Debug)]
pub struct Slots {
    /// Source rows, noises and noisy points.
    pub rows: RowSlots,
    /// Partners whose energy is asked for at their own times, which follow the N times of a row.
    pub behind: Option<Partner>,
    /// What objectives asked for, with what fills it.
    pub filled: Vec<Filled>,
}

/// See the module's text.
pub struct Scene<'a> {
    builder: Builder<'a>,
    levels: usize,
    slots: Slots,
    noise: Node,
    points: Node,
    /// Rows at the point's own time.
    own_group: usize,
    /// Rows at the N - 1 other times.
    other_group: Option<usize>,
    /// Rows at the partners' times, which follow the N times of the unit.
    partner_group: Option<usize>,
    /// Points at the ends, each at all N times.
    end_group: Option<usize>,
    /// Functions of time that objectives asked for, in the builder's order.
    columns: Vec<ObjectiveColumn>,
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
            rows: RowSlots {
                start,
                end,
                noise: noise_slot,
                points: points_slot,
            },
            behind: None,
            filled: Vec::new(),
        };
        Scene {
            builder,
            levels,
            slots,
            noise,
            points,
            own_group,
            other_group: None,
            partner_group: None,
            end_group: None,
            columns: Vec::new(),
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

    /// Noisy points `y_i`, `Unit(N) x d`.
    pub fn points(&self) -> Node {
        self.points
    }

    /// A function of `t_i`, `Unit(N) x 1`.
    pub fn column(&mut self, column: Column) -> Node {
        self.builder.column(self.own_group, column)
    }

    /// A function of `t_i` that only objectives need.
    pub fn objective_column(&mut self, column: ObjectiveColumn) -> Node {
        let known = self.columns.iter().position(|known| *known == column);
        let number = known.unwrap_or_else(|| {
            self.columns.push(column);
            self.builder.give(Arc::new(column)) as usize
        });
        self.column(Column::Given(number as u32))
    }

    /// Nodes of the inputs that `filler` fills, made at the first request.
    pub fn filled(&mut self, filler: impl Filler) -> Vec<Node> {
        let same = |known: &&Filled| known.filler.as_any().downcast_ref() == Some(&filler);
        let graph = &mut self.builder.graph;
        let slots = match self.slots.filled.iter().find(same) {
            Some(known) => known.slots.clone(),
            None => {
                let shapes = filler.shapes(self.builder.spec, self.levels).into_iter();
                let slots: Vec<usize> = shapes
                    .map(|(rows, cols)| graph.input(Rows::Unit(rows), cols).1)
                    .collect();
                self.slots.filled.push(Filled {
                    filler: Box::new(filler),
                    slots: slots.clone(),
                });
                slots
            }
        };
        slots
            .into_iter()
            .map(|slot| graph.input_node(slot))
            .collect()
    }

    /// The energy of points at the rows' own times.
    fn at_own_times(&mut self, points: Node) -> EnergyNodes {
        self.builder.energy(&Points {
            points,
            pattern: None,
            group: self.own_group,
        })
    }

    fn own(&mut self) -> EnergyNodes {
        self.at_own_times(self.points)
    }

    fn mirror(&mut self) -> EnergyNodes {
        let points = self.filled(Mirror)[0];
        self.at_own_times(points)
    }

    /// Score at `(t_i, y_i)`, `Unit(N) x d`.
    pub fn score(&mut self) -> Node {
        self.score_at(self.points)
    }

    /// Score of other points (`Unit(N) x d`) at the times `t_i`.
    pub fn score_at(&mut self, points: Node) -> Node {
        let nodes = self.at_own_times(points);
        self.builder.score(&nodes)
    }

    /// The part of the score that the network adds to a mixture, at points (`Unit(N) x d`) that may depend on others; the whole score
    /// where the energy stands on no mixture.
    pub fn score_beyond_base(&mut self, points: Node) -> Node {
        let nodes = self.builder.energy_beyond_base(&Points {
            points,
            pattern: None,
            group: self.own_group,
        });
        self.builder.score(&nodes)
    }

    /// The Laplacian of a mixture's log-density at `(t_i, y_i)`, `Unit(N) x 1`; none where the energy stands on no mixture.
    pub fn base_laplacian(&mut self) -> Option<Node> {
        let own = self.own();
        self.builder.base_laplacian(&own)
    }

    /// Score at the mirror points, `Unit(N) x d`.
    pub fn mirror_score(&mut self) -> Node {
        let nodes = self.mirror();
        self.builder.score(&nodes)
    }

    /// Time score at `(t_i, y_i)`, `Unit(N) x 1`.
    pub fn time_score(&mut self) -> Node {
        self.time_score_at(self.points)
    }

    /// Time score of other points (`Unit(N) x d`) at the times `t_i`: `Unit(N) x 1`.
    pub fn time_score_at(&mut self, points: Node) -> Node {
        let nodes = self.at_own_times(points);
        self.builder.time_score(&nodes)
    }

    /// Time score at the mirror points.
    pub fn mirror_time_score(&mut self) -> Node {
        let nodes = self.mirror();
        self.builder.time_score(&nodes)
    }

    /// Velocity at `(t_i, y_i)`, `Unit(N) x d`, from the velocity's network.
    pub fn velocity(&mut self) -> Node {
        let (points, group) = (self.points, self.own_group);
        self.builder.velocity(&Points {
            points,
            pattern: None,
            group,
        })
    }

    /// `log p_{t_i}(y_i)`, `Unit(N) x 1`.
    pub fn own_log_density(&mut self) -> Node {
        let own = self.own();
        self.builder.log_density(&own)
    }

    /// Log-density of other points (`Unit(N) x d`) at the times `t_i`: `Unit(N) x 1`.
    pub fn log_density_at(&mut self, points: Node) -> Node {
        let nodes = self.at_own_times(points);
        self.builder.log_density(&nodes)
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
        self.log_density_table(self.points, pattern, group, self.levels - 1)
    }

    /// Log-densities of points, each at `width` times: a row per point.
    fn log_density_table(
        &mut self,
        points: Node,
        pattern: Vec<u32>,
        group: usize,
        width: usize,
    ) -> Node {
        let rows = pattern.len() / width;
        let nodes = self.builder.energy(&Points {
            points,
            pattern: Some(pattern),
            group,
        });
        let column = self.builder.log_density(&nodes);
        self.builder.graph.reshape(column, Rows::Unit(rows), width)
    }

    /// `log p_s(y_s)` of points (`Unit(N) x d`) at the times of partners [behind](Partner::Behind): `Unit(N) x 1`.
    pub fn log_density_behind(&mut self, points: Node, partner: Partner) -> Node {
        let n = self.levels as u32;
        self.slots.behind = Some(partner);
        let group = match self.partner_group {
            Some(group) => group,
            None => {
                let group = self.builder.group((n..2 * n).collect());
                *self.partner_group.insert(group)
            }
        };
        let nodes = self.builder.energy(&Points {
            points,
            pattern: None,
            group,
        });
        self.builder.log_density(&nodes)
    }

    /// `a(t_i) x_0 + b(t_i) x_1`, `Unit(N) x d`.
    pub fn source_sum(&mut self, start: ObjectiveColumn, end: ObjectiveColumn) -> Node {
        let first = self.builder.graph.input_node(self.slots.rows.start);
        let last = self.slots.rows.end;
        let last = last.map(|slot| (self.builder.graph.input_node(slot), end));
        self.sum_of_sources((first, start), last)
    }

    /// `a(t_i) u_0 + b(t_i) u_1`, `Unit(N) x d`, of rows that belong to the sources, `Unit(1) x d`.
    pub fn sum_of_sources(
        &mut self,
        first: (Node, ObjectiveColumn),
        last: Option<(Node, ObjectiveColumn)>,
    ) -> Node {
        let pattern = vec![0; self.levels];
        let part = |scene: &mut Self, (row, column): (Node, ObjectiveColumn)| {
            let factor = scene.objective_column(column);
            let g = scene.graph();
            let rows = g.gather(row, &pattern);
            g.mul_column(rows, factor)
        };
        let sum = part(self, first);
        match last {
            Some(last) => {
                let other = part(self, last);
                self.builder.graph.add(sum, other)
            }
            None => sum,
        }
    }

    /// Learned log-densities of `count` other points of a row (`Unit(count) x d`) at its N times, `Unit(count) x N`.
    pub fn log_densities_of(&mut self, points: Node, count: usize) -> Node {
        let n = self.levels;
        let group = match self.end_group {
            Some(group) => group,
            None => {
                let times = (0..count).flat_map(|_| 0..n as u32).collect();
                *self.end_group.insert(self.builder.group(times))
            }
        };
        let pattern = (0..count as u32)
            .flat_map(|k| std::iter::repeat_n(k, n))
            .collect();
        self.log_density_table(points, pattern, group, n)
    }

    /// Mean over the N levels of a `Unit(N) x 1` column: the loss of the source row.
    pub fn mean_over_levels(&mut self, column: Node) -> Node {
        LevelScene::mean_over_levels(self, column)
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

impl LevelScene for Scene<'_> {
    fn graph(&mut self) -> &mut Graph {
        self.graph()
    }
    fn levels(&self) -> usize {
        self.levels
    }
    fn own_log_density(&mut self) -> Node {
        self.own_log_density()
    }
    fn other_log_densities(&mut self) -> Node {
        self.other_log_densities()
    }
}
