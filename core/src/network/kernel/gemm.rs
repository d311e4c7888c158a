//! Matrix products: rows times a packed matrix, and the sum of outer products of rows.
//!
//! The right operand of `matmul` is a parameter matrix used by every tile, so it is packed once per run into panels of
//! [`Isa::panel`] columns. The micro-kernel keeps a block of the result in registers and is plain Rust over
//! fixed-size arrays; the compiler turns it into fused multiply-adds of the chosen width.

use super::{Isa, Real, kernels};

/// Length of the packed form of a `k x n` matrix.
pub(crate) fn packed_len(isa: Isa, k: usize, n: usize) -> usize {
    n.next_multiple_of(isa.panel()) * k
}

/// Packs `w` (`k x n` row-major, or its transpose `n x k` if `transposed`) into column panels, zero-padded.
pub(crate) fn pack<T: Real>(
    isa: Isa,
    k: usize,
    n: usize,
    w: &[T],
    transposed: bool,
    out: &mut [T],
) {
    let nr = isa.panel();
    for (panel, out) in out[..packed_len(isa, k, n)]
        .chunks_exact_mut(nr * k)
        .enumerate()
    {
        let j0 = panel * nr;
        let width = nr.min(n - j0);
        if transposed {
            for j in 0..nr {
                for p in 0..k {
                    out[p * nr + j] = if j < width {
                        w[(j0 + j) * k + p]
                    } else {
                        T::ZERO
                    };
                }
            }
        } else {
            for (p, out) in out.chunks_exact_mut(nr).enumerate() {
                out[..width].copy_from_slice(&w[p * n + j0..p * n + j0 + width]);
                out[width..].fill(T::ZERO);
            }
        }
    }
}

/// One block: `c[i][j] (+)= sum_p a[i * row + p * step] * b[p * ldb + j]` for `MR x NR`, of which `width` columns are stored.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn block<T: Real, const FMA: bool, const MR: usize, const NR: usize>(
    k: usize,
    a: *const T,
    row: usize,
    step: usize,
    b: *const T,
    ldb: usize,
    c: *mut T,
    ldc: usize,
    width: usize,
    accumulate: bool,
) {
    unsafe {
        let mut acc = [[T::ZERO; NR]; MR];
        for p in 0..k {
            let b = &*(b.add(p * ldb) as *const [T; NR]);
            for (i, acc) in acc.iter_mut().enumerate() {
                let a = *a.add(i * row + p * step);
                for j in 0..NR {
                    acc[j] = a.mul_add::<FMA>(b[j], acc[j]);
                }
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            let c = c.add(i * ldc);
            if width == NR {
                let c = &mut *(c as *mut [T; NR]);
                if accumulate {
                    for j in 0..NR {
                        c[j] += acc[j];
                    }
                } else {
                    *c = *acc;
                }
            } else {
                for (j, &value) in acc.iter().enumerate().take(width) {
                    let c = c.add(j);
                    *c = if accumulate { *c + value } else { value };
                }
            }
        }
    }
}

/// All rows against one panel: blocks of `MR` rows, then of 4, 2 and 1. Two rows left over are joined with a whole block
/// of 6 into two blocks of 4, which keeps the multiply-add units busier.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn strip<T: Real, const FMA: bool, const MR: usize, const NR: usize>(
    m: usize,
    k: usize,
    a: *const T,
    row: usize,
    step: usize,
    b: *const T,
    ldb: usize,
    c: *mut T,
    ldc: usize,
    width: usize,
    accumulate: bool,
) {
    unsafe {
        let (whole, rest) = (m / MR, m % MR);
        let whole = if MR == 6 && rest == 2 && whole > 0 {
            whole - 1
        } else {
            whole
        };
        let mut i = 0;
        macro_rules! rows {
            ($rows:expr, $more:expr) => {
                while $more(i) {
                    let (a, c) = (a.add(i * row), c.add(i * ldc));
                    block::<T, FMA, { $rows }, NR>(
                        k, a, row, step, b, ldb, c, ldc, width, accumulate,
                    );
                    i += $rows;
                }
            };
        }
        rows!(MR, |i| i < whole * MR);
        rows!(4, |i| i + 4 <= m);
        rows!(2, |i| i + 2 <= m);
        rows!(1, |i| i < m);
    }
}

