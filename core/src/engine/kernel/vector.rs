//! Vectors of one register's width, for the matrix products: what the compiler makes of arrays depends on where it
//! inlines them; what it makes of these does not.

use super::Real;
use super::gemm::Operands;

/// A register of `LANES` numbers.
pub trait Vector<T>: Copy {
    /// Numbers in it.
    const LANES: usize;
    /// Whether `mul_add` rounds once.
    const FUSED: bool;
    /// All lanes equal.
    ///
    /// # Safety
    /// The machine has the instruction set of the type; the same holds for all methods.
    unsafe fn splat(x: T) -> Self;
    /// Reads `LANES` numbers.
    ///
    /// # Safety
    /// They are readable.
    unsafe fn load(from: *const T) -> Self;
    /// Writes `LANES` numbers.
    ///
    /// # Safety
    /// They are writable.
    unsafe fn store(self, to: *mut T);
    /// `self * b + c`.
    ///
    /// # Safety
    /// As for [`Vector::splat`].
    unsafe fn mul_add(self, b: Self, c: Self) -> Self;
    /// `self + b`.
    ///
    /// # Safety
    /// As for [`Vector::splat`].
    unsafe fn add(self, b: Self) -> Self;
    /// `self * b`.
    ///
    /// # Safety
    /// As for [`Vector::splat`].
    unsafe fn mul(self, b: Self) -> Self;
    /// Asks for the line at an address, which will be needed soon.
    ///
    /// # Safety
    /// As for [`Vector::splat`].
    #[inline(always)]
    unsafe fn prefetch(_: *const T) {}
    /// Rows against one panel of at most two registers, where the instruction set has a way of its own; else nothing, and `false`.
    ///
    /// # Safety
    /// As for [`Vector::splat`]; the operands are as large as their shape says, with at least one step.
    #[inline(always)]
    #[allow(private_interfaces)]
    unsafe fn strip(_rows: usize, _operands: Operands<T>, _width: usize) -> bool {
        false
    }
    /// The sum of all lanes: halves upon halves.
    ///
    /// # Safety
    /// As for [`Vector::splat`].
    unsafe fn sum(self) -> T;
}

/// Plain numbers side by side, for any machine and for the last columns of odd matrices.
#[derive(Clone, Copy)]
pub struct Plain<T, const N: usize>([T; N]);

impl<T: Real, const N: usize> Vector<T> for Plain<T, N> {
    const LANES: usize = N;
    const FUSED: bool = false;
    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Plain([x; N])
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        Plain(unsafe { *(from as *const [T; N]) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        unsafe { *(to as *mut [T; N]) = self.0 }
    }
    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] * b.0[i] + c.0[i]))
    }
    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] + b.0[i]))
    }
    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] * b.0[i]))
    }
    #[inline(always)]
    unsafe fn sum(mut self) -> T {
        let mut half = N / 2;
        while half > 0 {
            for i in 0..half {
                self.0[i] += self.0[i + half];
            }
            half /= 2;
        }
        self.0[0]
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Operands, Vector};
    use crate::engine::kernel::wide;
    use std::arch::x86_64::*;

    #[inline(always)]
    unsafe fn sum8(v: __m256) -> f32 {
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn sum4(v: __m256d) -> f64 {
        unsafe {
            let two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn sum16(v: __m512) -> f32 {
        unsafe {
            sum8(_mm256_add_ps(
                _mm512_castps512_ps256(v),
                _mm512_extractf32x8_ps::<1>(v),
            ))
        }
    }

    #[inline(always)]
    unsafe fn sum8d(v: __m512d) -> f64 {
        unsafe {
            sum4(_mm256_add_pd(
                _mm512_castpd512_pd256(v),
                _mm512_extractf64x4_pd::<1>(v),
            ))
        }
    }

    macro_rules! vector {
        ($name:ident, $t:ty, $lanes:literal, $set:ident, $load:ident, $store:ident, $fma:ident, $add:ident, $mul:ident, $sum:ident $(, $strip:path)?) => {
            impl Vector<$t> for $name {
                const LANES: usize = $lanes;
                const FUSED: bool = true;
                #[inline(always)]
                unsafe fn splat(x: $t) -> Self {
                    unsafe { $set(x) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $t) -> Self {
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $t) {
                    unsafe { $store(to, self) }
                }
                #[inline(always)]
                unsafe fn mul_add(self, b: Self, c: Self) -> Self {
                    unsafe { $fma(self, b, c) }
                }
                #[inline(always)]
                unsafe fn add(self, b: Self) -> Self {
                    unsafe { $add(self, b) }
                }
                #[inline(always)]
                unsafe fn mul(self, b: Self) -> Self {
                    unsafe { $mul(self, b) }
                }
                #[inline(always)]
                unsafe fn prefetch(at: *const $t) {
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
                }
                $(
                    #[inline(always)]
                    #[allow(private_interfaces)]
                    unsafe fn strip(rows: usize, operands: Operands<$t>, width: usize) -> bool {
                        unsafe { $strip(rows, operands, width) };
                        true
                    }
                )?
                #[inline(always)]
                unsafe fn sum(self) -> $t {
                    unsafe { $sum(self) }
                }
            }
        };
    }

    #[rustfmt::skip]
    vector!(__m256, f32, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_mul_ps, sum8);
    #[rustfmt::skip]
    vector!(__m256d, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd, _mm256_add_pd, _mm256_mul_pd, sum4);
    #[rustfmt::skip]
    vector!(__m512, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_mul_ps, sum16, wide::strip);
    #[rustfmt::skip]
    vector!(__m512d, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd, _mm512_mul_pd, sum8d);
}
