//! Everything that ends a command early: the message a person reads and the code a script sees.

use diffclf::Error as CoreError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Result of a command or of one of its parts.
pub type Result<T> = std::result::Result<T, Error>;

/// The run worked but its outcome is negative, or the machine failed (full disk, ...).
pub const EXIT_FAILED: u8 = 1;
/// The command line, a setting or an input file is wrong; the same call cannot succeed.
pub const EXIT_USAGE: u8 = 2;
/// The numbers went wrong: not finite, not converged.
pub const EXIT_NUMERICAL: u8 = 3;
/// The work is done and its outcome positive, with warnings (a diagnosis).
pub const EXIT_WARNED: u8 = 4;
/// Stopped by the user, as shells count it (128 + SIGINT).
pub const EXIT_INTERRUPTED: u8 = 130;

/// Everything that can end a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments contradict each other or name something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be opened or read.
    #[error("cannot read {}: {source}{}", path.display(), advice_on_reading(path, source))]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}{}", path.display(), advice_on_writing(source))]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file holds something that cannot be used.
    #[error("{}: {source}", path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What the library said.
        source: CoreError,
    },
    /// A result would replace an existing file.
    #[error("{} already exists; choose another name, or add --force to replace it", path.display())]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// A run folder already holds a run.
    #[error(
        "{} already holds a run; continue it with --resume, choose another folder with -o, or add --force to delete that \
         run and start anew",
        path.display()
    )]
    RunExists {
        /// Which folder.
        path: PathBuf,
    },
    /// Another process uses the same run folder.
    #[error("{} is in use by another diffclf process; wait for it or choose another folder", path.display())]
    Busy {
        /// Which folder.
        path: PathBuf,
    },
    /// The library refused.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// Training came to numbers that are not finite; what could be saved is.
    #[error("{source}. {kept}")]
    Diverged {
        /// Where.
        source: CoreError,
        /// What is left, and where.
        kept: String,
    },
    /// A check did not pass.
    #[error("{0}")]
    Failed(String),
    /// A check passed with a warning.
    #[error("{0}")]
    Warned(String),
    /// The user stopped the run.
    #[error("interrupted; {0}")]
    Interrupted(String),
}

impl Error {
    /// A library error about a file, with the file named. Failures of the writer become [`Error::Write`].
    pub fn about(path: &Path, source: CoreError) -> Self {
        let path = path.to_path_buf();
        match source {
            CoreError::Write(source) => Self::Write { path, source },
            source => Self::Content { path, source },
        }
    }

    /// The word before the message.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Warned(_) => "warning",
            _ => "error",
        }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Read { .. }
            | Self::Exists { .. }
            | Self::RunExists { .. }
            | Self::Busy { .. } => EXIT_USAGE,
            Self::Diverged { .. } => EXIT_NUMERICAL,
            Self::Write { .. } | Self::Failed(_) => EXIT_FAILED,
            Self::Warned(_) => EXIT_WARNED,
            Self::Content { source, .. } | Self::Core(source) => core_exit_code(source),
            Self::Interrupted(_) => EXIT_INTERRUPTED,
        }
    }
}

/// The library's errors are about what it was given, unless listed here.
fn core_exit_code(error: &CoreError) -> u8 {
    match error {
        CoreError::Write(_) => EXIT_FAILED,
        CoreError::NonFinite { .. }
        | CoreError::ModelNotFinite { .. }
        | CoreError::Diverged { .. }
        | CoreError::PoorOverlap { .. }
        | CoreError::Disconnected { .. }
        | CoreError::NotConverged { .. } => EXIT_NUMERICAL,
        _ => EXIT_USAGE,
    }
}

fn advice_on_reading(path: &Path, source: &std::io::Error) -> String {
    match source.kind() {
        ErrorKind::NotFound if path.is_relative() => match std::env::current_dir() {
            Ok(folder) => format!("; looked in {}", folder.display()),
            Err(_) => String::new(),
        },
        ErrorKind::IsADirectory => "; give the path of a file inside it".into(),
        ErrorKind::PermissionDenied => {
            "; check the permissions of the file and of the folders above it".into()
        }
        _ => String::new(),
    }
}

fn advice_on_writing(source: &std::io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::NotFound => "; create the folder first",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; free some space and repeat the command"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; choose a folder you may write to"
        }
        ErrorKind::IsADirectory => "; it is a folder, give the path of a file",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_advises_and_has_its_code() {
        let io = |kind: ErrorKind| std::io::Error::from(kind);
        let empty = || CoreError::EmptyArray {
            shape: "(0, 3)".into(),
        };
        let path = PathBuf::from("folder/file.npy");
        let cases = [
            (
                Error::Usage("--steps is missing".into()),
                EXIT_USAGE,
                "--steps",
            ),
            (
                Error::Read {
                    path: path.clone(),
                    source: io(ErrorKind::NotFound),
                },
                EXIT_USAGE,
                "looked in",
            ),
            (
                Error::Read {
                    path: path.clone(),
                    source: io(ErrorKind::IsADirectory),
                },
                EXIT_USAGE,
                "inside it",
            ),
            (
                Error::Read {
                    path: path.clone(),
                    source: io(ErrorKind::PermissionDenied),
                },
                EXIT_USAGE,
                "permissions",
            ),
            (
                Error::Write {
                    path: path.clone(),
                    source: io(ErrorKind::StorageFull),
                },
                EXIT_FAILED,
                "free some space",
            ),
            (
                Error::Write {
                    path: path.clone(),
                    source: io(ErrorKind::NotFound),
                },
                EXIT_FAILED,
                "create the folder",
            ),
            (Error::Exists { path: path.clone() }, EXIT_USAGE, "--force"),
            (
                Error::RunExists { path: path.clone() },
                EXIT_USAGE,
                "--resume",
            ),
            (Error::Busy { path: path.clone() }, EXIT_USAGE, "another"),
            (
                Error::Diverged {
                    source: CoreError::NonFinite {
                        step: 17,
                        term: "dsm".into(),
                        row: Some(3),
                    },
                    kept: "The model of step 10 is in runs/a".into(),
                },
                EXIT_NUMERICAL,
                "step 17, row 3",
            ),
            (
                Error::about(&path, empty()),
                EXIT_USAGE,
                "folder/file.npy: the array is empty",
            ),
            (
                Error::about(&path, CoreError::Write(io(ErrorKind::StorageFull))),
                EXIT_FAILED,
                "cannot write folder",
            ),
            (Error::Core(empty()), EXIT_USAGE, "empty"),
            (
                Error::Core(CoreError::Write(io(ErrorKind::Other))),
                EXIT_FAILED,
                "writing failed",
            ),
            (
                Error::Failed("3 checks failed".into()),
                EXIT_FAILED,
                "3 checks",
            ),
            (
                Error::Warned("1 of 6 checks gave a warning".into()),
                EXIT_WARNED,
                "1 of 6",
            ),
            (
                Error::Interrupted("resume with --resume".into()),
                EXIT_INTERRUPTED,
                "interrupted; resume",
            ),
        ];
        for (error, code, words) in cases {
            assert_eq!(error.exit_code(), code, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
