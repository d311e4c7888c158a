//! log sum exp and softmax in double precision, with an exponential that the compiler vectorises.

/// `(..(a_0 x + a_1) x + ..) x + a_n`, the highest power first.
#[inline(always)]
pub(crate) fn polynomial<const FMA: bool, const N: usize>(coefficients: [f64; N], x: f64) -> f64 {
    let mut sum = coefficients[0];
    for coefficient in &coefficients[1..] {
        sum = if FMA {
            sum.mul_add(x, *coefficient)
        } else {
            sum * x + coefficient
        };
    }
    sum
}

/// `log(e^a + e^b)`; `a` may be minus infinity.
pub(crate) fn log_add(a: f64, b: f64) -> f64 {
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

/// exp(x) for x <= 0, relative error below 1e-15; 0 below -700, where the exact value is under 1e-304.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial of degree 13 in r (its remainder is 4e-18), and 2^n by its bits.
/// `FMA` tells whether fused multiply-add is an instruction where this is inlined.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f64) -> f64 {
    /// Adding and subtracting 1.5 * 2^52 rounds to an integer, which then also stands in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let clamped = if x < -700.0 { -700.0 } else { x };
    let shifted = clamped * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let taylor = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let sum = polynomial::<FMA, 14>(taylor, r);
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0_f64.to_bits()));
    if x <= -700.0 { 0.0 } else { sum * power }
}

/// Replaces the terms by exp(term - largest); returns the largest and the sum.
fn exponentials(terms: &mut [f64]) -> (f64, f64) {
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    terms
        .iter_mut()
        .for_each(|term| *term = exp::<false>(*term - largest));
    // Four partial sums, so that one addition need not wait for the other.
    let quads = terms.chunks_exact(4);
    let rest: f64 = quads.remainder().iter().sum();
    let parts = quads.fold([0.0; 4], |sum, quad| {
        std::array::from_fn(|i| sum[i] + quad[i])
    });
    (
        largest,
        rest + (parts[0] + parts[1]) + (parts[2] + parts[3]),
    )
}

/// log sum exp, overwriting the terms; minus infinity when there are none or all are minus infinity, NaN if one is NaN.
pub(crate) fn log_sum_exp(terms: &mut [f64]) -> f64 {
    let (largest, sum) = exponentials(terms);
    if largest == f64::NEG_INFINITY {
        largest
    } else {
        largest + sum.ln()
    }
}

/// Turns log terms into shares of their sum, in place, and returns the log of the sum.
pub(crate) fn log_softmax_sum(terms: &mut [f64]) -> f64 {
    let (largest, sum) = exponentials(terms);
    terms.iter_mut().for_each(|term| *term /= sum);
    largest + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_agrees_with_the_library() {
        for i in 0..200_000 {
            let x = -705.0 * (f64::from(i) / 200_000.0).powi(3);
            let (found, expected) = (exp::<false>(x), x.exp());
            assert!((exp::<true>(x) - found).abs() <= 1e-15 * found);
            if x > -700.0 {
                assert!(
                    (found / expected - 1.0).abs() < 1e-15,
                    "{x}: {found} {expected}"
                );
            } else {
                assert_eq!(found, 0.0);
            }
        }
        assert_eq!(
            (exp::<false>(0.0), exp::<false>(f64::NEG_INFINITY)),
            (1.0, 0.0)
        );
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        for n in [1, 3, 4, 11, 40] {
            let terms: Vec<f64> = (0..n)
                .map(|i| 300.0 + 5.0 * (i as f64 * 1.7).sin())
                .collect();
            let expected = 300.0 + terms.iter().map(|t| (t - 300.0).exp()).sum::<f64>().ln();
            assert!((log_sum_exp(&mut terms.clone()) - expected).abs() < 1e-12);
            let mut shares = terms.clone();
            assert!((log_softmax_sum(&mut shares) - expected).abs() < 1e-12);
            for (share, term) in shares.iter().zip(&terms) {
                assert!((share - (term - expected).exp()).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn extreme_terms_do_not_overflow() {
        assert_eq!(log_sum_exp(&mut []), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&mut [f64::NEG_INFINITY; 5]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&mut [f64::NEG_INFINITY, -1e300, 1e300]), 1e300);
        assert!(log_sum_exp(&mut [f64::NAN, 1.0]).is_nan());
    }
}
