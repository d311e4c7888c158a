//! Agreement of log-densities at one level: R^2 up to a constant, and that constant.

use super::Estimate;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = crate::citation::OURS;

/// How two log-densities agree on the same points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// R^2 = 1 - Var(model - exact) / Var(exact): 1 when they differ by a constant, below 0 when the model is worse than none.
    pub r2: f64,
    /// Mean of model - exact: the error of the model's log-normaliser, as far as a single number can say.
    pub offset: Estimate,
}

/// Compares log-densities. A learned density is unnormalised, so the best constant is removed before R^2 is taken.
pub fn agreement(model: &[f64], exact: &[f64]) -> Agreement {
    let differences: Vec<f64> = model.iter().zip(exact).map(|(a, b)| a - b).collect();
    let spread = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
    };
    Agreement {
        r2: 1.0 - spread(&differences) / spread(exact),
        offset: Estimate::of(&differences),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_is_no_disagreement() {
        let exact = [1.0, 2.0, 4.0, 9.0];
        let found = agreement(&exact.map(|x| x - 7.0), &exact);
        assert_eq!(
            (found.r2, found.offset.mean, found.offset.error),
            (1.0, -7.0, 0.0)
        );
        // Half the slope leaves half the deviation: R^2 = 1 - 1/4.
        assert!((agreement(&exact.map(|x| 0.5 * x), &exact).r2 - 0.75).abs() < 1e-15);
        assert!(agreement(&exact.map(|x| -x), &exact).r2 < 0.0);
    }
}
