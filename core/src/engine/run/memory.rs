//! One instruction at work: the map from primitives to kernels, over the memory of a program.

use crate::engine::graph::{Blocks, Function, Op, Rows};
use crate::engine::kernel::{Isa, Real, attention, elementwise, gemm, rows, sums};
use crate::engine::plan::{Instruction, Place, Plan, Stage};

/// What is compiled once for each number type, in this crate: without it every crate, test and example that runs a program would compile all
/// kernels again.
pub trait Execute: Sized {
    /// Runs one instruction.
    ///
    /// # Safety
    /// The places of the instruction lie in the memory.
    unsafe fn execute(memory: &Memory<'_, Self>, instruction: &Instruction);

    /// Packs the right operand of products, `k x n` or transposed.
    fn pack(isa: Isa, shape: (usize, usize), source: &[Self], transposed: bool, out: &mut [Self]);
}

macro_rules! compiled {
    ($($t:ty),*) => { $(
        impl Execute for $t {
            #[inline(never)]
            unsafe fn execute(memory: &Memory<'_, $t>, instruction: &Instruction) {
                // SAFETY: the caller's promise.
                unsafe { memory.execute(instruction) }
            }

            #[inline(never)]
            fn pack(isa: Isa, (k, n): (usize, usize), source: &[$t], transposed: bool, out: &mut [$t]) {
                gemm::pack(isa, k, n, source, transposed, out);
            }
        }
    )* };
}
compiled!(f32, f64);

/// Base addresses of everything an instruction can name.
pub struct Memory<'a, T> {
    pub(super) plan: &'a Plan,
    pub(super) params: *const T,
    pub(super) globals: *mut T,
    pub(super) packed: *const T,
    pub(super) arena: *mut T,
    pub(super) sums: *mut T,
    pub(super) index: &'a [u32],
    pub(super) units: usize,
    /// The rows of a unit that a band works on.
    pub(super) block: Option<Block>,
}

/// Some of the rows of a unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// All rows of the band.
    pub(super) of: usize,
    pub(super) start: usize,
    pub(super) len: usize,
}

/// Squares of rows that look at each other, among `rows` rows of `cols` columns.
fn squares(blocks: Blocks, rows: usize, cols: usize) -> attention::Squares {
    attention::Squares {
        blocks: rows / blocks.rows,
        n: blocks.rows,
        heads: blocks.heads,
        width: cols / blocks.heads,
    }
}

