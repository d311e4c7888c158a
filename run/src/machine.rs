//! What a computation uses of the machine: threads and the kernels' instruction set.

use crate::company;
use crate::error::{Error, Result};
use diffclf::engine::{Isa, Pool};
use std::sync::Arc;

/// Threads and kernels. Results do not depend on the number of threads.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Threads to use; one per core if absent.
    pub threads: Option<usize>,
    /// Instruction set of the kernels: portable, avx2 or avx512; the widest of this machine if absent.
    pub kernel: Option<String>,
}

impl Machine {
    /// The threads.
    pub fn pool(&self) -> Result<Arc<Pool>> {
        let pool = match self.threads {
            None => Pool::with_all_cores(),
            // A pool keeps a workspace per thread: more than this is a slip of the finger.
            Some(threads @ 1..=1024) => Pool::exactly(threads)?,
            Some(threads) => {
                return Err(Error::setting(
                    "threads",
                    threads,
                    "a number from 1 to 1024",
                ));
            }
        };
        Ok(Arc::new(company::shared(pool)))
    }

    /// The kernels.
    pub fn isa(&self) -> Result<Isa> {
        match &self.kernel {
            None => Ok(Isa::detect()),
            Some(name) => Ok(Isa::by_name(name)?),
        }
    }
}
