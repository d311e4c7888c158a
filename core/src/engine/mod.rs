//! The differentiable core: a static graph of row-tile primitives that is closed under differentiation. It knows no
//! network and no physics.
//!
//! Build a [`Graph`], differentiate it with [`Graph::grad`] as often as needed, turn the wanted nodes into a
//! [`Program`], and run it on batches of any size:
//!
//! ```
//! use std::sync::Arc;
//! use diffclf::engine::{Function, Graph, Isa, Pool, Program, Rows};
//!
//! // The score of exp(-(1 - cos y)) at y = 0.5 and 1.0.
//! let mut g = Graph::new();
//! let (y, slot) = g.input(Rows::Unit(1), 1);
//! let cos = g.unary(Function::Cos, y);
//! let energy = g.affine(cos, -1.0, 1.0);
//! let gradient = g.grad_of_sum(energy, &[y])[0];
//! let score = g.scale(gradient, -1.0);
//! let mut program = Program::<f64>::new(&g, &[score], Arc::new(Pool::new(1)), Isa::detect());
//! let points = [0.5, 1.0];
//! let scores = std::sync::Mutex::new(vec![0.0; 2]);
//! program.run(
//!     &[],
//!     2,
//!     &|units, inputs| inputs.numbers(slot).copy_from_slice(&points[units]),
//!     &|_, units, outputs| scores.lock().unwrap()[units].copy_from_slice(outputs.numbers(0)),
//! );
//! assert!((scores.into_inner().unwrap()[1] + 1f64.sin()).abs() < 1e-15);
//! ```

mod aligned;
pub mod company;
mod grad;
mod graph;
pub(crate) mod kernel;
mod plan;
mod pool;
mod run;
#[cfg(test)]
mod tests;
mod tree;

pub use company::Company;
pub use graph::{Blocks, Function, Graph, Node, Op, Rows, Shape};
pub use kernel::gemm::sgemm_peak;
pub use kernel::{Isa, Real};
pub use plan::Plan;
pub use pool::Pool;
pub use run::{Fill, Inputs, Outputs, Program, Sink};
