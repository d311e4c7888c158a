//! Trigonometric stochastic interpolant: Y_t = cos(pi t/2) X_0 + sin(pi t/2) X_1 + a sqrt(t (1-t)) Z.

use super::Interpolant;
use crate::citation::Cites;
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

impl Interpolant for Trigonometric {
    const NAME: &'static str = "trigonometric";
    const CITES: Cites = &["albergo2023stochastic"];

    fn noise_size(&self) -> f64 {
        self.a
    }

    fn mixing(&self, time: f64) -> [f64; 2] {
        // The sine of the distance to the end is exact at time 1, where the cosine leaves a rounding of pi/2.
        [(FRAC_PI_2 * (1.0 - time)).sin(), (FRAC_PI_2 * time).sin()]
    }

    fn mixing_rates(&self, time: f64) -> [f64; 2] {
        [
            -FRAC_PI_2 * (FRAC_PI_2 * time).sin(),
            FRAC_PI_2 * (FRAC_PI_2 * (1.0 - time)).sin(),
        ]
    }
}
