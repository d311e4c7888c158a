//! The [network of states](crate::discrete::network) as nodes of a graph, and what its number means.
//!
//! `log p_t(y) = log b_t(y) + c(t) net(t, y) + F(t)`, `b_t` the exact noised product of the data's site laws, so that a network of zero
//! is the density of independent sites. `c(t) = alpha(t)` under uniform noise, where what is beyond that product vanishes with alpha;
//! 1 under masks, where two sites that show something depend on each other however late it is.

use crate::discrete::model::StatesSpec;
use crate::discrete::network::{ChangeSlots, OverSites};
use crate::energy::frequency;
use crate::engine::{Graph, Node, Rows};
use crate::network::{Layout, ScaledRows, Site, TimeBranch};

/// `c(t)`.
pub(crate) fn coupling(spec: &StatesSpec, time: f64) -> f64 {
    if spec.process.is_masked() {
        1.0
    } else {
        spec.process.keep(time)
    }
}

/// Time features: sines and cosines of three times the place of a time on the grid.
pub(crate) fn features_of(spec: &StatesSpec, time: f64, out: &mut [f64]) {
    let (cell, weight) = spec.grid.locate(time);
    let place = (cell as f64 + weight) / (spec.grid.levels() - 1) as f64;
    let half = spec.features / 2;
    for k in 0..half {
        let (sin, cos) = (3.0 * place * frequency(k, half)).sin_cos();
        (out[k], out[half + k]) = (sin, cos);
    }
}

/// A graph under construction.
pub(crate) struct Nodes<'a> {
    pub(crate) graph: Graph,
    pub(crate) layout: Layout,
    spec: &'a StatesSpec,
    net: Box<dyn OverSites>,
    /// Slot of the features of all tabulated times.
    pub(crate) features: usize,
    table: Node,
}

/// Rows of a table of times, or its only row for all.
struct TableTime<'a> {
    table: Node,
    /// Index slot; none for a table of one row.
    index: Option<usize>,
    /// Which row of the index each has; none: its own.
    pattern: Option<&'a [u32]>,
    rows: Rows,
}

impl TimeBranch for TableTime<'_> {
    fn rows(&mut self, graph: &mut Graph, wt: Node, b0: Node) -> Node {
        let table = graph.matmul(self.table, wt, false);
        let table = graph.bias(table, b0);
        let Some(slot) = self.index else {
            return graph.broadcast_rows(table, self.rows);
        };
        let rows = graph.lookup(table, slot);
        match self.pattern {
            Some(pattern) => graph.gather(rows, pattern),
            None => rows,
        }
    }
}

impl<'a> Nodes<'a> {
    /// For a table of so many times.
    pub(crate) fn new(spec: &'a StatesSpec, times: usize) -> Nodes<'a> {
        let mut graph = Graph::new();
        let (table, features) = graph.input(Rows::Global(times), spec.features);
        Nodes {
            graph,
            layout: spec.layout(),
            net: spec.network(),
            spec,
            features,
            table,
        }
    }

    fn site<R>(
        &mut self,
        (index, pattern): (Option<usize>, Option<&[u32]>),
        rows: Rows,
        build: impl FnOnce(&dyn OverSites, &mut Site<'_>) -> R,
    ) -> R {
        let mut time = TableTime {
            table: self.table,
            index,
            pattern,
            rows,
        };
        let mut site = Site {
            graph: &mut self.graph,
            layout: &self.layout,
            time: &mut time,
        };
        build(&*self.net, &mut site)
    }

    /// What the first layer takes, for one-hot points looked at by rows of `pattern`, at the times of an index slot.
    pub(crate) fn first(
        &mut self,
        points: Node,
        pattern: Option<Vec<u32>>,
        index: Option<usize>,
    ) -> Node {
        let rows = ScaledRows {
            points,
            pattern,
            scale: None,
            mean: None,
        };
        let count = rows.rows(&self.graph);
        self.site((index, None), count, |net, site| net.first(site, &rows))
    }

    /// Slots for so many changed rows of a unit.
    pub(crate) fn change_slots(&mut self, count: usize) -> ChangeSlots {
        self.net.change_slots(&mut self.graph, count)
    }

    /// What the first layer takes with one site changed: row r is that of `pattern[r]` with the change that the slots tell, at the time of
    /// that row.
    pub(crate) fn changed(
        &mut self,
        first: Node,
        pattern: &[u32],
        slots: ChangeSlots,
        index: Option<usize>,
    ) -> Node {
        let rows = Rows::Unit(pattern.len());
        self.site((index, Some(pattern)), rows, |net, site| {
            net.changed(site, first, pattern, slots)
        })
    }

    /// The network's number from what the first layer takes.
    pub(crate) fn output(&mut self, first: Node) -> Node {
        let rows = self.graph.shape(first).rows;
        self.site((None, None), rows, |net, site| net.output(site, first))
    }

    /// Columns of a one-hot row.
    pub(crate) fn width(&self) -> usize {
        self.spec.space.sites * self.spec.symbols()
    }
}
