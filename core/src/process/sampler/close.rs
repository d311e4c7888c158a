//! Times so near each other that density ratios have a variance, for losses that contain the ratios themselves.
//!
//! The first time is uniform between the grid's ends, or, for half of the rows of a diffusion, uniform in the log-SNR; the others
//! are uniform within `share tau / sqrt(d + 4)` around it, tau the [time scale](Process::time_scale) of unit variance. The
//! log-ratios of a row's densities are then of order `share` at most, and the ratios have a variance (which in one dimension ends
//! where the two `gamma^2` differ by a factor of 2).
//!
//! [`Process::time_scale`]: crate::process::Process::time_scale

use super::{DrawTimes, TimeRow, check_share};
use crate::Result;
use crate::citation::{Cites, OURS};
use crate::rng::Stream;
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Close {
    /// Largest distance from the first time.
    pub share: f64,
}

impl Close {
    /// The whole of what a variance allows.
    pub const DEFAULT: Self = Self { share: 1.0 };
}

impl Default for Close {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl DrawTimes for Close {
    fn name(&self) -> &'static str {
        "close"
    }

    fn about(&self) -> &'static str {
        "times so near that density ratios have a variance"
    }

    fn cites(&self) -> Cites {
        OURS
    }

    fn check(&self) -> Result<()> {
        // Times that are nearer are equal in double precision.
        let fits = self.share >= 1e-6 && self.share <= 1.0;
        check_share("share", self.share, "from 1e-6 to 1", fits)
    }

    fn time(&self, row: &TimeRow, drawn: &[f64], stream: &mut Stream) -> Result<f64> {
        if let Some(&first) = drawn.first() {
            let scale = row.process.time_scale(first, 1.0);
            let reach = self.share * scale / (row.dim as f64 + 4.0).sqrt();
            return Ok(first + reach * (2.0 * stream.uniform() - 1.0));
        }
        let by_snr = !row.process.is_interpolant() && stream.uniform() < 0.5;
        Ok(by_snr
            .then(|| row.time_by_snr(stream))
            .flatten()
            .unwrap_or_else(|| row.time(stream.uniform())))
    }
}
