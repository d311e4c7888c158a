//! Effective sample size of one level: how evenly the weights p_model/p_exact fall on exact samples.

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["kong1994sequential"];

/// (sum w)^2 / (n sum w^2) in (0, 1], from log w, in log space; a constant added to all log-weights (a wrong F) changes nothing.
///
/// 1 means that the densities agree up to a factor. NaN when a log-weight is NaN, 0 when one is infinite.
pub fn effective_sample_size(log_weights: &[f64]) -> f64 {
    let largest = log_weights
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::INFINITY {
        return 0.0;
    }
    let (sum, squares) = log_weights
        .iter()
        .fold((0.0, 0.0), |(sum, squares), log_weight| {
            let weight = (log_weight - largest).exp();
            (sum + weight, squares + weight * weight)
        });
    sum * sum / (log_weights.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    #[test]
    fn known_cases() {
        assert_eq!(effective_sample_size(&[5e4; 7]), 1.0);
        assert_eq!(
            effective_sample_size(&[0.0, f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY]),
            0.25
        );
        let weights = [1.0_f64, 2.0, 5.0];
        let logs = weights.map(|w| w.ln() - 900.0);
        assert!((effective_sample_size(&logs) - 64.0 / 90.0).abs() < 1e-12);
        assert!(effective_sample_size(&[0.0, f64::NAN]).is_nan());
        assert_eq!(effective_sample_size(&[0.0, f64::INFINITY]), 0.0);
    }

    #[test]
    fn log_normal_weights_have_a_closed_form() {
        // (E w)^2 / E w^2 = exp(-s^2) for log w normal with deviation s. With s = 0.4 the relative error of the estimate is about
        // sqrt(Var(w^2 / E w^2 - 2 w / E w) / n) < 1.2 / sqrt(n).
        let (s, n) = (0.4, 50_000);
        let mut stream = Stream::new(1, Purpose::Test, 0, 0);
        let logs: Vec<f64> = (0..n).map(|_| s * stream.normal()).collect();
        let expected = (-s * s).exp();
        assert!(
            (effective_sample_size(&logs) / expected - 1.0).abs() < 4.0 * 1.2 / f64::from(n).sqrt()
        );
    }
}
