//! Trigonometric stochastic interpolant: Y_t = cos(pi t/2) X_0 + sin(pi t/2) X_1 + a sqrt(t (1-t)) Z.

use super::linear::{bridge_noise, bridge_noise_times_rate};
use super::{Schedule, check_positive};
use crate::Result;
use serde::{Deserialize, Serialize};
use std::f64::consts::FRAC_PI_2;

/// alpha = cos(pi t/2), beta = sin(pi t/2), gamma = a sqrt(t (1-t)) on [0, 1]: keeps the variance of standardised endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trigonometric {
    /// Size of the noise: its standard deviation at time 1/2 is a/2.
    pub a: f64,
}

impl Default for Trigonometric {
    fn default() -> Self {
        Self { a: 1.0 }
    }
}

impl Schedule for Trigonometric {
    fn name(&self) -> &'static str {
        "trigonometric"
    }

    fn validate(&self) -> Result<()> {
        check_positive("a of the trigonometric interpolant", self.a)
    }

    fn is_interpolant(&self) -> bool {
        true
    }

    fn x0_scale(&self, time: f64) -> f64 {
        // The sine of the distance to the end is exact at time 1, where the cosine leaves a rounding of pi/2.
        (FRAC_PI_2 * (1.0 - time)).sin()
    }

    fn x0_rate(&self, time: f64) -> f64 {
        -FRAC_PI_2 * (FRAC_PI_2 * time).sin()
    }

    fn x1_scale(&self, time: f64) -> f64 {
        (FRAC_PI_2 * time).sin()
    }

    fn x1_rate(&self, time: f64) -> f64 {
        FRAC_PI_2 * (FRAC_PI_2 * (1.0 - time)).sin()
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
