//! The process of Karras et al. 2022 (EDM): S = 1, sigma(t) = t; time is the noise level itself.

use super::{Schedule, check_positive};
use crate::citation::Cites;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// sigma(t) = t on [0, sigma_max].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Edm {
    /// The horizon: the largest noise level.
    pub sigma_max: f64,
}

impl Default for Edm {
    fn default() -> Self {
        Self { sigma_max: 80.0 }
    }
}

impl Schedule for Edm {
    fn name(&self) -> &'static str {
        "edm"
    }

    fn cites(&self) -> Cites {
        &["karras2022elucidating"]
    }

    fn validate(&self) -> Result<()> {
        check_positive("sigma_max of the edm process", self.sigma_max)?;
        // Beyond, squares of noise levels are no numbers any more.
        if (1e-100..=1e100).contains(&self.sigma_max) {
            return Ok(());
        }
        Err(Error::Value {
            name: "sigma_max of the edm process",
            found: self.sigma_max.to_string(),
            expected: "a number from 1e-100 to 1e100".into(),
        })
    }

    fn horizon(&self) -> f64 {
        self.sigma_max
    }

    fn x0_scale(&self, _time: f64) -> f64 {
        1.0
    }

    fn x0_rate(&self, _time: f64) -> f64 {
        0.0
    }

    fn noise(&self, time: f64) -> f64 {
        time
    }

    fn noise_rate(&self, _time: f64) -> f64 {
        1.0
    }

    fn noise_times_rate(&self, time: f64) -> f64 {
        time
    }

    fn noise_level(&self, time: f64) -> f64 {
        time
    }

    fn noise_level_rate(&self, _time: f64) -> f64 {
        1.0
    }

    fn time_of_noise_level(&self, noise_level: f64) -> Option<f64> {
        Some(noise_level)
    }

    fn drift(&self, _time: f64) -> f64 {
        0.0
    }

    fn diffusion_squared(&self, time: f64) -> f64 {
        2.0 * time
    }
}
