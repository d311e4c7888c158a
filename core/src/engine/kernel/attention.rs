//! Attention: small products within blocks of rows, head by head.

use super::rows::{LANES, sum_lanes};
use super::{Real, kernels};

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

/// Columns that are summed in registers.
const STRIP: usize = 16;

/// `out[c] = sum_j weight(j) rows[j][c]` for `width` columns, in the order of j.
#[inline(always)]
unsafe fn weighted<T: Real, const FMA: bool>(
    count: usize,
    width: usize,
    weight: impl Fn(usize) -> T,
    row: impl Fn(usize) -> *const T,
    out: *mut T,
) {
    unsafe {
        let mut c = 0;
        while c + STRIP <= width {
            let mut sum = [T::ZERO; STRIP];
            for j in 0..count {
                let (w, x) = (weight(j), *(row(j).add(c) as *const [T; STRIP]));
                for k in 0..STRIP {
                    sum[k] = x[k].mul_add::<FMA>(w, sum[k]);
                }
            }
            *(out.add(c) as *mut [T; STRIP]) = sum;
            c += STRIP;
        }
        while c < width {
            let mut sum = T::ZERO;
            for j in 0..count {
                sum = (*row(j).add(c)).mul_add::<FMA>(weight(j), sum);
            }
            *out.add(c) = sum;
            c += 1;
        }
    }
}

kernels! {
    /// `out[i][h, j] = sum_c a[i][h, c] b[j][h, c]`.
    fn scores<T>(of: Squares, a: *const T, b: *const T, out: *mut T) {
        let Squares { blocks, n, heads, width } = of;
        let cols = heads * width;
        for block in 0..blocks {
            let (a, b) = (a.add(block * n * cols), b.add(block * n * cols));
            let out = out.add(block * n * heads * n);
            for i in 0..n {
                for h in 0..heads {
                    let a = a.add(i * cols + h * width);
                    for j in 0..n {
                        let b = b.add(j * cols + h * width);
                        let strip = |c: usize| {
                            let (x, y) = (*(a.add(c) as *const [T; LANES]), *(b.add(c) as *const [T; LANES]));
                            let mut z = x;
                            for k in 0..LANES {
                                z[k] = x[k] * y[k];
                            }
                            z
                        };
                        *out.add((i * heads + h) * n + j) = sum_lanes(width, |c| *a.add(c) * *b.add(c), strip);
                    }
                }
            }
        }
    }
    /// `out[i][h, c] = sum_j a[i][h, j] b[j][h, c]`; transposed, `sum_j a[j][h, i] b[j][h, c]`.
    fn blend<T>(of: Squares, a: *const T, b: *const T, out: *mut T, transposed: bool) {
        let Squares { blocks, n, heads, width } = of;
        let cols = heads * width;
        for block in 0..blocks {
            let a = a.add(block * n * heads * n);
            let (b, out) = (b.add(block * n * cols), out.add(block * n * cols));
            for i in 0..n {
                for h in 0..heads {
                    let out = out.add(i * cols + h * width);
                    let row = |j: usize| b.add(j * cols + h * width);
                    if transposed {
                        weighted::<T, FMA>(n, width, |j| *a.add((j * heads + h) * n + i), row, out)
                    } else {
                        weighted::<T, FMA>(n, width, |j| *a.add((i * heads + h) * n + j), row, out)
                    }
                }
            }
        }
    }
}
