//! The builder: puts a learned energy, its score and its time derivative into a graph at the rows an objective or an
//! evaluation asks for, and keeps record of the inputs that must be filled (the [`Wiring`]).

use std::sync::Arc;

use super::chart::embedded;
use super::column::{Column, TimeFunction};
use super::spec::{Form, ModelSpec};
use super::springs;
use super::wiring::{BaseSlots, Group, TimeMode, Wiring};
use crate::engine::{Function, Graph, Node, Rows};
use crate::network::{Input, Layout, ScaledRows, Site, TimeBranch};

/// A leaf through which an energy depends on time, and its derivative's node is made when asked for.
#[derive(Debug, Clone, Copy)]
enum TimeLeaf {
    Column(Column),
    /// A looked-up row of `features W_t + b_0`; the node of `W_t`.
    Table(Node),
    /// The springs' numbers.
    Springs,
}

/// The time of a group's rows, for the networks that ask.
struct GroupTime<'a> {
    wiring: &'a mut Wiring,
    leaves: &'a mut Vec<(Node, TimeLeaf)>,
    group: usize,
    mode: TimeMode,
    features: usize,
}

impl TimeBranch for GroupTime<'_> {
    fn rows(&mut self, graph: &mut Graph, wt: Node, b0: Node) -> Node {
        match self.mode {
            TimeMode::Levels(levels) => {
                let features = self.wiring.table(graph, false, levels, self.features);
                let table = graph.matmul(features, wt, false);
                let table = graph.bias(table, b0);
                let slot = self.wiring.level(graph, self.group);
                let rows = graph.lookup(table, slot);
                self.leaf(rows, TimeLeaf::Table(wt));
                rows
            }
            TimeMode::Continuous => {
                let tau = self
                    .wiring
                    .column(graph, self.group, Column::Coordinate, false);
                self.leaf(tau, TimeLeaf::Column(Column::Coordinate));
                let half = self.features / 2;
                let slot = *self
                    .wiring
                    .frequencies
                    .get_or_insert_with(|| graph.input(Rows::Global(1), half).1);
                let frequencies = graph.input_node(slot);
                let phase = graph.matmul(tau, frequencies, false);
                let sin = graph.unary(Function::Sin, phase);
                let cos = graph.unary(Function::Cos, phase);
                let features = graph.concat(sin, cos);
                let rows = graph.matmul(features, wt, false);
                graph.bias(rows, b0)
            }
        }
    }
}

impl GroupTime<'_> {
    /// Networks may share a leaf, and one may be asked twice; its derivative counts once.
    fn leaf(&mut self, node: Node, leaf: TimeLeaf) {
        if self.leaves.iter().all(|known| known.0 != node) {
            self.leaves.push((node, leaf));
        }
    }
}

/// Rows at which an energy is asked for.
#[derive(Debug, Clone)]
pub struct Points {
    /// The points, `Unit(m) x d`.
    pub points: Node,
    /// Which point each row looks at; `None`: row `r` looks at point `r`.
    pub pattern: Option<Vec<u32>>,
    /// Row group that holds the rows' times.
    pub group: usize,
}

/// An energy at some rows, with what its derivatives need.
#[derive(Debug, Clone)]
pub struct EnergyNodes {
    /// `U`, a column.
    pub energy: Node,
    points: Points,
    leaves: Vec<(Node, TimeLeaf)>,
    /// Entry of [`Wiring::base`] whose log-density is part of it.
    base: Option<usize>,
}

/// See the module's text.
pub struct Builder<'a> {
    /// The graph under construction.
    pub graph: Graph,
    /// What to fill.
    pub wiring: Wiring,
    /// The model.
    pub spec: &'a ModelSpec,
    /// Its parameters.
    pub layout: Layout,
    mode: TimeMode,
}

