//! The scene: what one source row offers to the objectives. It has N times, N independent noises `z_i`, N noisy points
//! `y_i` (and their mirror images for antithetic estimates), and the N x N grid of energies `U(t_j, y_i)`; on request partners at
//! close times, random probes, points at known ends, and what is known exactly. A request leaves a slot that the step fills.

use super::column::ObjectiveColumn;
use super::known_diffclf::Ends;
use super::partner::Partner;
use crate::energy::{Builder, Column, EnergyNodes, ModelSpec, Points, TimeMode, Wiring};
use crate::engine::{Graph, Node, Rows};
use crate::network::Layout;

/// Input slots that the training step fills besides the times.
#[derive(Debug, Clone)]
pub struct Slots {
    /// Source row `x_0`, `Unit(1) x d`.
    pub start: usize,
    /// Source row `x_1` of an interpolant.
    pub end: Option<usize>,
    /// Noises `z_i`, `Unit(N) x d`.
    pub noise: usize,
    /// Noisy points `y_i = X_{t_i} + gamma z_i`.
    pub points: usize,
    /// Mirror points `X_{t_i} - gamma z_i`, if an objective asked for them.
    pub mirror: Option<usize>,
    /// Partners at close times.
    pub partners: Vec<PartnerSlots>,
    /// Rademacher probes, `Unit(N) x d`: independent of each other.
    pub probes: [Option<usize>; 2],
    /// Exact time scores at `(t_i, y_i)`, `Unit(N) x 1`.
    pub exact_time_score: Option<usize>,
    /// Exact scores of the data at `x_0`, `Unit(1) x d`.
    pub start_score: Option<usize>,
    /// Exact scores at `x_1`.
    pub end_score: Option<usize>,
    /// Points at known ends.
    pub ends: Option<EndSlots>,
}

/// Slots of one partner per level.
#[derive(Debug, Clone, Copy)]
pub struct PartnerSlots {
    /// Where it is.
    pub partner: Partner,
    /// Its points, `Unit(N) x d`.
    pub points: usize,
    /// The forward noise `e` of `Y_t = m Y_s + c e`, `Unit(N) x d`, for partners on the same noising path.
    pub forward: Option<usize>,
}

