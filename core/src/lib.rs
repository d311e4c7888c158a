//! Learn energies from samples.
pub mod error;
pub mod network;
pub mod rng;
pub use error::{Error, Result};
