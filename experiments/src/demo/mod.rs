//! The demonstration: why score matching alone cannot learn how much weight each mode has, and what cures it.
//!
//! Two models of the same mixture share a first stage of score matching. Then one goes on with score matching, the other
//! adds DiffCLF, for the same number of steps on the same rows, times and noise.

mod page;

use diffclf::energy::exact::ExactPath;
use diffclf::energy::{LearnedEnergy, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::metric::{Evaluation, EvaluationSettings, mode_weights};
use diffclf::model::{Content, Record};
use diffclf::network::NetworkSpec;
use diffclf::objective::parse_terms;
use diffclf::process::{Process, TimeGrid};
use diffclf::system::System;
use diffclf::train::{Endpoints, State, StepReport, TrainSettings, Trainer};
use diffclf_report::curve::Series;
use diffclf_run::data::{DataSet, Prepared};
use diffclf_run::error::{Error, Result};
use diffclf_run::machine::Machine;
use diffclf_run::{Bar, Watch};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// Rows per step.
const BATCH: usize = 512;
/// Times per row.
const LEVELS: usize = 4;
/// How much is computed.
#[derive(Clone, Copy)]
struct Budget {
    /// Steps of the shared first stage, and of the second.
    steps: [u64; 2],
    /// Levels of the time grid.
    grid: usize,
    /// Exact samples per level for the figures of merit, and how many of them are classified.
    samples: [usize; 2],
    /// Exact samples for a look at the mode weights during training.
    look: usize,
}

const FULL: Budget = Budget {
    steps: [1500, 2000],
    grid: 128,
    samples: [1024, 256],
    look: 4096,
};

const QUICK: Budget = Budget {
    steps: [30, 40],
    grid: 16,
    samples: [64, 16],
    look: 64,
};

/// The smallest time: its noise is a fourth of a mode's width, so the picture is that of the data.
const SMALLEST_TIME: f64 = 0.01;
/// Looks at the mode weights during training.
const LOOKS: u64 = 35;
/// A trained model and how it came out.
struct Trained {
    name: &'static str,
    energy: LearnedEnergy<f32>,
    evaluation: Evaluation,
    seconds: f64,
    /// Weight of the first mode as training went on.
    weights: Series,
}

/// Both models, trained, beside the truth.
pub struct Demo {
    content: Content,
    exact: ExactPath,
    models: [Trained; 2],
    /// Steps of the shared first stage, and of the second.
    steps: [u64; 2],
}

impl Demo {
    /// Trains and compares; `quick` is a fraction of the work, to see that it runs.
    pub fn run(quick: bool, machine: &Machine, watch: &dyn Watch) -> Result<Self> {
        let budget = if quick { QUICK } else { FULL };
        let steps = budget.steps;
        let (pool, isa) = (machine.pool()?, machine.isa()?);
        let system = System::by_name("two-modes", 2, 0)?;
        let mixture = system
            .mixture()
            .cloned()
            .ok_or_else(|| Error::Failed("two-modes is no mixture".into()))?;
        let origin = DataSet::system(0, system, 0, None, 0)?;
        let standardisation = origin.moments(&mut Vec::new())?.coordinates();
        let process = Process::by_name("vp")?;
        let mut spec = ModelSpec::new(2, process);
        spec.grid = TimeGrid::new(
            budget.grid,
            SMALLEST_TIME,
            spec.grid.t_max(),
            spec.grid.spacing(),
        )?;
        spec.network = NetworkSpec::Mlp {
            width: 64,
            depth: 3,
        };
        let content = Content {
            spec,
            standardisation,
            frame: None,
            record: Record {
                version: env!("CARGO_PKG_VERSION").into(),
                settings: settings("dsm", steps)?,
                steps: 0,
                data: vec![origin.record().clone()],
                units: "kT".into(),
                streams: diffclf::rng::STREAMS,
                levelled: None,
            },
        };
        let mixture = content.standardisation.mixture_to_model(&mixture)?;
        let exact = ExactPath::new(process, mixture, None)?;
        let rows = origin.prepare(&content.standardisation)?;

        let total = steps[0] + 2 * steps[1];
        let mut course = Course {
            spec: &content.spec,
            exact: &exact,
            rows: &rows,
            budget,
            pool,
            isa,
            progress: watch.begin("demo", total, 0),
            done: 0,
        };
        let begin = Instant::now();
        let shared = course.train("dsm", None)?;
        let seconds = begin.elapsed().as_secs_f64();
        let models = [
            course.second_stage("DSM", "dsm", &shared, seconds)?,
            course.second_stage("DSM + DiffCLF", "dsm+diffclf", &shared, seconds)?,
        ];
        course.progress.finish("done");

        Ok(Self {
            content,
            exact,
            models,
            steps,
        })
    }

    /// Weight of the first mode: as both models have it, and in truth.
    pub fn first_weights(&self) -> ([f64; 2], f64) {
        let found = self
            .models
            .each_ref()
            .map(|model| model.evaluation.mode_weights.model[0].mean);
        (found, self.exact.start().weights()[0])
    }
}

/// Two stages: the score, then `second`.
fn settings(second: &str, [first, then]: [u64; 2]) -> Result<TrainSettings> {
    let mut settings = TrainSettings::two_stages(BATCH, first, then, LEVELS);
    settings.stages[1].objectives = parse_terms(second)?;
    for stage in &mut settings.stages {
        stage.rate.peak = 3e-3;
        stage.rate.warm_up = first / 15;
    }
    settings.average = Some(0.995);
    Ok(settings)
}

/// The end of a stage.
struct Stage {
    state: State,
    /// Moving average of the parameters.
    params: Vec<f32>,
    /// Step and weight of the first mode, along the way.
    weights: Vec<(f64, f64)>,
}

/// Both trainings.
struct Course<'a> {
    spec: &'a ModelSpec,
    exact: &'a ExactPath,
    rows: &'a Prepared,
    budget: Budget,
    pool: Arc<Pool>,
    isa: Isa,
    progress: Box<dyn Bar>,
    done: u64,
}

