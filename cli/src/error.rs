//! Errors as this program tells them: settings are written as flags, and each kind has its exit code.

use diffclf::Error as CoreError;
use diffclf_run::Error;
use diffclf_run::words::Setting;

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

/// A setting as this program takes it.
pub fn flag(setting: &Setting) -> String {
    let flag = match setting.name {
        // An argument without a flag: its value says it all.
        "data" => return setting.value.clone().unwrap_or("the data file".into()),
        "output" => "-o".into(),
        "number" => "-n".into(),
        "standardise" => "--no-standardise".into(),
        name => format!("--{}", name.replace('_', "-")),
    };
    match &setting.value {
        Some(value) => format!("{flag} {value}"),
        None => flag,
    }
}

/// The message.
pub fn told(error: &Error) -> String {
    match error {
        Error::Stopped {
            step,
            total,
            folder,
        } => format!(
            "interrupted; step {step} of {total} is saved; continue with: diffclf train -o {} --resume",
            folder.display()
        ),
        error => error.told(&flag),
    }
}

/// The word before the message.
pub fn kind(error: &Error) -> &'static str {
    match error {
        Error::Warned(_) => "warning",
        _ => "error",
    }
}

/// The process's exit code.
pub fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Usage(_)
        | Error::Setting { .. }
        | Error::Refused(_)
        | Error::Nothing
        | Error::Data { .. }
        | Error::Config { .. }
        | Error::Conflict { .. }
        | Error::NoRun { .. }
        | Error::OtherData { .. }
        | Error::OtherSettings { .. }
        | Error::OtherModel { .. }
        | Error::Read { .. }
        | Error::Exists { .. }
        | Error::Appeared { .. }
        | Error::Twice { .. }
        | Error::NoPlace { .. }
        | Error::DataChanged { .. }
        | Error::Memory { .. }
        | Error::RunExists { .. }
        | Error::NotAFolder { .. }
        | Error::Busy { .. } => EXIT_USAGE,
        Error::Diverged { .. } => EXIT_NUMERICAL,
        Error::Write { .. } | Error::Failed(_) => EXIT_FAILED,
        Error::Warned(_) => EXIT_WARNED,
        Error::Content { source, .. } | Error::Core(source) => core_exit_code(source),
        Error::Stopped { .. } | Error::Interrupted(_) => EXIT_INTERRUPTED,
    }
}

