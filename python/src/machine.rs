//! Threads of this process. A forked child has none of its parent's: it makes its own.

use diffclf::engine::{Isa, Pool};
use diffclf_run::company;
use diffclf_run::machine::Machine;
use diffclf_run::{Error, Result};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// The process, and how often the number of threads was set in it. What was made under another key is not used.
pub type Key = (u32, u64);

/// Threads to use, 0 for one per core.
static THREADS: AtomicUsize = AtomicUsize::new(0);
static CHANGES: AtomicU64 = AtomicU64::new(0);
static POOL: Mutex<Option<(Key, Arc<Pool>)>> = Mutex::new(None);

/// Longest wait for a lock that is held for moments: beyond it, the holder was lost in a fork.
const PATIENCE: Duration = Duration::from_secs(20);

/// The key of now.
pub fn key() -> Key {
    (std::process::id(), CHANGES.load(Ordering::Relaxed))
}

/// A lock that another thread may have held when the process was forked.
pub fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    let begin = Instant::now();
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(guard)) => return Ok(guard.into_inner()),
            Err(TryLockError::WouldBlock) if begin.elapsed() > PATIENCE => {
                return Err(Error::Failed(
                    "the process was forked while another thread used diffclf; start workers with multiprocessing's 'spawn' or \
                     'forkserver' method"
                        .into(),
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// What is kept under a key; made anew where the key is another one.
pub fn kept<T>(
    slot: &Mutex<Option<(Key, Arc<T>)>>,
    make: impl FnOnce() -> Result<T>,
) -> Result<Arc<T>> {
    let key = key();
    let mut slot = lock(slot)?;
    if let Some((made, value)) = &*slot
        && *made == key
    {
        return Ok(value.clone());
    }
    let value = Arc::new(make()?);
    if let Some((made, old)) = slot.replace((key, value.clone()))
        && made.0 != key.0
    {
        // Its threads are the parent's: they could be waited for in vain.
        std::mem::forget(old);
    }
    Ok(value)
}

/// The threads that models share.
pub fn pool() -> Result<Arc<Pool>> {
    let pool = || match THREADS.load(Ordering::Relaxed) {
        0 => Pool::with_all_cores(),
        threads => Pool::new(threads),
    };
    kept(&POOL, || Ok(company::shared(pool())))
}

/// What was made until now is made anew when it is asked for.
pub fn renew() {
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

/// Sets the number of threads; none is one per core.
pub fn set_threads(threads: Option<usize>) -> Result<()> {
    if let Some(threads) = threads
        && !(1..=1024).contains(&threads)
    {
        return Err(Error::setting(
            "threads",
            threads,
            "a number from 1 to 1024",
        ));
    }
    THREADS.store(threads.unwrap_or(0), Ordering::Relaxed);
    renew();
    Ok(())
}

/// Threads in use.
pub fn threads() -> Result<usize> {
    Ok(pool()?.threads())
}

/// A training's own threads, or those of all.
pub fn pool_of(threads: Option<usize>) -> Result<Arc<Pool>> {
    match threads {
        None => pool(),
        threads => Machine {
            threads,
            kernel: None,
        }
        .pool(),
    }
}

/// The widest kernels of this machine.
pub fn isa() -> Isa {
    Isa::detect()
}
