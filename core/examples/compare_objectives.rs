//! The table of docs/validation.md that compares all objectives on MOG-40 at an equal number of score evaluations: every
//! objective continues from one common score stage, with the same rows, levels and steps.
//!
//! `cargo run --release --example compare_objectives -- --out DIR [--score-steps 2000] [--steps 2000] [--dim 8] [--only dsm+ctsm]`
//!
//! A line of `DIR/results.jsonl` is written as each objective is finished and not computed again; the score stage is kept in
//! `DIR/score.safetensors`. An objective whose numbers leave the finite ones is reported as such.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Coordinates, LearnedEnergy, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::metric::{Evaluation, EvaluationSettings};
use diffclf::model::{Checkpoint, Content, DataRecord, Record};
use diffclf::objective::{closeness, parse_terms};
use diffclf::process::sampler::Close;
use diffclf::process::{Process, TimeSampler};
use diffclf::system::System;
use diffclf::train::{
    Endpoints, EnergyCourse, InMemory, Shuffled, State, StepReport, TrainSettings, Trainer, run,
};

type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What is compared, all with two levels a row.
const SUMS: [&str; 17] = [
    "dsm",
    "dsm+diffclf",
    "dsm+binary-bregman(generator=kl)",
    "dsm+binary-bregman(generator=log)",
    "dsm+binary-bregman(generator=square)",
    "dsm+bregman(generator=js)",
    "dsm+bregman(generator=square)",
    "dsm+bregman(generator=inverse)",
    "dsm+known-diffclf",
    "dsm+ctsm",
    "dsm+ctsm(weight=noise)",
    "dsm+tsm",
    "dsm+dre-infinity",
    "dsm+fokker-planck",
    "dsm+fokker-planck(laplacian=difference)",
    "dsm+bayes",
    "dsm+target-score",
];

const ROWS: usize = 60_000;
const LEVELS: usize = 2;

struct Comparison {
    folder: PathBuf,
    spec: ModelSpec,
    exact: Arc<ExactPath>,
    table: Arc<InMemory>,
    settings: TrainSettings,
    pool: Arc<Pool>,
}

impl Comparison {
    fn content(&self, settings: &TrainSettings, steps: u64) -> Content {
        Content {
            spec: self.spec.clone(),
            standardisation: Coordinates::identity(self.spec.dim),
            frame: None,
            record: Record {
                version: env!("CARGO_PKG_VERSION").into(),
                settings: settings.clone(),
                steps,
                data: vec![DataRecord {
                    name: "mog40".into(),
                    system_seed: Some(0),
                    rows: Some(ROWS),
                    sha256: None,
                    steps: Vec::new(),
                    origins: Vec::new(),
                    columns: Vec::new(),
                    weights: None,
                }],
                units: "kT".into(),
                streams: diffclf::rng::STREAMS,
                levelled: None,
            },
        }
    }

