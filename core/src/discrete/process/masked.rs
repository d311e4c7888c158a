//! Masked noise: a site that is hit becomes the mask, the symbol K, and stays so (absorbing), `Q_t(a, mask) = beta(t)`.

use super::{Generator, Schedule};
use crate::citation::Cites;
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Masked {
    /// How much is left at each time.
    pub schedule: Schedule,
}

impl Generator for Masked {
    fn name(&self) -> &'static str {
        "masked"
    }
    fn about(&self) -> &'static str {
        "a site that is hit is masked, and stays so"
    }
    fn cites(&self) -> Cites {
        &["austin2021structured", "lou2024discrete"]
    }
    fn schedule(&self) -> &Schedule {
        &self.schedule
    }
    fn symbols(&self, states: usize) -> usize {
        states + 1
    }
    fn law(&self, states: usize, symbol: usize) -> f64 {
        if symbol == states { 1.0 } else { 0.0 }
    }
}
