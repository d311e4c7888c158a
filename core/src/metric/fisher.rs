//! Fisher divergence of one level: the mean of |score - exact score|^2 / dim over exact samples.

use super::Estimate;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["hyvarinen2005estimation"];

/// E |s_model(y) - s_exact(y)|^2 / dim, from the scores at samples of the exact marginal, rows of `dim` numbers.
pub fn fisher_divergence(score: &[f64], exact: &[f64], dim: usize) -> Estimate {
    let errors: Vec<f64> = score
        .chunks_exact(dim)
        .zip(exact.chunks_exact(dim))
        .map(|(a, b)| a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>() / dim as f64)
        .collect();
    Estimate::of(&errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_mean_squared_difference_per_dimension() {
        let estimate = fisher_divergence(&[1.0, 2.0, 3.0, 4.0], &[0.0, 0.0, 3.0, 1.0], 2);
        assert_eq!(estimate.mean, (2.5 + 4.5) / 2.0);
    }
}
