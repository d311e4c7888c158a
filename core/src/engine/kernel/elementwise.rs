//! Element-wise kernels; every one may write over its own operands.

use super::{Real, kernels};

/// Elements loaded before any is stored; a multiple of every vector width.
const BLOCK: usize = 32;

/// Keeps blocks apart: the compiler would rather work on sixteen of them at once, and on AVX-512 fetch every 32nd number with a gather, which is several times slower.
#[inline(always)]
pub(super) fn block_done() {
    // SAFETY: no instruction at all.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags))
    }
}

/// `out[i] = f(a[i])`.
#[inline(always)]
unsafe fn map1<T: Real>(n: usize, a: *const T, out: *mut T, f: impl Fn(T) -> T) {
    unsafe {
        let mut i = 0;
        while i + BLOCK <= n {
            let x = *(a.add(i) as *const [T; BLOCK]);
            let mut y = [T::ZERO; BLOCK];
            for j in 0..BLOCK {
                y[j] = f(x[j]);
            }
            *(out.add(i) as *mut [T; BLOCK]) = y;
            block_done();
            i += BLOCK;
        }
        while i < n {
            *out.add(i) = f(*a.add(i));
            i += 1;
        }
    }
}

/// `out[i] = f(a[i], b[i])`.
#[inline(always)]
unsafe fn map2<T: Real>(n: usize, a: *const T, b: *const T, out: *mut T, f: impl Fn(T, T) -> T) {
    unsafe {
        let mut i = 0;
        while i + BLOCK <= n {
            let (x, y) = (
                *(a.add(i) as *const [T; BLOCK]),
                *(b.add(i) as *const [T; BLOCK]),
            );
            let mut z = [T::ZERO; BLOCK];
            for j in 0..BLOCK {
                z[j] = f(x[j], y[j]);
            }
            *(out.add(i) as *mut [T; BLOCK]) = z;
            block_done();
            i += BLOCK;
        }
        while i < n {
            *out.add(i) = f(*a.add(i), *b.add(i));
            i += 1;
        }
    }
}

/// `out[i] = f(a[i], b[i], c[i])`.
#[inline(always)]
unsafe fn map3<T: Real>(
    n: usize,
    (a, b, c): (*const T, *const T, *const T),
    out: *mut T,
    f: impl Fn(T, T, T) -> T,
) {
    unsafe {
        let mut i = 0;
        while i + BLOCK <= n {
            let [x, y, z] = [a, b, c].map(|from| *(from.add(i) as *const [T; BLOCK]));
            let mut w = [T::ZERO; BLOCK];
            for j in 0..BLOCK {
                w[j] = f(x[j], y[j], z[j]);
            }
            *(out.add(i) as *mut [T; BLOCK]) = w;
            block_done();
            i += BLOCK;
        }
        while i < n {
            *out.add(i) = f(*a.add(i), *b.add(i), *c.add(i));
            i += 1;
        }
    }
}

/// Logistic function.
#[inline(always)]
fn sigmoid<T: Real, const FMA: bool>(z: T) -> T {
    T::ONE / (T::ONE + (-z).exp::<FMA>())
}

/// Derivative of order `K` of `z sigmoid(z)`: `z s^(K) + K s^(K-1)`, where `s' = s (1 - s)`, `s'' = s' (1 - 2 s)` and
/// `s''' = s' (1 - 6 s')`.
#[inline(always)]
fn silu<T: Real, const FMA: bool, const K: usize>(z: T, s: T) -> T {
    let c = |x: f64| T::from_f64(x);
    let s1 = s - s * s;
    match K {
        0 => z * s,
        1 => z.mul_add::<FMA>(s1, s),
        2 => s1 * z.mul_add::<FMA>(T::ONE - c(2.0) * s, c(2.0)),
        _ => s1 * z.mul_add::<FMA>(T::ONE - c(6.0) * s1, c(3.0) * (T::ONE - c(2.0) * s)),
    }
}

