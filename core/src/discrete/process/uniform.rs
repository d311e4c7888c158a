//! Uniform noise: a site that is hit becomes any of the K states, `Q_t(a, b) = beta(t) / K`.

use super::{Generator, Schedule};
use crate::citation::Cites;
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Uniform {
    /// How much is left at each time.
    pub schedule: Schedule,
}

impl Generator for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }
    fn about(&self) -> &'static str {
        "a site that is hit becomes any state"
    }
    fn cites(&self) -> Cites {
        &["lou2024discrete"]
    }
    fn schedule(&self) -> &Schedule {
        &self.schedule
    }
    fn symbols(&self, states: usize) -> usize {
        states
    }
    fn law(&self, states: usize, _symbol: usize) -> f64 {
        1.0 / states as f64
    }
}
