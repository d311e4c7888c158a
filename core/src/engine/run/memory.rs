//! One instruction at work: the map from primitives to kernels, over the memory of a program.

use crate::engine::graph::{Blocks, Function, Op, Rows};
use crate::engine::kernel::{Real, attention, elementwise, gemm, rows};
use crate::engine::plan::{Instruction, Place, Plan};

/// Base addresses of everything an instruction can name.
pub(super) struct Memory<'a, T> {
    pub(super) plan: &'a Plan,
    pub(super) params: *const T,
    pub(super) globals: *mut T,
    pub(super) packed: *const T,
    pub(super) arena: *mut T,
    pub(super) sums: *mut T,
    pub(super) index: &'a [u32],
    pub(super) units: usize,
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
    unsafe fn read(&self, place: Option<Place>) -> *const T {
        unsafe {
            match place {
                Some(Place::Tile(at)) => self.arena.add(at),
                Some(Place::Global(at)) => self.globals.add(at),
                Some(Place::Param(at)) => self.params.add(at),
                Some(Place::Sum(at)) => self.globals.add(self.plan.globals + at),
                None => std::ptr::null(),
            }
        }
    }

    unsafe fn write(&self, place: Place) -> *mut T {
        unsafe {
            match place {
                Place::Tile(at) => self.arena.add(at),
                Place::Global(at) => self.globals.add(at),
                Place::Sum(at) => self.sums.add(at),
                Place::Param(_) => unreachable!("parameters are not written"),
            }
        }
    }

    fn rows(&self, rows: Rows) -> usize {
        match rows {
            Rows::Global(m) => m,
            Rows::Unit(m) => m * self.units,
        }
    }

    fn index(&self, slot: usize) -> &[u32] {
        let (start, per_unit) = self.plan.indices[slot];
        &self.index[start..start + per_unit * self.units]
    }

    /// Runs one instruction: the map from primitives to kernels.
    pub(super) unsafe fn execute(&self, i: &Instruction) {
        unsafe {
            let isa = self.plan.isa;
            let (a, b, out) = (self.read(i.a), self.read(i.b), self.write(i.out));
            let m = self.rows(i.rows);
            let n = m * i.cols;
            match i.op {
                Op::MatMul { .. } => {
                    let packed = self.packed.add(i.packed);
                    gemm::matmul(isa, (m, i.a_cols, i.cols), a, packed, out, i.accumulate)
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
                Op::Mul => elementwise::mul(isa, n, a, b, out),
                Op::Affine { scale, shift } => {
                    let number = |bits| T::from_f64(f64::from_bits(bits));
                    elementwise::affine(isa, n, number(scale), number(shift), a, out)
                }
                Op::MulColumn => elementwise::mul_column(isa, m, i.cols, a, b, out, i.accumulate),
                Op::RowDot => rows::row_dot(isa, m, i.a_cols, a, b, out),
                Op::RowSum => rows::row_sum(isa, m, i.a_cols, a, out),
                Op::BroadcastColumns => rows::broadcast_columns(isa, m, i.cols, a, out),
                Op::Unary(function) => match function {
                    Function::Silu(_) | Function::Gelu(_) => {
                        let outs = i
                            .orders
                            .map(|place| place.map_or(std::ptr::null_mut(), |p| self.write(p)));
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
                    rows::gather(
                        isa,
                        self.units,
                        from,
                        i.cols,
                        &self.plan.patterns[pattern],
                        a,
                        out,
                    )
                }
                Op::SegmentSum(pattern) => {
                    let to = m / self.units;
                    rows::segment_sum(
                        isa,
                        self.units,
                        to,
                        i.cols,
                        &self.plan.patterns[pattern],
                        a,
                        out,
                    )
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
