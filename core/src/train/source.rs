//! Sources of training rows: an array in memory or in a file, shuffled anew every epoch, or a system that is sampled
//! afresh at every step.

use std::sync::Arc;

use crate::energy::Coordinates;
use crate::rng::{Permutation, Purpose, Stream};
use crate::system::System;
use crate::weights::Quantiles;

/// Gives the source row number `unit` of step `step`; a pure function of both.
pub trait Source: Send + Sync {
    /// Writes the row.
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]);
    /// Its number in the data, for a person who looks for it; none where rows are drawn afresh.
    fn row(&self, step: u64, unit: usize) -> Option<usize> {
        let _ = (step, unit);
        None
    }
}

/// An array of rows.
pub trait Table: Send + Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Writes row `row` in the model's coordinates, mapped in double precision before it is rounded.
    fn copy_row(&self, row: usize, coordinates: &Coordinates, out: &mut [f32]);
    /// Weights of the rows; none where all count the same.
    fn weights(&self) -> Option<&[f64]> {
        None
    }
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

/// Which rows of a table are held out: about `sqrt(h)` blocks of `sqrt(h)` rows for `h` rows, one in each of as many equal parts of
/// the table. Rows of a simulation hang together in their order; a block is new to the training but for its edges, and rows in
/// the order of the file tell how much they hang together. For rows in no order the blocks are as good as any others.
#[derive(Debug, Clone)]
struct Blocks {
    /// First row and length of each, in order.
    held_out: Vec<(usize, usize)>,
}

impl Blocks {
    fn new(seed: u64, endpoint: u32, rows: usize, held_out: usize) -> Blocks {
        let count = held_out.isqrt();
        let part = |whole: usize, b: usize| {
            // 128 bits: rows times blocks may not fit 64.
            (whole as u128 * b as u128 / count as u128) as usize
        };
        let trained = rows - held_out;
        let block = |b: usize| {
            let first = part(trained, b) + part(held_out, b);
            let room = part(trained, b + 1) - part(trained, b);
            let mut stream = Stream::new(seed, Purpose::Split(endpoint), 0, b as u64);
            let start = first + stream.below(room as u64 + 1) as usize;
            (start, part(held_out, b + 1) - part(held_out, b))
        };
        Blocks {
            held_out: (0..count).map(block).collect(),
        }
    }

    /// Row `k` of those that are trained on.
    fn trained(&self, k: usize) -> usize {
        let mut row = k;
        for &(start, length) in &self.held_out {
            if row < start {
                break;
            }
            row += length;
        }
        row
    }

    /// Row `k` of those that are held out.
    fn held_out(&self, k: usize) -> usize {
        let mut left = k;
        for &(start, length) in &self.held_out {
            if left < length {
                return start + left;
            }
            left -= length;
        }
        unreachable!("a share has no more rows than its blocks")
    }
}

/// Which of a table's rows a share has.
enum Share {
    /// All, in an order of the seed's.
    All(Permutation),
    Trained(Blocks),
    HeldOut(Blocks),
}

/// A share of the rows of a table, shuffled once per epoch; where rows have weights, drawn in proportion to them.
pub struct Shuffled {
    table: Arc<dyn Table>,
    coordinates: Coordinates,
    batch: usize,
    seed: u64,
    endpoint: u32,
    share: Share,
    count: usize,
    /// By weights, in the order of the share.
    drawn: Option<Quantiles>,
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
        let of = |share, count| {
            let mut part = Shuffled {
                table: table.clone(),
                coordinates: coordinates.clone(),
                batch,
                seed,
                endpoint,
                share,
                count,
                drawn: None,
            };
            if table.weights().is_some() {
                part.drawn = Some(Quantiles::new((0..count).map(|k| part.weight(k))));
            }
            part
        };
        let blocks = Blocks::new(seed, endpoint, rows, held_out);
        let trained = if held_out == 0 {
            let order = Permutation::new(seed, Purpose::Split(endpoint), 0, rows as u64);
            Share::All(order)
        } else {
            Share::Trained(blocks.clone())
        };
        (
            of(trained, rows - held_out),
            of(Share::HeldOut(blocks), held_out),
        )
    }

    /// Rows of this share.
    pub fn rows(&self) -> usize {
        self.count
    }

    /// Writes row `k` of this share in the order of the table.
    pub fn copy_in_order(&self, k: usize, out: &mut [f32]) {
        let row = self.in_order(k);
        self.table.copy_row(row, &self.coordinates, out);
    }

    /// Weight of row `k` of this share in the order of the table; 1 where all count the same.
    pub fn weight(&self, k: usize) -> f64 {
        let weights = self.table.weights();
        weights.map_or(1.0, |weights| weights[self.in_order(k)])
    }

    /// Whether rows have weights.
    pub fn is_weighted(&self) -> bool {
        self.drawn.is_some()
    }

    /// Sum of the weights of this share.
    pub fn total_weight(&self) -> f64 {
        let sum = self.drawn.as_ref().map(Quantiles::total);
        sum.unwrap_or(self.count as f64)
    }

    /// The row of this share for number `dealt` of an endless sequence: each run of as many as a batch has takes one row from each of as many
    /// equal parts of the weights, in a random order, so that a row comes as often as its weight says and a batch knows the whole share.
    fn drawn(&self, quantiles: &Quantiles, dealt: u64) -> usize {
        let batch = self.batch.max(1) as u64;
        let (round, unit) = (dealt / batch, dealt % batch);
        let purpose = Purpose::Weighted(self.endpoint);
        let part = Permutation::new(self.seed, purpose, round, batch).at(unit);
        let within = Stream::new(self.seed, Purpose::Batch(self.endpoint), round, part).uniform();
        quantiles.row((part as f64 + within) / batch as f64)
    }

    fn in_order(&self, k: usize) -> usize {
        match &self.share {
            Share::All(_) => k,
            Share::Trained(blocks) => blocks.trained(k),
            Share::HeldOut(blocks) => blocks.held_out(k),
        }
    }

    /// The table's row that is dealt as number `unit` of a step.
    fn dealt(&self, step: u64, unit: usize) -> usize {
        let dealt = step
            .wrapping_mul(self.batch as u64)
            .wrapping_add(unit as u64);
        if let Some(quantiles) = &self.drawn {
            return self.in_order(self.drawn(quantiles, dealt));
        }
        let (epoch, place) = (dealt / self.count as u64, dealt % self.count as u64);
        let purpose = Purpose::Batch(self.endpoint);
        let within = Permutation::new(self.seed, purpose, epoch, self.count as u64).at(place);
        match &self.share {
            Share::All(order) => order.at(within) as usize,
            _ => self.in_order(within as usize),
        }
    }
}

impl Source for Shuffled {
    /// Rows are dealt in order of one endless sequence of shuffled epochs; a batch may span two.
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let row = self.dealt(step, unit);
        self.table.copy_row(row, &self.coordinates, out);
    }

    fn row(&self, step: u64, unit: usize) -> Option<usize> {
        Some(self.dealt(step, unit))
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
