//! Softmax down the columns of a tile in double precision: the inner loop of every estimator that mixes distributions.
//!
//! A tile holds one row per distribution and [`TILE`] samples side by side, so that each loop below runs along the samples
//! without a sum across a register.

use super::Isa;
use crate::system::log_sum::exp;

/// Samples of a tile.
pub(crate) const TILE: usize = 128;

/// Replaces the entries `t` of every column by `exp(t) / sum exp(t)` and writes `log sum exp(t)` of each column.
///
/// A column whose entries are all minus infinity becomes NaN; the caller keeps such samples out.
///
/// # Panics
/// If the tile is not a whole number of rows of [`TILE`].
pub(crate) fn softmax_columns(isa: Isa, tile: &mut [f64], log_sum: &mut [f64; TILE]) {
    let (rows, rest) = tile.as_chunks_mut::<TILE>();
    assert!(rest.is_empty(), "a tile of whole rows");
    // SAFETY: an Isa other than Portable exists only where `Isa::available` found its features.
    unsafe {
        match isa.0 {
            #[cfg(target_arch = "x86_64")]
            super::Path::Avx512 => avx512(rows, log_sum),
            #[cfg(target_arch = "x86_64")]
            super::Path::Avx2 => avx2(rows, log_sum),
            _ => body::<false>(rows, log_sum),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn avx512(rows: &mut [[f64; TILE]], log_sum: &mut [f64; TILE]) {
    body::<true>(rows, log_sum);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(rows: &mut [[f64; TILE]], log_sum: &mut [f64; TILE]) {
    body::<true>(rows, log_sum);
}

#[inline(always)]
fn body<const FMA: bool>(rows: &mut [[f64; TILE]], log_sum: &mut [f64; TILE]) {
    let mut largest = [f64::NEG_INFINITY; TILE];
    for row in rows.iter() {
        for (largest, t) in largest.iter_mut().zip(row) {
            *largest = if *t > *largest { *t } else { *largest };
        }
    }
    let mut sum = [0.0; TILE];
    for row in rows.iter_mut() {
        for i in 0..TILE {
            row[i] = exp::<FMA>(row[i] - largest[i]);
            sum[i] += row[i];
        }
    }
    let mut inverse = [0.0; TILE];
    for i in 0..TILE {
        log_sum[i] = largest[i] + sum[i].ln();
        inverse[i] = 1.0 / sum[i];
    }
    for row in rows {
        for (t, inverse) in row.iter_mut().zip(&inverse) {
            *t *= inverse;
        }
    }
}

/// `row = exp(row - shift)` for entries not above their shift; entries above it are an error of the caller.
pub(crate) fn exp_row(isa: Isa, row: &mut [f64; TILE], shift: f64) {
    #[inline(always)]
    fn body<const FMA: bool>(row: &mut [f64; TILE], shift: f64) {
        row.iter_mut().for_each(|t| *t = exp::<FMA>(*t - shift));
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn wide(row: &mut [f64; TILE], shift: f64) {
        body::<true>(row, shift);
    }
    match isa.0 {
        // SAFETY: both of these exist only where AVX2 and FMA do.
        #[cfg(target_arch = "x86_64")]
        super::Path::Avx512 | super::Path::Avx2 => unsafe { wide(row, shift) },
        _ => body::<false>(row, shift),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_definition_on_every_path() {
        for isa in Isa::available() {
            for states in [1, 2, 7, 50] {
                let t = |k: usize, n: usize| {
                    if k > 0 && (k + n).is_multiple_of(9) {
                        f64::NEG_INFINITY
                    } else {
                        300.0 + 40.0 * ((k * 31 + n * 17) as f64).sin()
                    }
                };
                let mut tile: Vec<f64> =
                    (0..states * TILE).map(|i| t(i / TILE, i % TILE)).collect();
                let mut log_sum = [0.0; TILE];
                softmax_columns(isa, &mut tile, &mut log_sum);
                for n in 0..TILE {
                    let column = || (0..states).map(|k| t(k, n));
                    let largest = column().fold(f64::NEG_INFINITY, f64::max);
                    let exact = largest + column().map(|t| (t - largest).exp()).sum::<f64>().ln();
                    assert!((log_sum[n] - exact).abs() < 1e-12, "{isa} {states}");
                    for k in 0..states {
                        let share = (t(k, n) - exact).exp();
                        assert!((tile[k * TILE + n] - share).abs() < 1e-13, "{isa} {states}");
                    }
                }
            }
            let mut row: [f64; TILE] = std::array::from_fn(|i| -(i as f64) * 3.0);
            exp_row(isa, &mut row, 2.0);
            for (i, value) in row.iter().enumerate() {
                let exact = (-(i as f64) * 3.0 - 2.0).exp();
                assert!((value - exact).abs() <= 1e-15 * exact);
            }
        }
    }
}
