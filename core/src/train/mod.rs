//! Training: the step on the tile executor, the optimiser, the trainer's stages, and the loop that drives it.

mod adam;
mod coupled;
mod course;
mod fill;
mod fit;
mod gradients;
mod loss_sums;
mod rate;
mod settings;
mod source;
mod step;
mod trainer;
mod turned;

pub use adam::{Adam, average, clip};
pub use coupled::coupled;
pub use course::{Course, EnergyCourse, Lesson};
pub use fit::{End, Moment, Observer, finish, run};
pub(crate) use gradients::Gradients;
pub(crate) use loss_sums::LossSums;
pub use rate::{Decay, Rate};
pub use settings::{HeldOut, StageSettings, TrainSettings};
pub use source::{InMemory, Resampled, Shuffled, Source, Table};
pub use step::{Draws, Endpoints, Losses, Step, StepSpec};
pub use trainer::{State, StepReport, Trainer};
pub use turned::Turned;

#[cfg(test)]
mod tests;
