//! The Mueller-Brown surface (Mueller and Brown 1979): three wells in the plane and the passes between them, a test of dynamics.

mod basins;

pub use basins::{Basin, Basins};

use super::Target;
use crate::rng::Stream;
use crate::{Error, Result};
use std::sync::{Arc, OnceLock};

/// Terms `A exp(a (x - x0)^2 + b (x - x0)(y - y0) + c (y - y0)^2)` of the potential: A, a, b, c, x0, y0.
const TERMS: [[f64; 6]; 4] = [
    [-200.0, -1.0, 0.0, -10.0, 1.0, 0.0],
    [-100.0, -1.0, 0.0, -10.0, 0.0, 0.5],
    [-170.0, -6.5, 11.0, -6.5, -0.5, 1.5],
    [15.0, 0.7, 0.6, 0.7, -1.0, 1.0],
];
/// kT of the literature on learned potentials.
const TEMPERATURE: f64 = 23.0;
/// The box that holds all but `exp(-50)` of the mass at that temperature: x from and to, y from and to. The last term is at least
/// `15 exp(4.6)` on its edges, 60 kT above the wells.
const BOX: [f64; 4] = [-3.84, 1.84, -1.84, 3.84];
/// Cells of the sampler along an axis; their bounds leave about two of three proposals.
const CELLS: usize = 192;
/// Points of the integral along an axis. The rule of equal weights converges exponentially for a smooth function that vanishes at the
/// edges: 384 points give the same 12 digits.
const POINTS: usize = 256;

/// `p(x, y) = exp(-V(x, y) / kT) / Z`.
///
/// `V = -200 exp(-(x-1)^2 - 10 y^2) - 100 exp(-x^2 - 10 (y-1/2)^2) - 170 exp(-6.5 (x+1/2)^2 + 11 (x+1/2)(y-3/2) - 6.5 (y-3/2)^2) + 15
/// exp(0.7 (x+1)^2 + 0.6 (x+1)(y-1) + 0.7 (y-1)^2)`; samples by rejection under a bound of each cell of a fine grid, without error.
#[derive(Clone, Debug, PartialEq)]
pub struct MuellerBrown {
    temperature: f64,
    log_z: f64,
    /// Running sums of the cells' bounds times a common factor.
    cumulative: Vec<f64>,
    /// Upper bound of -V / kT in each cell.
    bounds: Vec<f64>,
}

impl Default for MuellerBrown {
    fn default() -> Self {
        Self::build(TEMPERATURE)
    }
}

/// A term at a point: its exponent and the exponent's slopes.
fn exponent([_, a, b, c, x0, y0]: &[f64; 6], x: f64, y: f64) -> (f64, f64, f64) {
    let (u, v) = (x - x0, y - y0);
    (
        a * u * u + b * u * v + c * v * v,
        2.0 * a * u + b * v,
        b * u + 2.0 * c * v,
    )
}

impl MuellerBrown {
    /// The surface at another kT, from 1 to 40, in the units of V; above, the mass outside of the box that samples are drawn from
    /// would matter.
    pub fn at(temperature: f64) -> Result<Self> {
        if !(1.0..=40.0).contains(&temperature) {
            return Err(Error::Value {
                name: "kT of mueller-brown",
                found: temperature.to_string(),
                expected: "a number from 1 to 40".into(),
            });
        }
        Ok(Self::build(temperature))
    }

    fn build(temperature: f64) -> Self {
        let mut surface = Self {
            temperature,
            log_z: 0.0,
            cumulative: Vec::with_capacity(CELLS * CELLS),
            bounds: Vec::with_capacity(CELLS * CELLS),
        };
        let [hx, hy] = spacing(POINTS);
        let lowest = -147.0 / temperature;
        let mut sum = 0.0;
        for k in 0..POINTS * POINTS {
            let [x, y] = centre(POINTS, k);
            sum += (lowest - surface.potential(x, y) / temperature).exp();
        }
        surface.log_z = (sum * hx * hy).ln() - lowest;
        let mut total = 0.0;
        for k in 0..CELLS * CELLS {
            let bound = -lower_bound(k) / temperature;
            surface.bounds.push(bound);
            total += (bound + lowest).exp();
            surface.cumulative.push(total);
        }
        surface
    }

