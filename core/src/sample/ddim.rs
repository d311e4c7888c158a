//! DDIM (Song, Meng, Ermon 2021, equations 12 and 16) for any scale S and noise level sigma: look where the point comes
//! from, go back to the smaller noise level along the same line, and replace a share of the noise by fresh noise.

use serde::{Deserialize, Serialize};

use super::diffusion::{Stepper, Transition};
use crate::process::Process;
use crate::{Error, Result};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["song2021denoising"];

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ddim {
    /// Share of fresh noise: 0 is deterministic (a probability flow), 1 ancestral (the posterior of DDPM).
    pub eta: f64,
}

impl Stepper for Ddim {
    fn name(&self) -> &'static str {
        "ddim"
    }

    fn validate(&self) -> Result<()> {
        if (0.0..=1.0).contains(&self.eta) {
            return Ok(());
        }
        Err(Error::Value {
            name: "eta",
            found: self.eta.to_string(),
            expected: "between 0 (deterministic) and 1 (ancestral)".into(),
        })
    }

    /// With `D = (y + gamma^2 score) / S` and `z = (y / S - D) / sigma = -gamma score` at `from`:
    /// `y / S <- D + sqrt(sigma^2 - up^2) z + up fresh` at `to`, `up^2 = eta^2 sigma_to^2 (1 - sigma_to^2 / sigma_from^2)`.
    fn transition(&self, process: &Process, from: f64, to: f64) -> Transition {
        let (scale, scale_to) = (process.scale(from), process.scale(to));
        let (sigma, sigma_to) = (process.noise_level(from), process.noise_level(to));
        let fresh = self.eta * self.eta * (1.0 - (sigma_to / sigma).powi(2));
        let (along, up) = (sigma_to * (1.0 - fresh).sqrt(), sigma_to * fresh.sqrt());
        Transition {
            keep: scale_to / scale,
            pull: scale_to * (sigma - along) * process.noise(from),
            kick: scale_to * up,
        }
    }
}
