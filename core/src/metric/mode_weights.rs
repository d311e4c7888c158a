//! Mode weights of a learned density: the mass it puts on each component of the true mixture.

use super::Estimate;
use crate::energy::Energy;
use crate::energy::exact::ExactPath;
use crate::rng::Purpose;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = crate::citation::OURS;

/// True and learned weights of the components.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeWeights {
    /// The time at which the densities are compared.
    pub time: f64,
    /// Weights of the system.
    pub exact: Vec<f64>,
    /// Weights of the model, with standard errors.
    pub model: Vec<Estimate>,
    /// Half the sum of absolute differences.
    pub total_variation: f64,
}

/// Weights of the model's density at a (small) time, by self-normalised importance sampling: exact samples y_i with weights
/// w_i = p_model/p_exact, and for component k the mean of its responsibility in the exact mixture under those weights,
/// sum_i w_i r_k(y_i) / sum_i w_i. Its error is that of a ratio: sqrt(sum_i w_i^2 (r_k(y_i) - estimate)^2) / sum_i w_i.
///
/// Responsibilities are the exact posterior of the component X_0 came from; at small times they are 0 or 1.
pub fn mode_weights(
    model: &dyn Energy,
    exact: &ExactPath,
    time: f64,
    samples: usize,
    seed: u64,
) -> Result<ModeWeights> {
    let points = exact.sample_for(Purpose::ModeWeights, time, samples, seed);
    let (mut log_weights, mut exact_log) = (vec![0.0; samples], vec![0.0; samples]);
    model.log_density(&[time], &points, &mut log_weights);
    exact.log_density(&[time], &points, &mut exact_log);
    for (log_weight, exact_log) in log_weights.iter_mut().zip(&exact_log) {
        *log_weight -= exact_log;
    }
    if log_weights.iter().any(|value| !value.is_finite()) {
        return Err(Error::ModelNotFinite {
            what: "log-density",
            time,
        });
    }
    let largest = log_weights
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log_weights
        .iter()
        .map(|value| (value - largest).exp())
        .collect();
    let total: f64 = weights.iter().sum();

    let components = exact.start().components();
    let mut shares = vec![0.0; samples * components];
    exact.start_responsibilities(time, &points, &mut shares);
    let truth = exact.start().weights().to_vec();
    let model: Vec<Estimate> = (0..components)
        .map(|k| {
            let of = |i: usize| shares[i * components + k];
            let mean = weights
                .iter()
                .enumerate()
                .map(|(i, w)| w * of(i))
                .sum::<f64>()
                / total;
            let squares: f64 = weights
                .iter()
                .enumerate()
                .map(|(i, w)| (w * (of(i) - mean)).powi(2))
                .sum();
            Estimate {
                mean,
                error: squares.sqrt() / total,
            }
        })
        .collect();
    let total_variation = 0.5
        * model
            .iter()
            .zip(&truth)
            .map(|(a, b)| (a.mean - b).abs())
            .sum::<f64>();
    Ok(ModeWeights {
        time,
        exact: truth,
        model,
        total_variation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::system::{Covariance, GaussianMixture, two_modes};

    #[test]
    fn a_model_with_other_weights_is_found_out() {
        // The model is the exact path of a mixture with weights 0.35 and 0.65, off by a constant that must not matter.
        let exact = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
        let other = GaussianMixture::new(
            2,
            vec![0.35, 0.65],
            exact.start().means().to_vec(),
            Covariance::Isotropic(vec![0.03, 0.05]),
        );
        let model = ExactPath::new(Process::default(), other.unwrap(), None).unwrap();
        let found = mode_weights(&model, &exact, 1e-3, 4000, 1).unwrap();
        for (estimate, expected) in found.model.iter().zip([0.35, 0.65]) {
            assert!(
                (estimate.mean - expected).abs() < 4.0 * estimate.error,
                "{estimate}"
            );
            // Weights 0.525 and 1.95 on shares 2/3 and 1/3: the error is 0.525 * 1.95 * sqrt(2/9) / sqrt(n) = 0.0076.
            assert!((estimate.error / 0.0076 - 1.0).abs() < 0.1, "{estimate}");
        }
        assert!((found.total_variation - (found.model[0].mean - 2.0 / 3.0).abs()).abs() < 1e-12);
        let same = mode_weights(&exact, &exact, 1e-3, 4000, 1).unwrap();
        assert!((same.model[0].mean - 2.0 / 3.0).abs() < 4.0 * same.model[0].error);
    }

    /// A log-density that is NaN.
    struct Broken;

    impl Energy for Broken {
        fn dim(&self) -> usize {
            2
        }
        fn free_energy(&self, _time: f64) -> f64 {
            0.0
        }
        fn energy(&self, _times: &[f64], _points: &[f64], out: &mut [f64]) {
            out.fill(f64::NAN);
        }
        fn score(&self, _times: &[f64], _points: &[f64], out: &mut [f64]) {
            out.fill(f64::NAN);
        }
        fn time_score(&self, _times: &[f64], _points: &[f64], out: &mut [f64]) {
            out.fill(f64::NAN);
        }
    }

    #[test]
    fn a_broken_model_is_an_error() {
        let exact = ExactPath::new(Process::default(), two_modes().unwrap(), None).unwrap();
        let error = mode_weights(&Broken, &exact, 0.125, 10, 1).unwrap_err();
        assert!(
            error.to_string().contains("log-density") && error.to_string().contains("0.125"),
            "{error}"
        );
    }
}
