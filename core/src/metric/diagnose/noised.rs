//! Noised data: points of the true marginals p_t, the one thing that can be had of them without knowing their density.

use crate::free_energy::{Influence, Sources, statistical_inefficiency};
use crate::metric::Estimate;
use crate::process::Process;
use crate::rng::{Permutation, Purpose, Stream};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Rows of the data in the model's coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Rows of x_0.
    pub start: &'a [f64],
    /// Rows of x_1, for an interpolant.
    pub end: Option<&'a [f64]>,
    /// Numbers of a row.
    pub dim: usize,
}

impl Data<'_> {
    /// Rows of x_0.
    pub fn len(&self) -> usize {
        self.start.len() / self.dim
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Statistical inefficiency of the rows in their order: the largest over the coordinates (64 of them at most) and the squared distance from
    /// the mean, of either endpoint; at least the number of times that a row comes on average. n rows are worth n/g independent ones.
    pub fn inefficiency(&self) -> f64 {
        let copies = |rows: &[f64]| {
            let distinct: HashSet<Vec<u64>> = rows.chunks_exact(self.dim).map(key).collect();
            (rows.len() / self.dim) as f64 / distinct.len().max(1) as f64
        };
        let copied = copies(self.start).max(self.end.map_or(1.0, copies));
        self.inefficiency_of_order().max(copied)
    }

    /// The same for rows of which equal ones are draws of their own.
    pub fn inefficiency_of_order(&self) -> f64 {
        let of = |rows: &[f64]| {
            let n = rows.len() / self.dim;
            let mut radius = vec![0.0; n];
            let mut worst = 1f64;
            for i in 0..self.dim {
                let column: Vec<f64> = rows.iter().skip(i).step_by(self.dim).copied().collect();
                let mean = column.iter().sum::<f64>() / n as f64;
                for (r, x) in radius.iter_mut().zip(&column) {
                    *r += (x - mean).powi(2);
                }
                // A coordinate that never changes says nothing.
                if i < 64 && column.iter().any(|x| *x != column[0]) {
                    worst = worst.max(statistical_inefficiency(&column));
                }
            }
            if radius.iter().any(|r| *r != radius[0]) {
                worst = worst.max(statistical_inefficiency(&radius));
            }
            worst
        };
        of(self.start).max(self.end.map_or(1.0, of))
    }

    pub(super) fn validate(&self, dim: usize, process: &Process) -> Result<()> {
        let tables = [Some(self.start), self.end];
        if self.dim != dim
            || tables
                .iter()
                .flatten()
                .any(|rows| rows.is_empty() || !rows.len().is_multiple_of(dim))
        {
            return Err(Error::Shape {
                what: "the data to judge by".into(),
                found: format!("{} numbers in rows of {}", self.start.len(), self.dim),
                expected: format!("rows of {dim} numbers, the dimension of the model"),
            });
        }
        if process.is_interpolant() != self.end.is_some() {
            return Err(Error::Value {
                name: "data of the second endpoint",
                found: if self.end.is_some() {
                    "given"
                } else {
                    "absent"
                }
                .into(),
                expected: format!(
                    "{} for the {} process",
                    if process.is_interpolant() {
                        "rows"
                    } else {
                        "none"
                    },
                    process.name()
                ),
            });
        }
        Ok(())
    }
}

/// For every row the first one that is equal to it; none if all are different.
fn twins(rows: &[f64], dim: usize) -> Option<Vec<u32>> {
    let mut first = HashMap::with_capacity(rows.len() / dim);
    let twins: Vec<u32> = rows
        .chunks_exact(dim)
        .enumerate()
        .map(|(i, row)| *first.entry(key(row)).or_insert(i as u32))
        .collect();
    (first.len() < twins.len()).then_some(twins)
}

/// A row as a key; -0 and 0 are the same number.
pub(super) fn key(row: &[f64]) -> Vec<u64> {
    row.iter().map(|x| (x + 0.0).to_bits()).collect()
}

/// How a row becomes a noisy one.
pub trait MakeNoise {
    /// Whether equal rows are draws of their own, as among few states, and no copies.
    fn rows_repeat(&self) -> bool {
        false
    }

    /// A noisy row at `time` from a row of the data (and one of the second endpoint, for an interpolant), by draws of `stream`.
    fn make_noise(
        &self,
        time: f64,
        start: &[f64],
        end: Option<&[f64]>,
        stream: &mut Stream,
        out: &mut [f64],
    );
}

