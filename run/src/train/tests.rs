//! A training in its folder, from the outside.

use super::*;
use crate::Silent;
use crate::files::write_atomic;
use diffclf::format::npy::write_npy;
use std::path::Path;

fn job(path: &Path, settings: &str) -> Job {
    Job {
        settings: toml::from_str(settings).unwrap(),
        path: path.to_path_buf(),
        first_stage: None,
        from: None,
        time: None,
        resume: false,
        force: false,
        checkpoint_every: Duration::from_secs(10),
        watch: Arc::new(Silent),
        pool: Arc::new(Pool::new(1)),
    }
}

const SMALL: &str = "batch = 32\nsteps = 3\nscore_steps = 2\nwidth = 8\ndepth = 2\nfeatures = 8\ngrid_levels = 16\nheld_out = 0.1\n\
                     held_out_every = 2\nlog_every = 1\n";

/// Two columns of different scale, far from zero.
fn values() -> Vec<f64> {
    (0..200)
        .map(|i| {
            let x = f64::from(i);
            100.0
                + if i % 2 == 0 {
                    (1.7 * x).sin()
                } else {
                    0.3 * (0.9 * x).cos()
                }
        })
        .collect()
}

#[test]
fn an_array_gives_the_model_of_its_file() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let values = values();
    for single in [false, true] {
        let array = if single {
            DataSet::from_array(
                "rows.npy",
                values.iter().map(|x| *x as f32).collect::<Vec<_>>(),
                100,
                2,
            )
        } else {
            DataSet::from_array("rows.npy", values.clone(), 100, 2)
        };
        write_atomic(&at("rows.npy"), |writer| {
            if single {
                let values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
                write_npy(&[100, 2], &values, writer)
            } else {
                write_npy(&[100, 2], &values, writer)
            }
        })
        .unwrap();
        let (from_file, from_memory) =
            (at(&format!("file{single}")), at(&format!("memory{single}")));
        let path = at("rows.npy");
        train(job(&from_file, &format!("{SMALL}data = {path:?}"))).unwrap();
        train_on(job(&from_memory, SMALL), vec![array.unwrap()]).unwrap();
        for name in ["model.safetensors", "checkpoint.safetensors"] {
            let bytes = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
            assert!(bytes(&from_file) == bytes(&from_memory), "{name}");
        }
    }
}

#[test]
fn a_run_in_memory_goes_on_with_its_own_data_only() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let array = |shift: f64| {
        let values: Vec<f64> = values().iter().map(|x| x + shift).collect();
        DataSet::from_array("rows", values, 100, 2).unwrap()
    };
    train_on(job(&path, SMALL), vec![array(0.0)]).unwrap();
    let again = |set| {
        let resumed = Job {
            resume: true,
            ..job(&path, SMALL)
        };
        train_on(resumed, vec![set])
    };
    again(array(0.0)).unwrap();
    assert!(matches!(again(array(0.5)), Err(Error::OtherData { .. })));
    let empty = place.path().join("empty");
    assert!(matches!(
        train_on(job(&empty, SMALL), Vec::new()),
        Err(Error::Nothing)
    ));
    assert!(!empty.exists());
}

/// More steps for a finished run are a further stage: its settings and its model record it, it can be interrupted like any other, and what it ends
/// with is what a run with that stage from the start has.
#[test]
fn a_finished_run_goes_on_with_more_steps() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let set = || vec![DataSet::from_array("rows", values(), 100, 2).unwrap()];
    let run = |name: &str, text: &str, resume: bool| {
        let job = Job {
            resume,
            ..job(&at(name), &format!("{SMALL}{text}"))
        };
        train_on(job, set())
    };
    run("whole", "more_steps = [4, 2]", false).unwrap();
    run("longer", "", false).unwrap();
    let longer = |steps: u64| {
        let text = SMALL.replace("steps = 3", &format!("steps = {steps}"));
        let job = Job {
            resume: true,
            ..job(&at("longer"), &text)
        };
        train_on(job, set())
    };
    longer(7).unwrap();
    longer(9).unwrap();
    let bytes = |name: &str| std::fs::read(at(name).join("model.safetensors")).unwrap();
    assert!(bytes("whole") == bytes("longer"));
    let saved = Settings::read(&at("longer").join(CONFIG)).unwrap();
    assert_eq!((saved.steps, saved.more_steps), (Some(3), Some(vec![4, 2])));
    let record = read_model(&at("longer")).unwrap().content.record;
    let counts: Vec<u64> = record.settings.stages.iter().map(|s| s.steps).collect();
    assert_eq!((counts, record.steps), (vec![2, 3, 4, 2], 11));
    // Asked again, there is nothing to do; fewer steps than were made are refused.
    longer(9).unwrap();
    assert!(bytes("whole") == bytes("longer"));
    assert!(matches!(longer(5), Err(Error::Conflict { .. })));
}

