//! Architectures on the [`engine`](crate::engine): networks that energies and velocities are made of.

mod input;
mod layout;
mod mlp;
mod pairs;

pub use input::ScaledRows;
pub use layout::{Entry, Init, Layout};
pub use mlp::Mlp;
pub use pairs::Pairs;
