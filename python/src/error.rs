//! Errors as Python's: settings are written as arguments, each kind is an exception of `diffclf.errors`, and a panic is one too.

use diffclf::Error as CoreError;
use diffclf_run::Error;
use diffclf_run::words::Setting;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// An exception of `diffclf.errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What was given cannot be used.
    Input,
    /// An argument of the wrong kind, or of no name that is known.
    Usage,
    /// A file or folder.
    File,
    /// The numbers went wrong.
    Numerical,
    /// A fault of this package.
    Internal,
    /// Anything else.
    Other,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Input => "InputError",
            Self::Usage => "UsageError",
            Self::File => "FileError",
            Self::Numerical => "NumericalError",
            Self::Internal => "InternalError",
            Self::Other => "DiffclfError",
        }
    }

    /// The exception with this message.
    pub fn raised(self, py: Python<'_>, message: impl Into<String>) -> PyErr {
        let class = py
            .import("diffclf.errors")
            .and_then(|module| module.getattr(self.name()))
            .and_then(|class| Ok(class.cast_into::<PyType>()?));
        match class {
            Ok(class) => PyErr::from_type(class, (message.into(),)),
            Err(error) => error,
        }
    }
}

/// Settings that are switched on.
const SWITCHES: [&str; 5] = ["force", "resume", "dequantise", "align", "transposed"];

/// A setting as an argument of a function.
pub fn argument(setting: &Setting) -> String {
    let name = match setting.name {
        "data" => "x",
        "output" => "out",
        "number" => "n",
        "time" => "t",
        name => name,
    };
    match &setting.value {
        // What stands for a file on the command line is an array here.
        Some(value) if value.ends_with(".npy") => format!("{name}=..."),
        Some(value) if value.parse::<f64>().is_ok() => format!("{name}={value}"),
        Some(value) => format!("{name}='{value}'"),
        None if SWITCHES.contains(&name) => format!("{name}=True"),
        None => name.into(),
    }
}

fn kind_of(error: &Error) -> Kind {
    match error {
        Error::Usage(_)
        | Error::Setting { .. }
        | Error::Refused(_)
        | Error::Nothing
        | Error::Data { .. }
        | Error::Memory { .. }
        | Error::Conflict { .. }
        | Error::OtherData { .. }
        | Error::OtherSettings { .. }
        | Error::OtherModel { .. } => Kind::Input,
        Error::Config { .. }
        | Error::NoRun { .. }
        | Error::Read { .. }
        | Error::Write { .. }
        | Error::Exists { .. }
        | Error::Appeared { .. }
        | Error::Twice { .. }
        | Error::NoPlace { .. }
        | Error::DataChanged { .. }
        | Error::RunExists { .. }
        | Error::NotAFolder { .. }
        | Error::Busy { .. } => Kind::File,
        Error::Diverged { .. } => Kind::Numerical,
        Error::Content { source, .. } if of_core(source) == Kind::Input => Kind::File,
        Error::Content { source, .. } | Error::Core(source) => of_core(source),
        Error::Failed(_) | Error::Warned(_) | Error::Stopped { .. } | Error::Interrupted(_) => {
            Kind::Other
        }
    }
}

fn of_core(error: &CoreError) -> Kind {
    match error {
        CoreError::Write(_) => Kind::File,
        CoreError::NonFinite { .. }
        | CoreError::ModelNotFinite { .. }
        | CoreError::Diverged { .. }
        | CoreError::PoorOverlap { .. }
        | CoreError::Disconnected { .. }
        | CoreError::NotConverged { .. } => Kind::Numerical,
        _ => Kind::Input,
    }
}

/// The exception of an error.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let words = match error {
        Error::Nothing => {
            "nothing to learn from: give rows as x, or a built-in system with system='NAME', dim=D"
                .into()
        }
        error => error.told(&argument),
    };
    kind_of(error).raised(py, words)
}

/// What the last panic said, and where.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the words of panics for the exception instead of writing them to the terminal.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let mut last = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner);
        // The first of several is the cause of the others.
        last.get_or_insert_with(|| info.to_string());
    }));
}

/// Work that may not leave a panic behind.
pub fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked(py)))
}

/// Work without the interpreter's lock: other Python threads run meanwhile.
pub fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> diffclf_run::Result<T> + Send,
) -> PyResult<T> {
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(exception(py, &error)),
        Err(_) => Err(panicked(py)),
    }
}

fn panicked(py: Python<'_>) -> PyErr {
    let words = LAST_PANIC
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let words = words.unwrap_or_else(|| "no words were left".into());
    Kind::Internal.raised(
        py,
        format!(
            "a fault of diffclf itself, not of your input: {words}. Your data are untouched; please report it with the call that led to it"
        ),
    )
}
