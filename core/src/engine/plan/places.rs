//! Places: every node gets its memory as the planner walks through the instructions, and gives it back when it was read for the last time.

use super::Place;
use super::arena::Arena;
use super::bands::Band;
use super::facts::{is_reduction, is_unit, storage};
use super::planner::Planner;
use crate::engine::graph::{Node, Op};

/// What has been taken so far of each kind of memory.
pub(super) struct Room {
    pub(super) arena: Arena,
    /// Blocks of the nodes that are local to a band.
    pub(super) scratch: Arena,
    pub(super) globals: usize,
    pub(super) sums: usize,
}

impl Planner<'_> {
    /// Numbers of a node where it is kept: whole, or a block of it.
    fn room_of(&self, node: Node, band: Option<&Band>) -> usize {
        match band {
            Some(band) if self.local[node.id()] => band.block * self.graph.shape(node).cols,
            _ => self.len(node),
        }
    }

    /// Places for what a band keeps whole: they are written by its first block, so nothing else may lie there while it runs.
    pub(super) fn allocate_whole(&mut self, instructions: &[Node], room: &mut Room) {
        for &node in instructions {
            if is_reduction(self.graph, node) || self.fold_base(node).is_some() {
                continue;
            }
            for write in self.writes(node) {
                if !self.local[write.id()] {
                    let place = Place::Tile(room.arena.take(self.len(write)));
                    self.places[write.id()] = Some(place);
                }
            }
        }
    }

    pub(super) fn allocate(
        &mut self,
        node: Node,
        position: usize,
        last_use: &[usize],
        band: Option<&Band>,
        room: &mut Room,
    ) {
        if is_reduction(self.graph, node) {
            let root = self.facts.merged[node.id()].unwrap_or(node);
            let place = self.places[root.id()].unwrap_or_else(|| {
                room.sums += self.len(node).next_multiple_of(16);
                Place::Sum(room.sums - self.len(node).next_multiple_of(16))
            });
            self.places[root.id()] = Some(place);
            self.places[node.id()] = Some(place);
            return;
        }
        if !is_unit(self.graph, node) {
            for write in self.writes(node) {
                self.places[write.id()] = Some(Place::Global(room.globals));
                room.globals += self.len(write).next_multiple_of(16);
            }
            return;
        }
        let entry = &self.graph.entries[node.id()];
        let mut takeover = self.dying(node, position, last_use);
        if let (Op::Add, Some(base)) = (entry.op, self.fold_base(node)) {
            self.places[node.id()] = Some(self.place(base));
            return;
        }
        for write in self.writes(node) {
            if self.places[write.id()].is_some() {
                continue;
            }
            let place = match takeover.pop() {
                Some(operand) => self.place(operand),
                None if self.local[write.id()] => {
                    Place::Block(room.scratch.take(self.room_of(write, band)))
                }
                None => Place::Tile(room.arena.take(self.len(write))),
            };
            self.places[write.id()] = Some(place);
        }
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
        let source = self.source(node);
        let joined = source == node || self.graph.entries[source.id()].op == Op::Mul;
        if !elementwise || !joined {
            return Vec::new();
        }
        self.reads(node)
            .into_iter()
            .filter(|&x| {
                let root = storage(self.graph, x);
                self.len(x) == self.len(node)
                    && last_use[root.id()] == position
                    && self.local[root.id()] == self.local[node.id()]
                    && matches!(
                        self.places[root.id()],
                        Some(Place::Tile(_) | Place::Block(_))
                    )
                    && !matches!(self.graph.entries[root.id()].op, Op::Input(_))
            })
            .take(1)
            .collect()
    }

    /// Gives back the buffers that are read for the last time at `position`: of a band, those of local nodes.
    pub(super) fn release(
        &mut self,
        node: Node,
        position: usize,
        last_use: &[usize],
        band: Option<&Band>,
        room: &mut Room,
    ) {
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
                    && self.local[x.id()] == band.is_some()
                    && !matches!(self.graph.entries[x.id()].op, Op::Input(_))
            })
            .collect();
        dead.sort();
        dead.dedup();
        for x in dead {
            let place = self.place(x);
            if written.contains(&place) {
                continue;
            }
            match place {
                Place::Tile(start) => room.arena.give(start, self.len(x)),
                Place::Block(start) => room.scratch.give(start, self.room_of(x, band)),
                Place::Rows(_) | Place::Global(_) | Place::Param(_) | Place::Sum(_) => {}
            }
        }
    }
}
