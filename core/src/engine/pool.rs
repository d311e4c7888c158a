//! A small pool of threads that runs numbered jobs without allocating; results do not depend on who runs which job.

use super::company::Company;
use crate::error::{Error, Result};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A pool in whose work this thread is, and the work around that.
struct Frame {
    pool: *const Shared,
    thread: usize,
    around: *const Frame,
}

thread_local! {
    /// The innermost work of this thread. Frames lie on the stacks of the calls of `run` that are under way.
    static FRAME: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Enters a frame until dropped.
struct Inside {
    before: *const Frame,
}

impl Inside {
    fn enter(frame: &Frame) -> Self {
        Self {
            before: FRAME.replace(frame),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        FRAME.set(self.before);
    }
}

/// The thread's number in this pool's work, if that is where it is called from.
fn number_inside(pool: *const Shared) -> Option<usize> {
    let mut frame = FRAME.get();
    // SAFETY: every frame on the chain belongs to a call of `run` that has not returned: a thread leaves its frame before its part of the
    // call ends, and a worker's chain goes on with that of the caller, who waits for it.
    while let Some(found) = unsafe { frame.as_ref() } {
        if found.pool == pool {
            return Some(found.thread);
        }
        frame = found.around;
    }
    None
}

/// What the workers are asked to do: `job(thread, index)` for every index below `count`.
struct Task {
    job: *const (dyn Fn(usize, usize) + Sync),
    count: usize,
    /// The work in which the caller is.
    around: *const Frame,
}

// SAFETY: the pointers are followed only between the start of `Pool::run` and its return, while the closure is borrowed
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
    /// Processes with which batches are shared.
    company: Option<Arc<dyn Company>>,
}

impl Pool {
    /// A pool of `threads` threads, the caller's among them, or as many as the system gives: results do not depend on it.
    pub fn new(threads: usize) -> Pool {
        let shared = Arc::new(Shared::default());
        let workers = (1..threads.max(1))
            .map_while(|thread| {
                let shared = shared.clone();
                let work = move || work(&shared, thread);
                std::thread::Builder::new().spawn(work).ok()
            })
            .collect();
        Pool {
            shared,
            workers,
            turn: Mutex::new(()),
            company: None,
        }
    }

    /// The same threads, in a company of processes that share their batches.
    pub fn in_company(mut self, company: Arc<dyn Company>) -> Pool {
        self.company = (company.size() > 1).then_some(company);
        self
    }

    /// The processes with which batches are shared; none within a job, which only some of them may do.
    pub fn company(&self) -> Option<&Arc<dyn Company>> {
        let company = self.company.as_ref()?;
        number_inside(Arc::as_ptr(&self.shared))
            .is_none()
            .then_some(company)
    }

    /// A pool of no fewer than `threads` threads.
    pub fn exactly(threads: usize) -> Result<Pool> {
        let pool = Pool::new(threads);
        if pool.threads() < threads {
            return Err(Error::Value {
                name: "number of threads",
                found: threads.to_string(),
                expected: format!(
                    "no more than the system gives to this process: {}; see ulimit -u and ulimit -v",
                    pool.threads()
                ),
            });
        }
        Ok(pool)
    }

    /// One thread per core.
    pub fn with_all_cores() -> Pool {
        Pool::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs a job on pieces of so many elements of slices of one length, side by side, with the place where a piece begins. Nothing is
    /// allocated.
    pub fn pieces<T: Send, const N: usize>(
        &self,
        slices: [&mut [T]; N],
        piece: usize,
        job: impl Fn(usize, [&mut [T]; N]) + Sync,
    ) {
        struct Ends<T, const N: usize>([*mut T; N]);
        // SAFETY: the elements may go to other threads, and no two jobs see the same ones.
        unsafe impl<T: Send, const N: usize> Sync for Ends<T, N> {}

        let count = slices.iter().map(|slice| slice.len()).min().unwrap_or(0);
        let starts = Ends(slices.map(|slice| slice.as_mut_ptr()));
        self.run(count.div_ceil(piece), &|_, index| {
            // The whole of it, not the pointers within.
            let starts = &starts;
            let start = index * piece;
            let length = piece.min(count - start);
            job(
                start,
                starts.0.map(|first| {
                    // SAFETY: `start + length <= count`, the least length of the slices, which are borrowed until all jobs are done; indices, and so
                    // the pieces, differ.
                    unsafe { std::slice::from_raw_parts_mut(first.add(start), length) }
                }),
            );
        });
    }

    /// Runs `job(thread, index)` for every `index < count`; returns when all are done. A job may call it again: the threads are at work
    /// then, and the inner jobs run one after the other on the thread that asks for them.
    pub fn run(&self, count: usize, job: &(dyn Fn(usize, usize) + Sync)) {
        let pool = Arc::as_ptr(&self.shared);
        if let Some(thread) = number_inside(pool) {
            return (0..count).for_each(|index| job(thread, index));
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.next.store(0, Ordering::Relaxed);
        let frame = Frame {
            pool,
            thread: 0,
            around: FRAME.get(),
        };
        if self.workers.is_empty() || count <= 1 {
            let _inside = Inside::enter(&frame);
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
                around: frame.around,
            });
            state.call += 1;
            state.panicked = false;
        }
        self.shared.wake.notify_all();
        let mine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _inside = Inside::enter(&frame);
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
        let (job, count, around) = {
            let mut state = lock(shared);
            loop {
                if state.quit {
                    return;
                }
                match &state.task {
                    Some(task) if state.call != seen => {
                        let found = (task.job, task.count, task.around);
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
        let frame = Frame {
            pool: shared,
            thread,
            around,
        };
        // SAFETY: `Pool::run` keeps the closure alive until `busy` is 0.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _inside = Inside::enter(&frame);
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

    /// Work that enters its own pool again, straight and through another pool, in as many ways as there are: it used to wait for itself.
    #[test]
    fn a_pool_is_entered_again_from_its_own_work() {
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for threads in [1, 3] {
                let (pool, other) = (Pool::new(threads), Pool::new(2));
                let hits = AtomicU64::new(0);
                for count in [1, 4] {
                    pool.run(count, &|outer, _| {
                        pool.run(5, &|inner, _| {
                            assert_eq!(inner, outer);
                            hits.fetch_add(1, Ordering::Relaxed);
                        });
                        other.run(3, &|_, _| {
                            pool.run(2, &|_, _| {
                                hits.fetch_add(1, Ordering::Relaxed);
                            })
                        });
                    });
                }
                assert_eq!(hits.into_inner(), 5 * (5 + 3 * 2));
                pool.run(3, &|_, _| ());
            }
            done.send(()).unwrap();
        });
        let patience = std::time::Duration::from_secs(60);
        assert!(
            ended.recv_timeout(patience).is_ok(),
            "it waits for itself, or failed"
        );
    }

    #[test]
    fn threads_that_the_system_refuses_are_an_error() {
        assert_eq!(Pool::exactly(3).unwrap().threads(), 3);
    }
}
