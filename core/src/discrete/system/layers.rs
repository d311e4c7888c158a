//! Layers in a row, each seeing the one before it: strips of a lattice and Markov chains. One pass along the layers (transfer matrices,
//! the forward algorithm) gives the partition function, marginals under noise and samples.

use super::table::times_log;
use super::{Target, draw_from};
use crate::discrete::{Process, Space};
use crate::rng::Stream;
use crate::{Error, Result};

/// See the module's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Layers {
    name: &'static str,
    /// One layer.
    line: Space,
    layers: usize,
    /// The symbols of each state of a layer.
    symbols: Vec<u8>,
    /// Weights of the first layer, divided by their largest.
    first: Vec<f64>,
    /// Weights of a layer after another, `from x to`, divided by their largest.
    next: Vec<f64>,
    /// Logarithms of what they were divided by.
    scales: [f64; 2],
    log_partition: f64,
}

impl Layers {
    /// `layers` layers of rows of `line`, log-weights of the first, and of a layer after another, `from x to`.
    pub fn new(
        name: &'static str,
        line: Space,
        layers: usize,
        first: Vec<f64>,
        next: Vec<f64>,
    ) -> Result<Layers> {
        line.validate()?;
        let count = line.count(1024).unwrap_or(0);
        if count == 0 || first.len() != count || next.len() != count * count || layers == 0 {
            return Err(Error::Shape {
                what: "the weights of layers".into(),
                found: format!("{} and {} for {layers} layers", first.len(), next.len()),
                expected: format!("{count} and {count} x {count}, at least one layer"),
            });
        }
        let mut symbols = vec![0; count * line.sites];
        for (number, row) in symbols.chunks_exact_mut(line.sites).enumerate() {
            line.row_of(number, row);
        }
        let scaled = |weights: Vec<f64>| {
            let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (
                weights.iter().map(|w| (w - most).exp()).collect::<Vec<_>>(),
                most,
            )
        };
        let ((first, a), (next, b)) = (scaled(first), scaled(next));
        let mut made = Layers {
            name,
            line,
            layers,
            symbols,
            first,
            next,
            scales: [a, b],
            log_partition: 0.0,
        };
        made.log_partition = made.forward(|_, _| 1.0, |_| {});
        Ok(made)
    }

    /// `log Z`.
    pub fn log_partition(&self) -> f64 {
        self.log_partition
    }

    /// `log sum_x w(x) prod_l emission(l, x_l)`; `seen` gets the forward weights of each layer, up to a factor.
    fn forward(&self, emission: impl Fn(usize, usize) -> f64, mut seen: impl FnMut(&[f64])) -> f64 {
        let count = self.first.len();
        let (mut now, mut then) = (vec![0.0; count], vec![0.0; count]);
        let mut total = self.scales[0] + (self.layers - 1) as f64 * self.scales[1];
        for layer in 0..self.layers {
            if layer == 0 {
                then.copy_from_slice(&self.first);
            } else {
                then.fill(0.0);
                for (weight, row) in now.iter().zip(self.next.chunks_exact(count)) {
                    for (then, next) in then.iter_mut().zip(row) {
                        *then += weight * next;
                    }
                }
            }
            for (state, then) in then.iter_mut().enumerate() {
                *then *= emission(layer, state);
            }
            let sum: f64 = then.iter().sum();
            total += sum.ln();
            then.iter_mut().for_each(|x| *x /= sum);
            seen(&then);
            std::mem::swap(&mut now, &mut then);
        }
        total
    }
}

impl Target for Layers {
    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> Space {
        Space {
            sites: self.line.sites * self.layers,
            states: self.line.states,
        }
    }

    /// Forwards once, then backwards layer by layer.
    fn sample(&self, stream: &mut Stream, row: &mut [u8]) {
        let count = self.first.len();
        let mut forward = Vec::with_capacity(count * self.layers);
        self.forward(|_, _| 1.0, |weights| forward.extend_from_slice(weights));
        let mut later: Option<usize> = None;
        let mut weights = vec![0.0; count];
        let lines = row.chunks_exact_mut(self.line.sites);
        for (line, seen) in lines.zip(forward.chunks_exact(count)).rev() {
            for (state, weight) in weights.iter_mut().enumerate() {
                *weight = seen[state] * later.map_or(1.0, |to| self.next[state * count + to]);
            }
            let state = draw_from(&weights, weights.iter().sum(), stream);
            line.copy_from_slice(&self.symbols[state * self.line.sites..][..self.line.sites]);
            later = Some(state);
        }
    }

    fn log_marginals(&self, process: &Process, keep: f64, rows: &[u8], out: &mut [f64]) {
        let (sites, states) = (self.line.sites, self.line.states);
        for (row, out) in rows.chunks_exact(sites * self.layers).zip(out) {
            // Factors that no hidden state changes stay outside: they may be very small.
            let masks = row.iter().filter(|s| usize::from(**s) == states).count();
            let outside = times_log(masks, 1.0 - keep);
            let emission = |layer: usize, state: usize| {
                let shown = &row[layer * sites..][..sites];
                let hidden = &self.symbols[state * sites..][..sites];
                let each = hidden.iter().zip(shown).map(|(&from, &to)| {
                    if usize::from(to) == states {
                        1.0
                    } else {
                        process.transition(states, keep, from, to)
                    }
                });
                each.product()
            };
            *out = self.forward(emission, |_| {}) + outside - self.log_partition;
        }
    }
}

/// The log-weights of all rows, for tests of small systems.
#[cfg(test)]
impl Layers {
    pub(crate) fn enumerated(&self) -> Vec<f64> {
        let space = self.space();
        let count = space.count(1 << 16).unwrap();
        let mut row = vec![0; space.sites];
        let one = |number| {
            space.row_of(number, &mut row);
            let states: Vec<usize> = row
                .chunks_exact(self.line.sites)
                .map(|line| self.line.number_of(line))
                .collect();
            let first = self.first[states[0]].ln() + self.scales[0];
            let pairs = states.windows(2);
            let rest =
                pairs.map(|p| self.next[p[0] * self.first.len() + p[1]].ln() + self.scales[1]);
            first + rest.sum::<f64>()
        };
        let weights: Vec<f64> = (0..count).map(one).collect();
        let total = crate::discrete::log_sum_exp(weights.iter().copied());
        weights.iter().map(|w| w - total).collect()
    }
}