    /// Trains from a state until `until` steps are done; returns the state, the parameters to use and the seconds of a step.
    fn train(
        &self,
        settings: &TrainSettings,
        from: Option<State>,
        until: u64,
    ) -> diffclf::Result<(State, Vec<f32>, f64)> {
        let identity = Coordinates::identity(self.spec.dim);
        let (source, _) = Shuffled::split(0, self.table.clone(), &identity, settings.batch, 1, 0);
        let endpoints = Endpoints {
            start: Arc::new(source),
            end: None,
        };
        let (pool, isa) = (self.pool.clone(), Isa::detect());
        let course = EnergyCourse::new(&self.spec, settings, endpoints, None, pool, isa)?
            .with_truth(Some(self.exact.clone()));
        let mut trainer = Trainer::of(course, settings)?;
        if let Some(state) = from {
            trainer.resume(state)?;
        }
        let (begin, first) = (Instant::now(), trainer.state().step);
        if first < until {
            run(&mut trainer, &mut |t: &Trainer, _: &StepReport| {
                Ok::<_, diffclf::Error>(if t.state().step < until {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            })?;
        }
        let seconds = begin.elapsed().as_secs_f64() / (until - first).max(1) as f64;
        Ok((
            trainer.state().clone(),
            trainer.averaged().to_vec(),
            seconds,
        ))
    }

    /// The common score stage, from its file if it is there.
    fn score_stage(&self) -> Outcome<State> {
        let path = self.folder.join("score.safetensors");
        let steps = self.settings.stages[0].steps;
        if let Ok(bytes) = std::fs::read(&path) {
            let checkpoint = Checkpoint::from_bytes(&bytes)?;
            let same = checkpoint.content == self.content(&self.settings, steps);
            return if same {
                Ok(checkpoint.state)
            } else {
                Err("the score stage in the folder has other settings; choose another --out".into())
            };
        }
        let (state, ..) = self.train(&self.settings, None, steps)?;
        let checkpoint = Checkpoint {
            content: self.content(&self.settings, steps),
            state: state.clone(),
        };
        let temporary = path.with_extension("partial");
        std::fs::write(&temporary, checkpoint.to_bytes()?)?;
        std::fs::rename(temporary, path)?;
        Ok(state)
    }

    /// One objective: a line of figures.
    fn compare(&self, sum: &str, state: &State) -> Outcome<serde_json::Value> {
        let mut settings = self.settings.clone();
        settings.stages[1].objectives = parse_terms(sum)?;
        if let Some(share) = closeness(&settings.stages[1].objectives) {
            settings.times = TimeSampler::Close(Close { share });
        }
        let trained = self.train(&settings, Some(state.clone()), settings.steps());
        let (_, params, seconds) = match trained {
            Ok(trained) => trained,
            Err(error) => {
                return Ok(serde_json::json!({"objective": sum, "error": error.to_string()}));
            }
        };
        let (pool, isa) = (self.pool.clone(), Isa::detect());
        let energy = LearnedEnergy::new(self.spec.clone(), params, pool, isa)?;
        let grid = self.spec.grid.with_levels(128)?;
        let settings = EvaluationSettings::default();
        let found = Evaluation::run(&energy, &self.exact, &grid, settings, &mut |_, _| ())?;
        Ok(serde_json::json!({
            "objective": sum,
            "classification": found.average.classification,
            "excess": found.average.excess,
            "optimum": found.average.optimum,
            "ess": found.average.ess,
            "fisher": found.average.fisher,
            "r2": found.average.r2,
            "median_r2": found.average.median_r2,
            "weights_total_variation": found.mode_weights.total_variation,
            "milliseconds_a_step": 1e3 * seconds,
        }))
    }
}

fn finished(path: &Path, sum: &str) -> bool {
    let line = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    std::fs::read_to_string(path)
        .is_ok_and(|text| text.lines().filter_map(line).any(|l| l["objective"] == sum))
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().collect();
    let value = |flag: &str| {
        let place = args.iter().position(|a| a == flag);
        place.and_then(|i| args.get(i + 1)).cloned()
    };
    let number = |flag: &str, default: u64| value(flag).map_or(Ok(default), |text| text.parse());
    let folder = PathBuf::from(value("--out").ok_or("give the folder of the results: --out DIR")?);
    std::fs::create_dir_all(&folder)?;
    let dim = number("--dim", 8)? as usize;
    let (score, joint) = (number("--score-steps", 2000)?, number("--steps", 2000)?);
    let system = System::by_name("mog40", dim, 0)?;
    let mixture = system.mixture().ok_or("mog40 is a mixture")?.clone();
    let process = Process::by_name("vp")?;
    let comparison = Comparison {
        folder: folder.clone(),
        spec: ModelSpec::new(dim, process),
        exact: Arc::new(ExactPath::new(process, mixture, None)?),
        table: Arc::new(InMemory::new(system.sample(ROWS, 0), dim)),
        settings: TrainSettings::two_stages(2048, score, joint, LEVELS),
        pool: Arc::new(Pool::new(number("--threads", 2)? as usize)),
    };
    let results = folder.join("results.jsonl");
    let only = value("--only");
    let state = comparison.score_stage()?;
    for sum in SUMS {
        if only.as_deref().is_some_and(|only| only != sum) || finished(&results, sum) {
            continue;
        }
        let line = comparison.compare(sum, &state)?;
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&results)?;
        writeln!(file, "{line}")?;
        println!("{line}");
    }
    Ok(())
}
