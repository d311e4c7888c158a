//! Free-energy differences from files: each way to get them is a file of its own.

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

/// Ten growing shares of the data.
fn tenths() -> Vec<f64> {
    (1..=10).map(|i| f64::from(i) / 10.0).collect()
}
