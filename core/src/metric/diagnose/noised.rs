//! Noised data: points of the true marginals p_t, the one thing that can be had of them without knowing their density.

use crate::process::Process;
use crate::rng::{Permutation, Purpose, Stream};
use crate::{Error, Result};

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

/// Draws points Y_t = alpha x_0 + beta x_1 + gamma z.
pub struct Noised<'a> {
    data: Data<'a>,
    process: &'a Process,
    order: Permutation,
    seed: u64,
    set: u32,
}

impl<'a> Noised<'a> {
    /// Draws with a seed. Rows are taken in a shuffled order, each once before any comes again.
    pub fn new(data: Data<'a>, process: &'a Process, seed: u64) -> Self {
        Self::of_set(0, data, process, seed)
    }

    /// As [`Noised::new`], with draws that are not those of other sets of rows; those judged by are set 0.
    pub fn of_set(set: u32, data: Data<'a>, process: &'a Process, seed: u64) -> Self {
        let purpose = Purpose::DiagnoseOrder(set);
        Self {
            order: Permutation::new(seed, purpose, 0, data.len() as u64),
            set,
            data,
            process,
            seed,
        }
    }

    /// Point number `number` at `time`; its noise belongs to (seed, time, number).
    pub fn point(&self, time: f64, number: u64, out: &mut [f64]) {
        let dim = self.data.dim;
        let rows = self.data.len() as u64;
        let row = self.order.at(number % rows) as usize;
        let mut stream = Stream::new(
            self.seed,
            Purpose::Diagnose(self.set),
            time.to_bits(),
            number,
        );
        let (alpha, gamma) = (self.process.x0_scale(time), self.process.noise(time));
        for (y, x) in out.iter_mut().zip(&self.data.start[row * dim..]) {
            *y = alpha * x;
        }
        if let Some(end) = self.data.end {
            let row = stream.below((end.len() / dim) as u64) as usize;
            let beta = self.process.x1_scale(time);
            for (y, x) in out.iter_mut().zip(&end[row * dim..]) {
                *y += beta * x;
            }
        }
        for y in out {
            *y += gamma * stream.normal();
        }
    }

    /// Points `0..count` at one time.
    pub fn points(&self, time: f64, count: usize) -> Vec<f64> {
        let mut out = vec![0.0; count * self.data.dim];
        for (number, point) in out.chunks_exact_mut(self.data.dim).enumerate() {
            self.point(time, number as u64, point);
        }
        out
    }
}