impl<T: Real> Memory<'_, T> {
    /// The numbers at a place, rows of `cols`.
    unsafe fn read(&self, place: Option<Place>, cols: usize) -> *const T {
        unsafe {
            match place {
                Some(Place::Param(at)) => self.params.add(at),
                Some(Place::Sum(at)) => self.globals.add(self.plan.globals + at),
                Some(place) => self.write(place, cols),
                None => std::ptr::null(),
            }
        }
    }

    unsafe fn write(&self, place: Place, cols: usize) -> *mut T {
        unsafe {
            match place {
                Place::Tile(at) => self.arena.add(at),
                Place::Rows(at) => self.arena.add(at + self.first_row() * cols),
                Place::Block(at) => self.arena.add(self.plan.scratch + at),
                Place::Global(at) => self.globals.add(at),
                Place::Sum(at) => self.sums.add(at),
                Place::Param(_) => unreachable!("parameters are not written"),
            }
        }
    }

    fn first_row(&self) -> usize {
        self.block.map_or(0, |block| block.start)
    }

    fn rows(&self, rows: Rows) -> usize {
        match (rows, self.block) {
            (Rows::Unit(m), Some(block)) if m == block.of => block.len,
            (Rows::Unit(m), _) => m * self.units,
            (Rows::Global(m), _) => m,
        }
    }

    /// The part of a pattern that belongs to the block.
    fn pattern(&self, pattern: usize) -> &[u32] {
        let pattern = &self.plan.patterns[pattern];
        match self.block {
            Some(block) => &pattern[block.start..][..block.len],
            None => pattern,
        }
    }

    fn index(&self, slot: usize) -> &[u32] {
        let (start, per_unit) = self.plan.indices[slot];
        &self.index[start..start + per_unit * self.units]
    }

    /// Runs the instructions of a stage on one tile, bands block by block.
    pub(super) unsafe fn run(&mut self, stage: &Stage) {
        let mut at = 0;
        let ends = std::iter::once(stage.tiles.len());
        let bands = stage.bands.iter().map(Some).chain([None]);
        for (band, single) in bands.zip(stage.bands.iter().map(|band| band.start).chain(ends)) {
            for instruction in &stage.tiles[at..single] {
                // SAFETY: the caller's promise, here and below.
                unsafe { T::execute(self, instruction) };
            }
            let Some(band) = band else { return };
            for start in (0..band.rows).step_by(band.block) {
                self.block = Some(Block {
                    of: band.rows,
                    start,
                    len: band.block.min(band.rows - start),
                });
                for instruction in &stage.tiles[band.start..band.end] {
                    unsafe { T::execute(self, instruction) };
                }
            }
            self.block = None;
            at = band.end;
        }
    }

    /// Runs one instruction: the map from primitives to kernels.
    unsafe fn execute(&self, i: &Instruction) {
        unsafe {
            let isa = self.plan.isa;
            let (a, b) = (self.read(i.a, i.a_cols), self.read(i.b, i.b_cols));
            let out = self.write(i.out, i.cols);
            let m = self.rows(i.rows);
            let n = m * i.cols;
            match i.op {
                Op::MatMul { .. } => {
                    let packed = self.packed.add(i.packed);
                    let shape = (m, i.a_cols, i.cols);
                    let bias = self.read(i.then.map(|(_, row)| row), i.cols);
                    gemm::matmul(isa, shape, a, packed, out, i.accumulate, bias)
                }
                Op::Outer => {
                    let shape = (self.rows(i.a_rows), i.a_cols, i.b_cols);
                    gemm::outer(isa, shape, a, b, out)
                }
                Op::BroadcastRows => rows::broadcast_rows(isa, m, i.cols, a, out),
                Op::SumRows => rows::sum_rows(isa, self.rows(i.a_rows), i.cols, a, out),
                Op::Bias => elementwise::bias(isa, m, i.cols, a, b, out),
                Op::Add => elementwise::add(isa, n, a, b, out),
                Op::Sub => elementwise::sub(isa, n, a, b, out),
                Op::Mul => match i.then {
                    Some((Op::Mul, c)) => {
                        elementwise::mul_mul(isa, n, a, b, self.read(Some(c), i.cols), out)
                    }
                    Some((_, c)) => {
                        elementwise::mul_plus(isa, n, a, b, self.read(Some(c), i.cols), out)
                    }
                    None => elementwise::mul(isa, n, a, b, out),
                },
                Op::Affine { scale, shift } => {
                    let number = |bits| T::from_f64(f64::from_bits(bits));
                    elementwise::affine(isa, n, number(scale), number(shift), a, out)
                }
                Op::MulColumn => elementwise::mul_column(isa, m, i.cols, a, b, out, i.accumulate),
                Op::RowDot => sums::row_dot(isa, (m, i.a_cols), a, b, out),
                Op::RowSum => sums::row_sum(isa, (m, i.a_cols), a, out),
                Op::BroadcastColumns => rows::broadcast_columns(isa, m, i.cols, a, out),
                Op::Unary(function) => match function {
                    Function::Silu(_) | Function::Gelu(_) => {
                        let outs = i.orders.map(|place| {
                            place.map_or(std::ptr::null_mut(), |p| self.write(p, i.cols))
                        });
                        match function {
                            Function::Gelu(_) => elementwise::gelu_orders(isa, n, a, outs),
                            _ => elementwise::silu_orders(isa, n, a, outs),
                        }
                    }
                    Function::Sigmoid => elementwise::logistic(isa, n, a, out),
                    Function::Softplus => elementwise::softplus(isa, n, a, out),
                    Function::Exp => elementwise::exponential(isa, n, a, out),
                    Function::Ln => elementwise::logarithm(isa, n, a, out),
                    Function::Sin => elementwise::sine(isa, n, a, out),
                    Function::Cos => elementwise::cosine(isa, n, a, out),
                    Function::Power(p) => elementwise::power(isa, n, f64::from_bits(p), a, out),
                },
                Op::LogSumExp => rows::log_sum_exp(isa, m, i.a_cols, a, out),
                Op::Softmax => rows::softmax(isa, m, i.cols, a, out),
                Op::Scores(blocks) => {
                    let of = squares(blocks, m, i.a_cols);
                    attention::scores(isa, of, a, b, out)
                }
                Op::Blend { blocks, transposed } => {
                    let of = squares(blocks, m, i.cols);
                    attention::blend(isa, of, a, b, out, transposed)
                }
                Op::Slice(start) => rows::slice(isa, m, i.a_cols, start, i.cols, a, out),
                Op::Pad(start) => rows::pad(isa, m, i.cols, start, i.a_cols, a, out),
                Op::Gather(pattern) => {
                    let from = self.rows(i.a_rows) / self.units;
                    let pattern = self.pattern(pattern);
                    rows::gather(
                        isa,
                        (self.units, from, i.cols),
                        pattern,
                        a,
                        out,
                        i.accumulate,
                    )
                }
                Op::SegmentSum(pattern) => {
                    // Of the whole unit, even where it has as many rows as the band.
                    let (Rows::Unit(to) | Rows::Global(to)) = i.rows;
                    // The sums of a band are carried from block to block.
                    let fresh = self.first_row() == 0;
                    let pattern = self.pattern(pattern);
                    rows::segment_sum(isa, (self.units, to, i.cols), pattern, a, out, fresh)
                }
                Op::Lookup(slot) => {
                    let table = std::slice::from_raw_parts(a, self.rows(i.a_rows) * i.cols);
                    rows::lookup(isa, i.cols, self.index(slot), table, out, i.accumulate)
                }
                Op::Scatter(slot) => {
                    let table = std::slice::from_raw_parts_mut(out, n);
                    rows::scatter(isa, i.cols, self.index(slot), a, table)
                }
                Op::Constant(bits) => {
                    std::slice::from_raw_parts_mut(out, n).fill(T::from_f64(f64::from_bits(bits)))
                }
                Op::Param(_) | Op::Input(_) | Op::Reshape => unreachable!("not an instruction"),
            }
        }
    }
}
