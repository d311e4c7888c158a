//! What the kernels of underdamped Langevin dynamics have in common: friction and mass, and the momenta they carry from step to step.

use serde::{Deserialize, Serialize};

use super::positive;
use crate::Result;

/// Friction and mass of `m dv = F dt - friction m v dt + sqrt(2 friction m) dW`, in units of kT. The step size is a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Langevin {
    /// Friction, a rate: 1 / time.
    pub friction: f64,
    /// Mass of every coordinate.
    pub mass: f64,
}

impl Default for Langevin {
    fn default() -> Self {
        Langevin {
            friction: 1.0,
            mass: 1.0,
        }
    }
}

impl Langevin {
    pub(super) fn validate(&self) -> Result<()> {
        positive("friction of Langevin dynamics", self.friction)?;
        positive("mass of Langevin dynamics", self.mass)
    }
}

/// What friction leaves of a momentum in a time `h`, `c = exp(-friction h)`, and the share of fresh noise that keeps its variance,
/// `sqrt(1 - c^2)`, without cancellation for small `h`.
pub(crate) fn thermostat(friction: f64, h: f64) -> (f64, f64) {
    let fresh = (-(-2.0 * friction * h).exp_m1()).sqrt();
    ((-friction * h).exp(), fresh)
}
