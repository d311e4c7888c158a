//! Sources of training rows: an array in memory or in a file, shuffled anew every epoch, or a system that is sampled
//! afresh at every step.

use std::sync::Arc;

use crate::energy::Coordinates;
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
    /// Writes row `row` in the model's coordinates, mapped in double precision before it is rounded.
    fn copy_row(&self, row: usize, coordinates: &Coordinates, out: &mut [f32]);
}

/// Rows in memory, row-major, in single or double precision.
pub struct InMemory<T = f32> {
    dim: usize,
    values: Vec<T>,
}

impl<T> InMemory<T> {
    /// Rows of `dim` numbers.
    pub fn new(values: Vec<T>, dim: usize) -> InMemory<T> {
        InMemory { dim, values }
    }
}

impl<T: Copy + Into<f64> + Send + Sync> Table for InMemory<T> {
    fn rows(&self) -> usize {
        self.values.len() / self.dim
    }
    fn copy_row(&self, row: usize, coordinates: &Coordinates, out: &mut [f32]) {
        let row = &self.values[row * self.dim..][..self.dim];
        coordinates.round_to_model(row.iter().map(|x| (*x).into()), out);
    }
}

/// A share of the rows of a table, shuffled once per epoch.
pub struct Shuffled {
    table: Arc<dyn Table>,
    coordinates: Coordinates,
    batch: usize,
    seed: u64,
    endpoint: u32,
    /// Chooses which rows belong to this share.
    split: Permutation,
    first: usize,
    count: usize,
}

impl Shuffled {
    /// Training and held-out shares of the data at an endpoint (0 is `x_0`, 1 is `x_1`); the held-out share has `held_out` rows.
    pub fn split(
        endpoint: u32,
        table: Arc<dyn Table>,
        coordinates: &Coordinates,
        batch: usize,
        seed: u64,
        held_out: usize,
    ) -> (Shuffled, Shuffled) {
        let rows = table.rows();
        let share = |first, count| Shuffled {
            table: table.clone(),
            coordinates: coordinates.clone(),
            batch,
            seed,
            endpoint,
            split: Permutation::new(seed, Purpose::Split(endpoint), 0, rows as u64),
            first,
            count,
        };
        (share(0, rows - held_out), share(rows - held_out, held_out))
    }

    /// Rows of this share.
    pub fn rows(&self) -> usize {
        self.count
    }

    /// Writes row `k` of this share in the order of the table.
    pub fn copy_in_order(&self, k: usize, out: &mut [f32]) {
        let row = self.split.at((self.first + k) as u64) as usize;
        self.table.copy_row(row, &self.coordinates, out);
    }
}

impl Source for Shuffled {
    /// Rows are dealt in order of one endless sequence of shuffled epochs; a batch may span two.
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let dealt = step * self.batch as u64 + unit as u64;
        let (epoch, place) = (dealt / self.count as u64, dealt % self.count as u64);
        let purpose = Purpose::Batch(self.endpoint);
        let within = Permutation::new(self.seed, purpose, epoch, self.count as u64).at(place);
        let row = self.split.at(self.first as u64 + within) as usize;
        self.table.copy_row(row, &self.coordinates, out);
    }
}

/// A system sampled afresh at every step.
pub struct Resampled {
    system: Arc<System>,
    seed: u64,
    endpoint: u32,
    coordinates: Coordinates,
}

impl Resampled {
    /// Draws from `system` for an endpoint: 0 is `x_0`, 1 is `x_1`.
    pub fn new(
        endpoint: u32,
        system: Arc<System>,
        seed: u64,
        coordinates: Coordinates,
    ) -> Resampled {
        Resampled {
            system,
            seed,
            endpoint,
            coordinates,
        }
    }
}

impl Source for Resampled {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let mut stream = Stream::new(self.seed, Purpose::Rows(self.endpoint), step, unit as u64);
        self.system.sample_row(&mut stream, out);
        self.coordinates.round_in_place(out);
    }
}
