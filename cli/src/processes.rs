//! Several processes started as one (`mpirun -n 4 diffclf ...`): they become a company, or are told that this program cannot be one.

use diffclf_run::Result;

/// How many processes were started together, by what launchers leave in the environment.
fn launched() -> usize {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let by_mpirun = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]
        .into_iter()
        .find_map(number);
    let by_slurm = || number("PMIX_RANK").and(number("SLURM_NTASKS"));
    by_mpirun.or_else(by_slurm).unwrap_or(1)
}

/// Whether this is the first of the processes that were started together: it speaks before they have met.
pub fn is_first() -> bool {
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];
    let rank = ranks.into_iter().find_map(|name| std::env::var(name).ok());
    launched() == 1 || rank.is_none_or(|rank| rank == "0")
}

#[cfg(not(feature = "mpi"))]
mod company {
    use super::*;
    use diffclf_run::Error;

    /// Nobody else.
    pub struct Processes;

    impl Processes {
        /// Refuses to be one of several: all would do the same work in the same folder.
        pub fn join() -> Result<Self> {
            match launched() {
                1 => Ok(Self),
                count => Err(Error::Usage(format!(
                    "{count} processes were started together, but this program was built for one; build it with `cargo build --release \
                     --features mpi`, or start one process with --threads"
                ))),
            }
        }

        /// The end of all.
        pub fn leave(self, code: u8) -> u8 {
            code
        }
    }
}

#[cfg(feature = "mpi")]
mod company {
    use super::*;
    use diffclf::engine::Company;
    use diffclf_run::Error;
    use mpi::Threading;
    use mpi::environment::Universe;
    use mpi::topology::SimpleCommunicator;
    use mpi::traits::{Communicator, Destination, Source};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;

    /// How long a process that failed waits for the others to fail as well.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// The processes that MPI has brought together.
    pub struct Processes {
        universe: Option<Universe>,
    }

    struct World {
        communicator: Mutex<SimpleCommunicator>,
        rank: usize,
        size: usize,
    }

    // SAFETY: the communicator is a handle that any thread may use; MPI was asked for calls from any thread, one at a time, and the lock sees to that.
    unsafe impl Send for World {}
    // SAFETY: as above.
    unsafe impl Sync for World {}

    impl World {
        fn with(&self, work: impl FnOnce(&SimpleCommunicator)) {
            let held = self.communicator.lock();
            work(&held.unwrap_or_else(PoisonError::into_inner));
        }
    }

    impl Company for World {
        fn rank(&self) -> usize {
            self.rank
        }

        fn size(&self) -> usize {
            self.size
        }

        fn send(&self, to: usize, bytes: &[u8]) {
            self.with(|world| world.process_at_rank(to as i32).send(bytes));
        }

        fn receive(&self, from: usize, bytes: &mut [u8]) {
            self.with(|world| {
                world.process_at_rank(from as i32).receive_into(bytes);
            });
        }
    }

    impl Processes {
        /// Joins the others, if there are any.
        pub fn join() -> Result<Self> {
            if launched() == 1 {
                return Ok(Self { universe: None });
            }
            let failed = |what: &str| Error::Failed(format!("MPI cannot be used: {what}"));
            let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)
                .ok_or_else(|| failed("it is in use already"))?;
            if threading < Threading::Serialized {
                return Err(failed("the library was built without threads"));
            }
            let communicator = universe.world();
            let world = World {
                rank: communicator.rank() as usize,
                size: communicator.size() as usize,
                communicator: Mutex::new(communicator),
            };
            diffclf_run::company::join(Arc::new(world))?;
            let universe = Some(universe);
            Ok(Self { universe })
        }

        /// The end of all. A failure that only this process has seen ends the others too: they would wait for it.
        pub fn leave(self, code: u8) -> u8 {
            if self.universe.is_some() && code != 0 {
                std::thread::spawn(move || {
                    std::thread::sleep(PATIENCE);
                    std::process::exit(i32::from(code));
                });
            }
            drop(self.universe);
            code
        }
    }
}

pub use company::Processes;
