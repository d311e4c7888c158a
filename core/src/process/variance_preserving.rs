//! Variance preserving diffusion (Song et al. 2021): S = exp(-B/2), gamma^2 = 1 - exp(-B), B the integral of beta.

use super::{Schedule, check_ordered};
use crate::Result;
use crate::citation::Cites;
use serde::{Deserialize, Serialize};

/// beta(t) = beta_min + (beta_max - beta_min) t and B(t) = beta_min t + (beta_max - beta_min) t^2/2 on [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VariancePreserving {
    /// beta at time 0.
    pub beta_min: f64,
    /// beta at time 1.
    pub beta_max: f64,
}

impl Default for VariancePreserving {
    fn default() -> Self {
        Self {
            beta_min: 0.1,
            beta_max: 20.0,
        }
    }
}

impl VariancePreserving {
    fn beta(&self, time: f64) -> f64 {
        self.beta_min + (self.beta_max - self.beta_min) * time
    }

    fn integral(&self, time: f64) -> f64 {
        time * (self.beta_min + 0.5 * (self.beta_max - self.beta_min) * time)
    }
}

impl Schedule for VariancePreserving {
    fn name(&self) -> &'static str {
        "vp"
    }

    fn cites(&self) -> Cites {
        &["song2021score"]
    }

    fn validate(&self) -> Result<()> {
        check_ordered("beta of the vp process", self.beta_min, self.beta_max)
    }

    fn x0_scale(&self, time: f64) -> f64 {
        (-0.5 * self.integral(time)).exp()
    }

    fn x0_rate(&self, time: f64) -> f64 {
        -0.5 * self.beta(time) * self.x0_scale(time)
    }

    fn noise(&self, time: f64) -> f64 {
        // 1 - exp(-B) loses all digits at small times; expm1 keeps them.
        (-(-self.integral(time)).exp_m1()).sqrt()
    }

    fn noise_times_rate(&self, time: f64) -> f64 {
        0.5 * self.beta(time) * (-self.integral(time)).exp()
    }

    fn noise_level(&self, time: f64) -> f64 {
        self.integral(time).exp_m1().sqrt()
    }

    fn noise_level_rate(&self, time: f64) -> f64 {
        0.5 * self.beta(time) * self.integral(time).exp() / self.noise_level(time)
    }

    fn time_of_noise_level(&self, noise_level: f64) -> Option<f64> {
        // B = log(1 + sigma^2), then the quadratic's positive root in the form that does not cancel.
        let integral = (noise_level * noise_level).ln_1p();
        let slope = self.beta_max - self.beta_min;
        Some(
            2.0 * integral
                / (self.beta_min + (self.beta_min * self.beta_min + 2.0 * slope * integral).sqrt()),
        )
    }

    fn drift(&self, time: f64) -> f64 {
        -0.5 * self.beta(time)
    }

    fn diffusion_squared(&self, time: f64) -> f64 {
        self.beta(time)
    }
}
