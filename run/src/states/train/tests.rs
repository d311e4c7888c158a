//! Runs of states that stop and go on, that begin from models, and that fit into a time.

use super::*;
use crate::train::{train as run, train_on};
use crate::{Bar, Silent, Watch};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SMALL: &str = "states = 2\nbatch = 32\nsteps = 12\nscore_steps = 4\nwidth = 8\ndepth = 2\nfeatures = 8\ngrid_levels = 16\nheld_out = 0.1\n\
                     held_out_every = 2\nlog_every = 1\n";

/// Stops after so many steps.
struct Impatient(AtomicU64);

impl Watch for Impatient {
    fn begin(&self, _label: &str, _total: u64, _done: u64) -> Box<dyn Bar> {
        Box::new(Silent)
    }
    fn note(&self, _text: &str) {}
    fn notice(&self, _notice: &Notice) {}
    fn stopped(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

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

/// Four spins, the second as the first, more often up than down.
fn rows(count: usize) -> DataSet {
    let row = |k: usize| {
        let hash = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = |at: u32| (hash >> at & 1) as f32;
        let first = bit(60).max(bit(47));
        [first, first, bit(33), bit(21)]
    };
    let values: Vec<f32> = (0..count).flat_map(row).collect();
    DataSet::from_array("spins", values, count, 4).unwrap()
}

fn bytes(run: &Path) -> [Vec<u8>; 2] {
    ["model.safetensors", "checkpoint.safetensors"]
        .map(|name| std::fs::read(run.join(name)).unwrap())
}

fn place() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_path_buf();
    (place, move |name: &str| root.join(name))
}

#[test]
fn a_run_that_was_stopped_ends_with_the_bytes_of_one_that_was_not() {
    let (_place, at) = place();
    train_on(job(&at("whole"), SMALL), vec![rows(200)]).unwrap();
    // In the first stage, at its end, and in the second.
    for steps in [2, 4, 9] {
        let path = at(&format!("stopped{steps}"));
        let stopped = Job {
            watch: Arc::new(Impatient(AtomicU64::new(steps))),
            ..job(&path, SMALL)
        };
        let end = train_on(stopped, vec![rows(200)]);
        assert!(matches!(end, Err(Error::Stopped { .. })), "{end:?}");
        assert!(bytes(&path)[1] != bytes(&at("whole"))[1]);
        let resumed = || Job {
            resume: true,
            ..job(&path, SMALL)
        };
        // Other rows are refused.
        let other = train_on(resumed(), vec![rows(190)]);
        assert!(matches!(other, Err(Error::OtherData { .. })), "{other:?}");
        train_on(resumed(), vec![rows(200)]).unwrap();
        assert!(bytes(&path) == bytes(&at("whole")), "stopped after {steps}");
    }
}

#[test]
fn a_finished_run_goes_on_with_more_steps_and_a_model_begins_another() {
    let (_place, at) = place();
    train_on(job(&at("run"), SMALL), vec![rows(200)]).unwrap();
    let first = bytes(&at("run"));
    let more = Job {
        resume: true,
        ..job(&at("run"), "steps = 20")
    };
    train_on(more, vec![rows(200)]).unwrap();
    let model = super::super::open(&at("run")).unwrap().unwrap();
    assert_eq!(model.content.record.steps, 24);
    assert_eq!(model.content.record.settings.stages.len(), 3);
    assert!(bytes(&at("run")) != first);
    // From a model: its laws of the sites, its parameters, other rows; and a budget.
    let warm = Job {
        from: Some(at("run")),
        time: Some(Duration::from_secs(2)),
        ..job(&at("warm"), "rate = 1e-9\naverage = 0.0")
    };
    train_on(warm, vec![rows(120)]).unwrap();
    let next = super::super::open(&at("warm")).unwrap().unwrap();
    assert_eq!(next.content.spec, model.content.spec);
    // No score steps, at least forty of the objective, and a rate that leaves everything where it was, F apart.
    assert!(next.content.record.settings.stages.len() == 1 && next.content.record.steps >= 40);
    let layout = model.content.spec.layout();
    let network = layout.get("free_energy").unwrap().offset;
    let far = next.params[..network].iter().zip(model.best());
    let far = far.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    assert!(far < 1e-4, "{far}");
    // Another network is another model.
    let wider = Job {
        from: Some(at("run")),
        ..job(&at("wider"), "width = 16")
    };
    let end = train_on(wider, vec![rows(120)]);
    assert!(matches!(end, Err(Error::OtherModel { .. })), "{end:?}");
    // Nor is there a run to go on with where there is none.
    let nothing = Job {
        resume: true,
        ..job(&at("nothing"), "states = 2")
    };
    assert!(matches!(run(nothing), Err(Error::NoRun { .. })));
}
