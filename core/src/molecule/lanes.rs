//! One number of each of several copies of a molecule, side by side: arithmetic that the compiler turns into vector instructions.
//!
//! Nothing is summed across lanes, so a copy's numbers do not depend on its neighbours.

use crate::base::lanes::ln;
use crate::system::log_sum::exp;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// `L` numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(transparent)]
pub(super) struct Lanes<const L: usize>(pub [f64; L]);

macro_rules! operator {
    ($trait:ident, $method:ident, $op:tt) => {
        impl<const L: usize> $trait for Lanes<L> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.zip(other, |a, b| a $op b)
            }
        }
        impl<const L: usize> $trait<f64> for Lanes<L> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: f64) -> Self {
                self.map(|a| a $op other)
            }
        }
    };
}
operator!(Add, add, +);
operator!(Sub, sub, -);
operator!(Mul, mul, *);
operator!(Div, div, /);

impl<const L: usize> Neg for Lanes<L> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.map(|a| -a)
    }
}

impl<const L: usize> AddAssign for Lanes<L> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<const L: usize> SubAssign for Lanes<L> {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<const L: usize> Lanes<L> {
    pub const ZERO: Self = Lanes([0.0; L]);

    #[inline(always)]
    pub fn splat(x: f64) -> Self {
        Lanes([x; L])
    }

    #[inline(always)]
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let mut out = [0.0; L];
        for (out, a) in out.iter_mut().zip(&self.0) {
            *out = f(*a);
        }
        Lanes(out)
    }

    #[inline(always)]
    pub fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let mut out = [0.0; L];
        for (out, (a, b)) in out.iter_mut().zip(self.0.iter().zip(&other.0)) {
            *out = f(*a, *b);
        }
        Lanes(out)
    }

    /// `self * b + c`, fused where that is an instruction.
    #[inline(always)]
    pub fn mul_add<const FMA: bool>(self, b: Self, c: Self) -> Self {
        let mut out = c.0;
        for (out, (a, b)) in out.iter_mut().zip(self.0.iter().zip(&b.0)) {
            *out = if FMA {
                a.mul_add(*b, *out)
            } else {
                a * b + *out
            };
        }
        Lanes(out)
    }

    #[inline(always)]
    pub fn sqrt(self) -> Self {
        self.map(f64::sqrt)
    }

    #[inline(always)]
    pub fn recip(self) -> Self {
        self.map(|a| 1.0 / a)
    }

    #[inline(always)]
    pub fn abs(self) -> Self {
        self.map(f64::abs)
    }

    #[inline(always)]
    pub fn max(self, other: f64) -> Self {
        self.map(|a| if a > other { a } else { other })
    }

    /// Of positive normal numbers.
    #[inline(always)]
    pub fn ln(self) -> Self {
        self.map(ln)
    }

    /// Of numbers that are not positive.
    #[inline(always)]
    pub fn exp<const FMA: bool>(self) -> Self {
        self.map(exp::<FMA>)
    }

    /// By `1 - 2 e / (1 + e)`, `e = exp(-2 |x|)`: absolute error below 1e-15.
    #[inline(always)]
    pub fn tanh<const FMA: bool>(self) -> Self {
        self.map(|x| {
            let e = exp::<FMA>(-2.0 * x.abs());
            ((1.0 - e) / (1.0 + e)).copysign(x)
        })
    }

    /// 2 atan(x) for the tangent of half an angle: the angle is halved three times, `tan(a/2) = t / (1 + sqrt(1 + t^2))`, and what is
    /// left, below 0.2, has a short series.
    #[inline(always)]
    pub fn twice_atan(self) -> Self {
        self.map(|x| {
            let mut t = x;
            for _ in 0..3 {
                t /= 1.0 + (1.0 + t * t).sqrt();
            }
            let s = -t * t;
            let mut sum = 0.0;
            // 1/23, 1/21, ... 1/1: the next term is below 1e-18.
            for k in 0..12 {
                sum = sum * s + 1.0 / (23 - 2 * k) as f64;
            }
            16.0 * t * sum
        })
    }
}

/// Three of them: a vector of space.
#[derive(Clone, Copy)]
pub(super) struct Vector<const L: usize>(pub [Lanes<L>; 3]);

impl<const L: usize> Vector<L> {
    pub const ZERO: Self = Vector([Lanes::ZERO; 3]);

    /// The position of an atom.
    #[inline(always)]
    pub fn load(from: &[Lanes<L>], atom: usize) -> Self {
        Vector([from[3 * atom], from[3 * atom + 1], from[3 * atom + 2]])
    }

    /// Adds to the force on an atom.
    #[inline(always)]
    pub fn add_to(self, forces: &mut [Lanes<L>], atom: usize) {
        let force = &mut forces[3 * atom..3 * atom + 3];
        for (force, part) in force.iter_mut().zip(self.0) {
            *force += part;
        }
    }

    #[inline(always)]
    pub fn sub(self, b: Self) -> Self {
        Vector(std::array::from_fn(|k| self.0[k] - b.0[k]))
    }

    #[inline(always)]
    pub fn plus(self, b: Self) -> Self {
        Vector(std::array::from_fn(|k| self.0[k] + b.0[k]))
    }

    #[inline(always)]
    pub fn times(self, b: Lanes<L>) -> Self {
        Vector(std::array::from_fn(|k| self.0[k] * b))
    }

    #[inline(always)]
    pub fn dot<const FMA: bool>(self, b: Self) -> Lanes<L> {
        let [x, y, z] = self.0;
        x.mul_add::<FMA>(b.0[0], y.mul_add::<FMA>(b.0[1], z * b.0[2]))
    }

    #[inline(always)]
    pub fn cross(self, b: Self) -> Self {
        let ([x, y, z], [u, v, w]) = (self.0, b.0);
        Vector([y * w - z * v, z * u - x * w, x * v - y * u])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_agree_with_the_library() {
        for i in 0..100_000 {
            let x = (f64::from(i) / 50_000.0 - 1.0) * 20.0;
            let [found] = Lanes([x]).tanh::<false>().0;
            assert!((found - x.tanh()).abs() < 4e-16, "{x}: {found}");
            let [found] = Lanes([x]).twice_atan().0;
            assert!((found - 2.0 * x.atan()).abs() < 2e-15, "{x}: {found}");
        }
        let [found] = Lanes([1e9]).twice_atan().0;
        assert!((found - 2.0 * 1e9_f64.atan()).abs() < 2e-15);
    }
}
