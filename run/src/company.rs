//! The processes of which this one is one, where there are several (`mpirun -n 4 diffclf ...`): all do the same work and share its batches; the
//! first looks at clocks, signals and folders and writes, and the others do as it does.

use crate::error::{Error, Result};
use diffclf::engine::Company;
use diffclf::engine::company::{agree as agree_in, broadcast};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

static COMPANY: OnceLock<Arc<dyn Company>> = OnceLock::new();
/// The first process does something for all: what that is made of is its own business.
static LEADING: AtomicBool = AtomicBool::new(false);

/// Joins a company, for as long as the process lives. A process has one at most.
pub fn join(company: Arc<dyn Company>) -> Result<()> {
    COMPANY
        .set(company)
        .map_err(|_| Error::Failed("this process is in a company already".into()))
}

/// The company, if there are others in it.
pub fn company() -> Option<&'static Arc<dyn Company>> {
    COMPANY.get().filter(|company| company.size() > 1)
}

/// Whether this process writes: the first, or one that is alone.
pub fn leads() -> bool {
    company().is_none_or(|company| company.rank() == 0)
}

/// What the first process says, for all.
pub fn agreed(own: bool) -> bool {
    company().map_or(own, |company| agree_in(&**company, own))
}

/// How long ago that was, by the first process's clock: what is decided by time is decided alike.
pub fn elapsed(since: Instant) -> Duration {
    let own = since.elapsed();
    match company() {
        None => own,
        Some(company) => {
            let mut nanoseconds = u64::try_from(own.as_nanos())
                .unwrap_or(u64::MAX)
                .to_le_bytes();
            broadcast(&**company, &mut nanoseconds);
            Duration::from_nanos(u64::from_le_bytes(nanoseconds))
        }
    }
}

/// What is done once for all: the first process does it, the others wait for it and fail if it does. Their value is `otherwise`.
pub fn once<T>(otherwise: impl FnOnce() -> T, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let Some(company) = company() else {
        return work();
    };
    if LEADING.load(Ordering::SeqCst) {
        return work();
    }
    if company.rank() == 0 {
        LEADING.store(true, Ordering::SeqCst);
        let found = work();
        LEADING.store(false, Ordering::SeqCst);
        agree_in(&**company, found.is_ok());
        return found;
    }
    match agree_in(&**company, false) {
        true => Ok(otherwise()),
        false => Err(Error::Failed(
            "the first of the processes has failed; its message tells why".into(),
        )),
    }
}
