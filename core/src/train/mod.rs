//! Training.

mod adam;
mod source;
mod step;

pub use adam::{Adam, average, clip};
pub use source::{InMemory, Resampled, Shuffled, Source, Standardisation, Table};
pub use step::{Draws, Endpoints, Losses, Step, StepPlan};
