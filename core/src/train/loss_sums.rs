//! The losses of a step: summed over the rows of each chunk, the chunks in their order, so that no number of threads changes a bit; and the
//! first of them that is not finite.

use super::Losses;
use crate::engine::{Outputs, Real};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A row, and the term of the loss that is not finite there.
pub(crate) type Bad = (usize, usize);

/// Sums of one chunk.
struct Chunk {
    sums: Vec<f64>,
    bad: Option<Bad>,
}

/// Sums of all chunks.
pub(crate) struct LossSums {
    chunks: Vec<Mutex<Chunk>>,
}

fn held(chunk: &Mutex<Chunk>) -> MutexGuard<'_, Chunk> {
    chunk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LossSums {
    /// For so many chunks and terms.
    pub fn new(chunks: usize, terms: usize) -> LossSums {
        let chunk = |_| {
            Mutex::new(Chunk {
                sums: vec![0.0; terms],
                bad: None,
            })
        };
        LossSums {
            chunks: (0..chunks).map(chunk).collect(),
        }
    }

    /// Nothing yet.
    pub fn clear(&self) {
        for chunk in &self.chunks {
            let mut chunk = held(chunk);
            chunk.sums.fill(0.0);
            chunk.bad = None;
        }
    }

    /// Adds the losses of a tile's rows, which are its first outputs.
    pub fn add<T: Real>(&self, chunk: usize, units: Range<usize>, outputs: &Outputs<'_, T>) {
        let mut chunk = held(&self.chunks[chunk]);
        for term in 0..chunk.sums.len() {
            for (&value, unit) in outputs.numbers(term).iter().zip(units.clone()) {
                if !value.is_finite() && chunk.bad.is_none() {
                    chunk.bad = Some((unit, term));
                }
                chunk.sums[term] += value.to_f64();
            }
        }
    }

    /// Means over the batch and their weighted sum, or the first number that is not finite.
    pub fn finish(
        &self,
        batch: usize,
        weights: impl Iterator<Item = f64>,
        losses: &mut Losses,
    ) -> std::result::Result<(), Bad> {
        losses.terms.clear();
        let terms = self
            .chunks
            .first()
            .map_or(0, |chunk| held(chunk).sums.len());
        losses.terms.resize(terms, 0.0);
        for chunk in &self.chunks {
            let chunk = held(chunk);
            if let Some(bad) = chunk.bad {
                return Err(bad);
            }
            for (total, sum) in losses.terms.iter_mut().zip(&chunk.sums) {
                *total += sum;
            }
        }
        losses.terms.iter_mut().for_each(|t| *t /= batch as f64);
        let weighted = losses.terms.iter().zip(weights);
        losses.total = weighted.map(|(loss, weight)| loss * weight).sum();
        Ok(())
    }
}
