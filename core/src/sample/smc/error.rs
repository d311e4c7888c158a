//! How far an estimate of log Z is from the truth: told by the families of one run, or by independent runs. Where neither can
//! tell, the error is unknown (`None`), not small.

use crate::metric::student_factor;

/// Families that must be left for their scatter to tell anything: `1 / sum f^2` with `f` the share of weight of each family.
/// Without resampling every particle is a family, and this is the effective sample size.
const LEAST_FAMILIES: f64 = 20.0;
/// Runs that must be left: `(sum Z)^2 / sum Z^2`. Below, one run holds most of the sum and the others cannot tell how rare it is.
const LEAST_RUNS: f64 = 3.0;

/// Standard error of log Z from the shares of weight of all families, the dead ones included (Lee and Whiteley 2018):
/// `1 - (n/(n-1))^(r+1) (1 - sum f^2)` is the relative variance of Z after `r` multinomial resamplings; the less noisy schemes
/// have almost none of the scatter that the factor takes out again, and `scatters` is 0 for them (the error is then on the
/// safe side). The scatter of the sum itself, `sqrt(sum (f - 1/n)^4)`, is added: with few families it may come out too small.
pub(super) fn of_families(family: &[f64], scatters: u32) -> Option<f64> {
    let n = family.len() as f64;
    let squares: f64 = family.iter().map(|f| f * f).sum();
    if squares * LEAST_FAMILIES > 1.0 || squares.is_nan() {
        return None;
    }
    let growth = (n / (n - 1.0)).powf(f64::from(scatters) + 1.0);
    let variance = 1.0 - growth * (1.0 - squares);
    let fourths: f64 = family.iter().map(|f| (f - 1.0 / n).powi(4)).sum();
    Some((variance.max(0.0) + growth * fourths.sqrt()).sqrt())
}

/// `log` of the mean of independent estimates of Z, and its standard error from their spread, widened by Student's factor so
/// that 1.96 of them cover 95 %.
pub(super) fn of_runs(log_z: &[f64]) -> (f64, Option<f64>) {
    let top = log_z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let runs = log_z.len() as f64;
    let ratios: Vec<f64> = log_z.iter().map(|l| (l - top).exp()).collect();
    let (sum, squares) = ratios
        .iter()
        .fold((0.0, 0.0), |(s, q), r| (s + r, q + r * r));
    let mean = sum / runs;
    let known = log_z.len() >= 4 && sum * sum >= LEAST_RUNS * squares;
    let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (runs - 1.0);
    let error = (variance / runs).sqrt() / mean * student_factor(log_z.len());
    (top + mean.ln(), known.then_some(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_told_is_unknown() {
        // One family left: the old formula said 0 or 1.
        let mut family = vec![0.0; 100];
        family[3] = 1.0;
        assert_eq!(of_families(&family, 40), None);
        assert_eq!(of_families(&[0.1; 10], 0), None);
        // Equal weights of a hundred: nothing varies.
        assert!(of_families(&[0.01; 100], 0).unwrap() < 1e-7);
        let (value, error) = of_runs(&[1.0, 1.2]);
        assert!((value - (0.5 * (1f64.exp() + 1.2f64.exp())).ln()).abs() < 1e-12);
        assert_eq!(error, None);
        // One run of six is e^9 times the others.
        assert_eq!(of_runs(&[0.0, 0.1, 9.0, -0.2, 0.0, 0.1]).1, None);
        let (_, error) = of_runs(&[0.0, 0.1, -0.1, -0.2, 0.2]);
        // Spread of about 0.158 by five runs, and t(4) / 1.96 = 1.417.
        assert!((error.unwrap() - 0.158 / 5f64.sqrt() * 1.417).abs() < 0.005);
    }
}
