//! Linear stochastic interpolant (Albergo et al. 2023): Y_t = (1-t) X_0 + t X_1 + a sqrt(t (1-t)) Z.

use super::{Schedule, check_positive};
use crate::Result;
use serde::{Deserialize, Serialize};

/// alpha = 1-t, beta = t, gamma = a sqrt(t (1-t)) on [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Linear {
    /// Size of the noise: its standard deviation at time 1/2 is a/2.
    pub a: f64,
}

impl Default for Linear {
    fn default() -> Self {
        Self { a: 1.0 }
    }
}

impl Schedule for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn validate(&self) -> Result<()> {
        check_positive("a of the linear interpolant", self.a)
    }

    fn is_interpolant(&self) -> bool {
        true
    }

    fn x0_scale(&self, time: f64) -> f64 {
        1.0 - time
    }

    fn x0_rate(&self, _time: f64) -> f64 {
        -1.0
    }

    fn x1_scale(&self, time: f64) -> f64 {
        time
    }

    fn x1_rate(&self, _time: f64) -> f64 {
        1.0
    }

    fn noise(&self, time: f64) -> f64 {
        bridge_noise(self.a, time)
    }

    fn noise_times_rate(&self, time: f64) -> f64 {
        bridge_noise_times_rate(self.a, time)
    }

    fn noise_level(&self, time: f64) -> f64 {
        self.noise(time)
    }

    fn noise_level_rate(&self, time: f64) -> f64 {
        self.noise_rate(time)
    }

    fn time_of_noise_level(&self, _noise_level: f64) -> Option<f64> {
        None
    }

    fn drift(&self, _time: f64) -> f64 {
        0.0
    }

    fn diffusion_squared(&self, _time: f64) -> f64 {
        self.a * self.a
    }
}

/// gamma(t) = a sqrt(t (1-t)).
pub(super) fn bridge_noise(a: f64, time: f64) -> f64 {
    a * (time * (1.0 - time)).sqrt()
}

/// gamma gamma' = a^2 (1 - 2t)/2.
pub(super) fn bridge_noise_times_rate(a: f64, time: f64) -> f64 {
    0.5 * a * a * (1.0 - 2.0 * time)
}
