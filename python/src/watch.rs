//! `Listener`: how Python follows long work and stops it: a progress object, a callback after each step, Ctrl-C.

use crate::error::argument;
use crate::json::object;
use diffclf_run::notice::Notice;
use diffclf_run::{Bar, Silent, Watch};
use pyo3::exceptions::{PyKeyboardInterrupt, PyStopIteration};
use pyo3::prelude::*;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Python is asked for signals, and shown progress, no more often than this.
const PAUSE: Duration = Duration::from_millis(100);

/// Why the work was stopped.
#[derive(Debug)]
pub enum Reason {
    /// The callback asked for it.
    Callback,
    /// Ctrl-C.
    Interrupt,
    /// The callback, the progress object or a signal handler raised.
    Raised(PyErr),
}

/// See the module's text. `progress` has the methods begin, update, note and end.
pub struct Listener {
    progress: Option<Arc<Py<PyAny>>>,
    callback: Option<Py<PyAny>>,
    /// Notes that name this folder are not told: nobody will find it.
    hidden: Option<String>,
    stopped: AtomicBool,
    reason: Mutex<Option<Reason>>,
    looked: Mutex<Instant>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    /// One that shows progress and calls back, where that is wanted.
    pub fn new(progress: Option<Py<PyAny>>, callback: Option<Py<PyAny>>) -> Self {
        Self {
            progress: progress.map(Arc::new),
            callback,
            hidden: None,
            stopped: AtomicBool::new(false),
            reason: Mutex::new(None),
            looked: Mutex::new(Instant::now()),
        }
    }

    /// The same, for work in a folder that will be gone.
    pub fn within(mut self, folder: Option<String>) -> Self {
        self.hidden = folder;
        self
    }

    fn stop(&self, reason: Reason) {
        held(&self.reason).get_or_insert(reason);
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Why the work was stopped, if it was.
    pub fn reason(&self) -> Option<Reason> {
        held(&self.reason).take()
    }

    fn tell(&self, text: &str) {
        let hidden = self.hidden.as_ref();
        if hidden.is_some_and(|folder| text.contains(folder.as_str())) {
            return;
        }
        if let Some(progress) = &self.progress {
            Python::attach(|py| {
                if let Err(error) = progress.call_method1(py, "note", (text,)) {
                    self.stop(Reason::Raised(error));
                }
            });
        }
    }
}

impl Watch for Listener {
    fn begin(&self, label: &str, total: u64, done: u64) -> Box<dyn Bar> {
        let Some(progress) = &self.progress else {
            return Box::new(Silent);
        };
        Python::attach(|py| {
            if let Err(error) = progress.call_method1(py, "begin", (label, total, done)) {
                self.stop(Reason::Raised(error));
            }
        });
        Box::new(Shown {
            progress: progress.clone(),
            last: Instant::now(),
            ended: false,
        })
    }

    fn note(&self, text: &str) {
        self.tell(text);
    }

    fn notice(&self, notice: &Notice) {
        self.tell(&format!("note: {}", notice.words().told(&argument)));
    }

    fn step(&self, entry: &dyn Fn() -> Value) {
        let Some(callback) = &self.callback else {
            return;
        };
        Python::attach(|py| {
            let answer = object(py, &entry())
                .and_then(|entry| callback.call1(py, (entry,)))
                .and_then(|answer| answer.is_truthy(py));
            match answer {
                Ok(false) => {}
                Ok(true) => self.stop(Reason::Callback),
                Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
                    self.stop(Reason::Callback);
                }
                Err(error) => self.stop(reason_of(py, error)),
            }
        });
    }

    fn stopped(&self) -> bool {
        if !self.stopped.load(Ordering::SeqCst) {
            let mut looked = held(&self.looked);
            if looked.elapsed() >= PAUSE {
                *looked = Instant::now();
                Python::attach(|py| {
                    if let Err(error) = py.check_signals() {
                        self.stop(reason_of(py, error));
                    }
                });
            }
        }
        self.stopped.load(Ordering::SeqCst)
    }
}

fn reason_of(py: Python<'_>, error: PyErr) -> Reason {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        Reason::Interrupt
    } else {
        Reason::Raised(error)
    }
}

/// A piece of work on Python's progress object. What that object raises does not end the work.
struct Shown {
    progress: Arc<Py<PyAny>>,
    last: Instant,
    ended: bool,
}

impl Shown {
    fn call<A>(&self, method: &str, arguments: A)
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        Python::attach(|py| {
            if let Err(error) = self.progress.call_method1(py, method, arguments) {
                error.write_unraisable(py, None);
            }
        });
    }
}

impl Bar for Shown {
    fn set(&mut self, position: u64, message: &dyn Fn() -> String) {
        if self.last.elapsed() >= PAUSE {
            self.last = Instant::now();
            self.call("update", (position, message()));
        }
    }

    fn note(&mut self, text: &str) {
        self.call("note", (text,));
    }

    fn finish(mut self: Box<Self>, message: &str) {
        self.ended = true;
        self.call("end", (message,));
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if !self.ended {
            self.call("end", ("",));
        }
    }
}
