//! Flags that every computing command shares.

use crate::help;
use diffclf::engine::{Isa, Pool};
use diffclf_run::Result;
use diffclf_run::machine::Machine;
use std::sync::Arc;

/// Threads and kernels. Results do not depend on the number of threads.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct MachineArgs {
    /// Threads to use; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Machine")]
    pub threads: Option<usize>,
    #[arg(long, help = help::kernel(), value_name = "NAME", help_heading = "Machine")]
    pub kernel: Option<String>,
}

impl MachineArgs {
    /// What they say.
    pub fn machine(&self) -> Machine {
        Machine {
            threads: self.threads,
            kernel: self.kernel.clone(),
        }
    }

    /// The threads.
    pub fn pool(&self) -> Result<Arc<Pool>> {
        self.machine().pool()
    }

    /// The kernels.
    pub fn isa(&self) -> Result<Isa> {
        self.machine().isa()
    }
}
