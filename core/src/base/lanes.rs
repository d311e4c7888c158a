//! Blocks of rows side by side in lanes: products with a matrix, a logarithm and shares, as loops that the compiler vectorises.
//!
//! A block holds [`LANES`] rows; number j of all of them is one array of lanes. Nothing is summed across lanes, so a row's result
//! does not depend on its neighbours.

use crate::engine::Real;
use crate::engine::kernel::dispatch::Loop;
use crate::system::log_sum::{exp, polynomial};

/// Rows of a block.
pub(super) const LANES: usize = 16;

/// One number of every row of a block.
pub(super) type Lane<T> = [T; LANES];

/// 1/23, 1/21, ... 1/3: the series of artanh from its last term.
const ODD_FRACTIONS: [f64; 11] = {
    let mut series = [0.0; 11];
    let mut k = 0;
    while k < 11 {
        series[k] = 1.0 / (23 - 2 * k) as f64;
        k += 1;
    }
    series
};

/// Natural logarithm of a positive normal number, error below 2 ulp; vectorises.
///
/// x = 2^e m with m in [sqrt 1/2, sqrt 2), ln m = 2 artanh s, s = (m - 1)/(m + 1), by its series (|s| < 0.172: the first term
/// left out is below 1e-18).
#[inline(always)]
pub(crate) fn ln(x: f64) -> f64 {
    /// 2^52 + 1023: an exponent in the low bits of a number near 2^52 becomes a number by one subtraction.
    const MAGIC: f64 = 4_503_599_627_371_519.0;
    let bits = x.to_bits();
    let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    let exponent = f64::from_bits((bits >> 52) | 0x4330_0000_0000_0000) - MAGIC;
    let high = mantissa > std::f64::consts::SQRT_2;
    let m = if high { 0.5 * mantissa } else { mantissa };
    let e = if high { exponent + 1.0 } else { exponent };
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let sum = polynomial::<false, 11>(ODD_FRACTIONS, s2);
    e * std::f64::consts::LN_2 + (2.0 * s + 2.0 * s * s2 * sum)
}

/// `out[r] (+)= sum_j matrix[r][j] x[j]` for the rows of a block.
#[inline(always)]
pub(super) fn multiply<T: Real, const FMA: bool, const ADD: bool>(
    matrix: &[T],
    x: &[Lane<T>],
    out: &mut [Lane<T>],
) {
    let dim = x.len();
    let (rows, out) = (matrix.chunks(4 * dim), out.chunks_mut(4));
    for (rows, out) in rows.zip(out) {
        if let Ok(out) = <&mut [Lane<T>; 4]>::try_from(&mut *out) {
            strip::<T, FMA, ADD, 4>(rows, x, out);
        } else {
            for (row, out) in rows.chunks(dim).zip(out) {
                strip::<T, FMA, ADD, 1>(row, x, std::array::from_mut(out));
            }
        }
    }
}

/// `R` rows of the result, kept in registers.
#[inline(always)]
fn strip<T: Real, const FMA: bool, const ADD: bool, const R: usize>(
    rows: &[T],
    x: &[Lane<T>],
    out: &mut [Lane<T>; R],
) {
    let dim = x.len();
    let mut sums = if ADD { *out } else { [[T::ZERO; LANES]; R] };
    let rows: [&[T]; R] = std::array::from_fn(|r| &rows[r * dim..][..dim]);
    for (j, x) in x.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(&rows) {
            let factor = row[j];
            for lane in 0..LANES {
                sums[lane] = factor.mul_add::<FMA>(x[lane], sums[lane]);
            }
        }
    }
    *out = sums;
}

