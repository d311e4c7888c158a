//! The planner: orders the nodes, gives them places by liveness, and writes the instructions.

use super::arena::Arena;
use super::facts::{Facts, is_reduction, is_unit, storage};
use super::{Instruction, Pack, Place, Plan, Stage};
use crate::engine::graph::{Graph, Node, Op, Rows, checked_len};
use crate::engine::kernel::{Isa, gemm};

/// A plan under construction.
pub(super) struct Planner<'a> {
    graph: &'a Graph,
    tile_units: usize,
    isa: Isa,
    facts: Facts,
    places: Vec<Option<Place>>,
    /// The instructions (by first node) that compute all orders of SiLU, and of GELU, at this argument.
    orders: Vec<[Option<Node>; 2]>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        outputs: &[Node],
        tile_units: usize,
        isa: Isa,
    ) -> Planner<'a> {
        Planner {
            graph,
            tile_units,
            isa,
            facts: Facts::new(graph, outputs),
            places: vec![None; graph.entries.len()],
            orders: vec![[None; 2]; graph.entries.len()],
        }
    }

    fn len(&self, node: Node) -> usize {
        let shape = self.graph.shape(node);
        checked_len(shape.rows, shape.cols, self.tile_units)
    }

    pub(super) fn build(mut self, outputs: &[Node]) -> Plan {
        let (order, stages) = self.schedule();
        let last_use = self.last_use(&order, outputs);
        let (mut globals, mut sums) = (0usize, 0usize);
        let mut arena = Arena::default();
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
        for (position, &node) in order.iter().enumerate() {
            self.allocate(
                node,
                position,
                &last_use,
                &mut arena,
                &mut globals,
                &mut sums,
            );
            self.release(node, position, &last_use, &mut arena);
        }
        let mut plan = Plan {
            isa: self.isa,
            tile_units: self.tile_units,
            stages: vec![Stage::default(); stages],
            arena: arena.end,
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
        for &node in &order {
            self.emit(node, &mut plan);
        }
        for &output in outputs {
            let shape = self.graph.shape(output);
            plan.outputs
                .push((self.place(output), shape.rows, shape.cols));
        }
        plan
    }

    /// Nodes that become instructions, in execution order, and the number of stages.
    fn schedule(&mut self) -> (Vec<Node>, usize) {
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
                // Done at the place of the `add` that it is folded into.
                _ if self.facts.folded[id].is_some() => {}
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

    /// The nodes an instruction really reads: those of a folded product stand for it.
    fn reads(&self, node: Node) -> Vec<Node> {
        let mut reads = Vec::new();
        for input in self.graph.entries[node.id()].inputs.iter().flatten() {
            if self.facts.folded[input.id()].is_some() {
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
    fn writes(&self, node: Node) -> Vec<Node> {
        let family = self.family(node);
        if family.is_none() {
            return vec![node];
        }
        (0..self.graph.entries.len() as u32)
            .map(Node)
            .filter(|other| self.facts.needed[other.id()] && self.family(*other) == family)
            .collect()
    }

    fn allocate(
        &mut self,
        node: Node,
        position: usize,
        last_use: &[usize],
        arena: &mut Arena,
        globals: &mut usize,
        sums: &mut usize,
    ) {
        if is_reduction(self.graph, node) {
            let root = self.facts.merged[node.id()].unwrap_or(node);
            let place = self.places[root.id()].unwrap_or_else(|| {
                *sums += self.len(node).next_multiple_of(16);
                Place::Sum(*sums - self.len(node).next_multiple_of(16))
            });
            self.places[root.id()] = Some(place);
            self.places[node.id()] = Some(place);
            return;
        }
        if !is_unit(self.graph, node) {
            *globals += self.len(node).next_multiple_of(16);
            self.places[node.id()] = Some(Place::Global(
                *globals - self.len(node).next_multiple_of(16),
            ));
            return;
        }
        let entry = &self.graph.entries[node.id()];
        let mut takeover = self.dying(node, position, last_use);
        if let (Op::Add, Some(base)) = (entry.op, self.fold_base(node)) {
            self.places[node.id()] = Some(self.place(base));
            return;
        }
        for write in self.writes(node) {
            let place = match takeover.pop() {
                Some(operand) => self.place(operand),
                None => Place::Tile(arena.take(self.len(write))),
            };
            self.places[write.id()] = Some(place);
        }
    }

    /// The buffer a folded product accumulates into, if `node` is such an `add`.
    fn fold_base(&self, node: Node) -> Option<Node> {
        self.graph.entries[node.id()]
            .inputs
            .iter()
            .flatten()
            .find_map(|i| self.facts.folded[i.id()])
    }

    /// Operands whose buffer the element-wise result may take: same size, read for the last time here.
    fn dying(&self, node: Node, position: usize, last_use: &[usize]) -> Vec<Node> {
        let entry = &self.graph.entries[node.id()];
        let elementwise = matches!(
            entry.op,
            Op::Add
                | Op::Sub
                | Op::Mul
                | Op::Affine { .. }
                | Op::Unary(_)
                | Op::Bias
                | Op::MulColumn
                | Op::Softmax
        );
        if !elementwise {
            return Vec::new();
        }
        entry
            .inputs
            .iter()
            .flatten()
            .filter(|&&x| {
                let root = storage(self.graph, x);
                self.len(x) == self.len(node)
                    && last_use[root.id()] == position
                    && matches!(self.places[root.id()], Some(Place::Tile(_)))
                    && !matches!(self.graph.entries[root.id()].op, Op::Input(_))
            })
            .take(1)
            .copied()
            .collect()
    }

    /// Gives back the buffers that are read for the last time at `position`, and of results that nobody reads.
    fn release(&mut self, node: Node, position: usize, last_use: &[usize], arena: &mut Arena) {
        let written: Vec<Place> = self
            .writes(node)
            .into_iter()
            .map(|w| self.place(w))
            .collect();
        let mut dead: Vec<Node> = self
            .reads(node)
            .into_iter()
            .map(|x| storage(self.graph, x))
            .filter(|x| {
                last_use[x.id()] == position
                    && !matches!(self.graph.entries[x.id()].op, Op::Input(_))
            })
            .collect();
        dead.sort();
        dead.dedup();
        for x in dead {
            let place = self.place(x);
            if let (Place::Tile(start), false) = (place, written.contains(&place)) {
                arena.give(start, self.len(x));
            }
        }
    }

    fn place(&self, node: Node) -> Place {
        let root = storage(self.graph, node);
        match self.places[root.id()] {
            Some(place) => place,
            None => unreachable!("{} has no place", self.graph.describe(node)),
        }
    }

    fn emit(&self, node: Node, plan: &mut Plan) {
        let base = self.fold_base(node);
        let product = base.and_then(|_| {
            self.graph.entries[node.id()]
                .inputs
                .iter()
                .flatten()
                .find(|i| self.facts.folded[i.id()].is_some())
        });
        // A folded product is emitted in place of its `add`.
        let source = product.copied().unwrap_or(node);
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
            a: a.map(|a| self.place(a)),
            b: b.map(|b| self.place(b)),
            out: self.place(node),
            accumulate: product.is_some(),
            orders: [None; 4],
            packed: 0,
        };
        if self.family(source).is_some() {
            for write in self.writes(source) {
                if let Op::Unary(function) = self.graph.entries[write.id()].op
                    && let Some((_, order)) = function.order()
                {
                    instruction.orders[order] = Some(self.place(write));
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
        let folded = if product.is_some() {
            " (accumulated)"
        } else {
            ""
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
