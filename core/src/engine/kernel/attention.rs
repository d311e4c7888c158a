//! Attention: small products within blocks of rows, head by head.

use super::gemm::{self, Operands, product, strip};
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

/// `a b + c` as the registers do it.
#[inline(always)]
fn plus<T: Real, V: Vector<T>>(a: T, b: T, c: T) -> T {
    if V::FUSED {
        a.mul_add::<true>(b, c)
    } else {
        a * b + c
    }
}

/// `J` sums of products of one row `a` with rows `b` that lie `next` apart.
#[inline(always)]
unsafe fn dots<T: Real, V: Vector<T>, const J: usize>(
    width: usize,
    a: *const T,
    (b, next): (*const T, usize),
    out: *mut T,
) {
    unsafe {
        let mut acc = [V::splat(T::ZERO); J];
        let mut c = 0;
        while c + V::LANES <= width {
            let x = V::load(a.add(c));
            for (j, acc) in acc.iter_mut().enumerate() {
                *acc = x.mul_add(V::load(b.add(j * next + c)), *acc);
            }
            c += V::LANES;
        }
        for (j, acc) in acc.into_iter().enumerate() {
            let mut sum = if c > 0 { acc.sum() } else { T::ZERO };
            for c in c..width {
                sum = plus::<T, V>(*a.add(c), *b.add(j * next + c), sum);
            }
            *out.add(j) = sum;
        }
    }
}

/// Sums of products of rows of `C` numbers: places of particles.
#[inline(always)]
unsafe fn short_dots<T: Real, V: Vector<T>, const C: usize>(
    n: usize,
    a: *const T,
    (b, next): (*const T, usize),
    out: *mut T,
) {
    unsafe {
        let a = *(a as *const [T; C]);
        for j in 0..n {
            let b = *(b.add(j * next) as *const [T; C]);
            let mut sum = a[0] * b[0];
            for c in 1..C {
                sum = plus::<T, V>(a[c], b[c], sum);
            }
            *out.add(j) = sum;
        }
    }
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
                let b = b.add(row / n * n * cols + h * width);
                let out = out.add((row * heads + h) * n);
                let at = |j: usize| (b.add(j * cols), cols);
                match width {
                    2 => short_dots::<T, V, 2>(n, a, at(0), out),
                    3 => short_dots::<T, V, 3>(n, a, at(0), out),
                    _ => {
                        let mut j = 0;
                        while j < n {
                            let (b, out) = (at(j), out.add(j));
                            match n - j {
                                5 => dots::<T, V, 5>(width, a, b, out),
                                1 => dots::<T, V, 1>(width, a, b, out),
                                2 => dots::<T, V, 2>(width, a, b, out),
                                3 => dots::<T, V, 3>(width, a, b, out),
                                _ => dots::<T, V, 4>(width, a, b, out),
                            }
                            j += if n - j == 5 { 5 } else { 4 };
                        }
                    }
                }
            }
        }
    }
}

/// Blends of rows of `C` numbers: places of particles. `c[i] = sum_j a[i * row + j * step] b[j]`.
#[inline(always)]
unsafe fn short_blend<T: Real, V: Vector<T>, const C: usize>(n: usize, o: Operands<T>) {
    unsafe {
        for i in 0..n {
            let mut sum = [T::ZERO; C];
            for j in 0..n {
                let (w, b) = (
                    *o.a.add(i * o.row + j * o.step),
                    *(o.b.add(j * o.ldb) as *const [T; C]),
                );
                for c in 0..C {
                    sum[c] = plus::<T, V>(w, b[c], sum[c]);
                }
            }
            *(o.c.add(i * o.ldc) as *mut [T; C]) = sum;
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
                match width {
                    2 => short_blend::<T, V, 2>(n, at(0)),
                    3 => short_blend::<T, V, 3>(n, at(0)),
                    _ => {}
                }
                let mut c = if width == 2 || width == 3 { width } else { 0 };
                while c + NV * V::LANES <= width {
                    match n {
                        // One block, where a strip would take two.
                        3 => gemm::block::<T, V, 3, NV>(at(c), NV * V::LANES),
                        5 if MR > 4 => gemm::block::<T, V, 5, NV>(at(c), NV * V::LANES),
                        _ => strip::<T, V, MR, NV>(n, at(c), NV * V::LANES),
                    }
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
