//! The scene of states: what one source row offers to the objectives. It has N times, N noisy rows, the N x N grid of their
//! log-densities, and on request the changes of some of their sites. A request leaves slots that the step fills.

use super::ScoreEntropy;
use crate::discrete::energy::Nodes;
use crate::discrete::model::StatesSpec;
use crate::discrete::network::ChangeSlots;
use crate::engine::{Graph, Node, Rows};
use crate::network::Layout;
use crate::objective::LevelScene;

/// Slots of changed rows: `levels x sites x others` of them for each source row.
#[derive(Debug, Clone, Copy)]
pub struct Changes {
    /// Which, and how they are weighed.
    pub of: ScoreEntropy,
    /// Sites of each noisy row.
    pub sites: usize,
    /// Other symbols of a site.
    pub others: usize,
    /// How the network is told of them.
    pub rows: ChangeSlots,
    /// Difference of `log b_t`.
    pub base: usize,
    /// Weight, target, and what does not depend on the model.
    pub numbers: [usize; 3],
}

/// Slots that the step fills.
#[derive(Debug, Clone)]
pub struct StatesSlots {
    /// Time features of the grid's levels (global).
    pub features: usize,
    /// `c(t)` of the grid's levels (global).
    pub coupling: Option<usize>,
    /// One-hot noisy rows, `Unit(N)`.
    pub points: usize,
    /// Levels of the rows, an index slot.
    pub own: usize,
    /// Levels of the others, an index slot.
    pub others: Option<usize>,
    /// `log b` of the rows at their own times and at the others'.
    pub base: [Option<usize>; 2],
    /// Changed rows.
    pub changes: Option<Changes>,
}

/// See the module's text.
pub struct StatesScene<'a> {
    nodes: Nodes<'a>,
    spec: &'a StatesSpec,
    levels: usize,
    slots: StatesSlots,
    points: Node,
}

impl<'a> StatesScene<'a> {
    /// Rows of `levels` times.
    pub fn new(spec: &'a StatesSpec, levels: usize) -> StatesScene<'a> {
        let mut nodes = Nodes::new(spec, spec.grid.levels());
        let width = nodes.width();
        let (points, slot) = nodes.graph.input(Rows::Unit(levels), width);
        let own = nodes.graph.index(levels);
        let slots = StatesSlots {
            features: nodes.features,
            coupling: None,
            points: slot,
            own,
            others: None,
            base: [None, None],
            changes: None,
        };
        StatesScene {
            nodes,
            spec,
            levels,
            slots,
            points,
        }
    }

    /// `c(t)` of the rows of an index slot.
    fn coupling(&mut self, index: usize) -> Node {
        let (g, levels) = (&mut self.nodes.graph, self.spec.grid.levels());
        let slot = *(self.slots.coupling).get_or_insert_with(|| g.input(Rows::Global(levels), 1).1);
        let table = g.input_node(slot);
        g.lookup(table, index)
    }

    fn own_first(&mut self) -> Node {
        self.nodes.first(self.points, None, Some(self.slots.own))
    }

    /// The network at the rows' own times, `Unit(N) x 1`.
    fn own_output(&mut self) -> Node {
        let first = self.own_first();
        self.nodes.output(first)
    }

    /// `log b + c net + F` of rows at the times of an index slot.
    fn log_density(&mut self, output: Node, index: usize, which: usize) -> Node {
        let factor = self.coupling(index);
        let rows = self.nodes.graph.shape(output).rows;
        let layout = &self.nodes.layout;
        let g = &mut self.nodes.graph;
        let base = *self.slots.base[which].get_or_insert_with(|| g.input(rows, 1).1);
        let base = g.input_node(base);
        let table = layout.node(g, "free_energy");
        let free_energy = g.lookup(table, index);
        let network = g.mul(factor, output);
        let sum = g.add(base, network);
        g.add(sum, free_energy)
    }

    /// Logarithms of the ratios of changed rows, with the columns of weight, target and constant.
    pub fn changes(&mut self, of: ScoreEntropy) -> (Node, [Node; 3]) {
        let (n, space) = (self.levels, self.spec.space);
        let sites = (of.sites as usize).min(space.sites);
        // A masked site may come from any state, another from all but its own.
        let others = self.spec.symbols() - 1;
        let count = n * sites * others;
        let first = self.own_first();
        let own = self.nodes.output(first);
        let factor = self.coupling(self.slots.own);
        let nodes = &mut self.nodes;
        let changes = *self.slots.changes.get_or_insert_with(|| Changes {
            of,
            sites,
            others,
            rows: nodes.change_slots(count),
            base: nodes.graph.input(Rows::Unit(count), 1).1,
            numbers: [(); 3].map(|()| nodes.graph.input(Rows::Unit(count), 1).1),
        });
        let pattern: Vec<u32> = (0..count).map(|k| (k / (sites * others)) as u32).collect();
        let own_times = Some(self.slots.own);
        let moved = (self.nodes).changed(first, &pattern, changes.rows, own_times);
        let output = self.nodes.output(moved);
        let g = &mut self.nodes.graph;
        let (own, factor) = (g.gather(own, &pattern), g.gather(factor, &pattern));
        let difference = g.sub(output, own);
        let network = g.mul(factor, difference);
        let base = g.input_node(changes.base);
        let log_ratio = g.add(base, network);
        (log_ratio, changes.numbers.map(|slot| g.input_node(slot)))
    }

    /// All parameters, in the layout's order.
    pub fn parameters(&mut self) -> Vec<Node> {
        let names: Vec<String> = self
            .nodes
            .layout
            .entries()
            .iter()
            .map(|e| e.name.clone())
            .collect();
        let (layout, graph) = (&self.nodes.layout, &mut self.nodes.graph);
        names.iter().map(|name| layout.node(graph, name)).collect()
    }

    /// The finished graph with what must be filled.
    pub fn finish(self) -> (Graph, StatesSlots, Layout) {
        (self.nodes.graph, self.slots, self.nodes.layout)
    }
}

impl LevelScene for StatesScene<'_> {
    fn graph(&mut self) -> &mut Graph {
        &mut self.nodes.graph
    }

    fn levels(&self) -> usize {
        self.levels
    }

    fn own_log_density(&mut self) -> Node {
        let output = self.own_output();
        self.log_density(output, self.slots.own, 0)
    }

    fn other_log_densities(&mut self) -> Node {
        let n = self.levels;
        let g = &mut self.nodes.graph;
        let index = *(self.slots.others).get_or_insert_with(|| g.index(n * (n - 1)));
        let pattern = (0..n as u32)
            .flat_map(|i| std::iter::repeat_n(i, n - 1))
            .collect();
        let first = self.nodes.first(self.points, Some(pattern), Some(index));
        let output = self.nodes.output(first);
        let column = self.log_density(output, index, 1);
        self.nodes.graph.reshape(column, Rows::Unit(n), n - 1)
    }
}
