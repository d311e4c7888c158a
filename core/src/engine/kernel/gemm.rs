//! Matrix products: rows times a packed matrix, and the sum of outer products of rows.
//!
//! The right operand of `matmul` is a parameter matrix used by every tile, so it is packed once per run into panels of
//! [`Isa::panel`] columns. The micro-kernel keeps a block of the result in registers: one source over the
//! [`Vector`](super::vector::Vector) types of each instruction set.

use super::columns::{FEW, few_columns, few_rows, outer_column};
use super::vector::{Plain, Vector};
use super::{Isa, Real};
use std::mem::MaybeUninit;

/// Length of the packed form of a `k x n` matrix.
pub(crate) fn packed_len(isa: Isa, k: usize, n: usize) -> usize {
    n.next_multiple_of(isa.panel()) * k
}

/// Packs `w` (`k x n` row-major, or its transpose `n x k` if `transposed`) into column panels, zero-padded; a last panel of one or two
/// columns holds them one after the other.
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
        if width <= FEW {
            for (j, column) in out.chunks_exact_mut(k).enumerate().take(width) {
                for (p, out) in column.iter_mut().enumerate() {
                    *out = if transposed {
                        w[(j0 + j) * k + p]
                    } else {
                        w[p * n + j0 + j]
                    };
                }
            }
        } else if transposed {
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

/// Operands of a block or strip of the result: `c[i][j] (+)= sum_p a[i * row + p * step] * b[p * ldb + j]`.
#[derive(Clone, Copy)]
pub(super) struct Operands<T> {
    pub(super) k: usize,
    pub(super) a: *const T,
    pub(super) row: usize,
    pub(super) step: usize,
    pub(super) b: *const T,
    pub(super) ldb: usize,
    pub(super) c: *mut T,
    pub(super) ldc: usize,
    pub(super) accumulate: bool,
    /// Added to each row, if not null.
    pub(super) bias: *const T,
}

/// The number at `j` of a row of the result, from the product.
#[inline(always)]
pub(super) unsafe fn finished<T: Real>(o: &Operands<T>, c: *const T, j: usize, value: T) -> T {
    unsafe {
        if o.accumulate {
            *c.add(j) + value
        } else if o.bias.is_null() {
            value
        } else {
            value + *o.bias.add(j)
        }
    }
}

/// Steps of a product's inner loop that are written out.
const UNROLL: usize = 4;

/// One block of `MR` rows and `NV` registers of columns, of which `width` columns are stored.
#[inline(always)]
pub(super) unsafe fn block<T: Real, V: Vector<T>, const MR: usize, const NV: usize>(
    o: Operands<T>,
    width: usize,
) {
    unsafe {
        let mut acc = [[V::splat(T::ZERO); NV]; MR];
        if o.accumulate {
            // Accumulators of many parameters come from afar; they are asked for before the sum begins.
            for i in 0..MR {
                V::prefetch(o.c.add(i * o.ldc));
            }
        }
        // Three rows from one address on: all the machine's ways to name them, so that steps need no arithmetic of their own.
        let mut rows: [*const T; 4] = std::array::from_fn(|g| o.a.wrapping_add(3 * g * o.row));
        let mut line = o.b;
        macro_rules! steps {
            ($steps:expr) => {
                for u in 0..$steps {
                    let mut b = [V::splat(T::ZERO); NV];
                    for (v, b) in b.iter_mut().enumerate() {
                        *b = V::load(line.add(u * o.ldb + v * V::LANES));
                    }
                    for (i, acc) in acc.iter_mut().enumerate() {
                        let a = V::splat(*rows[i / 3].add(i % 3 * o.row + u * o.step));
                        for v in 0..NV {
                            acc[v] = a.mul_add(b[v], acc[v]);
                        }
                    }
                }
                line = line.wrapping_add($steps * o.ldb);
                for row in &mut rows {
                    *row = row.wrapping_add($steps * o.step);
                }
            };
        }
        for _ in 0..o.k / UNROLL {
            steps!(UNROLL);
        }
        for _ in 0..o.k % UNROLL {
            steps!(1);
        }
        for (i, acc) in acc.iter().enumerate() {
            let c = o.c.add(i * o.ldc);
            if width == NV * V::LANES {
                for (v, &acc) in acc.iter().enumerate() {
                    let c = c.add(v * V::LANES);
                    let sum = if o.accumulate {
                        V::load(c).add(acc)
                    } else if o.bias.is_null() {
                        acc
                    } else {
                        acc.add(V::load(o.bias.add(v * V::LANES)))
                    };
                    sum.store(c);
                }
            } else {
                // The widest panel has 32 columns.
                let mut line = [T::ZERO; 32];
                for (v, &acc) in acc.iter().enumerate() {
                    acc.store(line.as_mut_ptr().add(v * V::LANES));
                }
                for (j, &value) in line.iter().enumerate().take(width) {
                    *c.add(j) = finished(&o, c, j, value);
                }
            }
        }
    }
}

/// `m` rows against one panel, the register's own way if it has one; else blocks of `MR` rows, then of 4, 2 and 1. Two rows left over are joined with a whole block
/// of 6 into two blocks of 4, which keeps the multiply-add units busier.
#[inline(always)]
pub(super) unsafe fn strip<T: Real, V: Vector<T>, const MR: usize, const NV: usize>(
    m: usize,
    o: Operands<T>,
    width: usize,
) {
    unsafe {
        if NV <= 2 && o.k > 0 && V::strip(m, o, width) {
            return;
        }
        let (whole, rest) = (m / MR, m % MR);
        let joined = MR == 6 && rest == 2 && whole > 0;
        let whole = whole - usize::from(joined);
        let mut i = 0;
        macro_rules! rows {
            ($rows:expr, $more:expr) => {
                while $more(i) {
                    let (a, c) = (o.a.add(i * o.row), o.c.add(i * o.ldc));
                    block::<T, V, { $rows }, NV>(Operands { a, c, ..o }, width);
                    i += $rows;
                }
            };
        }
        rows!(MR, |i| i < whole * MR);
        rows!(4, |i| MR > 4 && i + 4 <= m);
        rows!(2, |i| MR > 2 && i + 2 <= m);
        rows!(1, |i| i < m);
    }
}

/// `c (m x n) (+)= a (m x k) * packed (k x n) [+ bias]` in panels of `NV` registers.
#[inline(always)]
unsafe fn matmul_body<T: Real, V: Vector<T>, const MR: usize, const NV: usize>(
    (m, k, n): (usize, usize, usize),
    a: *const T,
    packed: *const T,
    c: *mut T,
    accumulate: bool,
    bias: *const T,
) {
    let panel = NV * V::LANES;
    let all = Operands {
        k,
        a,
        row: k,
        step: 1,
        b: packed,
        ldb: panel,
        c,
        ldc: n,
        accumulate,
        bias,
    };
    // SAFETY: the caller's shapes; a register of the matrix for each of eight of the result.
    let mut j = unsafe {
        match k {
            1 if n >= 4 * panel => few_rows::<T, V, NV, 1, 4>((m, n), all),
            2 if n >= 2 * panel => few_rows::<T, V, NV, 2, 2>((m, n), all),
            _ => 0,
        }
    };
    while j < n {
        // SAFETY: the caller's shapes; panel `j` starts `j k` numbers into the packed matrix.
        unsafe {
            let (b, c) = (packed.add(j * k), c.add(j));
            let o = Operands {
                b,
                c,
                bias: if bias.is_null() { bias } else { bias.add(j) },
                ..all
            };
            match n - j {
                1 => few_columns::<T, V, 1>(m, o),
                2 => few_columns::<T, V, 2>(m, o),
                width => strip::<T, V, MR, NV>(m, o, panel.min(width)),
            }
        }
        j += panel;
    }
}

/// Rows of a panel that [`outer`] copies at a time: those of a tile, mostly.
const PANEL_ROWS: usize = 80;
/// Bytes from row to row from which on the lines of a panel fall onto each other in the first-level cache, and columns of the left operand
/// for which a copy of the panel is worth its time.
const FAR: usize = 384;
const OFTEN: usize = 48;

/// `c (ka x kb) += sum over rows r of a[r]^T b[r]`: panels of `NV` registers, then of one, then single columns.
#[inline(always)]
unsafe fn outer_body<T: Real, V: Vector<T>, const MR: usize, const NV: usize>(
    (rows, ka, kb): (usize, usize, usize),
    a: *const T,
    b: *const T,
    c: *mut T,
) {
    let operands = |i: usize, j: usize| {
        // SAFETY: row `i < ka` and column `j < kb` of the result.
        let (a, b, c) = unsafe { (a.add(i), b.add(j), c.add(i * kb + j)) };
        Operands {
            k: rows,
            a,
            row: 1,
            step: ka,
            b,
            ldb: kb,
            c,
            ldc: kb,
            accumulate: true,
            bias: std::ptr::null(),
        }
    };
    let panel = NV * V::LANES;
    let copied = ka >= OFTEN && kb * size_of::<T>() >= FAR;
    // The widest panel has 32 columns.
    let mut lines = [MaybeUninit::<T>::uninit(); PANEL_ROWS * 32];
    let lines = lines.as_mut_ptr().cast::<T>();
    let mut j = 0;
    // SAFETY: the caller's shapes; each strip stays within `kb` columns, and reads those lines that were written.
    unsafe {
        while j + panel <= kb {
            let o = operands(0, j);
            if copied {
                let mut start = 0;
                while start < rows {
                    let k = PANEL_ROWS.min(rows - start);
                    for r in 0..k {
                        let (from, to) = (o.b.add((start + r) * kb), lines.add(r * panel));
                        for v in 0..NV {
                            V::load(from.add(v * V::LANES)).store(to.add(v * V::LANES));
                        }
                    }
                    let part = Operands {
                        k,
                        a: o.a.add(start * ka),
                        b: lines,
                        ldb: panel,
                        ..o
                    };
                    strip::<T, V, MR, NV>(ka, part, panel);
                    start += k;
                }
            } else {
                strip::<T, V, MR, NV>(ka, o, panel);
            }
            j += panel;
        }
        while j + V::LANES <= kb {
            strip::<T, V, 6, 1>(ka, operands(0, j), V::LANES);
            j += V::LANES;
        }
        while j < kb {
            let mut i = outer_column::<T, V, 8>(ka, operands(0, j));
            i += outer_column::<T, V, 1>(ka - i, operands(i, j));
            strip::<T, Plain<T, 1>, 6, 1>(ka - i, operands(i, j), 1);
            j += 1;
        }
    }
}

/// Compiles a product for every instruction set: rows of a block and registers of a panel are chosen so that the block of
/// the result, one line of `b` and one element of `a` fill the registers.
macro_rules! product {
    ($(#[$meta:meta])* $name:ident = $body:ident($($arg:ident: $ty:ty),*)) => {
        $(#[$meta])*
                pub(crate) unsafe fn $name<T: Real>(isa: Isa, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
                        unsafe fn avx2<T: Real>($($arg: $ty),*) {
                unsafe {
                    if T::Avx2::LANES == 8 {
                        $body::<T, T::Avx2, 6, 2>($($arg),*)
                    } else {
                        $body::<T, T::Avx2, 3, 4>($($arg),*)
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                        unsafe fn avx512<T: Real>($($arg: $ty),*) {
                unsafe {
                    if T::Avx512::LANES == 16 {
                        $body::<T, T::Avx512, 12, 2>($($arg),*)
                    } else {
                        $body::<T, T::Avx512, 6, 4>($($arg),*)
                    }
                }
            }
            // SAFETY: an Isa other than Portable exists only where its features do; the pointers are the caller's promise.
            unsafe {
                match isa.0 {
                    #[cfg(target_arch = "x86_64")]
                    super::Path::Avx512 => avx512::<T>($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    super::Path::Avx2 => avx2::<T>($($arg),*),
                    _ => $body::<T, Plain<T, 4>, 2, 4>($($arg),*),
                }
            }
        }
    };
}

pub(super) use product;

product! {
    /// `c (m x n) (+)= a (m x k) * packed (k x n)`, for the shape `(m, k, n)`; without `accumulate` plus the row `bias`, if not null.
    matmul = matmul_body(shape: (usize, usize, usize), a: *const T, packed: *const T, c: *mut T, accumulate: bool, bias: *const T)
}
product! {
    /// `c (ka x kb) += sum over rows r of a[r]^T b[r]`, for the shape `(rows, ka, kb)`.
    outer = outer_body(shape: (usize, usize, usize), a: *const T, b: *const T, c: *mut T)
}
/// `c (m x m) += a b^T` for two `m x k` matrices: a Gram matrix, summed over tiles. `packed` is room for the packed `b`.
///
/// # Panics
/// If a slice does not have the length its shape says.
pub(crate) fn add_gram(
    isa: Isa,
    (m, k): (usize, usize),
    a: &[f64],
    b: &[f64],
    packed: &mut [f64],
    c: &mut [f64],
) {
    assert!(a.len() == m * k && b.len() == m * k && c.len() == m * m);
    assert_eq!(packed.len(), packed_len(isa, k, m));
    pack(isa, k, m, b, true, packed);
    // SAFETY: the lengths were checked just now.
    unsafe {
        matmul(
            isa,
            (m, k, m),
            a.as_ptr(),
            packed.as_ptr(),
            c.as_mut_ptr(),
            true,
            std::ptr::null(),
        );
    }
}

/// GFLOP/s of a large single-precision product on all threads of the pool, run for about `seconds`: what a step can
/// be measured against.
pub fn sgemm_peak(pool: &crate::engine::Pool, isa: Isa, seconds: f64) -> f64 {
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
                        (SIZE, SIZE, SIZE),
                        a.as_ptr(),
                        packed.as_ptr(),
                        c.as_mut_ptr(),
                        false,
                        std::ptr::null(),
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
                (31, 21, 1),
                (15, 70, 2),
                (14, 6, 18),
            ] {
                for transposed in [false, true] {
                    let (a, w, c0) = (numbers(m * k, 1), numbers(k * n, 2), numbers(m * n, 3));
                    let mut packed = vec![0.0; packed_len(isa, k, n)];
                    pack(isa, k, n, &w, transposed, &mut packed);
                    let row = numbers(n, 10);
                    for (accumulate, biased) in [(false, false), (true, false), (false, true)] {
                        let mut c = c0.clone();
                        let bias = if biased {
                            row.as_ptr()
                        } else {
                            std::ptr::null()
                        };
                        // SAFETY: the buffers have the lengths the shapes say.
                        unsafe {
                            matmul(
                                isa,
                                (m, k, n),
                                a.as_ptr(),
                                packed.as_ptr(),
                                c.as_mut_ptr(),
                                accumulate,
                                bias,
                            );
                        }
                        for i in 0..m {
                            for j in 0..n {
                                let start = match (accumulate, biased) {
                                    (true, _) => c0[i * n + j],
                                    (_, true) => row[j],
                                    _ => 0.0,
                                };
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
                let (a, b, mut c) = (numbers(m * k, 7), numbers(m * k, 8), numbers(m * m, 9));
                let before = c.clone();
                let mut packed = vec![0.0; packed_len(isa, k, m)];
                add_gram(isa, (m, k), &a, &b, &mut packed, &mut c);
                for (at, value) in c.iter().enumerate() {
                    let (i, j) = (at / m, at % m);
                    let product: f64 = (0..k).map(|p| a[i * k + p] * b[j * k + p]).sum();
                    assert!((value - before[at] - product).abs() < 1e-12, "{isa} gram");
                }
                let (a, b, c0) = (numbers(m * k, 4), numbers(m * n, 5), numbers(k * n, 6));
                let mut c = c0.clone();
                // SAFETY: as above.
                unsafe { outer(isa, (m, k, n), a.as_ptr(), b.as_ptr(), c.as_mut_ptr()) };
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

    /// Blocks of every number of rows and panels of every width, in single precision: whole numbers, so that every order gives the same.
    #[test]
    fn single_precision_is_exact_on_whole_numbers_for_every_block() {
        let whole = |n: usize, seed: usize| -> Vec<f32> {
            (0..n)
                .map(|i| ((i * 29 + seed * 53) % 17) as f32 - 8.0)
                .collect()
        };
        for isa in Isa::available() {
            for m in (1..=26).chain([75]) {
                for (k, n) in [
                    (1, 130),
                    (2, 66),
                    (3, 5),
                    (7, 16),
                    (9, 17),
                    (5, 32),
                    (4, 51),
                ] {
                    let (a, w, row) = (whole(m * k, 1), whole(k * n, 2), whole(n, 3));
                    let mut packed = vec![0.0; packed_len(isa, k, n)];
                    pack(isa, k, n, &w, false, &mut packed);
                    let dot = |i: usize, j: usize| -> f32 {
                        (0..k).map(|p| a[i * k + p] * w[p * n + j]).sum()
                    };
                    for (accumulate, bias) in [
                        (false, std::ptr::null()),
                        (true, std::ptr::null()),
                        (false, row.as_ptr()),
                    ] {
                        // One more number, which must stay as it is.
                        let before = whole(m * n + 1, 4);
                        let mut c = before.clone();
                        let (a, packed) = (a.as_ptr(), packed.as_ptr());
                        // SAFETY: the buffers have the lengths the shapes say.
                        unsafe {
                            matmul(isa, (m, k, n), a, packed, c.as_mut_ptr(), accumulate, bias);
                        }
                        for (at, &value) in c.iter().enumerate() {
                            let exact = match (at < m * n, accumulate, bias.is_null()) {
                                (false, ..) => before[at],
                                (_, true, _) => before[at] + dot(at / n, at % n),
                                (_, _, false) => row[at % n] + dot(at / n, at % n),
                                _ => dot(at / n, at % n),
                            };
                            assert_eq!(value, exact, "{isa} {m} {k} {n} at {at}");
                        }
                    }
                    let b = whole(m * n, 5);
                    let before = whole(k * n, 6);
                    let mut c = before.clone();
                    // SAFETY: as above.
                    unsafe { outer(isa, (m, k, n), a.as_ptr(), b.as_ptr(), c.as_mut_ptr()) };
                    for (at, &value) in c.iter().enumerate() {
                        let sum: f32 = (0..m).map(|r| a[r * k + at / n] * b[r * n + at % n]).sum();
                        assert_eq!(value, before[at] + sum, "{isa} outer {m} {k} {n} at {at}");
                    }
                }
            }
        }
    }
}
