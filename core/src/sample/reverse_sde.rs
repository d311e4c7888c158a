//! The reverse stochastic differential equation (Anderson 1982; Song et al. 2021), integrated from T to 0: drift
//! `f y - g^2 score`, noise g.

use serde::{Deserialize, Serialize};

use super::diffusion::{Stepper, Transition};
use crate::process::Process;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["anderson1982reverse", "song2021score"];

/// How one step of the equation is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Integrator {
    /// Drift and noise as they are at the step's beginning.
    EulerMaruyama,
    /// The linear drift and the noise's integral exactly; only the score is held (in units of the data, `S score`).
    #[default]
    Exponential,
}

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReverseSde {
    /// How one step is made.
    pub integrator: Integrator,
}

impl Stepper for ReverseSde {
    fn name(&self) -> &'static str {
        "reverse-sde"
    }

    /// Euler-Maruyama: `y - (f y - g^2 score) h + g sqrt(h) z`, `h = from - to`.
    ///
    /// Exponential: in `x = y / S` the equation has no linear drift, and its noise in `[to, from]` has the variance
    /// `v = sigma_from^2 - sigma_to^2`: `x <- x + v S score + sqrt(v) z`.
    fn transition(&self, process: &Process, from: f64, to: f64) -> Transition {
        match self.integrator {
            Integrator::EulerMaruyama => {
                let variance = process.diffusion_squared(from) * (from - to);
                Transition {
                    keep: 1.0 - process.drift(from) * (from - to),
                    pull: variance,
                    kick: variance.sqrt(),
                }
            }
            Integrator::Exponential => {
                let (scale, scale_to) = (process.scale(from), process.scale(to));
                let variance = process.noise_level(from).powi(2) - process.noise_level(to).powi(2);
                Transition {
                    keep: scale_to / scale,
                    pull: scale_to * variance * scale,
                    kick: scale_to * variance.sqrt(),
                }
            }
        }
    }
}
