//! Learn energies from samples.
pub mod energy;
pub mod error;
pub mod format;
pub mod metric;
pub mod model;
pub mod network;
pub mod objective;
pub mod process;
pub mod rng;
pub mod system;
pub mod train;
pub use error::{Error, Result};
