//! The processes of which this one is one, where there are several (`mpirun -n 4 diffclf ...`): all do the same work and share its batches; the
//! first looks at clocks, signals and folders and writes, and the others do as it does.

use crate::error::{Error, Result};
use diffclf::engine::company::{agree as agree_in, broadcast};
use diffclf::engine::{Company, Pool};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

static COMPANY: OnceLock<Arc<dyn Company>> = OnceLock::new();
/// Nanoseconds that this process has waited for others.
static WAITED: AtomicU64 = AtomicU64::new(0);
/// The first process does something for all: what that is made of is its own business.
static LEADING: AtomicBool = AtomicBool::new(false);

/// A company whose waits are counted.
struct Counted(Arc<dyn Company>);

impl Company for Counted {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn send(&self, to: usize, bytes: &[u8]) {
        self.0.send(to, bytes);
    }

    fn receive(&self, from: usize, bytes: &mut [u8]) {
        let begin = Instant::now();
        self.0.receive(from, bytes);
        let waited = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        WAITED.fetch_add(waited, Ordering::Relaxed);
    }
}

/// Joins a company, for as long as the process lives. A process has one at most.
pub fn join(company: Arc<dyn Company>) -> Result<()> {
    COMPANY
        .set(Arc::new(Counted(company)))
        .map_err(|_| Error::Failed("this process is in a company already".into()))
}

/// The company, if there are others in it.
pub fn company() -> Option<&'static Arc<dyn Company>> {
    COMPANY.get().filter(|company| company.size() > 1)
}

/// These threads, in the company if there is one.
pub fn shared(pool: Pool) -> Pool {
    match company() {
        None => pool,
        Some(company) => pool.in_company(company.clone()),
    }
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

/// Bytes of the first process, for all.
pub fn from_first(own: Vec<u8>) -> Vec<u8> {
    let Some(company) = company() else {
        return own;
    };
    let mut length = (own.len() as u64).to_le_bytes();
    broadcast(&**company, &mut length);
    let mut bytes = own;
    bytes.resize(u64::from_le_bytes(length) as usize, 0);
    broadcast(&**company, &mut bytes);
    bytes
}

/// What a process tells about itself: seconds waited, and the name of its machine.
const TOLD: usize = 8 + 64;

/// Names the process that the others waited for, if they did so for more than a tenth of the time since `begin`, before which `before` was
/// waited. All ask together; the first gets the answer.
pub fn slowest(begin: Instant, before: Duration) -> Option<String> {
    let company = company()?;
    let mut told = [0; TOLD];
    let own = waited().saturating_sub(before).as_secs_f64();
    told[..8].copy_from_slice(&own.to_le_bytes());
    let name = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    for (out, byte) in told[8..].iter_mut().zip(name.trim_ascii()) {
        *out = *byte;
    }
    if company.rank() > 0 {
        company.send(0, &told);
        return None;
    }
    let mut all = vec![told];
    for rank in 1..company.size() {
        let mut told = [0; TOLD];
        company.receive(rank, &mut told);
        all.push(told);
    }
    let waits: Vec<f64> = all
        .iter()
        .map(|told| {
            let mut seconds = [0; 8];
            seconds.copy_from_slice(&told[..8]);
            f64::from_le_bytes(seconds)
        })
        .collect();
    let (rank, text) = imbalance(&waits, begin.elapsed().as_secs_f64())?;
    let name = String::from_utf8_lossy(&all[rank][8..]).into_owned();
    let name = name.trim_end_matches('\0');
    Some(match name.is_empty() {
        true => text,
        false => format!("{text} (process {rank} runs on {name})"),
    })
}

/// How long this process has waited for others.
pub fn waited() -> Duration {
    Duration::from_nanos(WAITED.load(Ordering::Relaxed))
}

/// The process that waited least, if the others waited for more than a tenth of so many seconds beyond it.
fn imbalance(waits: &[f64], seconds: f64) -> Option<(usize, String)> {
    let least = waits.iter().copied().fold(f64::INFINITY, f64::min);
    let rank = waits.iter().position(|wait| *wait == least)?;
    let others = waits.iter().sum::<f64>() - least;
    let mean = others / (waits.len() - 1).max(1) as f64 - least;
    (mean > 0.1 * seconds).then(|| {
        let share = 100.0 * mean / seconds;
        let text = format!(
            "process {rank} is slow: the others waited for it {share:.0} % of the time; give it a machine like theirs, or leave it out"
        );
        (rank, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_one_is_named() {
        assert!(imbalance(&[1.0, 1.2, 0.9], 100.0).is_none());
        let (rank, text) = imbalance(&[30.0, 31.0, 2.0, 29.0], 100.0).unwrap();
        assert!(rank == 2 && text.contains("28 %"), "{text}");
        // All wait alike for the network: nobody is slow.
        assert!(imbalance(&[40.0, 40.0], 100.0).is_none());
    }
}