impl<'a> Builder<'a> {
    /// An empty graph for this model.
    pub fn new(spec: &'a ModelSpec, mode: TimeMode) -> Builder<'a> {
        Builder {
            graph: Graph::new(),
            wiring: Wiring::default(),
            layout: spec.layout(),
            spec,
            mode,
        }
    }

    /// Declares rows with these times.
    pub fn group(&mut self, time_of_row: Vec<u32>) -> usize {
        self.wiring.groups.push(Group {
            time_of_row,
            columns: Vec::new(),
            level: None,
            cell: None,
            springs: [None, None],
        });
        self.wiring.groups.len() - 1
    }

    /// A function of the rows' times.
    pub fn column(&mut self, group: usize, column: Column) -> Node {
        self.column_or_rate(group, column, false)
    }

    /// Takes in a function of time: its number, for [`Column::Given`].
    pub fn give(&mut self, function: Arc<dyn TimeFunction>) -> u32 {
        self.wiring.given.push(function);
        self.wiring.given.len() as u32 - 1
    }

    fn column_or_rate(&mut self, group: usize, column: Column, rate: bool) -> Node {
        self.wiring.column(&mut self.graph, group, column, rate)
    }

    /// `U(t, y)` at the rows of `points`.
    pub fn energy(&mut self, points: &Points) -> EnergyNodes {
        let mut nodes = self.energy_beyond_base(points);
        if self.spec.base.is_some() {
            let base = self.base_at(points);
            let log_density = self.graph.input_node(self.wiring.base[base].log_density);
            nodes.energy = self.graph.sub(nodes.energy, log_density);
            nodes.base = Some(base);
        }
        nodes
    }

    /// `U(t, y) + log b_t(y)`, what the network adds to a mixture; `U` itself where the energy stands on none.
    pub fn energy_beyond_base(&mut self, points: &Points) -> EnergyNodes {
        let mut leaves = Vec::new();
        let x = self.network_input(points, &mut leaves);
        let scalar = self.scalar(points.group, &x, &mut leaves);
        if self.spec.base.is_some() {
            let correction = self.held_back(points.group, &x, scalar, &mut leaves);
            return EnergyNodes {
                energy: self.graph.scale(correction, -1.0),
                points: points.clone(),
                leaves,
                base: None,
            };
        }
        let energy = match (self.spec.process.is_interpolant(), self.spec.form) {
            (false, _) => self.preconditioned(points.group, &x, scalar, &mut leaves),
            (true, Form::SquaredNorm) => self.graph.scale(scalar, -1.0),
            (true, Form::ResidualSquaredNorm) => {
                let square = x.squared_norm(&mut self.graph);
                let half = self.graph.scale(square, 0.5);
                self.graph.sub(half, scalar)
            }
            (true, _) => scalar,
        };
        let energy = match &self.spec.springs {
            Some(springs) => {
                let (g, wiring) = (&mut self.graph, &mut self.wiring);
                let numbers = wiring.springs(g, points.group, springs, false);
                leaves.push((numbers, TimeLeaf::Springs));
                let of_springs = springs::energy(g, wiring, self.spec, springs, points, numbers);
                self.graph.add(energy, of_springs)
            }
            None => energy,
        };
        EnergyNodes {
            energy,
            points: points.clone(),
            leaves,
            base: None,
        }
    }

    /// The base's log-density at these rows: its entry in the wiring, made at the first request.
    fn base_at(&mut self, points: &Points) -> usize {
        let Some(slot) = self.graph.input_slot(points.points) else {
            unreachable!("a mixture is evaluated at points that are inputs")
        };
        let known = |base: &BaseSlots| base.points == slot && base.group == points.group;
        if let Some(known) = self.wiring.base.iter().position(known) {
            return known;
        }
        let rows = self.wiring.groups[points.group].time_of_row.len();
        let (_, log_density) = self.graph.input(Rows::Unit(rows), 1);
        self.wiring.base.push(BaseSlots {
            points: slot,
            group: points.group,
            log_density,
            score: None,
            time_score: None,
            laplacian: None,
        });
        self.wiring.base.len() - 1
    }

    /// `g(x) B tanh(c s / B)`; see [`ModelSpec`].
    fn held_back(
        &mut self,
        group: usize,
        x: &ScaledRows,
        scalar: Node,
        leaves: &mut Vec<(Node, TimeLeaf)>,
    ) -> Node {
        let mut correction = scalar;
        if !self.spec.process.is_interpolant() {
            let coupling = self.column(group, Column::BaseCoupling);
            leaves.push((coupling, TimeLeaf::Column(Column::BaseCoupling)));
            correction = self.graph.mul(correction, coupling);
        }
        let square = x.squared_norm(&mut self.graph);
        let (g, dim) = (&mut self.graph, self.spec.dim as f64);
        // tanh z = 2 sigmoid(2 z) - 1.
        let bound = 8.0 + 2.0 * dim;
        let twice = g.scale(correction, 2.0 / bound);
        let bounded = g.unary(Function::Sigmoid, twice);
        let bounded = g.affine(bounded, 2.0 * bound, -bound);
        let away = g.scale(square, 1.0 / (16.0 * dim));
        let fourth = g.mul(away, away);
        let fourth = g.affine(fourth, 1.0, 1.0);
        let gate = g.power(fourth, -1.0);
        g.mul(bounded, gate)
    }

    /// `x`: the points themselves for an interpolant, centred and scaled for a diffusion.
    fn network_input(&mut self, points: &Points, leaves: &mut Vec<(Node, TimeLeaf)>) -> ScaledRows {
        let mut x = ScaledRows {
            points: match self.spec.periods() {
                [] => points.points,
                periods => embedded(&mut self.graph, &mut self.wiring, points.points, periods),
            },
            pattern: points.pattern.clone(),
            scale: None,
            mean: None,
        };
        if !self.spec.process.is_interpolant() {
            let scale = self.column(points.group, Column::InverseInputScale);
            leaves.push((scale, TimeLeaf::Column(Column::InverseInputScale)));
            x.scale = Some(scale);
            if self.spec.mean.iter().any(|&m| m != 0.0) {
                let graph = &mut self.graph;
                let slot = *self
                    .wiring
                    .mean
                    .get_or_insert_with(|| graph.input(Rows::Global(1), self.spec.seen()).1);
                let mean = self.graph.input_node(slot);
                let column = self.column(points.group, Column::Scale);
                leaves.push((column, TimeLeaf::Column(Column::Scale)));
                x.mean = Some((mean, column));
            }
        }
        x
    }

    /// Builds a part of a network at the rows of a group.
    fn at_site(
        &mut self,
        group: usize,
        leaves: &mut Vec<(Node, TimeLeaf)>,
        build: impl FnOnce(&mut Site<'_>) -> Node,
    ) -> Node {
        let mut time = GroupTime {
            wiring: &mut self.wiring,
            leaves,
            group,
            mode: self.mode,
            features: self.spec.features,
        };
        build(&mut Site {
            graph: &mut self.graph,
            layout: &self.layout,
            time: &mut time,
        })
    }

    /// The network's scalar `s(t, x)`.
    fn scalar(&mut self, group: usize, x: &ScaledRows, leaves: &mut Vec<(Node, TimeLeaf)>) -> Node {
        let (form, networks) = (self.spec.form, self.spec.networks());
        let input = Input { points: x };
        let mut terms = Vec::new();
        if let Some(network) = networks.vector {
            if matches!(form, Form::SquaredNorm | Form::ResidualSquaredNorm) {
                let v = self.at_site(group, leaves, |site| network.output(site, input));
                let square = self.graph.row_dot(v, v);
                terms.push(self.graph.scale(square, -0.5));
            }
            if form != Form::SquaredNorm {
                terms.push(self.at_site(group, leaves, |site| network.inner_product(site, input)));
            }
        }
        if let Some(network) = networks.scalar {
            terms.push(self.at_site(group, leaves, |site| network.output(site, input)));
        }
        let sum = terms
            .into_iter()
            .reduce(|sum, term| self.graph.add(sum, term));
        match sum {
            Some(sum) => sum,
            None => unreachable!("every form has a network"),
        }
    }

    /// `|x|^2 / 2 + d/2 log(2 pi a^2) - (sd / sigma) s`.
    fn preconditioned(
        &mut self,
        group: usize,
        x: &ScaledRows,
        scalar: Node,
        leaves: &mut Vec<(Node, TimeLeaf)>,
    ) -> Node {
        let square = x.squared_norm(&mut self.graph);
        let gaussian = self.graph.scale(square, 0.5);
        let normaliser = self.column(group, Column::LogNormaliser);
        let coupling = self.column(group, Column::Coupling);
        leaves.push((normaliser, TimeLeaf::Column(Column::LogNormaliser)));
        leaves.push((coupling, TimeLeaf::Column(Column::Coupling)));
        let g = &mut self.graph;
        let gaussian = g.add(gaussian, normaliser);
        let correction = g.mul(scalar, coupling);
        g.sub(gaussian, correction)
    }

    /// `F(t)` at the rows of a group: a column.
    pub fn free_energy(&mut self, group: usize) -> Node {
        let table = self.layout.node(&mut self.graph, "free_energy");
        match self.mode {
            TimeMode::Levels(levels) => {
                assert_eq!(
                    levels,
                    self.spec.grid.levels(),
                    "F has one number per level of the grid"
                );
                let slot = self.wiring.level(&mut self.graph, group);
                self.graph.lookup(table, slot)
            }
            TimeMode::Continuous => {
                let (low, high) = self.wiring.cell(&mut self.graph, group);
                let weight = self.column(group, Column::CellWeight);
                let g = &mut self.graph;
                let (low, high) = (g.lookup(table, low), g.lookup(table, high));
                let rise = g.sub(high, low);
                let part = g.mul(rise, weight);
                g.add(low, part)
            }
        }
    }

    /// `log p = -U + F`: a column.
    pub fn log_density(&mut self, nodes: &EnergyNodes) -> Node {
        let free_energy = self.free_energy(nodes.points.group);
        self.graph.sub(free_energy, nodes.energy)
    }

    /// `-grad_y U`, one row per row of the points (not of the pattern).
    pub fn score(&mut self, nodes: &EnergyNodes) -> Node {
        let gradient = self.graph.grad_of_sum(nodes.energy, &[nodes.points.points])[0];
        let Some(base) = nodes.base else {
            return self.graph.scale(gradient, -1.0);
        };
        let rows = self.graph.shape(nodes.points.points).rows;
        let slot = &mut self.wiring.base[base].score;
        let slot = *slot.get_or_insert_with(|| self.graph.input(rows, self.spec.dim).1);
        let base = self.graph.input_node(slot);
        self.graph.sub(base, gradient)
    }

    /// The Laplacian of `log b_t` in y, a column; none without a mixture.
    pub fn base_laplacian(&mut self, nodes: &EnergyNodes) -> Option<Node> {
        let base = nodes.base?;
        let rows = self.graph.shape(nodes.energy).rows;
        let slot = &mut self.wiring.base[base].laplacian;
        let slot = *slot.get_or_insert_with(|| self.graph.input(rows, 1).1);
        Some(self.graph.input_node(slot))
    }

    /// `dU/dt`: a column. Chain rule over the leaves through which time enters.
    pub fn energy_rate(&mut self, nodes: &EnergyNodes) -> Node {
        let leaves: Vec<Node> = nodes.leaves.iter().map(|l| l.0).collect();
        let gradients = self.graph.grad_of_sum(nodes.energy, &leaves);
        let group = nodes.points.group;
        let mut rate = self.graph.constant(0.0, self.graph.shape(nodes.energy));
        for (gradient, (_, leaf)) in gradients.into_iter().zip(&nodes.leaves) {
            let slope = match *leaf {
                TimeLeaf::Column(column) => self.column_or_rate(group, column, true),
                TimeLeaf::Springs => match &self.spec.springs {
                    Some(springs) => self.wiring.springs(&mut self.graph, group, springs, true),
                    None => unreachable!("the leaf is the springs'"),
                },
                TimeLeaf::Table(wt) => {
                    let TimeMode::Levels(levels) = self.mode else {
                        unreachable!("tables belong to levels")
                    };
                    let features = self.spec.features;
                    let rates = self.wiring.table(&mut self.graph, true, levels, features);
                    let table = self.graph.matmul(rates, wt, false);
                    let slot = self.wiring.level(&mut self.graph, group);
                    self.graph.lookup(table, slot)
                }
            };
            let term = self.graph.row_dot(gradient, slope);
            rate = self.graph.add(rate, term);
        }
        if let Some(base) = nodes.base {
            let rows = self.graph.shape(nodes.energy).rows;
            let slot = &mut self.wiring.base[base].time_score;
            let slot = *slot.get_or_insert_with(|| self.graph.input(rows, 1).1);
            let base = self.graph.input_node(slot);
            rate = self.graph.sub(rate, base);
        }
        rate
    }

    /// `dF/dt` at the rows of a group: the slope of the cell that begins at or holds the row's time.
    pub fn free_energy_rate(&mut self, group: usize) -> Node {
        let table = self.layout.node(&mut self.graph, "free_energy");
        let (low, high) = self.wiring.cell(&mut self.graph, group);
        let slope = self.column_or_rate(group, Column::CellWeight, true);
        let g = &mut self.graph;
        let (low, high) = (g.lookup(table, low), g.lookup(table, high));
        let rise = g.sub(high, low);
        g.mul(rise, slope)
    }

    /// `d/dt (-U + F)`: a column.
    pub fn time_score(&mut self, nodes: &EnergyNodes) -> Node {
        let rate = self.energy_rate(nodes);
        let free_energy = self.free_energy_rate(nodes.points.group);
        self.graph.sub(free_energy, rate)
    }

    /// `v(t, y)` from the velocity's own network: one row of `d` numbers per row of the points.
    pub fn velocity(&mut self, points: &Points) -> Node {
        let Some(network) = self.spec.networks().velocity else {
            unreachable!("the caller asked a model that has a velocity network")
        };
        let x = ScaledRows {
            points: points.points,
            pattern: points.pattern.clone(),
            scale: None,
            mean: None,
        };
        let input = Input { points: &x };
        self.at_site(points.group, &mut Vec::new(), |site| {
            network.output(site, input)
        })
    }

    /// All parameters, in the layout's order.
    pub fn parameters(&mut self) -> Vec<Node> {
        let entries = self.layout.entries().to_vec();
        entries
            .iter()
            .map(|e| self.graph.param(e.offset, e.rows, e.cols))
            .collect()
    }
}