/// Y_t = alpha x_0 + beta x_1 + gamma z.
impl MakeNoise for Process {
    fn make_noise(
        &self,
        time: f64,
        start: &[f64],
        end: Option<&[f64]>,
        stream: &mut Stream,
        out: &mut [f64],
    ) {
        let (alpha, gamma) = (self.x0_scale(time), self.noise(time));
        for (y, x) in out.iter_mut().zip(start) {
            *y = alpha * x;
        }
        if let Some(end) = end {
            let beta = self.x1_scale(time);
            for (y, x) in out.iter_mut().zip(end) {
                *y += beta * x;
            }
        }
        for y in out {
            *y += gamma * stream.normal();
        }
    }
}

/// Draws noisy rows.
pub struct Noised<'a> {
    data: Data<'a>,
    noise: &'a dyn MakeNoise,
    order: Permutation,
    /// The first of equal rows, for every row of either endpoint: copies say nothing new.
    twins: [Option<Vec<u32>>; 2],
    seed: u64,
    set: u32,
}

impl<'a> Noised<'a> {
    /// Draws with a seed. Rows are taken in a shuffled order, each once before any comes again.
    pub fn new(data: Data<'a>, noise: &'a dyn MakeNoise, seed: u64) -> Self {
        Self::of_set(0, data, noise, seed)
    }

    /// As [`Noised::new`], with draws that are not those of other sets of rows; those judged by are set 0.
    pub fn of_set(set: u32, data: Data<'a>, noise: &'a dyn MakeNoise, seed: u64) -> Self {
        let purpose = Purpose::DiagnoseOrder(set);
        Self {
            order: Permutation::new(seed, purpose, 0, data.len() as u64),
            twins: [Some(data.start), data.end]
                .map(|rows| rows.filter(|_| !noise.rows_repeat()))
                .map(|rows| rows.and_then(|rows| twins(rows, data.dim))),
            set,
            data,
            noise,
            seed,
        }
    }

    /// Point number `number` at `time`; its noise belongs to (seed, time, number). Returns the rows it is made of, of both endpoints.
    pub fn point(&self, time: f64, number: u64, out: &mut [f64]) -> [u32; 2] {
        let dim = self.data.dim;
        let rows = self.data.len() as u64;
        let row = self.order.at(number % rows) as usize;
        let mut stream = Stream::new(
            self.seed,
            Purpose::Diagnose(self.set),
            time.to_bits(),
            number,
        );
        let mut rows = [row as u32, 0];
        let end = self.data.end.map(|end| {
            let row = stream.below((end.len() / dim) as u64) as usize;
            rows[1] = row as u32;
            &end[row * dim..][..dim]
        });
        let start = &self.data.start[row * dim..][..dim];
        self.noise.make_noise(time, start, end, &mut stream, out);
        rows
    }

    /// Points `0..count` at one time.
    pub fn points(&self, time: f64, count: usize) -> Vec<f64> {
        self.points_and_rows(time, count).0
    }

    /// Points `0..count` at one time, and the rows they are made of.
    pub fn points_and_rows(&self, time: f64, count: usize) -> (Vec<f64>, Vec<[u32; 2]>) {
        let mut out = vec![0.0; count * self.data.dim];
        let points = out.chunks_exact_mut(self.data.dim).enumerate();
        let rows = points.map(|(number, point)| self.point(time, number as u64, point));
        let rows = rows.collect();
        (out, rows)
    }

    fn first_of(&self, mut rows: [u32; 2]) -> [u32; 2] {
        for (row, twins) in rows.iter_mut().zip(&self.twins) {
            if let Some(twins) = twins {
                *row = twins[*row as usize];
            }
        }
        rows
    }

    /// The mean of values that belong to points made of these rows. The error counts that points share rows, that rows are repeated, and that rows which are
    /// neighbours in the data may be correlated.
    pub fn estimate(&self, values: &[f64], rows: &[[u32; 2]]) -> Estimate {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let dim = self.data.dim;
        let sources = Arc::new(Sources::new(
            [
                self.data.len(),
                self.data.end.map_or(0, |end| end.len() / dim),
            ],
            rows.iter().map(|rows| self.first_of(*rows)).collect(),
        ));
        let parts = values.iter().map(|v| (v - mean) / n).collect();
        Estimate {
            mean,
            error: Influence::of_samples(&sources, parts).error().0,
        }
    }
}
