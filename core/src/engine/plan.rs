//! The plan: from a graph and the wanted outputs to a list of instructions on a small arena, built once and printable.
//!
//! * Nodes that no output needs are dropped.
//! * Products of rows that are the same for every unit are global, see [`hoist`].
//! * All orders of SiLU, or of GELU, at the same point become one instruction (one exponential serves them all).
//! * `add` of a product or of gathered rows that have no other use becomes an accumulating product, `bias` of a product a part of it.
//! * A product that is multiplied again or added to something is computed together with that.
//! * Sums of reductions (the parameter gradient of a loss with several terms) share one accumulator.
//! * Buffers are assigned by liveness; an element-wise result takes over the buffer of an operand that dies with it.
//! * Where one unit alone has more rows than a tile should, instructions over them are grouped into bands, see [`bands`]; what is
//!   cheap is computed again in each band that needs it, see [`recompute`].

mod arena;
mod bands;
mod facts;
mod hoist;
mod join;
mod places;
mod planner;
mod recompute;

pub(crate) use bands::Band;
use bands::{BLOCK_ROWS, SMALL_BLOCK_ROWS};
use planner::Planner;

use super::graph::{Graph, Node, Op, Rows};
use super::kernel::Isa;
use std::collections::HashMap;

/// Numbers of an arena from which on memory counts for more than time: 8 MB of single precision. Activations are then computed again in each
/// band that reads them, which halves the arena of a large network over particles and takes up to a tenth longer; if that is not enough, bands take
/// smaller blocks.
const LARGE: usize = 2_000_000;

/// Where a node's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Offset in the tile's arena.
    Tile(usize),
    /// Offset in the tile's arena of rows of which an instruction of a band takes one block.
    Rows(usize),
    /// Offset in the scratch of a band, which holds one block.
    Block(usize),
    /// Offset among the global nodes.
    Global(usize),
    /// Offset in the parameter vector.
    Param(usize),
    /// Offset in the accumulators of a chunk; after the reduction the same offset behind `Plan::reduced`.
    Sum(usize),
}

/// One instruction; `a`, `b` are its operands, `out` its result.
#[derive(Debug, Clone)]
pub struct Instruction {
    pub(crate) op: Op,
    pub(crate) rows: Rows,
    /// Rows of `a` (a reduction's result has other rows than its operand).
    pub(crate) a_rows: Rows,
    pub(crate) cols: usize,
    pub(crate) a_cols: usize,
    pub(crate) b_cols: usize,
    pub(crate) a: Option<Place>,
    pub(crate) b: Option<Place>,
    pub(crate) out: Place,
    /// Add to what `out` holds.
    pub(crate) accumulate: bool,
    /// What the result is put to at once: a bias of a matrix product; a factor or addend of an element-wise one.
    pub(crate) then: Option<(Op, Place)>,
    /// Results of all orders of SiLU or GELU; order 0 to 3.
    pub(crate) orders: [Option<Place>; 4],
    /// Offset of the packed right operand.
    pub(crate) packed: usize,
}

/// A global matrix packed for products.
#[derive(Debug, Clone)]
pub(crate) struct Pack {
    pub(crate) source: Place,
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) transposed: bool,
    pub(crate) offset: usize,
}

/// Global work, then packing, then one pass over the tiles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stage {
    pub(crate) globals: Vec<Instruction>,
    pub(crate) packs: Vec<Pack>,
    pub(crate) tiles: Vec<Instruction>,
    /// Ranges of `tiles` that run block by block, in order.
    pub(crate) bands: Vec<Band>,
}

/// An executable arrangement of a graph. Built by [`Plan::new`], run by [`super::run::Program`].
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) isa: Isa,
    pub(crate) tile_units: usize,
    pub(crate) stages: Vec<Stage>,
    pub(crate) arena: usize,
    /// Where in the arena the scratch of the bands begins.
    pub(crate) scratch: usize,
    pub(crate) globals: usize,
    pub(crate) sums: usize,
    pub(crate) packed: usize,
    pub(crate) parameters: usize,
    /// Place, rows per unit or in all, columns of every input.
    pub(crate) inputs: Vec<(Place, Rows, usize)>,
    /// Offset and entries per unit of every index input.
    pub(crate) indices: Vec<(usize, usize)>,
    pub(crate) index_len: usize,
    pub(crate) outputs: Vec<(Place, Rows, usize)>,
    pub(crate) patterns: Vec<std::sync::Arc<[u32]>>,
    text: Vec<String>,
    flops_unit: f64,
    flops_global: f64,
}

impl Plan {
    /// Arranges the computation of `outputs`; `tile_units` units are run at a time.
    pub fn new(graph: &Graph, outputs: &[Node], tile_units: usize, isa: Isa) -> Plan {
        Plan::within(graph, outputs, tile_units, isa, LARGE)
    }

    /// As [`Plan::new`], with activations computed again where the arena would have more than `large` numbers.
    pub(crate) fn within(
        graph: &Graph,
        outputs: &[Node],
        tile_units: usize,
        isa: Isa,
        large: usize,
    ) -> Plan {
        let hoisted = hoist::hoist(graph, outputs);
        let (graph, outputs) = match &hoisted {
            Some((graph, outputs)) => (graph, &outputs[..]),
            None => (graph, outputs),
        };
        let rewritten = |functions_too, block_rows| {
            let planner = Planner::new(graph, outputs, tile_units, isa, HashMap::new());
            let new = planner.recompute(outputs, functions_too)?;
            let mut planner = Planner::new(&new.graph, &new.outputs, tile_units, isa, new.pins);
            planner.block_rows = block_rows;
            Some(planner.build(&new.outputs))
        };
        // Ever slower and smaller: the first that is small enough, or else the last.
        let frugal = [
            (false, BLOCK_ROWS),
            (true, BLOCK_ROWS),
            (true, SMALL_BLOCK_ROWS),
        ];
        let mut found = None;
        for (functions_too, block_rows) in frugal {
            found = rewritten(functions_too, block_rows);
            if found.as_ref().is_none_or(|plan| plan.arena <= large) {
                break;
            }
        }
        found.unwrap_or_else(|| {
            Planner::new(graph, outputs, tile_units, isa, HashMap::new()).build(outputs)
        })
    }

    /// Floating-point operations of matrix products for `units` units (a fused multiply-add counts as two).
    pub fn flops(&self, units: usize) -> f64 {
        self.flops_global + self.flops_unit * units as f64
    }

    /// Units that are run at a time.
    pub fn tile_units(&self) -> usize {
        self.tile_units
    }

    /// Numbers in the arena of one tile.
    pub fn arena_len(&self) -> usize {
        self.arena
    }

    /// Stages that pass over the tiles; more than one needs a batch of a single tile.
    pub(crate) fn passes(&self) -> usize {
        self.stages.iter().filter(|s| !s.tiles.is_empty()).count()
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "plan: {} units a tile, {} numbers of arena, {} global, {} summed, {} packed, {}",
            self.tile_units, self.arena, self.globals, self.sums, self.packed, self.isa
        )?;
        self.text.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
