//! Partners: a second noisy point of the same source row at a close time, for losses that compare neighbouring times.

use super::column::TimeWeight;
use super::fill::{Fill, Filler, Mixing, Setup, Tile};
use crate::energy::ModelSpec;
use crate::engine::Real;
use crate::rng::Purpose;

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

    /// Level of the partner of a row at a level of the grid, where it is on the grid.
    pub fn level(self, level: u32) -> u32 {
        match self {
            Partner::Behind(gap) if level >= gap => level - gap,
            _ => level,
        }
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

/// Slots: the partners' points, `Unit(N) x d`; for those on the same noising path also the forward noise `e` of
/// `Y_t = m Y_s + c e`.
impl Filler for Partner {
    fn shapes(&self, spec: &ModelSpec, levels: usize) -> Vec<(usize, usize)> {
        let slots = match self {
            Partner::Ahead(_) => 1,
            Partner::Behind(_) => 2,
        };
        vec![(levels, spec.dim); slots]
    }

    fn build<T: Real>(&self, setup: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<T>> {
        Box::new(PartnerPoints {
            partner: *self,
            points: slots[0],
            forward: slots.get(1).copied(),
            table: setup
                .times
                .iter()
                .map(|&t| PartnerMixing::at(setup.spec, *self, t))
                .collect(),
        })
    }
}

/// How a partner's point is made from its row.
#[derive(Clone, Copy)]
struct PartnerMixing<T> {
    mixing: Mixing<T>,
    rho: T,
    rest: T,
}

impl<T: Real> PartnerMixing<T> {
    fn at(spec: &ModelSpec, partner: Partner, time: f64) -> PartnerMixing<T> {
        let draw = partner.draw(spec, time);
        PartnerMixing {
            mixing: Mixing::at(spec, draw.time),
            rho: T::from_f64(draw.rho),
            rest: T::from_f64(draw.rest),
        }
    }
}

struct PartnerPoints<T> {
    partner: Partner,
    points: usize,
    forward: Option<usize>,
    /// At the levels of the grid; empty for times beside it.
    table: Vec<PartnerMixing<T>>,
}

impl<T: Real> Fill<T> for PartnerPoints<T> {
    /// On the noising path `z_s = rho z_t + rest e`, and the forward noise from `Y_s` to `Y_t` is
    /// `(z_t - rho z_s) / rest = rest z_t - rho e`.
    fn fill(&self, tile: &mut Tile<'_, '_, T>) {
        let (spec, times, levels) = (tile.spec, tile.times, tile.grid_levels);
        let of = |row: usize| match levels {
            Some(levels) => self.table[levels[row] as usize],
            None => PartnerMixing::at(spec, self.partner, times[row]),
        };
        let (d, n, rows) = (spec.dim, tile.levels, tile.rows);
        let [x0, z, y] = tile.inputs.many([rows.start, rows.noise, self.points]);
        for row in 0..times.len() {
            let PartnerMixing { mixing, rho, .. } = of(row);
            let place = row * d..(row + 1) * d;
            let points = y[place.clone()].iter_mut().zip(&x0[row / n * d..]);
            for ((y, &x0), &z) in points.zip(&z[place]) {
                *y = mixing.alpha * x0 + mixing.gamma * rho * z;
            }
        }
        if let Some(forward) = self.forward {
            let (purpose, first) = (Purpose::Partner(tile.part), tile.units.start as u64);
            let noise = tile.inputs.numbers(forward);
            T::fill_normal_rows(tile.seed, purpose, tile.step, first, n * d, noise);
            let [z, e, y] = tile.inputs.many([rows.noise, forward, self.points]);
            for row in 0..times.len() {
                let PartnerMixing { mixing, rho, rest } = of(row);
                let place = row * d..(row + 1) * d;
                let points = y[place.clone()].iter_mut().zip(&mut e[place.clone()]);
                for ((y, e), &z) in points.zip(&z[place]) {
                    *y += mixing.gamma * rest * *e;
                    *e = rest * z - rho * *e;
                }
            }
        }
        tile.add_end(self.points, |row| of(row).mixing.beta);
    }
}
