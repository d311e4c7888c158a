//! `Real`: the two number types of the core, f32 for speed and f64 as the reference, with a branch-free f32 exponential.

use crate::rng::{self, Purpose, Stream};
use std::fmt::{Debug, Display};
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// A floating-point type the core can run in.
pub trait Real:
    Copy
    + Send
    + Sync
    + 'static
    + Default
    + PartialOrd
    + Debug
    + Display
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + crate::engine::run::Execute
{
    /// Register of the AVX2 kernels.
    type Avx2: super::vector::Vector<Self>;
    /// Register of the AVX-512 kernels.
    type Avx512: super::vector::Vector<Self>;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Nearest value of this type.
    fn from_f64(x: f64) -> Self;
    /// Exact widening.
    fn to_f64(self) -> f64;
    /// `self * b + c`, fused where `FMA` says that the machine has the instruction.
    fn mul_add<const FMA: bool>(self, b: Self, c: Self) -> Self;
    /// Exponential.
    fn exp<const FMA: bool>(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `self` to the power `p`.
    fn powf(self, p: f64) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Lets `read` write a row of f32: straight into `out` if that is its type, else through a buffer.
    fn read_row(out: &mut [Self], read: &mut dyn FnMut(&mut [f32]));
    /// Standard normal numbers for rows of `width`; row `i` draws from the stream of row `first_row + i`.
    fn fill_normal_rows(
        seed: u64,
        purpose: Purpose,
        step: u64,
        first_row: u64,
        width: usize,
        out: &mut [Self],
    );
}

impl Real for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = std::arch::x86_64::__m256d;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = std::arch::x86_64::__m512d;
    #[cfg(not(target_arch = "x86_64"))]
    type Avx2 = super::vector::Plain<f64, 1>;
    #[cfg(not(target_arch = "x86_64"))]
    type Avx512 = super::vector::Plain<f64, 1>;
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn mul_add<const FMA: bool>(self, b: f64, c: f64) -> f64 {
        if FMA {
            f64::mul_add(self, b, c)
        } else {
            self * b + c
        }
    }
    #[inline(always)]
    fn exp<const FMA: bool>(self) -> f64 {
        f64::exp(self)
    }
    #[inline(always)]
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    #[inline(always)]
    fn sin(self) -> f64 {
        f64::sin(self)
    }
    #[inline(always)]
    fn cos(self) -> f64 {
        f64::cos(self)
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn powf(self, p: f64) -> f64 {
        f64::powf(self, p)
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
    fn read_row(out: &mut [f64], read: &mut dyn FnMut(&mut [f32])) {
        let mut row = vec![0f32; out.len()];
        read(&mut row);
        out.iter_mut()
            .zip(row)
            .for_each(|(out, x)| *out = f64::from(x));
    }
    fn fill_normal_rows(
        seed: u64,
        purpose: Purpose,
        step: u64,
        first_row: u64,
        width: usize,
        out: &mut [f64],
    ) {
        // The numbers of single precision, widened: the reference path sees the very draws of the fast one.
        for (row, out) in (first_row..).zip(out.chunks_mut(width)) {
            let mut stream = Stream::new(seed, purpose, step, row);
            for out in out.chunks_mut(64) {
                let mut block = [0f32; 64];
                let block = &mut block[..out.len()];
                stream.fill_normal(block);
                out.iter_mut()
                    .zip(block)
                    .for_each(|(out, z)| *out = f64::from(*z));
            }
        }
    }
}

impl Real for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = std::arch::x86_64::__m256;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = std::arch::x86_64::__m512;
    #[cfg(not(target_arch = "x86_64"))]
    type Avx2 = super::vector::Plain<f32, 1>;
    #[cfg(not(target_arch = "x86_64"))]
    type Avx512 = super::vector::Plain<f32, 1>;
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn mul_add<const FMA: bool>(self, b: f32, c: f32) -> f32 {
        if FMA {
            f32::mul_add(self, b, c)
        } else {
            self * b + c
        }
    }
    /// `2^k exp(r)` with `k = round(x / ln 2)`, `|r| <= ln 2 / 2`: branch-free, so that the compiler vectorises it.
    /// Relative error below 1e-7 on [-87.3, 88.3] where multiply-adds are fused; saturates outside; NaN stays NaN.
    #[inline(always)]
    fn exp<const FMA: bool>(self) -> f32 {
        // Comparisons written so that NaN passes through.
        let x = if self < -87.3 { -87.3 } else { self };
        let x = if x > 88.3 { 88.3 } else { x };
        // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low mantissa bits.
        const MAGIC: f32 = 12_582_912.0;
        let shifted = Real::mul_add::<FMA>(x, std::f32::consts::LOG2_E, MAGIC);
        let k = shifted - MAGIC;
        let r = Real::mul_add::<FMA>(k, -0.693_359_4, x);
        let r = Real::mul_add::<FMA>(k, 2.121_944_4e-4, r);
        // 1 + r + r^2 q(r), q of least largest relative error (3e-9) on that interval.
        let mut p = 1.381_454e-3_f32;
        p = Real::mul_add::<FMA>(p, r, 8.368_745e-3);
        p = Real::mul_add::<FMA>(p, r, 4.166_839e-2);
        p = Real::mul_add::<FMA>(p, r, 1.666_652_1e-1);
        p = Real::mul_add::<FMA>(p, r, 0.499_999_94);
        p = Real::mul_add::<FMA>(p, r, 1.0);
        p = Real::mul_add::<FMA>(p, r, 1.0);
        // Wrapping: for NaN the integer is meaningless, and `p` is NaN whatever it is multiplied with.
        let exponent = shifted
            .to_bits()
            .wrapping_sub(MAGIC.to_bits())
            .wrapping_add(127);
        p * f32::from_bits(exponent << 23)
    }
    #[inline(always)]
    fn ln(self) -> f32 {
        f32::ln(self)
    }
    #[inline(always)]
    fn sin(self) -> f32 {
        f32::sin(self)
    }
    #[inline(always)]
    fn cos(self) -> f32 {
        f32::cos(self)
    }
    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn powf(self, p: f64) -> f32 {
        f32::powf(self, p as f32)
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }
    #[inline(always)]
    fn read_row(out: &mut [f32], read: &mut dyn FnMut(&mut [f32])) {
        read(out);
    }
    fn fill_normal_rows(
        seed: u64,
        purpose: Purpose,
        step: u64,
        first_row: u64,
        width: usize,
        out: &mut [f32],
    ) {
        rng::fill_normal_rows(seed, purpose, step, first_row, width, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_exponential_is_accurate_and_keeps_nan() {
        let mut worst = 0.0f64;
        for i in 0..200_000 {
            let x = -87.0 + 175.0 * i as f32 / 200_000.0;
            let exact = (x as f64).exp();
            worst = worst.max((Real::exp::<true>(x) as f64 / exact - 1.0).abs());
            worst = worst.max((Real::exp::<false>(x) as f64 / exact - 1.0).abs());
        }
        assert!(worst < 2e-7, "relative error {worst}");
        assert!(Real::exp::<true>(f32::NAN).is_nan() && Real::exp::<false>(f32::NAN).is_nan());
        assert!(Real::exp::<true>(-1e30_f32) < 1.3e-38 && Real::exp::<true>(1e30_f32) > 1e38);
    }
}
