//! The planner: orders the nodes, gives them places by liveness, and writes the instructions.

use super::arena::Arena;
use super::bands::{Arrangement, BLOCK_ROWS, Band};
use super::facts::{Facts, is_reduction, is_unit, storage};
use super::places::Room;
use super::{Instruction, Pack, Place, Plan, Stage};
use crate::engine::graph::{Graph, Node, Op, Rows, checked_len};
use crate::engine::kernel::{Isa, gemm};
use std::collections::HashMap;

/// A plan under construction.
pub(super) struct Planner<'a> {
    pub(super) graph: &'a Graph,
    pub(super) tile_units: usize,
    /// Most rows of a band's block.
    pub(super) block_rows: usize,
    isa: Isa,
    pub(super) facts: Facts,
    pub(super) places: Vec<Option<Place>>,
    /// Nodes that live in the scratch of a band.
    pub(super) local: Vec<bool>,
    /// Levels that nodes must not come before.
    pub(super) pins: HashMap<Node, usize>,
    /// The instructions (by first node) that compute all orders of SiLU, and of GELU, at this argument.
    orders: Vec<[Option<Node>; 2]>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        outputs: &[Node],
        tile_units: usize,
        isa: Isa,
        pins: HashMap<Node, usize>,
    ) -> Planner<'a> {
        Planner {
            graph,
            tile_units,
            block_rows: BLOCK_ROWS,
            isa,
            facts: Facts::new(graph, outputs),
            places: vec![None; graph.entries.len()],
            local: vec![false; graph.entries.len()],
            pins,
            orders: vec![[None; 2]; graph.entries.len()],
        }
    }

    pub(super) fn len(&self, node: Node) -> usize {
        let shape = self.graph.shape(node);
        checked_len(shape.rows, shape.cols, self.tile_units)
    }

    pub(super) fn build(mut self, outputs: &[Node]) -> Plan {
        let (order, stages) = self.schedule();
        let mut arrangement = self.arrange(order);
        self.join_products(&mut arrangement);
        let Arrangement {
            order,
            bands,
            local,
            ..
        } = arrangement;
        self.local = local;
        let last_use = self.last_use(&order, outputs);
        let (mut globals, sums) = (0usize, 0usize);
        let [mut arena, scratch] = [Arena::default(), Arena::default()];
        let mut inputs = Vec::new();
        // Inputs first, at places of their own: they are filled before a tile starts.
        for (slot, shape) in self.graph.inputs.iter().enumerate() {
            let len = checked_len(shape.rows, shape.cols, self.tile_units);
            let place = match shape.rows {
                Rows::Unit(_) => Place::Tile(arena.take(len)),
                Rows::Global(_) => {
                    globals += len.next_multiple_of(16);
                    Place::Global(globals - len.next_multiple_of(16))
                }
            };
            inputs.push((place, shape.rows, shape.cols));
            let node = self
                .graph
                .entries
                .iter()
                .position(|e| e.op == Op::Input(slot));
            if let Some(id) = node {
                self.places[id] = Some(place);
            }
        }
        let mut room = Room {
            arena,
            scratch,
            globals,
            sums,
        };
        let mut bands = bands.into_iter().peekable();
        let mut cuts: Vec<Band> = Vec::new();
        for (position, &node) in order.iter().enumerate() {
            if let Some(band) = bands.next_if(|band| band.start == position) {
                self.allocate_whole(&order[band.start..band.end], &mut room);
                cuts.push(band);
            }
            let band = cuts.last().filter(|band| position < band.end).cloned();
            self.allocate(node, position, &last_use, band.as_ref(), &mut room);
            self.release(node, position, &last_use, band.as_ref(), &mut room);
            // Every block of a band reads what the first one read.
            if let Some(band) = band.filter(|band| band.end == position + 1) {
                for (at, &node) in order[band.start..band.end].iter().enumerate() {
                    self.release(node, band.start + at, &last_use, None, &mut room);
                }
            }
        }
        let Room {
            arena,
            scratch,
            globals,
            sums,
        } = room;
        let mut plan = Plan {
            isa: self.isa,
            tile_units: self.tile_units,
            stages: vec![Stage::default(); stages],
            arena: arena.end + scratch.end,
            scratch: arena.end,
            globals,
            sums,
            packed: 0,
            parameters: self.graph.parameters,
            inputs,
            indices: Vec::new(),
            index_len: 0,
            outputs: Vec::new(),
            patterns: self.graph.patterns.clone(),
            text: Vec::new(),
            flops_unit: 0.0,
            flops_global: 0.0,
        };
        for &per_unit in &self.graph.index_slots {
            plan.indices.push((plan.index_len, per_unit));
            plan.index_len += checked_len(Rows::Unit(per_unit), 1, self.tile_units);
        }
        let mut cuts = cuts.into_iter().peekable();
        let mut band: Option<Band> = None;
        for (position, &node) in order.iter().enumerate() {
            band = band.filter(|band| position < band.end);
            if let Some(next) = cuts.next_if(|band| band.start == position) {
                let stage = &mut plan.stages[self.facts.computed[node.id()]];
                let start = stage.tiles.len();
                plan.text.push(format!(
                    "tile   {} instructions, {} of {} rows at a time:",
                    next.end - next.start,
                    next.block,
                    next.rows
                ));
                stage.bands.push(Band {
                    start,
                    end: start + next.end - next.start,
                    ..next
                });
                band = Some(next);
            }
            self.emit(node, band.as_ref(), &mut plan);
        }
        for &output in outputs {
            let shape = self.graph.shape(output);
            plan.outputs
                .push((self.place(output), shape.rows, shape.cols));
        }
        plan
    }

    /// Nodes that become instructions, in execution order, and the number of stages.
    pub(super) fn schedule(&mut self) -> (Vec<Node>, usize) {
        let mut keyed: Vec<((usize, usize, usize), Node)> = Vec::new();
        let mut stages = 1;
        for (id, entry) in self.graph.entries.iter().enumerate() {
            let node = Node(id as u32);
            if !self.facts.needed[id] {
                continue;
            }
            match entry.op {
                Op::Param(offset) => self.places[id] = Some(Place::Param(offset)),
                Op::Input(_) | Op::Reshape => {}
                // Done by the terms that write into its accumulator.
                Op::Add
                    if entry
                        .inputs
                        .iter()
                        .flatten()
                        .all(|i| self.facts.merged[i.id()].is_some()) => {}
                // Done at the place of the `add` or `bias` that reads it.
                _ if self.computed_by_reader(node) => {}
                _ if self
                    .family(node)
                    .is_some_and(|(family, z)| self.orders[z.id()][family].is_some()) => {}
                _ => {
                    if let Some((family, z)) = self.family(node) {
                        self.orders[z.id()][family] = Some(node);
                    }
                    let in_tiles = is_unit(self.graph, node) || is_reduction(self.graph, node);
                    let stage = self.facts.computed[id];
                    stages = stages.max(self.facts.readable[id] + 1);
                    keyed.push(((stage, usize::from(in_tiles), id), node));
                }
            }
        }
        keyed.sort_by_key(|k| k.0);
        (keyed.into_iter().map(|k| k.1).collect(), stages)
    }

    /// Whether a node is no instruction of its own: it is accumulated into another one's buffer, or one with what reads it.
    pub(super) fn computed_by_reader(&self, node: Node) -> bool {
        self.facts.folded[node.id()].is_some() || self.facts.joined[node.id()]
    }

    /// The nodes an instruction really reads: those of a product that it computes itself stand for it.
    pub(super) fn reads(&self, node: Node) -> Vec<Node> {
        let mut reads = Vec::new();
        for input in self.graph.entries[node.id()].inputs.iter().flatten() {
            if self.computed_by_reader(*input) {
                reads.extend(self.graph.entries[input.id()].inputs.iter().flatten());
            } else {
                reads.push(*input);
            }
        }
        reads
    }

    /// Position of the last instruction that reads each node's storage; outputs are read at the end.
    fn last_use(&self, order: &[Node], outputs: &[Node]) -> Vec<usize> {
        let mut last = vec![0; self.graph.entries.len()];
        for (position, &node) in order.iter().enumerate() {
            for read in self.reads(node) {
                last[storage(self.graph, read).id()] = position;
            }
        }
        for &output in outputs {
            last[storage(self.graph, output).id()] = usize::MAX;
        }
        last
    }

    /// The function of which a node is a derivative of some order, and its argument.
    fn family(&self, node: Node) -> Option<(usize, Node)> {
        let entry = &self.graph.entries[node.id()];
        match (entry.op, entry.inputs[0]) {
            (Op::Unary(function), Some(z)) => function.order().map(|(family, _)| (family, z)),
            _ => None,
        }
    }

    /// Nodes an instruction writes: one, or all orders of SiLU or GELU.
    pub(super) fn writes(&self, node: Node) -> Vec<Node> {
        let family = self.family(node);
        if family.is_none() {
            return vec![node];
        }
        (0..self.graph.entries.len() as u32)
            .map(Node)
            .filter(|other| self.facts.needed[other.id()] && self.family(*other) == family)
            .collect()
    }

    /// The buffer a folded product accumulates into, if `node` is such an `add`.
    pub(super) fn fold_base(&self, node: Node) -> Option<Node> {
        self.graph.entries[node.id()]
            .inputs
            .iter()
            .flatten()
            .find_map(|i| self.facts.folded[i.id()])
    }

    pub(super) fn place(&self, node: Node) -> Place {
        let root = storage(self.graph, node);
        match self.places[root.id()] {
            Some(place) => place,
            None => unreachable!("{} has no place", self.graph.describe(node)),
        }
    }

    /// What an instruction computes: a product is emitted in place of the `add` or `bias` that reads it.
    pub(super) fn source(&self, node: Node) -> Node {
        let inputs = &self.graph.entries[node.id()].inputs;
        let product = inputs
            .iter()
            .flatten()
            .find(|i| self.computed_by_reader(**i));
        product.copied().unwrap_or(node)
    }

    /// Where an instruction finds or puts the rows of a node: within a band, those of the block.
    fn place_in(&self, node: Node, band: Option<&Band>) -> Place {
        match (self.place(node), band) {
            (Place::Tile(start), Some(band))
                if self.graph.shape(node).rows == Rows::Unit(band.rows) =>
            {
                Place::Rows(start)
            }
            (place, _) => place,
        }
    }

    fn emit(&self, node: Node, band: Option<&Band>, plan: &mut Plan) {
        let source = self.source(node);
        let folded = self.fold_base(node).is_some();
        let reader = &self.graph.entries[node.id()];
        let then = match (reader.op, source != node && !folded) {
            (Op::Bias, true) => reader.inputs[1],
            (Op::Mul | Op::Add, true) => reader
                .inputs
                .iter()
                .flatten()
                .copied()
                .find(|i| *i != source),
            _ => None,
        };
        let entry = &self.graph.entries[source.id()];
        let [a, b] = entry.inputs;
        let cols = |n: Option<Node>| n.map_or(0, |n| self.graph.shape(n).cols);
        let mut instruction = Instruction {
            op: entry.op,
            rows: entry.shape.rows,
            a_rows: a.map_or(entry.shape.rows, |a| self.graph.shape(a).rows),
            cols: entry.shape.cols,
            a_cols: cols(a),
            b_cols: cols(b),
            a: a.map(|a| match entry.op {
                Op::Gather(_) => self.place(a),
                _ => self.place_in(a, band),
            }),
            b: b.map(|b| self.place_in(b, band)),
            out: match entry.op {
                Op::SegmentSum(_) => self.place(node),
                _ => self.place_in(node, band),
            },
            accumulate: folded,
            then: then.map(|c| (reader.op, self.place_in(c, band))),
            orders: [None; 4],
            packed: 0,
        };
        if self.family(source).is_some() {
            for write in self.writes(source) {
                if let Op::Unary(function) = self.graph.entries[write.id()].op
                    && let Some((_, order)) = function.order()
                {
                    instruction.orders[order] = Some(self.place_in(write, band));
                }
            }
        }
        let stage = &mut plan.stages[self.facts.computed[node.id()]];
        let in_tiles = is_unit(self.graph, node) || is_reduction(self.graph, node);
        if let (Op::MatMul { transposed }, Some(source)) = (entry.op, instruction.b) {
            let (k, n) = (instruction.a_cols, instruction.cols);
            let known = stage
                .packs
                .iter()
                .find(|p| p.source == source && p.transposed == transposed && p.n == n);
            instruction.packed = match known {
                Some(pack) if in_tiles => pack.offset,
                _ => {
                    let offset = plan.packed;
                    plan.packed += gemm::packed_len(self.isa, k, n).next_multiple_of(16);
                    if in_tiles {
                        stage.packs.push(Pack {
                            source,
                            k,
                            n,
                            transposed,
                            offset,
                        });
                    }
                    offset
                }
            };
        }
        let flops = |rows: Rows, x: usize, y: usize| match rows {
            Rows::Global(m) | Rows::Unit(m) => 2.0 * (m * x * y) as f64,
        };
        let work = match entry.op {
            Op::MatMul { .. } => flops(instruction.rows, instruction.a_cols, instruction.cols),
            Op::Outer => flops(instruction.a_rows, instruction.a_cols, instruction.b_cols),
            Op::Scores(blocks) => flops(instruction.rows, instruction.a_cols, blocks.rows),
            Op::Blend { blocks, .. } => flops(instruction.rows, instruction.cols, blocks.rows),
            _ => 0.0,
        };
        *(if in_tiles {
            &mut plan.flops_unit
        } else {
            &mut plan.flops_global
        }) += work;
        let folded = match (folded, then) {
            (true, _) => " (accumulated)".to_string(),
            (_, Some(_)) => format!(", {}", self.graph.describe(node)),
            _ => String::new(),
        };
        let phase = if in_tiles { "tile  " } else { "global" };
        plan.text.push(format!(
            "{phase} {:?} <- {}{folded}",
            instruction.out,
            self.graph.describe(source)
        ));
        if in_tiles {
            stage.tiles.push(instruction)
        } else {
            stage.globals.push(instruction)
        }
    }
}