/// Turns the log-terms of every lane into shares of their sum and gives the log of the sum. Shares below `least` become zero, so
/// that what they weigh can be left out without changing a bit.
#[inline(always)]
pub(super) fn shares<const FMA: bool>(terms: &mut [Lane<f64>], least: f64) -> Lane<f64> {
    let mut largest = [f64::NEG_INFINITY; LANES];
    for term in terms.iter() {
        for lane in 0..LANES {
            largest[lane] = if term[lane] > largest[lane] {
                term[lane]
            } else {
                largest[lane]
            };
        }
    }
    let mut sum = [0.0; LANES];
    for term in terms.iter_mut() {
        for lane in 0..LANES {
            term[lane] = exp::<FMA>(term[lane] - largest[lane]);
            sum[lane] += term[lane];
        }
    }
    for term in terms.iter_mut() {
        for lane in 0..LANES {
            let share = term[lane] / sum[lane];
            term[lane] = if share < least { 0.0 } else { share };
        }
    }
    std::array::from_fn(|lane| largest[lane] + ln(sum[lane]))
}

/// The squared length of `matrix (x - mean)` for every row of a block: `matrix` is lower triangular.
pub(super) struct Whiten<'a> {
    /// Lower triangular, row after row.
    pub matrix: &'a [f64],
    /// Subtracted first.
    pub mean: &'a [f64],
    /// The rows.
    pub x: &'a [Lane<f64>],
    /// Room for as many lanes as columns.
    pub centred: &'a mut [Lane<f64>],
    /// The squared lengths.
    pub out: &'a mut Lane<f64>,
}

impl Loop for Whiten<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let dim = self.mean.len();
        for ((out, x), mean) in self.centred.iter_mut().zip(self.x).zip(self.mean) {
            for lane in 0..LANES {
                out[lane] = x[lane] - mean;
            }
        }
        let mut square = [0.0; LANES];
        // Four rows of the triangle at a time, up to the last column that any of them has.
        for first in (0..dim).step_by(4) {
            let count = 4.min(dim - first);
            let mut sums = [[0.0; LANES]; 4];
            if count == 4 {
                let centred = &self.centred[..first + 4];
                let rows: [&[f64]; 4] =
                    std::array::from_fn(|r| &self.matrix[(first + r) * dim..][..first + 4]);
                for (j, x) in centred.iter().enumerate() {
                    for (sums, row) in sums.iter_mut().zip(&rows) {
                        let factor = row[j];
                        for lane in 0..LANES {
                            sums[lane] = Real::mul_add::<FMA>(factor, x[lane], sums[lane]);
                        }
                    }
                }
            } else {
                for (r, sums) in sums.iter_mut().enumerate().take(count) {
                    let row = &self.matrix[(first + r) * dim..][..first + r + 1];
                    for (factor, x) in row.iter().zip(&*self.centred) {
                        for lane in 0..LANES {
                            sums[lane] = Real::mul_add::<FMA>(*factor, x[lane], sums[lane]);
                        }
                    }
                }
            }
            for sums in sums {
                for lane in 0..LANES {
                    square[lane] = Real::mul_add::<FMA>(sums[lane], sums[lane], square[lane]);
                }
            }
        }
        *self.out = square;
    }
}

/// The squared length of `(x - mean) / width` for every row of a block; `inverse` is one over the squared widths.
pub(super) struct WhitenColumns<'a> {
    /// One over the variances.
    pub inverse: &'a [f64],
    /// Subtracted first.
    pub mean: &'a [f64],
    /// The rows.
    pub x: &'a [Lane<f64>],
    /// The squared lengths.
    pub out: &'a mut Lane<f64>,
}

impl Loop for WhitenColumns<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut square = [0.0; LANES];
        for ((x, mean), inverse) in self.x.iter().zip(self.mean).zip(self.inverse) {
            for lane in 0..LANES {
                let a = x[lane] - mean;
                square[lane] = Real::mul_add::<FMA>(a * inverse, a, square[lane]);
            }
        }
        *self.out = square;
    }
}

/// `out += lines lines^T`, for few lines of equal length.
pub(super) struct AddGram<'a> {
    /// The lines, one after the other.
    pub lines: &'a [Lane<f64>],
    /// How many lines.
    pub dim: usize,
    /// A symmetric matrix.
    pub out: &'a mut [f64],
}