impl Course<'_> {
    /// Runs a trainer to the end of its stage, with a look at the mode weights now and then.
    fn train(&mut self, second: &str, from: Option<&State>) -> Result<Stage> {
        let settings = settings(second, self.budget.steps)?;
        let look = (settings.steps() / LOOKS).max(1);
        let feed = self.rows.feed(0, settings.batch, settings.seed, 0.0);
        let endpoints = Endpoints {
            start: feed.train,
            end: None,
        };
        let mut trainer = Trainer::new(
            self.spec,
            &settings,
            endpoints,
            None,
            self.pool.clone(),
            self.isa,
        )?;
        if let Some(state) = from {
            trainer.resume(state.clone())?;
        }
        let stage = trainer.state().stage;
        let label = if stage == 0 { "dsm, shared" } else { second };
        let mut weights = Vec::new();
        diffclf::train::run(&mut trainer, &mut |trainer: &Trainer,
                                                report: &StepReport|
         -> Result<ControlFlow<()>> {
            self.done += 1;
            let loss = report.losses.total;
            self.progress
                .set(self.done, &|| format!("{label}: loss {loss:.4}"));
            let step = trainer.state().step;
            if step.is_multiple_of(look) {
                let energy = self.energy(trainer.averaged())?;
                let found = mode_weights(&energy, self.exact, SMALLEST_TIME, self.budget.look, 7)?;
                weights.push((step as f64, found.model[0].mean));
            }
            Ok(if trainer.state().stage == stage {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        })?;
        Ok(Stage {
            state: trainer.state().clone(),
            params: trainer.averaged().to_vec(),
            weights,
        })
    }

    fn energy(&self, params: &[f32]) -> Result<LearnedEnergy<f32>> {
        Ok(LearnedEnergy::new(
            self.spec.clone(),
            params.to_vec(),
            self.pool.clone(),
            self.isa,
        )?)
    }

    fn second_stage(
        &mut self,
        name: &'static str,
        objective: &str,
        shared: &Stage,
        seconds_before: f64,
    ) -> Result<Trained> {
        let begin = Instant::now();
        let stage = self.train(objective, Some(&shared.state))?;
        let seconds = seconds_before + begin.elapsed().as_secs_f64();
        let energy = self.energy(&stage.params)?;
        let settings = EvaluationSettings {
            samples_per_level: self.budget.samples[0],
            classification_samples_per_level: self.budget.samples[1],
            seed: 5,
            ..EvaluationSettings::default()
        };
        let evaluation = Evaluation::run(
            &energy,
            self.exact,
            &self.spec.grid,
            settings,
            &mut |_, _| (),
        )?;
        Ok(Trained {
            name,
            energy,
            evaluation,
            seconds,
            weights: Series {
                name: name.into(),
                points: [&shared.weights[..], &stage.weights].concat(),
            },
        })
    }
}
