//! Schedules: `alpha(t)`, the chance that a site was left alone until time t of [0, 1], and its rate `beta = -alpha' / alpha`.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// `alpha = 1 - (1 - floor) t` (log-linear noise of Lou et al. 2024).
    Linear {
        /// What is left in the end.
        floor: f64,
    },
    /// `alpha = exp(-least ((most / least)^t - 1))`: total noise grows geometrically.
    Geometric {
        /// Scale of the noise at the beginning.
        least: f64,
        /// Total noise in the end, up to `least`.
        most: f64,
    },
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule::Linear { floor: 1e-3 }
    }
}

impl Schedule {
    /// Refuses parameters without a schedule.
    pub fn validate(&self) -> Result<()> {
        let fits = match *self {
            Schedule::Linear { floor } => (1e-9..0.5).contains(&floor),
            Schedule::Geometric { least, most } => least >= 1e-9 && least < most && most <= 20.0,
        };
        if fits {
            return Ok(());
        }
        Err(Error::Value {
            name: "schedule",
            found: format!("{self:?}"),
            expected: "a floor from 1e-9 to 0.5, or 1e-9 <= least < most <= 20".into(),
        })
    }

    /// `alpha(t)`.
    pub fn keep(&self, time: f64) -> f64 {
        match *self {
            Schedule::Linear { floor } => 1.0 - (1.0 - floor) * time,
            Schedule::Geometric { least, most } => {
                (-least * (time * (most / least).ln()).exp_m1()).exp()
            }
        }
    }

    /// `beta(t) = -alpha'(t) / alpha(t)`.
    pub fn rate(&self, time: f64) -> f64 {
        match *self {
            Schedule::Linear { floor } => (1.0 - floor) / self.keep(time),
            Schedule::Geometric { least, most } => {
                let ratio = most / least;
                least * ratio.powf(time) * ratio.ln()
            }
        }
    }

    /// The time at which so much is left, between 0 and 1.
    pub fn time_of(&self, keep: f64) -> f64 {
        let time = match *self {
            Schedule::Linear { floor } => (1.0 - keep) / (1.0 - floor),
            Schedule::Geometric { least, most } => {
                (-keep.ln() / least).ln_1p() / (most / least).ln()
            }
        };
        time.clamp(0.0, 1.0)
    }
}