impl Loop for AddGram<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let length = self.lines.len() / self.dim;
        for (i, a) in self.lines.chunks_exact(length).enumerate() {
            for (j, b) in self.lines.chunks_exact(length).enumerate().take(i + 1) {
                let mut sums = [0.0; LANES];
                for (a, b) in a.iter().zip(b) {
                    for lane in 0..LANES {
                        sums[lane] = Real::mul_add::<FMA>(a[lane], b[lane], sums[lane]);
                    }
                }
                // A fixed tree, the same on every path.
                let mut half = LANES / 2;
                while half > 0 {
                    for lane in 0..half {
                        sums[lane] += sums[lane + half];
                    }
                    half /= 2;
                }
                self.out[i * self.dim + j] += sums[0];
                if i != j {
                    self.out[j * self.dim + i] += sums[0];
                }
            }
        }
    }
}

/// [`shares`] as a loop of its own.
pub(super) struct Shares<'a> {
    /// Log-terms on entry, shares on exit.
    pub terms: &'a mut [Lane<f64>],
    /// Smaller shares become zero.
    pub least: f64,
    /// Logs of the sums.
    pub log_sum: &'a mut Lane<f64>,
}

impl Loop for Shares<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        *self.log_sum = shares::<FMA>(self.terms, self.least);
    }
}

/// Copies rows of `dim` numbers into lanes; lanes without a row repeat the last one.
pub(super) fn load<T: Copy>(rows: &[T], dim: usize, out: &mut [Lane<T>]) {
    let count = rows.len() / dim;
    for (j, out) in out.iter_mut().enumerate() {
        for (lane, out) in out.iter_mut().enumerate() {
            *out = rows[lane.min(count - 1) * dim + j];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Isa;
    use crate::engine::kernel::dispatch::dispatch;
    use crate::rng::{Purpose, Stream};
    use crate::system::matrix::{cholesky, inverse_and_log_det, tests::random_covariance};

    #[test]
    fn logarithm_agrees_with_the_library() {
        for i in 0..200_000 {
            let x = (f64::from(i) / 200_000.0 * 1380.0 - 690.0).exp();
            let (found, expected) = (ln(x), x.ln());
            assert!(
                (found - expected).abs() <= 4e-16 * expected.abs().max(0.5),
                "{x}: {found} {expected}"
            );
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn blocks_give_what_plain_loops_give() {
        for dim in [1, 3, 4, 9, 13] {
            let mut stream = Stream::new(3, Purpose::Test, 9, dim as u64);
            let mut rows = vec![0.0; 11 * dim];
            stream.fill_normal_f64(&mut rows);
            let mut x = vec![[0.0; LANES]; dim];
            load(&rows, dim, &mut x);
            let matrix = random_covariance(dim, 40 + dim as u64);
            let mean: Vec<f64> = (0..dim).map(|i| 0.3 + 0.1 * i as f64).collect();
            // (x - mean)^T Sigma^-1 (x - mean) through the inverse of the Cholesky factor.
            let factor = cholesky(&matrix, dim).unwrap();
            let whitening = super::super::fit::lower_inverse(&factor, dim);
            let (inverse, _) = inverse_and_log_det(&matrix, dim).unwrap();
            for isa in Isa::available() {
                let (mut centred, mut out) = (vec![[0.0; LANES]; dim], [0.0; LANES]);
                dispatch(
                    isa,
                    Whiten {
                        matrix: &whitening,
                        mean: &mean,
                        x: &x,
                        centred: &mut centred,
                        out: &mut out,
                    },
                );
                for (lane, found) in out.into_iter().enumerate() {
                    let row = &rows[lane.min(10) * dim..][..dim];
                    let mut expected = 0.0;
                    for i in 0..dim {
                        for j in 0..dim {
                            expected +=
                                (row[i] - mean[i]) * inverse[i * dim + j] * (row[j] - mean[j]);
                        }
                    }
                    assert!((found - expected).abs() < 1e-9 * (1.0 + expected));
                }
            }
        }
    }
}
