//! What a band needs of an earlier one is computed again where that costs no more than fetching it from memory.
//!
//! A band keeps whole what later bands read. Products of two kept values, scaled rows, gathered rows and the like are not worth it: their
//! operands are kept anyway, or narrow, or as cheap. The graph is written anew with a copy of such a node for each band that reads it. Where
//! memory is short, activations and their derivatives are computed again too, from the one point at which they are taken.

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
    /// The graph with cheap nodes copied into the bands that read them, and activations with `functions_too`; nothing if there is none.
    pub(super) fn recompute(mut self, outputs: &[Node], functions_too: bool) -> Option<Rewritten> {
        let (order, _) = self.schedule();
        let arrangement = self.arrange(order);
        if arrangement.bands.is_empty() {
            return None;
        }
        let bands = self.bands_of(&arrangement);
        let cheap = self.cheap(&arrangement, &bands, functions_too);
        let n = self.graph.entries.len();
        let mut copier = Copier {
            old: self.graph,
            graph: self.graph.without_nodes(),
            bands,
            cheap,
            map: Vec::with_capacity(n),
            copies: HashMap::new(),
            names: HashMap::new(),
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
    fn cheap(&self, arrangement: &Arrangement, bands: &Bands, functions_too: bool) -> Vec<bool> {
        let entries = &self.graph.entries;
        let mut cheap = vec![false; entries.len()];
        // Made of narrow numbers and of other rows alone, as the argument of an edge's first activation is: cheap wherever it is needed.
        let mut light = vec![false; entries.len()];
        let orders = self.kept_orders(arrangement);
        for (id, entry) in entries.iter().enumerate() {
            let inputs = || entry.inputs.iter().flatten();
            let simple = match entry.op {
                Op::Add | Op::Sub | Op::Mul | Op::MulColumn => true,
                Op::Affine { .. } | Op::BroadcastColumns | Op::Gather(_) => true,
                Op::MatMul { .. } => inputs().next().is_some_and(|a| self.cols(*a) <= 2),
                // Several derivatives at one point: the point is kept in their place.
                Op::Unary(_) => functions_too && inputs().any(|z| orders[z.id()] > 1),
                _ => false,
            };
            // An operand is at hand if it is no wide node of the same rows, or kept, or cheap itself.
            let at_hand = |x: &Node| {
                matches!(entry.op, Op::Unary(_))
                    || self.graph.shape(*x).rows != entry.shape.rows
                    || self.cols(*x) < WIDE_COLUMNS
                    || cheap[x.id()]
                    || (bands.of[x.id()].is_some() && !arrangement.local[x.id()])
            };
            let elsewhere = |x: &Node| {
                light[x.id()]
                    || self.graph.shape(*x).rows != entry.shape.rows
                    || self.cols(*x) < WIDE_COLUMNS
            };
            light[id] = functions_too
                && simple
                && !matches!(entry.op, Op::Unary(_))
                && inputs().all(elsewhere);
            cheap[id] = simple
                && entry.shape.cols >= WIDE_COLUMNS
                && matches!(entry.shape.rows, Rows::Unit(_))
                && bands.of[id].is_some()
                && !self.facts.joined[id]
                && (!arrangement.local[id] || light[id])
                && !self.facts.is_output[id]
                // What is accumulated into a buffer is copied with it.
                && inputs().all(|x| cheap[x.id()] || !self.computed_by_reader(*x) && at_hand(x));
        }
        cheap
    }

    /// For each node, how many orders of a function at it are kept for later bands.
    fn kept_orders(&self, arrangement: &Arrangement) -> Vec<usize> {
        let mut orders = vec![0; self.graph.entries.len()];
        for (id, entry) in self.graph.entries.iter().enumerate() {
            if let (Op::Unary(function), [Some(z), _]) = (entry.op, entry.inputs)
                && function.order().is_some()
                && self.facts.needed[id]
                && !arrangement.local[id]
            {
                orders[z.id()] += 1;
            }
        }
        orders
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
    /// The name of a function's argument in a band.
    names: HashMap<(usize, usize), Node>,
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

    /// A function of `z` in `band`: through a name of its own for `z`, so that its orders are one instruction in each band, not one for all.
    fn push_at(&mut self, id: usize, z: usize, band: usize) -> Node {
        if self.cheap[z] && self.bands.of[z] != Some(band) {
            return self.push(id, Some(band));
        }
        let name = match self.names.get(&(z, band)) {
            Some(&name) => name,
            None => {
                let mut entry = self.old.entries[z].clone();
                (entry.op, entry.inputs) = (Op::Reshape, [Some(self.map[z]), None]);
                let name = Node(self.graph.entries.len() as u32);
                self.graph.entries.push(entry);
                self.names.insert((z, band), name);
                name
            }
        };
        let mut entry = self.old.entries[id].clone();
        entry.inputs = [Some(name), None];
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
        let copy = match (self.old.entries[id].op, self.old.entries[id].inputs) {
            (Op::Unary(_), [Some(z), _]) => self.push_at(id, z.id(), band),
            _ => self.push(id, Some(band)),
        };
        self.copies.insert((id, band), copy);
        self.pins.insert(copy, self.bands.levels[band]);
        copy
    }
}
