//! Times whose log sigma is normal (Karras et al. 2022), restricted to the grid's range. Diffusions only.

use super::{DrawTimes, TimeRow};
use crate::citation::Cites;
use crate::rng::Stream;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSnrNormal {
    /// Mean of log sigma.
    pub mean: f64,
    /// Standard deviation of log sigma.
    pub std: f64,
}

impl LogSnrNormal {
    /// The values of the paper above.
    pub const DEFAULT: Self = Self {
        mean: -1.2,
        std: 1.2,
    };
}

impl Default for LogSnrNormal {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl DrawTimes for LogSnrNormal {
    fn name(&self) -> &'static str {
        "log-snr-normal"
    }

    fn about(&self) -> &'static str {
        "log sigma is normal (diffusions)"
    }

    fn cites(&self) -> Cites {
        &["karras2022elucidating"]
    }

    fn check(&self) -> Result<()> {
        let Self { mean, std } = *self;
        if mean.is_finite() && std > 0.0 && std.is_finite() {
            return Ok(());
        }
        Err(Error::Value {
            name: "log-snr-normal time sampler",
            found: format!("mean {mean}, std {std}"),
            expected: "a finite mean and a positive finite std".into(),
        })
    }

    fn time(&self, row: &TimeRow, _drawn: &[f64], stream: &mut Stream) -> Result<f64> {
        let noise_level = (self.mean + self.std * stream.normal()).exp();
        row.process
            .time_of_noise_level(noise_level)
            .ok_or_else(|| Error::Value {
                name: "time sampler",
                found: format!("log-snr-normal with the {} process", row.process.name()),
                expected: "a diffusion (vp, ve, edm); for interpolants take multiscale, grid, uniform or stratified"
                    .into(),
            })
    }
}
