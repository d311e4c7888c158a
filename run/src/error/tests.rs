use super::*;

fn io(kind: ErrorKind) -> std::io::Error {
    std::io::Error::from(kind)
}

fn empty() -> CoreError {
    CoreError::EmptyArray {
        shape: "(0, 3)".into(),
    }
}

fn data(fault: DataFault) -> Error {
    Error::Data {
        name: "rows.npy".into(),
        fault,
    }
}

/// The message as a skin tells it that writes `<key>` or `<key value>`.
fn told(error: &Error) -> String {
    error.told(&|setting| match &setting.value {
        Some(value) => format!("<{} {value}>", setting.name),
        None => format!("<{}>", setting.name),
    })
}

#[test]
fn each_error_says_what_was_found_and_what_to_do() {
    let path = PathBuf::from("folder/file.npy");
    let folder = PathBuf::from("runs/a");
    let read = |kind| Error::Read {
        path: "folder/file.npy".into(),
        source: io(kind),
    };
    let write = |kind| Error::Write {
        path: "folder/file.npy".into(),
        source: io(kind),
    };
    let cases = [
        (Error::Usage("no such thing".into()), "no such thing"),
        (
            Error::setting("threads", 0, "a number from 1 to 1024"),
            "<threads> is 0, expected a number from 1",
        ),
        (
            Error::Refused(words!("give it with ", Setting::to("end", "B.npy"))),
            "give it with <end B.npy>",
        ),
        (
            Error::Appeared {
                path: "a.npy".into(),
                kept: "a.npy.2".into(),
            },
            "a.npy appeared while the program worked and stays as it is; the result is in a.npy.2",
        ),
        (
            Error::Twice {
                path: "a.npy".into(),
            },
            "two results would go to a.npy; give each",
        ),
        (
            Error::NoPlace {
                path: "x/a.npy".into(),
                source: io(ErrorKind::NotFound),
            },
            "cannot write x/a.npy: entity not found; create the folder",
        ),
        (
            Error::Memory {
                what: "this".into(),
                needed: 2_500_000_000,
                available: 3_000_000,
            },
            "this needs at least 2.5 GB of memory, and 3 MB are at hand; take less",
        ),
        (
            Error::DataChanged {
                name: "a.npy".into(),
                folder: "runs/a".into(),
            },
            "a.npy was changed while it was trained on; what was learned before is in runs/a: bring",
        ),
        (Error::Nothing, "<system NAME> <dim D>"),
        (
            data(DataFault::NotFinite {
                row: 3,
                column: 1,
                value: f64::NAN,
            }),
            "rows.npy: row 3, column 1 (counted from 0) is NaN, expected a finite 32-bit number; remove such rows",
        ),
        (
            data(DataFault::NotFinite {
                row: 3,
                column: 1,
                value: 1e200,
            }),
            "; rescale the data",
        ),
        (
            data(DataFault::Constant {
                columns: vec![0, 1],
                rows: 1,
            }),
            "it holds one row",
        ),
        (
            data(DataFault::Constant {
                columns: (2..12).collect(),
                rows: 7,
            }),
            "column 2, 3, 4, 5, 6, 7, 8, 9, ... (counted from 0) holds the same value in all 7 rows",
        ),
        (data(DataFault::Variance(0.0)), "variance of the data is 0"),
        (
            data(DataFault::Columns {
                found: 3,
                expected: 2,
            }),
            "3 columns, but the model has 2",
        ),
        (
            data(DataFault::Shape {
                values: 5,
                rows: 2,
                dim: 3,
            }),
            "5 numbers, expected 2 rows of 3 columns",
        ),
        (
            Error::Config {
                path: "run.toml".into(),
                reason: "unknown field `stepz`".into(),
            },
            "run.toml: unknown field `stepz`",
        ),
        (
            Error::Conflict {
                name: "rate".into(),
                found: "0.5".into(),
                saved: None,
                folder: folder.clone(),
            },
            "rate is 0.5, but the run in runs/a has absent; a resumed run keeps its settings",
        ),
        (
            Error::NoRun {
                folder: folder.clone(),
            },
            "no run to resume in runs/a; give the data",
        ),
        (
            Error::OtherData {
                name: "x.npy".into(),
                folder: folder.clone(),
            },
            "x.npy is not the file that the run in runs/a was trained on (its content differs)",
        ),
        (
            Error::OtherSettings {
                folder: folder.clone(),
            },
            "config.toml in runs/a does not belong",
        ),
        (
            Error::OtherModel {
                from: folder.clone(),
            },
            "the settings do not give the model in runs/a",
        ),
        (read(ErrorKind::NotFound), "looked in"),
        (read(ErrorKind::IsADirectory), "inside it"),
        (read(ErrorKind::PermissionDenied), "permissions"),
        (write(ErrorKind::StorageFull), "free some space"),
        (write(ErrorKind::NotFound), "create the folder"),
        (
            Error::about(&path, empty()),
            "folder/file.npy: the array is empty",
        ),
        (
            Error::about(&path, CoreError::Write(io(ErrorKind::StorageFull))),
            "cannot write folder",
        ),
        (Error::Exists { path: path.clone() }, "add <force> to"),
        (
            Error::RunExists {
                path: folder.clone(),
            },
            "with <resume>, choose another folder with <output>, or add <force> to delete",
        ),
        (
            Error::NotAFolder { path: path.clone() },
            "folder/file.npy is a file, expected a folder for the run; choose another name with <output>",
        ),
        (Error::Busy { path: path.clone() }, "another"),
        (Error::Core(empty()), "empty"),
        (
            Error::Diverged {
                source: CoreError::NonFinite {
                    step: 17,
                    term: "dsm".into(),
                    row: Some(3),
                },
                kept: "The model of step 10 is in runs/a".into(),
            },
            "step 17, row 3",
        ),
        (Error::Failed("3 checks failed".into()), "3 checks"),
        (Error::Warned("1 of 6 checks".into()), "1 of 6"),
        (
            Error::Stopped {
                step: 5,
                total: 9,
                folder,
            },
            "interrupted; step 5 of 9 is saved in runs/a; continue it with <resume>",
        ),
        (Error::Interrupted("3 cells".into()), "interrupted; 3 cells"),
    ];
    for (error, words) in cases {
        let message = told(&error);
        assert!(message.contains(words), "{message}");
        // Nobody's flags.
        assert!(!error.to_string().contains("--"), "{error}");
    }
}

#[test]
fn causes_stay_at_hand() {
    use std::error::Error as _;
    assert!(Error::Core(empty()).source().is_some());
    assert!(Error::about(Path::new("a"), empty()).source().is_some());
    assert!(Error::Nothing.source().is_none());
}
