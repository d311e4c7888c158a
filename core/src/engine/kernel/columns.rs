//! Products with results of one or two columns, where the blocks of [`gemm`](super::gemm) would work on padding for the most part.

use super::Real;
use super::gemm::{Operands, finished};
use super::vector::Vector;

/// `R` rows against the first `N` columns of a panel, number by number: for results of a few columns, where most of a panel would be
/// padding. The order of every sum is that of the blocks in [`gemm`](super::gemm).
#[inline(always)]
unsafe fn columns<T: Real, V: Vector<T>, const R: usize, const N: usize>(
    m: usize,
    o: Operands<T>,
) -> usize {
    unsafe {
        let mut i = 0;
        while i + R <= m {
            let a = o.a.add(i * o.row);
            let mut acc = [[T::ZERO; N]; R];
            for p in 0..o.k {
                let b = *(o.b.add(p * o.ldb) as *const [T; N]);
                for (r, acc) in acc.iter_mut().enumerate() {
                    let x = *a.add(r * o.row + p);
                    for j in 0..N {
                        acc[j] = if V::FUSED {
                            x.mul_add::<true>(b[j], acc[j])
                        } else {
                            x * b[j] + acc[j]
                        };
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                let c = o.c.add((i + r) * o.ldc);
                for (j, &value) in acc.iter().enumerate() {
                    *c.add(j) = finished(&o, c, j, value);
                }
            }
            i += R;
        }
        i
    }
}

/// All rows against `N` columns.
#[inline(always)]
pub(super) unsafe fn few_columns<T: Real, V: Vector<T>, const R: usize, const N: usize>(
    m: usize,
    o: Operands<T>,
) {
    unsafe {
        let done = columns::<T, V, R, N>(m, o);
        let (a, c) = (o.a.add(done * o.row), o.c.add(done * o.ldc));
        columns::<T, V, 1, N>(m - done, Operands { a, c, ..o });
    }
}

/// One column of a sum of outer products, `c[i] += sum over rows r of a[r][i] b[r]`, for `NV` registers of `i`.
#[inline(always)]
pub(super) unsafe fn outer_column<T: Real, V: Vector<T>, const NV: usize>(
    ka: usize,
    o: Operands<T>,
) -> usize {
    unsafe {
        let mut i = 0;
        while i + NV * V::LANES <= ka {
            let mut acc = [V::splat(T::ZERO); NV];
            for r in 0..o.k {
                let b = V::splat(*o.b.add(r * o.ldb));
                let a = o.a.add(r * o.step + i);
                for (v, acc) in acc.iter_mut().enumerate() {
                    // Rounded twice, as single columns are on every path.
                    *acc = V::load(a.add(v * V::LANES)).mul(b).add(*acc);
                }
            }
            // The widest register has 16 lanes.
            let mut line = [T::ZERO; 16];
            for (v, acc) in acc.iter().enumerate() {
                acc.store(line.as_mut_ptr());
                for (l, &sum) in line.iter().enumerate().take(V::LANES) {
                    let c = o.c.add((i + v * V::LANES + l) * o.ldc);
                    *c += sum;
                }
            }
            i += NV * V::LANES;
        }
        i
    }
}
