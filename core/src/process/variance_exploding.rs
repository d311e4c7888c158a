//! Variance exploding diffusion (Song et al. 2021): S = 1, sigma^2 = sigma_min^2 ((sigma_max/sigma_min)^(2t) - 1).

use super::{Schedule, check_ordered};
use crate::Result;
use crate::citation::Cites;
use serde::{Deserialize, Serialize};

/// Noise grows geometrically on [0, 1], starting from exactly 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VarianceExploding {
    /// Sets the noise of small times: sigma is near sigma_min where t log(sigma_max/sigma_min) is near 0.35.
    pub sigma_min: f64,
    /// sigma(1) = sqrt(sigma_max^2 - sigma_min^2).
    pub sigma_max: f64,
}

impl Default for VarianceExploding {
    fn default() -> Self {
        Self {
            sigma_min: 0.01,
            sigma_max: 50.0,
        }
    }
}

impl VarianceExploding {
    /// log(sigma_max / sigma_min).
    fn log_ratio(&self) -> f64 {
        (self.sigma_max / self.sigma_min).ln()
    }
}

impl Schedule for VarianceExploding {
    fn name(&self) -> &'static str {
        "ve"
    }

    fn cites(&self) -> Cites {
        &["song2021score"]
    }

    fn validate(&self) -> Result<()> {
        check_ordered("sigma of the ve process", self.sigma_min, self.sigma_max)
    }

    fn x0_scale(&self, _time: f64) -> f64 {
        1.0
    }

    fn x0_rate(&self, _time: f64) -> f64 {
        0.0
    }

    fn noise(&self, time: f64) -> f64 {
        self.sigma_min * (2.0 * time * self.log_ratio()).exp_m1().sqrt()
    }

    fn noise_times_rate(&self, time: f64) -> f64 {
        self.sigma_min * self.sigma_min * self.log_ratio() * (2.0 * time * self.log_ratio()).exp()
    }

    fn noise_level(&self, time: f64) -> f64 {
        self.noise(time)
    }

    fn noise_level_rate(&self, time: f64) -> f64 {
        self.noise_rate(time)
    }

    fn time_of_noise_level(&self, noise_level: f64) -> Option<f64> {
        Some((noise_level / self.sigma_min).powi(2).ln_1p() / (2.0 * self.log_ratio()))
    }

    fn drift(&self, _time: f64) -> f64 {
        0.0
    }

    fn diffusion_squared(&self, time: f64) -> f64 {
        2.0 * self.noise_times_rate(time)
    }
}