/// Slots of the known ends; E is their number.
#[derive(Debug, Clone, Copy)]
pub struct EndSlots {
    /// Which.
    pub ends: Ends,
    /// Points at the ends, `Unit(E) x d`.
    pub points: usize,
    /// Exact log-densities at the ends' times of the N noisy points and the E points, `Unit(N + E) x E`.
    pub log_density: usize,
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
            partners: Vec::new(),
            probes: [None, None],
            exact_time_score: None,
            start_score: None,
            end_score: None,
            ends: None,
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
        self.column(Column::Objective(column))
    }

    /// A slot made at the first request: its node.
    fn slot(
        &mut self,
        rows: usize,
        cols: usize,
        of: impl FnOnce(&mut Slots) -> &mut Option<usize>,
    ) -> Node {
        let graph = &mut self.builder.graph;
        let slot =
            *of(&mut self.slots).get_or_insert_with(|| graph.input(Rows::Unit(rows), cols).1);
        graph.input_node(slot)
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
        let points = self.slot(self.levels, self.builder.spec.dim, |s| &mut s.mirror);
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

    /// Score at the mirror points, `Unit(N) x d`.
    pub fn mirror_score(&mut self) -> Node {
        let nodes = self.mirror();
        self.builder.score(&nodes)
    }

    /// Time score at `(t_i, y_i)`, `Unit(N) x 1`.
    pub fn time_score(&mut self) -> Node {
        let nodes = self.own();
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

    fn partner(&mut self, partner: Partner) -> PartnerSlots {
        if let Some(slots) = self.slots.partners.iter().find(|p| p.partner == partner) {
            return *slots;
        }
        let (levels, dim) = (self.levels, self.builder.spec.dim);
        let mut input = || self.builder.graph.input(Rows::Unit(levels), dim).1;
        let slots = PartnerSlots {
            partner,
            points: input(),
            forward: matches!(partner, Partner::Behind(_)).then(input),
        };
        self.slots.partners.push(slots);
        slots
    }

    /// Time score at the row's own time, at the partner's point: `Unit(N) x 1`.
    pub fn partner_time_score(&mut self, partner: Partner) -> Node {
        let slots = self.partner(partner);
        let points = self.builder.graph.input_node(slots.points);
        let nodes = self.at_own_times(points);
        self.builder.time_score(&nodes)
    }

    /// `log p_s(y_s)` at a partner [behind](Partner::Behind), `Unit(N) x 1`, and the forward noise, `Unit(N) x d`.
    pub fn partner_log_density(&mut self, partner: Partner) -> (Node, Node) {
        let slots = self.partner(partner);
        let Some(forward) = slots.forward else {
            unreachable!("only partners behind are on the noising path")
        };
        let n = self.levels as u32;
        let group = match self.partner_group {
            Some(group) => group,
            None => {
                let group = self.builder.group((n..2 * n).collect());
                *self.partner_group.insert(group)
            }
        };
        let graph = &mut self.builder.graph;
        let (points, forward) = (graph.input_node(slots.points), graph.input_node(forward));
        let nodes = self.builder.energy(&Points {
            points,
            pattern: None,
            group,
        });
        (self.builder.log_density(&nodes), forward)
    }

    /// Rademacher probe number `k` (0 or 1), `Unit(N) x d`.
    pub fn probe(&mut self, k: usize) -> Node {
        self.slot(self.levels, self.builder.spec.dim, |s| &mut s.probes[k])
    }

    /// The exact time score at `(t_i, y_i)`, `Unit(N) x 1`.
    pub fn exact_time_score(&mut self) -> Node {
        self.slot(self.levels, 1, |s| &mut s.exact_time_score)
    }

    /// `a(t_i) x_0 + b(t_i) x_1`, `Unit(N) x d`.
    pub fn source_sum(&mut self, start: ObjectiveColumn, end: ObjectiveColumn) -> Node {
        let first = self.builder.graph.input_node(self.slots.start);
        let last = self.slots.end.map(|s| self.builder.graph.input_node(s));
        self.sum_of_sources(first, start, last, end)
    }

    /// `a(t_i) grad log q_0(x_0) + b(t_i) grad log q_1(x_1)`, `Unit(N) x d`.
    pub fn source_score_sum(&mut self, start: ObjectiveColumn, end: ObjectiveColumn) -> Node {
        let dim = self.builder.spec.dim;
        let first = self.slot(1, dim, |s| &mut s.start_score);
        let last = self
            .slots
            .end
            .map(|_| self.slot(1, dim, |s| &mut s.end_score));
        self.sum_of_sources(first, start, last, end)
    }

    fn sum_of_sources(
        &mut self,
        first: Node,
        start: ObjectiveColumn,
        last: Option<Node>,
        end: ObjectiveColumn,
    ) -> Node {
        let pattern = vec![0; self.levels];
        let part = |scene: &mut Self, row: Node, column| {
            let factor = scene.objective_column(column);
            let g = scene.graph();
            let rows = g.gather(row, &pattern);
            g.mul_column(rows, factor)
        };
        let sum = part(self, first, start);
        match last {
            Some(last) => {
                let other = part(self, last, end);
                self.builder.graph.add(sum, other)
            }
            None => sum,
        }
    }

    /// Points at the known ends: their learned log-densities at the N times, `Unit(E) x N`, and the exact ones of all N + E
    /// points at the ends' times, `Unit(N + E) x E`.
    pub fn known_ends(&mut self, ends: Ends) -> (Node, Node) {
        let (n, e, dim) = (self.levels, ends.count(), self.builder.spec.dim);
        let graph = &mut self.builder.graph;
        let slots = *self.slots.ends.get_or_insert_with(|| EndSlots {
            ends,
            points: graph.input(Rows::Unit(e), dim).1,
            log_density: graph.input(Rows::Unit(n + e), e).1,
        });
        let (points, known) = (
            graph.input_node(slots.points),
            graph.input_node(slots.log_density),
        );
        let group = match self.end_group {
            Some(group) => group,
            None => {
                let times = (0..e).flat_map(|_| 0..n as u32).collect();
                *self.end_group.insert(self.builder.group(times))
            }
        };
        let pattern = (0..e as u32)
            .flat_map(|k| std::iter::repeat_n(k, n))
            .collect();
        (self.log_density_table(points, pattern, group, n), known)
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
