//! What a band needs of an earlier one is computed again where that costs no more than fetching it from memory.
//!
//! A band keeps whole what later bands read. Products of two kept values, scaled rows, gathered rows and the like are not worth it: their
//! operands are kept anyway, or narrow, or as cheap. The graph is written anew with a copy of such a node for each band that reads it.

use std::collections::HashMap;

use super::bands::Arrangement;
use super::planner::Planner;
use crate::engine::graph::{Graph, Node, Op, Rows};

/// Columns from which on a node is worth the trouble.
const WIDE_COLUMNS: usize = 16;

/// The graph with copies, its outputs, and the level at which each copy is computed.
pub(super) struct Rewritten {
    pub(super) graph: Graph,
    pub(super) outputs: Vec<Node>,
    pub(super) pins: HashMap<Node, usize>,
}

/// Where the nodes of an arrangement are computed and read.
struct Bands {
    /// The band that computes a node, or reads the operands of one that is computed by its reader.
    of: Vec<Option<usize>>,
    /// The level of each band.
    levels: Vec<usize>,
}

impl Planner<'_> {
    /// The graph with cheap nodes copied into the bands that read them; nothing if there is none.
    pub(super) fn recompute(mut self, outputs: &[Node]) -> Option<Rewritten> {
        let (order, _) = self.schedule();
        let arrangement = self.arrange(order);
        if arrangement.bands.is_empty() {
            return None;
        }
        let bands = self.bands_of(&arrangement);
        let cheap = self.cheap(&arrangement, &bands);
        let n = self.graph.entries.len();
        let mut copier = Copier {
            old: self.graph,
            graph: self.graph.without_nodes(),
            bands,
            cheap,
            map: Vec::with_capacity(n),
            copies: HashMap::new(),
            pins: HashMap::new(),
        };
        for id in 0..n {
            let band = copier.bands.of[id];
            let new = copier.push(id, band);
            copier.map.push(new);
        }
        Some(Rewritten {
            outputs: outputs.iter().map(|o| copier.map[o.id()]).collect(),
            graph: copier.graph,
            pins: copier.pins,
        })
    }

    fn bands_of(&self, arrangement: &Arrangement) -> Bands {
        let mut of = vec![None; self.graph.entries.len()];
        for (k, band) in arrangement.bands.iter().enumerate() {
            for &node in &arrangement.order[band.start..band.end] {
                of[self.source(node).id()] = Some(k);
                for write in self.writes(node) {
                    of[write.id()] = Some(k);
                }
            }
        }
        let level = |band: &super::Band| arrangement.levels[band.start];
        Bands {
            of,
            levels: arrangement.bands.iter().map(level).collect(),
        }
    }

    /// Nodes that are computed again rather than kept.
    fn cheap(&self, arrangement: &Arrangement, bands: &Bands) -> Vec<bool> {
        let entries = &self.graph.entries;
        let mut cheap = vec![false; entries.len()];
        for (id, entry) in entries.iter().enumerate() {
            let node = Node(id as u32);
            let inputs = || entry.inputs.iter().flatten();
            let simple = match entry.op {
                Op::Add | Op::Sub | Op::Mul | Op::MulColumn => true,
                Op::Affine { .. } | Op::BroadcastColumns | Op::Gather(_) => true,
                Op::MatMul { .. } => inputs().next().is_some_and(|a| self.cols(*a) <= 2),
                _ => false,
            };
            // An operand is at hand if it is no wide node of the same rows, or kept, or cheap itself.
            let at_hand = |x: &Node| {
                self.graph.shape(*x).rows != entry.shape.rows
                    || self.cols(*x) < WIDE_COLUMNS
                    || cheap[x.id()]
                    || (bands.of[x.id()].is_some() && !arrangement.local[x.id()])
            };
            cheap[id] = simple
                && entry.shape.cols >= WIDE_COLUMNS
                && matches!(entry.shape.rows, Rows::Unit(_))
                && bands.of[id].is_some()
                && self.source(node) == node
                && !self.computed_by_reader(node)
                && !arrangement.local[id]
                && !self.facts.is_output[id]
                && inputs().all(|x| !self.computed_by_reader(*x) && at_hand(x));
        }
        cheap
    }

    fn cols(&self, node: Node) -> usize {
        self.graph.shape(node).cols
    }
}

struct Copier<'a> {
    old: &'a Graph,
    graph: Graph,
    bands: Bands,
    cheap: Vec<bool>,
    /// The new node of each old one.
    map: Vec<Node>,
    /// The copy of a node for a band.
    copies: HashMap<(usize, usize), Node>,
    pins: HashMap<Node, usize>,
}

impl Copier<'_> {
    /// Writes a node whose operands are read in `band`.
    fn push(&mut self, id: usize, band: Option<usize>) -> Node {
        let mut entry = self.old.entries[id].clone();
        for input in entry.inputs.iter_mut().flatten() {
            *input = self.operand(input.id(), band);
        }
        let node = Node(self.graph.entries.len() as u32);
        self.graph.entries.push(entry);
        node
    }

    fn operand(&mut self, id: usize, band: Option<usize>) -> Node {
        let Some(band) = band.filter(|band| self.cheap[id] && self.bands.of[id] != Some(*band))
        else {
            return self.map[id];
        };
        if let Some(&copy) = self.copies.get(&(id, band)) {
            return copy;
        }
        let copy = self.push(id, Some(band));
        self.copies.insert((id, band), copy);
        self.pins.insert(copy, self.bands.levels[band]);
        copy
    }
}
