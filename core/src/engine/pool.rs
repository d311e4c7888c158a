//! A small pool of threads that runs numbered jobs without allocating; results do not depend on who runs which job.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What the workers are asked to do: `job(thread, index)` for every index below `count`.
struct Task {
    job: *const (dyn Fn(usize, usize) + Sync),
    count: usize,
}

// SAFETY: the pointer is followed only between the start of `Pool::run` and its return, while the closure is borrowed
// there, and the closure is Sync.
unsafe impl Send for Task {}

#[derive(Default)]
struct State {
    task: Option<Task>,
    /// Counts calls of `run`; a worker works once per call.
    call: u64,
    /// Workers that have joined the present call and not finished it.
    busy: usize,
    /// A job panicked.
    panicked: bool,
    quit: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    done: Condvar,
    next: AtomicUsize,
}

/// Threads that live as long as the pool.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// One call at a time: a second caller waits.
    turn: Mutex<()>,
}

impl Pool {
    /// A pool of `threads` threads, the caller's among them.
    pub fn new(threads: usize) -> Pool {
        let shared = Arc::new(Shared::default());
        let workers = (1..threads.max(1))
            .map(|thread| {
                let shared = shared.clone();
                std::thread::spawn(move || work(&shared, thread))
            })
            .collect();
        Pool {
            shared,
            workers,
            turn: Mutex::new(()),
        }
    }

    /// One thread per core.
    pub fn with_all_cores() -> Pool {
        Pool::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job(thread, index)` for every `index < count`; returns when all are done.
    pub fn run(&self, count: usize, job: &(dyn Fn(usize, usize) + Sync)) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.next.store(0, Ordering::Relaxed);
        if self.workers.is_empty() || count <= 1 {
            for index in 0..count {
                job(0, index);
            }
            return;
        }
        // SAFETY: only the lifetime is changed. Workers that took the pointer drop it before they report `busy = 0`, no
        // other takes it once `task` is gone, and this function does not return (nor unwind) before both hold.
        let job_static: *const (dyn Fn(usize, usize) + Sync) = unsafe {
            std::mem::transmute::<
                &(dyn Fn(usize, usize) + Sync),
                &'static (dyn Fn(usize, usize) + Sync),
            >(job)
        };
        {
            let mut state = lock(&self.shared);
            state.task = Some(Task {
                job: job_static,
                count,
            });
            state.call += 1;
            state.panicked = false;
        }
        self.shared.wake.notify_all();
        let mine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            take_jobs(&self.shared, 0, count, job)
        }));
        let mut state = lock(&self.shared);
        // No job is left: a worker that has not come by now (other programs have its core) must not be waited for.
        state.task = None;
        while state.busy > 0 {
            state = self
                .shared
                .done
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let panicked = state.panicked;
        drop(state);
        if let Err(payload) = mine {
            std::panic::resume_unwind(payload);
        }
        assert!(
            !panicked,
            "a worker thread panicked; its message stands above"
        );
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared).quit = true;
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A panic of the worker was reported by `run`.
            let _ = worker.join();
        }
    }
}

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_jobs(shared: &Shared, thread: usize, count: usize, job: &(dyn Fn(usize, usize) + Sync)) {
    loop {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        if index >= count {
            return;
        }
        job(thread, index);
    }
}

fn work(shared: &Shared, thread: usize) {
    let mut seen = 0;
    loop {
        let (job, count) = {
            let mut state = lock(shared);
            loop {
                if state.quit {
                    return;
                }
                match &state.task {
                    Some(task) if state.call != seen => {
                        let found = (task.job, task.count);
                        seen = state.call;
                        state.busy += 1;
                        break found;
                    }
                    _ => {
                        state = shared
                            .wake
                            .wait(state)
                            .unwrap_or_else(PoisonError::into_inner)
                    }
                }
            }
        };
        // SAFETY: `Pool::run` keeps the closure alive until `busy` is 0.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            take_jobs(shared, thread, count, unsafe { &*job })
        }));
        let mut state = lock(shared);
        state.panicked |= result.is_err();
        state.busy -= 1;
        if state.busy == 0 {
            shared.done.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_job_runs_once_and_the_pool_survives_a_panic() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads);
            for count in [0, 1, 3, 100] {
                let hits: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
                pool.run(count, &|thread, i| {
                    assert!(thread < threads);
                    hits[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
            }
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                pool.run(8, &|_, i| assert!(i != 5))
            }));
            assert!(panicked.is_err());
            pool.run(4, &|_, _| ());
        }
    }
}