/// Weights belong to the data of a run: they change the model, and a run goes on with its own alone.
#[test]
fn weights_are_part_of_the_data() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let weights = |name: &str, factor: f64| {
        let values: Vec<f64> = (0..100).map(|k| 1.0 + factor * f64::from(k % 3)).collect();
        write_atomic(&at(name), |writer| write_npy(&[100], &values, writer)).unwrap();
        format!("weights = {:?}\n", at(name))
    };
    let run = |name: &str, text: &str, resume: bool| {
        let job = Job {
            resume,
            ..job(&at(name), &format!("{text}{SMALL}"))
        };
        let set = DataSet::from_array("rows", values(), 100, 2).unwrap();
        train_on(job, vec![set])
    };
    let (one, other) = (weights("one.npy", 1.0), weights("other.npy", 2.0));
    run("plain", "", false).unwrap();
    run("weighted", &one, false).unwrap();
    let model = |name: &str| read_model(&at(name)).unwrap();
    assert_ne!(model("plain").params, model("weighted").params);
    assert!(model("weighted").content.record.data[0].weights.is_some());
    run("weighted", &one, true).unwrap();
    run("weighted", "", true).unwrap();
    assert!(matches!(
        run("weighted", &other, true),
        Err(Error::OtherData { .. })
    ));
    assert!(matches!(
        run("plain", &one, true),
        Err(Error::OtherData { .. })
    ));
    // Equal weights are no other law, but other draws.
    let equal = weights("equal.npy", 0.0);
    run("equal", &equal, false).unwrap();
    let mixture = |name: &str| model(name).content.standardisation;
    let (a, b) = (mixture("equal"), mixture("plain"));
    assert!(
        a.shift
            .iter()
            .zip(&b.shift)
            .all(|(a, b)| (a - b).abs() < 1e-9)
    );
}

/// Writes rows, shifted; always to the same file, in place.
fn write_in_place(path: &Path, shift: f64) {
    let values: Vec<f64> = values().iter().map(|x| x + shift).collect();
    let mut bytes = Vec::new();
    write_npy(&[100, 2], &values, &mut bytes).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn data_that_change_while_they_are_trained_on_give_no_model() {
    use crate::{Bar, Watch};
    struct Vandal(PathBuf);
    impl Watch for Vandal {
        fn begin(&self, _label: &str, _total: u64, _done: u64) -> Box<dyn Bar> {
            Box::new(Silent)
        }
        fn note(&self, _text: &str) {}
        /// Asked after every step.
        fn stopped(&self) -> bool {
            write_in_place(&self.0, 0.25);
            false
        }
    }
    let place = tempfile::tempdir().unwrap();
    let (data, run) = (place.path().join("rows.npy"), place.path().join("run"));
    let settings = format!("{SMALL}data = {data:?}");
    for every in [Duration::ZERO, Duration::from_secs(1000)] {
        write_in_place(&data, 0.0);
        let job = Job {
            watch: Arc::new(Vandal(data.clone())),
            checkpoint_every: every,
            force: true,
            ..job(&run, &settings)
        };
        assert!(matches!(train(job), Err(Error::DataChanged { .. })));
        assert!(!run.join("model.safetensors").exists());
    }
}

#[test]
fn a_run_without_a_checkpoint_knows_its_data() {
    let place = tempfile::tempdir().unwrap();
    let (data, run) = (place.path().join("rows.npy"), place.path().join("run"));
    write_in_place(&data, 0.0);
    let settings = format!("{SMALL}data = {data:?}");
    train(job(&run, &settings)).unwrap();
    std::fs::remove_file(run.join("checkpoint.safetensors")).unwrap();
    let again = || {
        train(Job {
            resume: true,
            ..job(&run, &settings)
        })
    };
    write_in_place(&data, 0.25);
    assert!(matches!(again(), Err(Error::OtherData { .. })));
    write_in_place(&data, 0.0);
    again().unwrap();
}

#[cfg(unix)]
#[test]
fn a_name_that_is_no_text_is_refused_with_words() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"rows-\xff.npy");
    let (data, run) = (place.path().join(name), place.path().join("run"));
    write_in_place(&data, 0.0);
    let mut job = job(&run, SMALL);
    job.settings.data = Some(data);
    let error = train(job).unwrap_err();
    assert!(matches!(error, Error::Refused(_)) && error.to_string().contains("rename"));
    assert!(!run.exists());
}

#[test]
fn notices_reach_the_one_who_watches() {
    use crate::notice::Notice;
    use crate::{Bar, Watch};
    use std::sync::Mutex;
    #[derive(Default)]
    struct Listener(Mutex<Vec<Notice>>);
    impl Watch for Listener {
        fn begin(&self, _label: &str, _total: u64, _done: u64) -> Box<dyn Bar> {
            Box::new(Silent)
        }
        fn note(&self, _text: &str) {}
        fn notice(&self, notice: &Notice) {
            self.0.lock().unwrap().push(notice.clone());
        }
        fn stopped(&self) -> bool {
            true
        }
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let listener = Arc::new(Listener::default());
    let job = Job {
        watch: listener.clone(),
        ..job(
            &path,
            "batch = 128\nheld_out = 0.1\nwidth = 8\nfeatures = 8",
        )
    };
    let set = DataSet::from_array("rows", values(), 100, 2).unwrap();
    let stopped = train_on(job, vec![set]);
    assert!(matches!(
        stopped,
        Err(Error::Stopped {
            step: 1,
            total: 4000,
            ..
        })
    ));
    let lowered = Notice::BatchLowered { from: 128, to: 90 };
    assert_eq!(*listener.0.lock().unwrap(), [lowered]);
}