/// The library's errors are about what it was given, unless listed here.
fn core_exit_code(error: &CoreError) -> u8 {
    match error {
        CoreError::Write(_) => EXIT_FAILED,
        CoreError::NonFinite { .. }
        | CoreError::ModelNotFinite { .. }
        | CoreError::Diverged { .. }
        | CoreError::Unstable { .. }
        | CoreError::PoorOverlap { .. }
        | CoreError::Disconnected { .. }
        | CoreError::NotConverged { .. } => EXIT_NUMERICAL,
        _ => EXIT_USAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf_run::error::DataFault;
    use diffclf_run::words;
    use std::io::ErrorKind;
    use std::path::{Path, PathBuf};

    #[test]
    fn each_error_has_its_flags_and_its_code() {
        let path = || PathBuf::from("runs/a");
        let io = |kind: ErrorKind| std::io::Error::from(kind);
        let empty = || CoreError::EmptyArray {
            shape: "(0, 3)".into(),
        };
        let diverged = || CoreError::NonFinite {
            step: 17,
            term: "dsm".into(),
            row: Some(3),
        };
        let cases = [
            (Error::Usage("--pair is x".into()), EXIT_USAGE, "--pair"),
            (
                Error::setting("held_out", 2, "a share"),
                EXIT_USAGE,
                "--held-out is 2, expected a share",
            ),
            (
                Error::Refused(words!(
                    "give ",
                    Setting::to("data", "DATA.npy"),
                    ", ",
                    Setting::to("end", "DATA1.npy")
                )),
                EXIT_USAGE,
                "give DATA.npy, --end DATA1.npy",
            ),
            (
                Error::Appeared {
                    path: path(),
                    kept: "runs/a.2".into(),
                },
                EXIT_USAGE,
                "the result is in runs/a.2",
            ),
            (
                Error::Memory {
                    what: "this".into(),
                    needed: 9,
                    available: 8,
                },
                EXIT_USAGE,
                "this needs at least 9 bytes",
            ),
            (Error::Twice { path: path() }, EXIT_USAGE, "two results"),
            (
                Error::NoPlace {
                    path: path(),
                    source: io(ErrorKind::NotFound),
                },
                EXIT_USAGE,
                "create the folder",
            ),
            (
                Error::DataChanged {
                    name: "x.npy".into(),
                    folder: path(),
                },
                EXIT_USAGE,
                "continue with --resume, or start anew with --force",
            ),
            (Error::Nothing, EXIT_USAGE, "with --system NAME --dim D"),
            (
                Error::Data {
                    name: "x.npy".into(),
                    fault: DataFault::Variance(0.0),
                },
                EXIT_USAGE,
                "x.npy",
            ),
            (
                Error::Config {
                    path: path(),
                    reason: "line 1".into(),
                },
                EXIT_USAGE,
                "line 1",
            ),
            (
                Error::Conflict {
                    name: "rate".into(),
                    found: "1".into(),
                    saved: Some("2".into()),
                    folder: path(),
                },
                EXIT_USAGE,
                "rate is 1",
            ),
            (Error::NoRun { folder: path() }, EXIT_USAGE, "no run"),
            (
                Error::OtherData {
                    name: "x".into(),
                    folder: path(),
                },
                EXIT_USAGE,
                "differs",
            ),
            (
                Error::OtherSettings { folder: path() },
                EXIT_USAGE,
                "config.toml",
            ),
            (
                Error::OtherModel { from: path() },
                EXIT_USAGE,
                "do not give the model",
            ),
            (
                Error::Read {
                    path: path(),
                    source: io(ErrorKind::NotFound),
                },
                EXIT_USAGE,
                "looked in",
            ),
            (
                Error::Write {
                    path: path(),
                    source: io(ErrorKind::StorageFull),
                },
                EXIT_FAILED,
                "free some space",
            ),
            (Error::Exists { path: path() }, EXIT_USAGE, "add --force"),
            (
                Error::RunExists { path: path() },
                EXIT_USAGE,
                "with --resume, choose another folder with -o, or add --force",
            ),
            (Error::NotAFolder { path: path() }, EXIT_USAGE, "with -o"),
            (Error::Busy { path: path() }, EXIT_USAGE, "in use"),
            (Error::about(&path(), empty()), EXIT_USAGE, "runs/a: the"),
            (Error::Core(empty()), EXIT_USAGE, "empty"),
            (
                Error::Core(CoreError::Write(io(ErrorKind::Other))),
                EXIT_FAILED,
                "writing failed",
            ),
            (Error::Core(diverged()), EXIT_NUMERICAL, "step 17"),
            (
                Error::Diverged {
                    source: diverged(),
                    kept: "The model is kept".into(),
                },
                EXIT_NUMERICAL,
                "is kept",
            ),
            (Error::Failed("3 checks".into()), EXIT_FAILED, "3 checks"),
            (Error::Warned("1 of 6".into()), EXIT_WARNED, "1 of 6"),
            (
                Error::Stopped {
                    step: 3,
                    total: 8,
                    folder: path(),
                },
                EXIT_INTERRUPTED,
                "step 3 of 8 is saved; continue with: diffclf train -o runs/a --resume",
            ),
            (
                Error::Interrupted("2 cells".into()),
                EXIT_INTERRUPTED,
                "interrupted; 2",
            ),
        ];
        for (error, code, words) in cases {
            assert_eq!(exit_code(&error), code, "{error}");
            assert!(told(&error).contains(words), "{}", told(&error));
            let word = if code == EXIT_WARNED {
                "warning"
            } else {
                "error"
            };
            assert_eq!(kind(&error), word);
        }
    }

    /// Lines of the libraries' sources that hold a flag in a text, comments and tests apart.
    fn flags_in(path: &Path, found: &mut Vec<String>) {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
            paths.sort();
            return paths.iter().for_each(|path| flags_in(path, found));
        }
        let name = path.to_str().unwrap().replace('\\', "/");
        if name.contains("/tests") || !name.ends_with(".rs") {
            return;
        }
        let source = std::fs::read_to_string(path).unwrap();
        let source = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        for line in source.lines() {
            let text = line.split("// ").next().unwrap();
            let is_flag = |at: usize| {
                let before = text[..at].chars().next_back();
                let after = text[at + 2..].chars().next();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '-')
                    && after.is_some_and(|c| c.is_ascii_lowercase())
            };
            let comment = text.trim_start().starts_with("//");
            if !comment && text.match_indices("--").any(|(at, _)| is_flag(at)) {
                found.push(format!("{name}: {}", line.trim()));
            }
        }
    }

    #[test]
    fn libraries_name_settings_and_no_flags() {
        // Where two dashes are no flag of a message: a style sheet, and commands to be typed as a whole.
        const APART: [&str; 3] = [
            "report/src/page.rs",
            "run/src/run_folder.rs",
            "experiments/src/reproduction.rs",
        ];
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        for library in ["core", "run", "report", "experiments"] {
            flags_in(&root.join(library).join("src"), &mut found);
        }
        found.retain(|line| !APART.iter().any(|place| line.contains(place)));
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
