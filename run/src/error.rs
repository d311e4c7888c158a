//! Everything that ends a piece of work early. Messages name settings by their keys; a skin writes them as flags or arguments with
//! [`Error::told`], and decides what a script sees of it.

use crate::memory::bytes_text;
use crate::words;
use crate::words::{Setting, Words};
use diffclf::Error as CoreError;
use std::fmt::{self, Display};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Result of a piece of work.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can end a piece of work.
#[derive(Debug)]
pub enum Error {
    /// A skin's own arguments contradict each other or name something that does not exist, in its own words.
    Usage(String),
    /// A setting has a value that cannot be used.
    Setting {
        /// Its key.
        name: &'static str,
        /// The value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// What is asked for contradicts itself, the data or the model.
    Refused(Words),
    /// There are no data.
    Nothing,
    /// Rows that cannot be learned from or judged by.
    Data {
        /// The file, or the name of the array.
        name: String,
        /// What is wrong with them.
        fault: DataFault,
    },
    /// A configuration file cannot be understood.
    Config {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
    /// A setting contradicts those of the run that is resumed.
    Conflict {
        /// Its key.
        name: String,
        /// What is asked for.
        found: String,
        /// What the run has; none if it is absent there.
        saved: Option<String>,
        /// The run's folder.
        folder: PathBuf,
    },
    /// There is nothing to resume.
    NoRun {
        /// Which folder.
        folder: PathBuf,
    },
    /// The data are not those of the run that is resumed.
    OtherData {
        /// Name of the data.
        name: String,
        /// The run's folder.
        folder: PathBuf,
    },
    /// The settings are not those of the checkpoint beside them.
    OtherSettings {
        /// The run's folder.
        folder: PathBuf,
    },
    /// The model to start from is not the one that the settings define.
    OtherModel {
        /// Where the model is.
        from: PathBuf,
    },
    /// A file cannot be opened or read.
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file cannot be written.
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file holds something that cannot be used.
    Content {
        /// Which file.
        path: PathBuf,
        /// What the library said.
        source: CoreError,
    },
    /// A result would replace an existing file.
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// Something appeared under the name of a result while the program worked; it stays.
    Appeared {
        /// Which file.
        path: PathBuf,
        /// Where the result is instead.
        kept: PathBuf,
    },
    /// Two results would go to one file.
    Twice {
        /// Which file.
        path: PathBuf,
    },
    /// A result could not be written where it should go.
    NoPlace {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Data were changed while they were trained on.
    DataChanged {
        /// Name of the data.
        name: String,
        /// The run's folder.
        folder: PathBuf,
    },
    /// More memory is asked for than there is.
    Memory {
        /// What needs it.
        what: String,
        /// Bytes it needs.
        needed: u128,
        /// Bytes there are.
        available: u64,
    },
    /// A run folder already holds a run.
    RunExists {
        /// Which folder.
        path: PathBuf,
    },
    /// A file stands where a run folder should be.
    NotAFolder {
        /// Which file.
        path: PathBuf,
    },
    /// Another process uses the same run folder.
    Busy {
        /// Which folder.
        path: PathBuf,
    },
    /// The library refused.
    Core(CoreError),
    /// Training came to numbers that are not finite; what could be saved is.
    Diverged {
        /// Where.
        source: CoreError,
        /// What is left, and where.
        kept: String,
    },
    /// A check did not pass, or the machine failed.
    Failed(String),
    /// A check passed with a warning.
    Warned(String),
    /// A training was stopped and can be continued.
    Stopped {
        /// Steps that are saved.
        step: u64,
        /// Steps of the whole run.
        total: u64,
        /// The run's folder.
        folder: PathBuf,
    },
    /// Other work was stopped.
    Interrupted(String),
}

/// What is wrong with rows.
#[derive(Debug, Clone, PartialEq)]
pub enum DataFault {
    /// A number that is not a finite 32-bit number; rows and columns count from 0.
    NotFinite {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// The number.
        value: f64,
    },
    /// Columns, counted from 0, that hold one value: there is no density.
    Constant {
        /// Which.
        columns: Vec<usize>,
        /// Number of rows.
        rows: usize,
    },
    /// The variance is no positive number.
    Variance(f64),
    /// A wrong number of columns.
    Columns {
        /// Those of the data.
        found: usize,
        /// Those of the model.
        expected: usize,
    },
    /// An array whose length is not rows times columns, or is zero.
    Shape {
        /// Numbers in the array.
        values: usize,
        /// Rows it should have.
        rows: usize,
        /// Columns it should have.
        dim: usize,
    },
}

impl From<CoreError> for Error {
    fn from(source: CoreError) -> Self {
        Self::Core(source)
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. }
            | Self::Write { source, .. }
            | Self::NoPlace { source, .. } => Some(source),
            Self::Content { source, .. } | Self::Diverged { source, .. } | Self::Core(source) => {
                Some(source)
            }
            _ => None,
        }
    }
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

    /// A setting that has a value which cannot be used.
    pub fn setting(name: &'static str, found: impl Display, expected: impl Into<String>) -> Self {
        Self::Setting {
            name,
            found: found.to_string(),
            expected: expected.into(),
        }
    }

    /// The message, with every setting written as `skin` writes it.
    pub fn told(&self, skin: &dyn Fn(&Setting) -> String) -> String {
        self.words().told(skin)
    }

    /// What was found, what was expected, what to do.
    pub fn words(&self) -> Words {
        match self {
            Self::Usage(text) | Self::Failed(text) | Self::Warned(text) => words!(text),
            Self::Setting {
                name,
                found,
                expected,
            } => words!(Setting::new(name), " is ", found, ", expected ", expected),
            Self::Refused(words) => words.clone(),
            Self::Nothing => words!(
                "nothing to learn from: give a .npy file, or a built-in system with ",
                Setting::to("system", "NAME"),
                " ",
                Setting::to("dim", "D")
            ),
            Self::Data { name, fault } => words!(name, ": ", fault),
            Self::Config { path, reason } => words!(path.display(), ": ", reason),
            Self::Conflict {
                name,
                found,
                saved,
                folder,
            } => words!(
                name,
                " is ",
                found,
                ", but the run in ",
                folder.display(),
                " has ",
                saved.as_deref().unwrap_or("absent"),
                "; a resumed run keeps its settings: leave the setting out, or train into another folder, from this run's model with ",
                Setting::to("from", folder.display().to_string())
            ),
            Self::NoRun { folder } => words!(
                "there is no run to resume in ",
                folder.display(),
                "; give the data to start one"
            ),
            Self::OtherData { name, folder } => words!(
                name,
                " is not the file that the run in ",
                folder.display(),
                " was trained on (its content differs); give the original file, or train into another folder"
            ),
            Self::OtherSettings { folder } => words!(
                "config.toml in ",
                folder.display(),
                " does not belong to the checkpoint beside it; undo the change, or train into another folder"
            ),
            Self::OtherModel { from } => words!(
                "the settings do not give the model in ",
                from.display(),
                ": process, times, network and columns must be the same to go on from its parameters; leave out what was changed, or ",
                Setting::new("from")
            ),
            Self::Read { path, source } => words!(
                "cannot read ",
                path.display(),
                ": ",
                source,
                advice_on_reading(path, source)
            ),
            Self::Write { path, source } | Self::NoPlace { path, source } => words!(
                "cannot write ",
                path.display(),
                ": ",
                source,
                advice_on_writing(source)
            ),
            Self::Content { path, source } => words!(path.display(), ": ", source),
            Self::Exists { path } => words!(
                path.display(),
                " already exists; choose another name, or add ",
                Setting::new("force"),
                " to replace it"
            ),
            Self::Appeared { path, kept } => words!(
                path.display(),
                " appeared while the program worked and stays as it is; the result is in ",
                kept.display()
            ),
            Self::Twice { path } => words!(
                "two results would go to ",
                path.display(),
                "; give each a name of its own"
            ),
            Self::DataChanged { name, folder } => words!(
                name,
                " was changed while it was trained on; what was learned before is in ",
                folder.display(),
                ": bring the file back and continue with ",
                Setting::new("resume"),
                ", or start anew with ",
                Setting::new("force")
            ),
            Self::Memory {
                what,
                needed,
                available,
            } => words!(
                what,
                " needs at least ",
                bytes_text(*needed),
                " of memory, and ",
                bytes_text(u128::from(*available)),
                " are at hand; take less of it, or a larger machine"
            ),
            Self::RunExists { path } => words!(
                path.display(),
                " already holds a run; continue it with ",
                Setting::new("resume"),
                ", choose another folder with ",
                Setting::new("output"),
                ", or add ",
                Setting::new("force"),
                " to delete that run and start anew"
            ),
            Self::NotAFolder { path } => words!(
                path.display(),
                " is a file, expected a folder for the run; choose another name with ",
                Setting::new("output")
            ),
            Self::Busy { path } => words!(
                path.display(),
                " is in use by another diffclf process; wait for it or choose another folder"
            ),
            Self::Core(source) => words!(source),
            Self::Diverged { source, kept } => words!(source, ". ", kept),
            Self::Stopped {
                step,
                total,
                folder,
            } => words!(
                "interrupted; step ",
                step,
                " of ",
                total,
                " is saved in ",
                folder.display(),
                "; continue it with ",
                Setting::new("resume")
            ),
            Self::Interrupted(text) => words!("interrupted; ", text),
        }
    }
}

impl Display for DataFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFinite { row, column, value } => {
                let advice = if value.is_finite() {
                    "rescale the data"
                } else {
                    "remove such rows: a[numpy.isfinite(a).all(axis=1)]"
                };
                write!(
                    f,
                    "row {row}, column {column} (counted from 0) is {value}, expected a finite 32-bit number; {advice}"
                )
            }
            Self::Constant { rows: 1, .. } => write!(
                f,
                "it holds one row, and a single row has no density; give many rows"
            ),
            Self::Constant { columns, rows } => {
                let few: Vec<_> = columns.iter().take(8).map(usize::to_string).collect();
                let more = if columns.len() > few.len() {
                    ", ..."
                } else {
                    ""
                };
                write!(
                    f,
                    "column {}{more} (counted from 0) holds the same value in all {rows} rows, so the data have no density \
                     there; drop it: numpy.save('varying.npy', a[:, a.std(axis=0) > 0])",
                    few.join(", ")
                )
            }
            Self::Variance(variance) => write!(
                f,
                "the variance of the data is {variance}, expected a positive number; rescale the data"
            ),
            Self::Columns { found, expected } => write!(
                f,
                "the rows have {found} columns, but the model has {expected}; give data of the kind it was trained on"
            ),
            Self::Shape { values, rows, dim } => write!(
                f,
                "the array holds {values} numbers, expected {rows} rows of {dim} columns, at least one of each"
            ),
        }
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
mod tests;