/// `p(z)` and its derivatives of [`Function::Gelu`](crate::engine::Function::Gelu).
#[inline(always)]
fn gelu_exponent<T: Real, const FMA: bool>(z: T) -> [T; 4] {
    const STEEP: f64 = 1.595_769_121_605_730_7;
    const CUBIC: f64 = 0.044715 * STEEP;
    let c = |x: f64| T::from_f64(x);
    let square = z * z;
    let p = z * square.mul_add::<FMA>(c(CUBIC), c(STEEP));
    let p1 = square.mul_add::<FMA>(c(3.0 * CUBIC), c(STEEP));
    [p, p1, c(6.0 * CUBIC) * z, c(6.0 * CUBIC)]
}

/// Derivative of order `K` of `z s(p(z))`: `z g^(K) + K g^(K-1)` with `g = s(p)`, `g' = s' p'`, `g'' = s'' p'^2 + s' p''` and
/// `g''' = s''' p'^3 + 3 s'' p' p'' + s' p'''`; see [`silu`] for the derivatives of s.
#[inline(always)]
fn gelu<T: Real, const FMA: bool, const K: usize>(z: T, s: T) -> T {
    let c = |x: f64| T::from_f64(x);
    let [_, p1, p2, p3] = gelu_exponent::<T, FMA>(z);
    let s1 = s - s * s;
    let s2 = s1 * (T::ONE - c(2.0) * s);
    let s3 = s1 * (T::ONE - c(6.0) * s1);
    let g1 = s1 * p1;
    let g2 = (s2 * p1).mul_add::<FMA>(p1, s1 * p2);
    match K {
        0 => z * s,
        1 => z.mul_add::<FMA>(g1, s),
        2 => z.mul_add::<FMA>(g2, c(2.0) * g1),
        _ => {
            let g3 = (s3 * p1).mul_add::<FMA>(p1 * p1, c(3.0) * s2 * p1 * p2) + s1 * p3;
            z.mul_add::<FMA>(g3, c(3.0) * g2)
        }
    }
}

/// Every order of SiLU (of GELU if `GELU`) that `outs` asks for (null = not wanted), with one exponential per element.
#[inline(always)]
unsafe fn orders_block<T: Real, const FMA: bool, const GELU: bool, const B: usize>(
    z: *const T,
    i: usize,
    outs: &[*mut T; 4],
) {
    unsafe {
        let x = *(z.add(i) as *const [T; B]);
        let mut s = [T::ZERO; B];
        for j in 0..B {
            s[j] = sigmoid::<T, FMA>(if GELU {
                gelu_exponent::<T, FMA>(x[j])[0]
            } else {
                x[j]
            });
        }
        let mut y = [T::ZERO; B];
        macro_rules! order {
            ($k:literal) => {
                if !outs[$k].is_null() {
                    for j in 0..B {
                        y[j] = if GELU {
                            gelu::<T, FMA, $k>(x[j], s[j])
                        } else {
                            silu::<T, FMA, $k>(x[j], s[j])
                        };
                    }
                    *(outs[$k].add(i) as *mut [T; B]) = y;
                }
            };
        }
        order!(0);
        order!(1);
        order!(2);
        order!(3);
    }
}

