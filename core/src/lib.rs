//! Learn energies from samples.
pub mod error;
pub mod network;
pub use error::{Error, Result};
