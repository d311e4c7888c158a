//! Bootstrap of MBAR: the equations solved again for samples drawn with replacement, state by state, in blocks.

use super::Mbar;
use crate::free_energy::bootstrap::{Blocks, resample};
use crate::metric::Estimate;
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};

/// Log-normalisers of every replica.
#[derive(Debug, Clone)]
pub struct Bootstrapped {
    states: usize,
    /// log(Z_k / Z_0), replica after replica.
    log_z: Vec<f64>,
    /// The largest widening of the states' blocks.
    widening: f64,
}

impl Bootstrapped {
    /// Number of replicas.
    pub fn replicas(&self) -> usize {
        self.log_z.len() / self.states
    }

    /// Mean and **standard deviation** of `delta = log(Z_to / Z_from)` over the replicas: the error is that of one estimate.
    pub fn difference(&self, from: usize, to: usize) -> Estimate {
        let values: Vec<f64> = self
            .log_z
            .chunks_exact(self.states)
            .map(|row| row[to] - row[from])
            .collect();
        let mean = Estimate::of(&values);
        Estimate {
            mean: mean.mean,
            error: mean.error * (values.len() as f64).sqrt() * self.widening,
        }
    }
}

impl Mbar<'_> {
    /// Solves again for `replicas` resampled data sets; samples of state k are drawn together in `blocks[k]`
    /// ([`Blocks::SINGLE`] for independent samples, [`Blocks::of`] the statistical inefficiency for a time series).
    ///
    /// # Errors
    /// As [`Mbar::solve`]; [`Error::Value`] for fewer than two replicas or a block of no samples.
    pub fn bootstrap(&self, replicas: usize, blocks: &[Blocks], seed: u64) -> Result<Bootstrapped> {
        if replicas < 2 {
            return Err(Error::Value {
                name: "bootstrap replicas",
                found: replicas.to_string(),
                expected: "at least 2".into(),
            });
        }
        if blocks.len() != self.states() {
            return Err(Error::Value {
                name: "block lengths",
                found: format!("{} of them", blocks.len()),
                expected: format!("one for each of the {} states", self.states()),
            });
        }
        let counts = self.sampled_counts();
        let mut weights = vec![0.0; self.energies.samples()];
        let mut log_z = Vec::with_capacity(replicas * self.states());
        for replica in 0..replicas {
            weights.fill(0.0);
            let mut rest = &mut weights[..];
            for (state, (&count, blocks)) in self.counts.iter().zip(blocks).enumerate() {
                let (own, tail) = rest.split_at_mut(count);
                rest = tail;
                let mut stream =
                    Stream::new(seed, Purpose::Bootstrap, replica as u64, state as u64);
                resample(&mut stream, blocks.length, own)?;
            }
            let f = self.resolve(&weights, &counts)?;
            log_z.extend(f.iter().map(|f| -f));
        }
        Ok(Bootstrapped {
            states: self.states(),
            log_z,
            widening: blocks.iter().map(|b| b.widening).fold(1.0, f64::max),
        })
    }
}