kernels! {
    /// `out = a + b`.
    fn add<T>(n: usize, a: *const T, b: *const T, out: *mut T) {
        map2(n, a, b, out, |x, y| x + y)
    }
    /// `out = a - b`.
    fn sub<T>(n: usize, a: *const T, b: *const T, out: *mut T) {
        map2(n, a, b, out, |x, y| x - y)
    }
    /// `out = a * b`.
    fn mul<T>(n: usize, a: *const T, b: *const T, out: *mut T) {
        map2(n, a, b, out, |x, y| x * y)
    }
    /// `out = a * b * c`, each product rounded.
    fn mul_mul<T>(n: usize, a: *const T, b: *const T, c: *const T, out: *mut T) {
        map3(n, (a, b, c), out, |x, y, z| x * y * z)
    }
    /// `out = a * b + c`, the product rounded.
    fn mul_plus<T>(n: usize, a: *const T, b: *const T, c: *const T, out: *mut T) {
        map3(n, (a, b, c), out, |x, y, z| x * y + z)
    }
    /// `out = scale a + shift`.
    fn affine<T>(n: usize, scale: T, shift: T, a: *const T, out: *mut T) {
        map1(n, a, out, |x| x.mul_add::<FMA>(scale, shift))
    }
    /// `out = sigmoid(a)`.
    fn logistic<T>(n: usize, a: *const T, out: *mut T) {
        map1(n, a, out, sigmoid::<T, FMA>)
    }
    /// `out = exp(a)`.
    fn exponential<T>(n: usize, a: *const T, out: *mut T) {
        map1(n, a, out, |x| x.exp::<FMA>())
    }
    /// `out = ln(1 + exp(a))`, without overflow.
    fn softplus<T>(n: usize, a: *const T, out: *mut T) {
        map1(n, a, out, |x| {
            let (big, minus) = if x > T::ZERO { (x, -x) } else { (T::ZERO, x) };
            big + (T::ONE + minus.exp::<FMA>()).ln()
        })
    }
    /// `out = ln(a)`.
    fn logarithm<T>(n: usize, a: *const T, out: *mut T) {
        map1(n, a, out, |x| x.ln())
    }
    /// `out = sin(a)`.
    fn sine<T>(n: usize, a: *const T, out: *mut T) {
        map1(n, a, out, |x| x.sin())
    }
    /// `out = cos(a)`.
    fn cosine<T>(n: usize, a: *const T, out: *mut T) {
        map1(n, a, out, |x| x.cos())
    }
    /// `out = a^p`, with the common powers in vector instructions.
    fn power<T>(n: usize, p: f64, a: *const T, out: *mut T) {
        if p == -1.0 {
            map1(n, a, out, |x| T::ONE / x)
        } else if p == 0.5 {
            map1(n, a, out, |x| x.sqrt())
        } else if p == -0.5 {
            map1(n, a, out, |x| T::ONE / x.sqrt())
        } else if p == -1.5 {
            map1(n, a, out, |x| T::ONE / (x * x.sqrt()))
        } else if p == -2.0 {
            map1(n, a, out, |x| T::ONE / (x * x))
        } else if p == -2.5 {
            map1(n, a, out, |x| T::ONE / (x * x * x.sqrt()))
        } else if p == -3.0 {
            map1(n, a, out, |x| T::ONE / (x * x * x))
        } else {
            map1(n, a, out, |x| x.powf(p))
        }
    }
    /// Derivatives of SiLU of orders 0 to 3 at `z`, those whose target is not null.
    fn silu_orders<T>(n: usize, z: *const T, outs: [*mut T; 4]) {
        let mut i = 0;
        while i + BLOCK <= n {
            orders_block::<T, FMA, false, BLOCK>(z, i, &outs);
            i += BLOCK;
        }
        while i < n {
            orders_block::<T, FMA, false, 1>(z, i, &outs);
            i += 1;
        }
    }
    /// Derivatives of GELU of orders 0 to 3 at `z`, those whose target is not null.
    fn gelu_orders<T>(n: usize, z: *const T, outs: [*mut T; 4]) {
        let mut i = 0;
        while i + BLOCK <= n {
            orders_block::<T, FMA, true, BLOCK>(z, i, &outs);
            i += BLOCK;
        }
        while i < n {
            orders_block::<T, FMA, true, 1>(z, i, &outs);
            i += 1;
        }
    }
    /// `out[r] = a[r] + b` for every row.
    fn bias<T>(rows: usize, cols: usize, a: *const T, b: *const T, out: *mut T) {
        for r in 0..rows {
            map2(cols, a.add(r * cols), b, out.add(r * cols), |x, y| x + y)
        }
    }
    /// `out[r] = s[r] a[r]`; with `accumulate`, `out[r] += s[r] a[r]`.
    fn mul_column<T>(rows: usize, cols: usize, a: *const T, s: *const T, out: *mut T, accumulate: bool) {
        if cols == 3 {
            // Points in space: rows of known length.
            let (a, out) = (a as *const [T; 3], out as *mut [T; 3]);
            for r in 0..rows {
                let (s, x, y) = (*s.add(r), *a.add(r), *out.add(r));
                *out.add(r) = if accumulate {
                    std::array::from_fn(|c| x[c].mul_add::<FMA>(s, y[c]))
                } else {
                    x.map(|x| x * s)
                };
            }
            return;
        }
        for r in 0..rows {
            let s = *s.add(r);
            if accumulate {
                let out = out.add(r * cols);
                map2(cols, a.add(r * cols), out, out, |x, y| x.mul_add::<FMA>(s, y))
            } else {
                map1(cols, a.add(r * cols), out.add(r * cols), |x| x * s)
            }
        }
    }
}
