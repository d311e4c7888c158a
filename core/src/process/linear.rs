//! Linear stochastic interpolant (Albergo et al. 2023): Y_t = (1-t) X_0 + t X_1 + a sqrt(t (1-t)) Z.

use super::Interpolant;
use crate::citation::Cites;
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

impl Interpolant for Linear {
    const NAME: &'static str = "linear";
    const CITES: Cites = &["albergo2023stochastic"];

    fn noise_size(&self) -> f64 {
        self.a
    }

    fn mixing(&self, time: f64) -> [f64; 2] {
        [1.0 - time, time]
    }

    fn mixing_rates(&self, _time: f64) -> [f64; 2] {
        [-1.0, 1.0]
    }
}