kernels! {
    /// `c (m x n) (+)= a (m x k) * packed (k x n)`.
    fn matmul<T>(panel: usize, m: usize, k: usize, n: usize, a: *const T, packed: *const T, c: *mut T, accumulate: bool) {
        let mut j = 0;
        while j < n {
            let (b, c, width) = (packed.add(j * k), c.add(j), panel.min(n - j));
            if panel == 32 {
                strip::<T, FMA, 8, 32>(m, k, a, k, 1, b, 32, c, n, width, accumulate);
            } else if FMA {
                strip::<T, FMA, 6, 16>(m, k, a, k, 1, b, 16, c, n, width, accumulate);
            } else {
                strip::<T, FMA, 2, 16>(m, k, a, k, 1, b, 16, c, n, width, accumulate);
            }
            j += panel;
        }
    }

    /// `c (ka x kb) += sum over rows r of a[r]^T b[r]`.
    fn outer<T>(panel: usize, rows: usize, ka: usize, kb: usize, a: *const T, b: *const T, c: *mut T) {
        let mut j = 0;
        while j + 16 <= kb {
            if panel == 32 && j + 32 <= kb {
                strip::<T, FMA, 8, 32>(ka, rows, a, 1, ka, b.add(j), kb, c.add(j), kb, 32, true);
                j += 32;
            } else if FMA {
                strip::<T, FMA, 6, 16>(ka, rows, a, 1, ka, b.add(j), kb, c.add(j), kb, 16, true);
                j += 16;
            } else {
                strip::<T, FMA, 2, 16>(ka, rows, a, 1, ka, b.add(j), kb, c.add(j), kb, 16, true);
                j += 16;
            }
        }
        while j + 8 <= kb {
            strip::<T, FMA, 6, 8>(ka, rows, a, 1, ka, b.add(j), kb, c.add(j), kb, 8, true);
            j += 8;
        }
        while j < kb {
            strip::<T, FMA, 6, 1>(ka, rows, a, 1, ka, b.add(j), kb, c.add(j), kb, 1, true);
            j += 1;
        }
    }
}

/// GFLOP/s of a large single-precision product on all threads of the pool, run for about `seconds`: what a step can
/// be measured against.
pub fn sgemm_peak(pool: &super::pool::Pool, isa: Isa, seconds: f64) -> f64 {
    const SIZE: usize = 192;
    let w: Vec<f32> = (0..SIZE * SIZE).map(|i| (i % 11) as f32 * 0.01).collect();
    let mut packed = vec![0f32; packed_len(isa, SIZE, SIZE)];
    pack(isa, SIZE, SIZE, &w, false, &mut packed);
    let rounds = std::sync::atomic::AtomicU64::new(0);
    let start = std::time::Instant::now();
    pool.run(pool.threads(), &|_, _| {
        let (a, mut c) = (w.clone(), vec![0f32; SIZE * SIZE]);
        while start.elapsed().as_secs_f64() < seconds {
            for _ in 0..16 {
                // SAFETY: all buffers hold SIZE x SIZE numbers, the packed one its packed length.
                unsafe {
                    matmul(
                        isa,
                        isa.panel(),
                        SIZE,
                        SIZE,
                        SIZE,
                        a.as_ptr(),
                        packed.as_ptr(),
                        c.as_mut_ptr(),
                        false,
                    )
                };
                std::hint::black_box(&mut c);
            }
            rounds.fetch_add(16, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let flops = 2.0 * (SIZE * SIZE * SIZE) as f64 * rounds.into_inner() as f64;
    flops / start.elapsed().as_secs_f64() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: usize) -> Vec<f64> {
        (0..n)
            .map(|i| (((i * 37 + seed * 101) % 97) as f64 / 48.0) - 1.0)
            .collect()
    }

    #[test]
    fn products_agree_with_the_triple_loop_for_every_shape_and_path() {
        for isa in Isa::available() {
            for (m, k, n) in [
                (1, 1, 1),
                (7, 5, 3),
                (13, 8, 16),
                (6, 128, 40),
                (19, 33, 67),
                (5, 3, 9),
                (12, 17, 8),
            ] {
                for transposed in [false, true] {
                    let (a, w, c0) = (numbers(m * k, 1), numbers(k * n, 2), numbers(m * n, 3));
                    let mut packed = vec![0.0; packed_len(isa, k, n)];
                    pack(isa, k, n, &w, transposed, &mut packed);
                    for accumulate in [false, true] {
                        let mut c = c0.clone();
                        // SAFETY: the buffers have the lengths the shapes say.
                        unsafe {
                            matmul(
                                isa,
                                isa.panel(),
                                m,
                                k,
                                n,
                                a.as_ptr(),
                                packed.as_ptr(),
                                c.as_mut_ptr(),
                                accumulate,
                            );
                        }
                        for i in 0..m {
                            for j in 0..n {
                                let start = if accumulate { c0[i * n + j] } else { 0.0 };
                                let weight = |p: usize| {
                                    if transposed {
                                        w[j * k + p]
                                    } else {
                                        w[p * n + j]
                                    }
                                };
                                let exact =
                                    start + (0..k).map(|p| a[i * k + p] * weight(p)).sum::<f64>();
                                assert!((c[i * n + j] - exact).abs() < 1e-12, "{isa} {m} {k} {n}");
                            }
                        }
                    }
                }
                let (a, b, c0) = (numbers(m * k, 4), numbers(m * n, 5), numbers(k * n, 6));
                let mut c = c0.clone();
                // SAFETY: as above.
                unsafe {
                    outer(
                        isa,
                        isa.panel(),
                        m,
                        k,
                        n,
                        a.as_ptr(),
                        b.as_ptr(),
                        c.as_mut_ptr(),
                    )
                };
                for i in 0..k {
                    for j in 0..n {
                        let exact = c0[i * n + j]
                            + (0..m).map(|r| a[r * k + i] * b[r * n + j]).sum::<f64>();
                        assert!(
                            (c[i * n + j] - exact).abs() < 1e-12,
                            "{isa} outer {m} {k} {n}"
                        );
                    }
                }
            }
        }
    }
}
