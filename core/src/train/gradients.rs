//! Where the parameter gradients of a step stand among the outputs of its program.

use crate::engine::{Program, Real};
use crate::network::Layout;
use crate::{Error, Result};

/// Name, first parameter and number of parameters of each gradient output, which come after those of the losses.
pub(crate) struct Gradients {
    entries: Vec<(String, usize, usize)>,
    first: usize,
}

impl Gradients {
    /// Of all parameters, after so many losses; of none if they are not wanted.
    pub fn new(layout: &Layout, losses: usize, wanted: bool) -> Gradients {
        let entries = layout.entries().iter().filter(|_| wanted);
        Gradients {
            entries: entries
                .map(|e| (e.name.clone(), e.offset, e.rows * e.cols))
                .collect(),
            first: losses,
        }
    }

    /// Copies them to their places; what is not finite is told by the name of its parameters.
    pub fn copy<T: Real>(&self, program: &Program<T>, step: u64, gradient: &mut [T]) -> Result<()> {
        for (k, (name, offset, len)) in self.entries.iter().enumerate() {
            let values = program.global(self.first + k);
            if values.iter().any(|x| !x.is_finite()) {
                return Err(Error::NonFinite {
                    step,
                    term: format!("gradient of {name}"),
                    row: None,
                });
            }
            gradient[*offset..offset + len].copy_from_slice(values);
        }
        Ok(())
    }
}
