//! Bands: runs of instructions over the same wide rows of a unit, which are executed block by block.
//!
//! The edges of one molecule alone can be more rows than a cache holds. Most of what is computed on them is needed by the next few
//! instructions only, so a band takes a block of rows through all its instructions before the next block: what no other band reads lives
//! in a small scratch that stays in cache (a *local* node); only what a later band needs is kept whole. Sums over the rows of a band are
//! carried from block to block, in order. A node that is read through a gather must be complete before the band begins, and a sum over
//! rows is complete when it ends; this alone decides which instructions go together.

use super::facts::{is_unit, storage};
use super::planner::Planner;
use crate::engine::graph::{Node, Op, Rows};

/// Rows of a block: about as many as a tile has.
pub(super) const BLOCK_ROWS: usize = 72;
/// Rows of a block where the scratch of larger ones would take too much memory.
pub(super) const SMALL_BLOCK_ROWS: usize = 36;
/// Units with at least so many rows of a kind are cut into blocks.
const WIDE_ROWS: usize = 2 * BLOCK_ROWS;

/// Instructions `start .. end` of a stage over `rows` rows of the unit, `block` at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Band {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) rows: usize,
    pub(crate) block: usize,
}

impl Band {
    fn new(start: usize, end: usize, rows: usize, most: usize) -> Band {
        // Blocks of nearly equal size; six rows are one step of the products.
        let block = rows.div_ceil(rows.div_ceil(most));
        Band {
            start,
            end,
            rows,
            block: block.next_multiple_of(6),
        }
    }
}

/// An order of instructions with its bands, and which nodes are local to theirs.
pub(super) struct Arrangement {
    pub(super) order: Vec<Node>,
    /// The level of each instruction.
    pub(super) levels: Vec<usize>,
    /// Positions in `order`.
    pub(super) bands: Vec<Band>,
    pub(super) local: Vec<bool>,
}

/// Where an instruction stands: stage, globals before tiles, level, singles before bands, rows of the band.
type Key = (usize, bool, usize, Option<usize>);

impl Planner<'_> {
    /// The wide rows that an instruction works on one by one, if it can take part in a band.
    fn wide(&self, node: Node) -> Option<usize> {
        let entry = &self.graph.entries[self.source(node).id()];
        let rows_of = |n: Node| match self.graph.shape(n).rows {
            Rows::Unit(m) if m >= WIDE_ROWS && self.tile_units == 1 => Some(m),
            _ => None,
        };
        match entry.op {
            Op::Outer | Op::SumRows | Op::SegmentSum(_) => entry.inputs[0].and_then(rows_of),
            Op::MatMul { .. }
            | Op::BroadcastRows
            | Op::Bias
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Affine { .. }
            | Op::MulColumn
            | Op::RowDot
            | Op::RowSum
            | Op::BroadcastColumns
            | Op::Unary(_)
            | Op::LogSumExp
            | Op::Softmax
            | Op::Slice(_)
            | Op::Pad(_)
            | Op::Gather(_)
            | Op::Constant(_) => rows_of(node),
            _ => None,
        }
    }

    /// Whether an instruction gives one row for each row that it reads: not a sum over rows.
    fn gives_rows(&self, node: Node) -> bool {
        !matches!(
            self.graph.entries[self.source(node).id()].op,
            Op::Outer | Op::SumRows | Op::SegmentSum(_)
        )
    }

    /// Groups a valid order into bands. Every instruction comes as early as what it reads allows; within a band, and among the
    /// instructions between two, the given order stays.
    pub(super) fn arrange(&self, order: Vec<Node>) -> Arrangement {
        let n = self.graph.entries.len();
        let stage_of = |node: Node| self.facts.computed[node.id()];
        let wide: Vec<Option<usize>> = order.iter().map(|&node| self.wide(node)).collect();
        if wide.iter().all(Option::is_none) {
            return Arrangement {
                levels: vec![0; order.len()],
                order,
                bands: Vec::new(),
                local: vec![false; n],
            };
        }
        // The instruction that writes each node.
        let mut writer: Vec<Option<usize>> = vec![None; n];
        for (at, &node) in order.iter().enumerate() {
            for write in self.writes(node) {
                writer[write.id()] = Some(at);
            }
        }
        let mut level = vec![0; order.len()];
        for (at, &node) in order.iter().enumerate() {
            level[at] = self.pins.get(&node).copied().unwrap_or(0);
            for read in self.reads(node) {
                let Some(from) = writer[storage(self.graph, read).id()] else {
                    continue;
                };
                if stage_of(order[from]) != stage_of(node) {
                    continue;
                }
                let same_rows = wide[from].is_some()
                    && wide[from] == wide[at]
                    && self.gives_rows(order[from])
                    && storage(self.graph, read) == read
                    && !self.gathers(node, read);
                // Singles of a level run before its bands.
                let complete = wide[from].is_none() || same_rows;
                level[at] = level[at].max(level[from] + usize::from(!complete));
            }
        }
        let key = |at: usize| -> Key {
            let node = order[at];
            let in_tiles =
                is_unit(self.graph, node) || super::facts::is_reduction(self.graph, node);
            (stage_of(node), in_tiles, level[at], wide[at])
        };
        let mut positions: Vec<usize> = (0..order.len()).collect();
        positions.sort_by_key(|&at| (key(at), at));
        let mut bands: Vec<Band> = Vec::new();
        let mut start = 0;
        for group in positions.chunk_by(|&a, &b| key(a) == key(b)) {
            let end = start + group.len();
            if let Some(rows) = wide[group[0]] {
                bands.push(Band::new(start, end, rows, self.block_rows));
            }
            start = end;
        }
        let order: Vec<Node> = positions.iter().map(|&at| order[at]).collect();
        let local = self.local(&order, &bands);
        Arrangement {
            levels: positions.iter().map(|&at| level[at]).collect(),
            order,
            bands,
            local,
        }
    }

    /// Whether `node` reads `read` through a gather.
    fn gathers(&self, node: Node, read: Node) -> bool {
        let entry = &self.graph.entries[self.source(node).id()];
        matches!(entry.op, Op::Gather(_)) && entry.inputs[0] == Some(read)
    }

    /// Nodes that are written and read in one band only.
    fn local(&self, order: &[Node], bands: &[Band]) -> Vec<bool> {
        let n = self.graph.entries.len();
        let mut band_at: Vec<Option<usize>> = vec![None; order.len()];
        for (k, band) in bands.iter().enumerate() {
            band_at[band.start..band.end].fill(Some(k));
        }
        let mut of: Vec<Option<usize>> = vec![None; n];
        let mut local = vec![false; n];
        for (at, &node) in order.iter().enumerate() {
            for write in self.writes(node) {
                of[write.id()] = band_at[at];
                local[write.id()] = band_at[at].is_some()
                    && self.gives_rows(node)
                    && !self.facts.is_output[write.id()];
            }
        }
        for (at, &node) in order.iter().enumerate() {
            for read in self.reads(node) {
                let root = storage(self.graph, read);
                if band_at[at] != of[root.id()] || root != read || self.gathers(node, read) {
                    local[root.id()] = false;
                }
            }
        }
        // What accumulates into a buffer shares its place.
        for &node in order.iter().rev() {
            if let (Some(base), false) = (self.fold_base(node), local[node.id()]) {
                local[base.id()] = false;
            }
        }
        for &node in order {
            if let Some(base) = self.fold_base(node) {
                local[node.id()] &= local[base.id()];
            }
        }
        local
    }
}
