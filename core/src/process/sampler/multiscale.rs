//! Near and far levels compared equally often at every scale: a first level, and others at log-uniform distances from it.
//!
//! The first level is uniform over the grid, or, with probability `snr_share`, uniform in the log-SNR (diffusions), which visits
//! the few levels of small noise as often as their distance deserves. Neighbours tell a classifier the most where levels overlap
//! little (small times, many dimensions).

use super::{DrawTimes, TimeRow, check_share};
use crate::Result;
use crate::citation::{Cites, OURS};
use crate::rng::Stream;
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Multiscale {
    /// Share of rows whose first level is drawn by log-SNR.
    pub snr_share: f64,
}

impl Multiscale {
    /// Half of the rows by log-SNR.
    pub const DEFAULT: Self = Self { snr_share: 0.5 };
}

impl Default for Multiscale {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl DrawTimes for Multiscale {
    fn name(&self) -> &'static str {
        "multiscale"
    }

    fn about(&self) -> &'static str {
        "a level, and others at log-uniform distances from it"
    }

    fn cites(&self) -> Cites {
        OURS
    }

    fn check(&self) -> Result<()> {
        let fits = (0.0..=1.0).contains(&self.snr_share);
        check_share("snr_share", self.snr_share, "between 0 and 1", fits)
    }

    fn on_grid(&self) -> bool {
        true
    }

    fn level(&self, row: &TimeRow, place: usize, first: u32, stream: &mut Stream) -> Option<u32> {
        let levels = row.grid.levels();
        if place == 0 {
            let by_snr = !row.process.is_interpolant() && stream.uniform() < self.snr_share;
            let level = by_snr.then(|| level_by_snr(row, stream)).flatten();
            return Some(level.unwrap_or_else(|| stream.below(levels as u64) as u32));
        }
        loop {
            let distance = (levels as f64).powf(stream.uniform()) as i64;
            let sign = if stream.next_u32().is_multiple_of(2) {
                1
            } else {
                -1
            };
            let level = i64::from(first) + sign * distance;
            if (0..levels as i64).contains(&level) {
                return Some(level as u32);
            }
        }
    }
}

/// The level nearest in time to one drawn uniformly in log-SNR.
fn level_by_snr(row: &TimeRow, stream: &mut Stream) -> Option<u32> {
    let (level, weight) = row.grid.locate(row.time_by_snr(stream)?);
    Some((level + usize::from(weight > 0.5)).min(row.grid.levels() - 1) as u32)
}
