//! Free-energy differences from files: each way to get them is a file of its own.

use crate::error::Result;
use crate::memory::refuse_rows;

pub mod bar;
pub mod fep;
pub mod input;
pub mod learn;
pub mod levels;
pub mod mbar;
pub mod ti;

/// Resampling for a second error bar.
#[derive(Debug, Clone, Copy)]
pub struct Resample {
    /// Bootstrap replicas; none if absent.
    pub replicas: Option<usize>,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl Resample {
    /// Replicas, if they are asked for and fit.
    fn checked(&self) -> Result<Option<usize>> {
        if let Some(replicas) = self.replicas {
            refuse_rows("bootstrap", replicas, 1, 16)?;
        }
        Ok(self.replicas)
    }
}

/// Ten growing shares of the data.
fn tenths() -> Vec<f64> {
    (1..=10).map(|i| f64::from(i) / 10.0).collect()
}
