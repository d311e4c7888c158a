//! Vectors of one register's width, for the matrix products: what the compiler makes of arrays depends on where it
//! inlines them; what it makes of these does not.

use super::Real;

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
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($name:ident, $t:ty, $lanes:literal, $set:ident, $load:ident, $store:ident, $fma:ident, $add:ident, $mul:ident) => {
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
            }
        };
    }

    #[rustfmt::skip]
    vector!(__m256, f32, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_mul_ps);
    #[rustfmt::skip]
    vector!(__m256d, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd, _mm256_add_pd, _mm256_mul_pd);
    #[rustfmt::skip]
    vector!(__m512, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_mul_ps);
    #[rustfmt::skip]
    vector!(__m512d, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd, _mm512_mul_pd);
}
