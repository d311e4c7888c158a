//! Products with one or two columns or rows, where the blocks of [`gemm`](super::gemm) would work on padding for the most part or wait for
//! each other.

use super::Real;
use super::gemm::{Operands, finished};
use super::vector::Vector;

/// Most columns of a result that are not worth a panel.
pub(super) const FEW: usize = 2;

/// Rows against `N` columns that lie one after the other: `c[i][j] = sum_p a[i][p] b[j][p]`, each sum over the lanes of one register.
#[inline(always)]
pub(super) unsafe fn few_columns<T: Real, V: Vector<T>, const N: usize>(m: usize, o: Operands<T>) {
    unsafe {
        let whole = o.k / V::LANES * V::LANES;
        for i in 0..m {
            let (a, c) = (o.a.add(i * o.row), o.c.add(i * o.ldc));
            let mut acc = [V::splat(T::ZERO); N];
            let mut p = 0;
            while p < whole {
                let x = V::load(a.add(p));
                for (j, acc) in acc.iter_mut().enumerate() {
                    *acc = x.mul_add(V::load(o.b.add(j * o.k + p)), *acc);
                }
                p += V::LANES;
            }
            for (j, acc) in acc.iter().enumerate() {
                let mut sum = acc.sum();
                for p in whole..o.k {
                    let (x, w) = (*a.add(p), *o.b.add(j * o.k + p));
                    sum = if V::FUSED {
                        x.mul_add::<true>(w, sum)
                    } else {
                        x * w + sum
                    };
                }
                *c.add(j) = finished(&o, c, j, sum);
            }
        }
    }
}

/// Rows of `K` numbers against `P` panels of `NV` registers, all of which stay in registers: results of one or two products are bound by
/// their stores. Returns the number of columns done.
#[inline(always)]
pub(super) unsafe fn few_rows<
    T: Real,
    V: Vector<T>,
    const NV: usize,
    const K: usize,
    const P: usize,
>(
    (m, n): (usize, usize),
    o: Operands<T>,
) -> usize {
    unsafe {
        let (panel, mut j) = (NV * V::LANES, 0);
        while j + P * panel <= n {
            let b: [[[V; NV]; P]; K] = std::array::from_fn(|p| {
                std::array::from_fn(|q| {
                    let line = o.b.add((j + q * panel) * K + p * panel);
                    std::array::from_fn(|v| V::load(line.add(v * V::LANES)))
                })
            });
            for i in 0..m {
                let a: [V; K] = std::array::from_fn(|p| V::splat(*o.a.add(i * o.row + p)));
                let c = o.c.add(i * o.ldc + j);
                for (q, first) in b[0].iter().enumerate() {
                    for (v, &first) in first.iter().enumerate() {
                        let at = q * panel + v * V::LANES;
                        let mut sum = a[0].mul(first);
                        for (a, b) in a.iter().zip(&b).skip(1) {
                            sum = a.mul_add(b[q][v], sum);
                        }
                        if o.accumulate {
                            sum = V::load(c.add(at)).add(sum);
                        } else if !o.bias.is_null() {
                            sum = sum.add(V::load(o.bias.add(j + at)));
                        }
                        sum.store(c.add(at));
                    }
                }
            }
            j += P * panel;
        }
        j
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
