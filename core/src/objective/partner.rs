//! Partners: a second noisy point of the same source row at a close time, for losses that compare neighbouring times.

use super::column::TimeWeight;
use crate::energy::ModelSpec;

/// Where a row's partner is. It is a function of the row's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partner {
    /// `t' = t + share tau(t)` with the balanced `tau`, at most `share` of the horizon; `t' = t - ...` beyond the grid's end.
    /// The noise is the row's own, which makes differences small. Only points are needed, no energy at `t'`.
    Ahead(
        /// Bits of the share.
        u64,
    ),
    /// So many levels of the grid earlier, on the same noising path: `(Y_s, Y_t)` has the joint law of the diffusion. The first
    /// levels have none: there the partner is the point itself, with weight zero.
    Behind(
        /// Number of levels.
        u32,
    ),
}

/// How a partner's point is made: `y' = alpha x_0 + beta x_1 + gamma z'`, `z' = rho z + sqrt(1 - rho^2) e`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartnerDraw {
    /// Time of the partner.
    pub time: f64,
    /// Correlation of both noises.
    pub rho: f64,
    /// `sqrt(1 - rho^2)`.
    pub rest: f64,
}

impl Partner {
    /// [`Partner::Ahead`] by this share.
    pub fn ahead(share: f64) -> Partner {
        Partner::Ahead(share.to_bits())
    }

    /// Time of the partner of a row at `time`.
    pub fn time(self, spec: &ModelSpec, time: f64) -> f64 {
        let grid = &spec.grid;
        match self {
            Partner::Ahead(share) => {
                let horizon = spec.process.horizon();
                let scale = TimeWeight::Balanced.scale(spec, time).min(horizon);
                let gap = f64::from_bits(share) * scale;
                if time + gap <= grid.t_max() {
                    time + gap
                } else {
                    time - gap
                }
            }
            Partner::Behind(levels) => {
                let (k, weight) = grid.locate(time);
                let place = k as f64 + weight - f64::from(levels);
                // Rounding must not move the level before the first onto it.
                if place < -1e-9 {
                    return time;
                }
                let place = place.max(0.0);
                let below = (place as usize).min(grid.levels() - 2);
                let (low, high) = (grid.times()[below], grid.times()[below + 1]);
                low + (place - below as f64) * (high - low)
            }
        }
    }

    /// How to draw the partner of a row at `time`.
    pub fn draw(self, spec: &ModelSpec, time: f64) -> PartnerDraw {
        let partner = self.time(spec, time);
        match self {
            Partner::Ahead(_) => PartnerDraw {
                time: partner,
                rho: 1.0,
                rest: 0.0,
            },
            Partner::Behind(_) => {
                // Y_t = m Y_s + c e makes the noises correlated by sigma_s / sigma_t.
                let (early, late) = (
                    spec.process.noise_level(partner),
                    spec.process.noise_level(time),
                );
                PartnerDraw {
                    time: partner,
                    rho: early / late,
                    rest: ((late - early) * (late + early)).max(0.0).sqrt() / late,
                }
            }
        }
    }
}
