//! Sources of training rows: an array in memory or in a file, shuffled anew every epoch, or a system that is sampled
//! afresh at every step.

use std::sync::Arc;

use crate::rng::{Permutation, Purpose, Stream};
use crate::system::System;

/// Gives the source row number `unit` of step `step`; a pure function of both.
pub trait Source: Send + Sync {
    /// Writes the row.
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]);
}

/// An array of rows.
pub trait Table: Send + Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Copies row `row`.
    fn copy_row(&self, row: usize, out: &mut [f32]);
}

/// Rows in memory, row-major.
pub struct InMemory {
    dim: usize,
    values: Vec<f32>,
}

impl InMemory {
    /// Rows of `dim` numbers.
    pub fn new(values: Vec<f32>, dim: usize) -> InMemory {
        InMemory { dim, values }
    }
}

impl Table for InMemory {
    fn rows(&self) -> usize {
        self.values.len() / self.dim
    }
    fn copy_row(&self, row: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.values[row * self.dim..][..self.dim]);
    }
}

/// The map to the coordinates the model is trained in: `(x - shift) / scale`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standardisation {
    /// Subtracted first.
    pub shift: Vec<f64>,
    /// Divided by then.
    pub scale: f64,
}

impl Standardisation {
    /// No change.
    pub fn identity(dim: usize) -> Standardisation {
        Standardisation {
            shift: vec![0.0; dim],
            scale: 1.0,
        }
    }
}

/// A share of the rows of a table, shuffled once per epoch.
pub struct Shuffled {
    table: Arc<dyn Table>,
    standardisation: Standardisation,
    batch: usize,
    seed: u64,
    /// Chooses which rows belong to this share.
    split: Permutation,
    first: usize,
    count: usize,
}

impl Shuffled {
    /// Training and held-out shares; the held-out share has `held_out` rows.
    pub fn split(
        table: Arc<dyn Table>,
        standardisation: &Standardisation,
        batch: usize,
        seed: u64,
        held_out: usize,
    ) -> (Shuffled, Shuffled) {
        let rows = table.rows();
        let share = |first, count| Shuffled {
            table: table.clone(),
            standardisation: standardisation.clone(),
            batch,
            seed,
            split: Permutation::new(!seed, u64::MAX, rows as u64),
            first,
            count,
        };
        (share(0, rows - held_out), share(rows - held_out, held_out))
    }

    /// Rows of this share.
    pub fn rows(&self) -> usize {
        self.count
    }
}

impl Source for Shuffled {
    /// Rows are dealt in order of one endless sequence of shuffled epochs; a batch may span two.
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let dealt = step * self.batch as u64 + unit as u64;
        let (epoch, place) = (dealt / self.count as u64, dealt % self.count as u64);
        let within = Permutation::new(self.seed, epoch, self.count as u64).at(place);
        let row = self.split.at(self.first as u64 + within) as usize;
        self.table.copy_row(row, out);
        for (x, shift) in out.iter_mut().zip(&self.standardisation.shift) {
            *x = ((*x as f64 - shift) / self.standardisation.scale) as f32;
        }
    }
}

/// A system sampled afresh at every step.
pub struct Resampled {
    system: Arc<System>,
    seed: u64,
    standardisation: Standardisation,
}

impl Resampled {
    /// Draws from `system`; two endpoints of an interpolant need different seeds.
    pub fn new(system: Arc<System>, seed: u64, standardisation: Standardisation) -> Resampled {
        Resampled {
            system,
            seed,
            standardisation,
        }
    }
}

impl Source for Resampled {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let mut stream = Stream::new(self.seed, Purpose::System, step, unit as u64);
        self.system.sample_row(&mut stream, out);
        for (x, shift) in out.iter_mut().zip(&self.standardisation.shift) {
            *x = ((*x as f64 - shift) / self.standardisation.scale) as f32;
        }
    }
}
