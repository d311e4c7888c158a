//! Finite state spaces: `d` sites of `K` states each (spins, sequences, categories). Siblings of [`process`](crate::process),
//! [`energy`](crate::energy) and [`objective`](crate::objective); the [`engine`](crate::engine), the [trainer](crate::train), grids and
//! time samplers are the same.
//!
//! A row is `d` bytes, each a symbol `0 .. K`; a masked site is the symbol `K`. A continuous-time Markov chain turns rows into noise,
//! `d/dt p_t = Q_t^T p_t` with `Q_t(a, b)` the rate from `a` to `b`, one site at a time. The energy is that of one level of noise,
//! `log p_t(y) = -U(t, y) + F(t)`, and what a score is in space the ratios `p_t(y') / p_t(y)` of states that differ at one site are
//! here (the concrete score).

pub mod compare;
mod counts;
pub mod diagnose;
pub mod energy;
pub mod metric;
pub mod model;
pub mod network;
pub mod objective;
pub mod process;
pub mod sample;
pub mod system;
pub mod train;

pub use energy::{Energy, LearnedStates};
pub use model::{Content, StatesSpec};
pub use process::Process;

use crate::{Error, Result};

/// Most states of a site: a symbol is a byte, and one more may be the mask.
pub const MOST_STATES: usize = 250;

/// `sites` places with `states` states each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// Sites of a row, d.
    pub sites: usize,
    /// States of a site, K.
    pub states: usize,
}

impl Space {
    /// Refuses spaces that cannot be.
    pub fn validate(&self) -> Result<()> {
        let wrong = |name, found: usize, expected: String| {
            Err(Error::Value {
                name,
                found: found.to_string(),
                expected,
            })
        };
        if self.sites == 0 || self.sites > 1 << 16 {
            return wrong("sites", self.sites, "between 1 and 65536".into());
        }
        if !(2..=MOST_STATES).contains(&self.states) {
            return wrong(
                "states",
                self.states,
                format!("between 2 and {MOST_STATES}"),
            );
        }
        Ok(())
    }

    /// Number of rows there are, `K^d`, if it is at most `most`.
    pub fn count(&self, most: usize) -> Option<usize> {
        let mut count = 1usize;
        for _ in 0..self.sites {
            count = count.checked_mul(self.states).filter(|c| *c <= most)?;
        }
        Some(count)
    }

    /// The row of a number below `K^d`; the first site is the lowest digit.
    pub fn row_of(&self, mut number: usize, row: &mut [u8]) {
        for symbol in row {
            *symbol = (number % self.states) as u8;
            number /= self.states;
        }
    }

    /// The number of a row without masks.
    pub fn number_of(&self, row: &[u8]) -> usize {
        row.iter()
            .rev()
            .fold(0, |number, s| number * self.states + usize::from(*s))
    }
}

/// `log sum exp` of a few numbers.
pub(crate) fn log_sum_exp(values: impl IntoIterator<Item = f64> + Clone) -> f64 {
    let most = values.clone().into_iter().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    let sum: f64 = values.into_iter().map(|x| (x - most).exp()).sum();
    most + sum.ln()
}

#[cfg(test)]
mod tests;
