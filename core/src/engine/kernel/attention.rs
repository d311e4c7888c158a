//! Attention: small products within blocks of rows, head by head.

use super::gemm::{Operands, product, strip};
use super::sums::dot;
use super::vector::{Plain, Vector};
use super::{Isa, Real};

/// What a kernel works on.
#[derive(Clone, Copy)]
pub(crate) struct Squares {
    /// Blocks of rows.
    pub(crate) blocks: usize,
    /// Rows of a block.
    pub(crate) n: usize,
    pub(crate) heads: usize,
    /// Columns of a head.
    pub(crate) width: usize,
}

/// `out[i][h, j] = sum_c a[i][h, c] b[j][h, c]`.
#[inline(always)]
unsafe fn scores_body<T: Real, V: Vector<T>, const MR: usize, const NV: usize>(
    of: Squares,
    a: *const T,
    b: *const T,
    out: *mut T,
) {
    let Squares {
        blocks,
        n,
        heads,
        width,
    } = of;
    let cols = heads * width;
    for row in 0..blocks * n {
        for h in 0..heads {
            // SAFETY: the caller's shapes.
            unsafe {
                let a = a.add(row * cols + h * width);
                for j in 0..n {
                    let b = b.add((row / n * n + j) * cols + h * width);
                    *out.add((row * heads + h) * n + j) = dot::<T, V>(width, a, b);
                }
            }
        }
    }
}

/// `out[i][h, c] = sum_j a[i][h, j] b[j][h, c]`; transposed, `sum_j a[j][h, i] b[j][h, c]`. A small product for each head.
#[inline(always)]
unsafe fn blend_body<T: Real, V: Vector<T>, const MR: usize, const NV: usize>(
    of: Squares,
    a: *const T,
    b: *const T,
    out: *mut T,
    transposed: bool,
) {
    let Squares {
        blocks,
        n,
        heads,
        width,
    } = of;
    let cols = heads * width;
    for block in 0..blocks {
        for h in 0..heads {
            let (row, step) = match transposed {
                true => (1, heads * n),
                false => (heads * n, 1),
            };
            // SAFETY: the caller's shapes; each strip stays within the head's columns.
            unsafe {
                let at = |c: usize| {
                    let start = block * n * cols + h * width + c;
                    Operands {
                        k: n,
                        a: a.add((block * n * heads + h) * n),
                        row,
                        step,
                        b: b.add(start),
                        ldb: cols,
                        c: out.add(start),
                        ldc: cols,
                        accumulate: false,
                        bias: std::ptr::null(),
                    }
                };
                let mut c = 0;
                while c + NV * V::LANES <= width {
                    strip::<T, V, MR, NV>(n, at(c), NV * V::LANES);
                    c += NV * V::LANES;
                }
                while c + V::LANES <= width {
                    strip::<T, V, 4, 1>(n, at(c), V::LANES);
                    c += V::LANES;
                }
                while c < width {
                    strip::<T, Plain<T, 1>, 4, 1>(n, at(c), 1);
                    c += 1;
                }
            }
        }
    }
}

product! {
    /// `out[i][h, j] = sum_c a[i][h, c] b[j][h, c]`.
    scores = scores_body(of: Squares, a: *const T, b: *const T, out: *mut T)
}
product! {
    /// `out[i][h, c] = sum_j a[i][h, j] b[j][h, c]`; transposed, `sum_j a[j][h, i] b[j][h, c]`.
    blend = blend_body(of: Squares, a: *const T, b: *const T, out: *mut T, transposed: bool)
}