    /// The surface at the kT of the literature, 23; its tables are made once.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<MuellerBrown>> = OnceLock::new();
        SHARED.get_or_init(|| Arc::new(Self::default())).clone()
    }

    /// kT, in the units of V.
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    /// log Z, `Z` the integral of `exp(-V / kT)`.
    pub fn log_z(&self) -> f64 {
        self.log_z
    }

    /// V.
    pub fn potential(&self, x: f64, y: f64) -> f64 {
        TERMS
            .iter()
            .map(|term| term[0] * exponent(term, x, y).0.exp())
            .sum()
    }

    /// The force -grad V.
    pub fn force(&self, x: f64, y: f64) -> [f64; 2] {
        let mut force = [0.0; 2];
        for term in &TERMS {
            let (q, qx, qy) = exponent(term, x, y);
            let value = term[0] * q.exp();
            force[0] -= value * qx;
            force[1] -= value * qy;
        }
        force
    }

    /// Mass of each cell of a grid of `nx` by `ny` cells over a window, x outside: `[x from, x to, y from, y to]`; each cell by 8 by 8
    /// points.
    pub fn masses(&self, window: [f64; 4], nx: usize, ny: usize) -> Vec<f64> {
        /// Points of a cell along an axis.
        const FINE: usize = 8;
        let [x0, x1, y0, y1] = window;
        let (hx, hy) = ((x1 - x0) / nx as f64, (y1 - y0) / ny as f64);
        let inside = |k: usize| (k as f64 + 0.5) / FINE as f64;
        (0..nx * ny)
            .map(|cell| {
                let (i, j) = ((cell / ny) as f64, (cell % ny) as f64);
                let sum: f64 = (0..FINE * FINE)
                    .map(|k| {
                        let x = x0 + (i + inside(k / FINE)) * hx;
                        let y = y0 + (j + inside(k % FINE)) * hy;
                        (-self.potential(x, y) / self.temperature - self.log_z).exp()
                    })
                    .sum();
                sum * hx * hy / (FINE * FINE) as f64
            })
            .collect()
    }
}

/// Size of a cell of the box.
fn spacing(cells: usize) -> [f64; 2] {
    [
        (BOX[1] - BOX[0]) / cells as f64,
        (BOX[3] - BOX[2]) / cells as f64,
    ]
}

/// Centre of cell k of the box.
fn centre(cells: usize, k: usize) -> [f64; 2] {
    let [hx, hy] = spacing(cells);
    [
        BOX[0] + ((k / cells) as f64 + 0.5) * hx,
        BOX[2] + ((k % cells) as f64 + 0.5) * hy,
    ]
}

/// A number that V does not fall below in cell k of the sampler: exponents are quadratic, so their expansion about the centre bounds
/// them, and each term is monotone in its exponent.
fn lower_bound(k: usize) -> f64 {
    let [x, y] = centre(CELLS, k);
    let [hx, hy] = spacing(CELLS).map(|h| 0.5 * h);
    TERMS
        .iter()
        .map(|term| {
            let [amplitude, a, b, c, ..] = *term;
            let (q, qx, qy) = exponent(term, x, y);
            let reach = qx.abs() * hx
                + qy.abs() * hy
                + a.abs() * hx * hx
                + b.abs() * hx * hy
                + c.abs() * hy * hy;
            amplitude * (q - reach * amplitude.signum()).exp()
        })
        .sum()
}

impl Target for MuellerBrown {
    fn dim(&self) -> usize {
        2
    }

    fn sample_row(&self, stream: &mut Stream, out: &mut [f32]) {
        let total = self.cumulative.last().copied().unwrap_or(1.0);
        let [hx, hy] = spacing(CELLS);
        // Ends with probability 1; two of three proposals are taken.
        loop {
            let pick = stream.uniform() * total;
            let k = self
                .cumulative
                .partition_point(|sum| *sum <= pick)
                .min(CELLS * CELLS - 1);
            let [x, y] = centre(CELLS, k);
            let x = x + (stream.uniform() - 0.5) * hx;
            let y = y + (stream.uniform() - 0.5) * hy;
            let ratio = -self.potential(x, y) / self.temperature - self.bounds[k];
            if stream.uniform() < ratio.exp() {
                out[0] = x as f32;
                out[1] = y as f32;
                return;
            }
        }
    }

    fn log_density(&self, point: &[f64]) -> Option<f64> {
        Some(-self.potential(point[0], point[1]) / self.temperature - self.log_z)
    }

    fn score(&self, point: &[f64], out: &mut [f64]) -> bool {
        let force = self.force(point[0], point[1]);
        out[0] = force[0] / self.temperature;
        out[1] = force[1] / self.temperature;
        true
    }
}

#[cfg(test)]
mod tests;
