//! Sums along rows, in an order that is the same on every machine.

use super::gemm::product;
use super::vector::{Plain, Vector};
use super::{Isa, Real};

/// Lanes of a partial sum: fixed, so that a row's sum has the same bits on every machine type and in every tile.
const LANES: usize = 16;

/// Sum of `n` numbers in a fixed order, given by the register or one by one.
#[inline(always)]
unsafe fn sum_row<T: Real, V: Vector<T>>(
    n: usize,
    register: impl Fn(usize) -> V,
    single: impl Fn(usize) -> T,
) -> T {
    unsafe {
        let whole = n / LANES * LANES;
        let mut sum = T::ZERO;
        if whole > 0 {
            // The narrowest register has four lanes.
            let mut acc = [V::splat(T::ZERO); 4];
            let mut i = 0;
            while i < whole {
                for (r, acc) in acc.iter_mut().enumerate().take(LANES / V::LANES) {
                    *acc = acc.add(register(i + r * V::LANES));
                }
                i += LANES;
            }
            sum = match LANES / V::LANES {
                1 => acc[0].sum(),
                2 => acc[0].add(acc[1]).sum(),
                _ => acc[0].add(acc[2]).add(acc[1].add(acc[3])).sum(),
            };
        }
        (whole..n).fold(sum, |sum, i| sum + single(i))
    }
}

/// `sum_c a[c] b[c]`, each product rounded.
#[inline(always)]
unsafe fn dot<T: Real, V: Vector<T>>(n: usize, a: *const T, b: *const T) -> T {
    unsafe {
        let register = |i: usize| V::load(a.add(i)).mul(V::load(b.add(i)));
        sum_row(n, register, |i| *a.add(i) * *b.add(i))
    }
}

/// `out[r] = sum_c a[r][c] b[r][c]`.
#[inline(always)]
unsafe fn row_dot_body<T: Real, V: Vector<T>, const MR: usize, const NV: usize>(
    (rows, cols): (usize, usize),
    a: *const T,
    b: *const T,
    out: *mut T,
) {
    unsafe {
        for r in 0..rows {
            *out.add(r) = dot::<T, V>(cols, a.add(r * cols), b.add(r * cols));
        }
    }
}

/// `out[r] = sum_c a[r][c]`.
#[inline(always)]
unsafe fn row_sum_body<T: Real, V: Vector<T>, const MR: usize, const NV: usize>(
    (rows, cols): (usize, usize),
    a: *const T,
    out: *mut T,
) {
    unsafe {
        for r in 0..rows {
            let a = a.add(r * cols);
            *out.add(r) = sum_row(cols, |i| V::load(a.add(i)), |i| *a.add(i));
        }
    }
}

product! {
    /// `out[r] = sum_c a[r][c] b[r][c]`, for the shape `(rows, columns)`.
    row_dot = row_dot_body(shape: (usize, usize), a: *const T, b: *const T, out: *mut T)
}
product! {
    /// `out[r] = sum_c a[r][c]`, for the shape `(rows, columns)`.
    row_sum = row_sum_body(shape: (usize, usize), a: *const T, out: *mut T)
}
