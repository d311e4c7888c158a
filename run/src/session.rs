//! What goes along with `diffclf train`: log, checkpoints, progress, and a good end whatever happens.

use crate::company;
use crate::error::{Error, Result};
use crate::last_word::{HeldOutRows, last_word, normalise};
use crate::level::{Levels, level};
use crate::origin::Origin;
use crate::run_folder::{Log, RunFolder};
use crate::watch::{Bar, Watch, duration_text};
use diffclf::Error as CoreError;
use diffclf::engine::{Isa, Pool};
use diffclf::model::{CheckpointOf, Content, Describes, ModelOf};
use diffclf::train::{End, Losses, Moment, Observer, State, StepReport, Trainer, run};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a session asks a model's description, of points or of states.
pub trait Trained: Describes {
    /// Rows that are asked after the last step.
    type Rows;

    /// Names of the losses of a stage.
    fn losses(&self, stage: usize) -> Vec<&'static str>;

    /// Steps of each stage.
    fn stages(&self) -> Vec<u64> {
        let stages = self.record().settings.stages.iter();
        stages.map(|stage| stage.steps).collect()
    }

    /// What is done to a model after its last step; what is said of it.
    fn finish(
        model: &mut ModelOf<Self>,
        rows: &Self::Rows,
        pool: &Arc<Pool>,
        isa: Isa,
    ) -> Result<Option<String>>;
}

/// Rows of points that are asked after the last step.
pub struct PointRows {
    /// Those that have the last word.
    pub held_out: Option<HeldOutRows>,
    /// Those for F(t) of all levels.
    pub levels: Levels,
}

impl Trained for Content {
    type Rows = PointRows;

    fn losses(&self, stage: usize) -> Vec<&'static str> {
        let terms = self.record.settings.stages[stage].objectives.iter();
        terms.map(|t| t.objective.objective().name()).collect()
    }

    /// Normalised; that of the mixture it stands on, if that was better.
    fn finish(
        model: &mut ModelOf<Self>,
        rows: &PointRows,
        pool: &Arc<Pool>,
        isa: Isa,
    ) -> Result<Option<String>> {
        normalise(model, pool, isa)?;
        level(model, &rows.levels, pool, isa)?;
        match &rows.held_out {
            Some(rows) => Ok(Some(last_word(model, rows, pool, isa)?.text())),
            None => Ok(None),
        }
    }
}

/// A trainer at work in its folder.
pub struct Session<C: Trained = Content> {
    /// The run folder.
    pub folder: RunFolder,
    /// What the model file says.
    pub content: C,
    /// The log, open at the trainer's step.
    pub log: Log,
    /// Steps between two lines of it.
    pub log_every: u64,
    /// Seconds of training before this session.
    pub seconds: f64,
    /// Time between two checkpoints.
    pub checkpoint_every: Duration,
    /// Who follows it.
    pub watch: Arc<dyn Watch>,
    /// Files that are trained on.
    pub origins: Vec<Origin>,
    /// Rows that are asked after the last step.
    pub rows: C::Rows,
    /// Threads.
    pub pool: Arc<Pool>,
    /// Kernels.
    pub isa: Isa,
}

/// A session while it trains: what is shown, and when the last checkpoint was.
struct Course<C: Trained> {
    session: Session<C>,
    /// None once a failure took it down.
    progress: Option<Box<dyn Bar>>,
    begin: Instant,
    last_checkpoint: Instant,
    /// Losses of the last step, in words.
    last: String,
    /// The latest loss of the held-out rows, and the stage it belongs to.
    held_out_loss: Option<(usize, f64)>,
    /// What the held-out rows said in the end.
    last_word: Option<String>,
}

impl<C: Trained> Observer for Course<C> {
    type Error = Error;

    fn after_step(&mut self, trainer: &Trainer, report: &StepReport) -> Result<ControlFlow<()>> {
        let state = trainer.state();
        let stages = &self.session.content.stages();
        let stage_ended = state.stage != report.stage;
        let log_every = self.session.log_every;
        if stage_ended || report.held_out.is_some() || state.step.is_multiple_of(log_every) {
            let entry = self.session.entry(report, self.seconds());
            self.session.log.write(&entry)?;
        }
        if let Some(losses) = &report.held_out {
            self.held_out_loss = Some((report.stage, losses.total));
        }
        let held_out = self.held_out_loss.filter(|loss| loss.0 == report.stage);
        let message = || self.session.message(report, held_out.map(|loss| loss.1));
        if let Some(progress) = &mut self.progress {
            if report.stopped_early {
                progress.note(&format!(
                    "stage {} ended at step {}: the held-out loss no longer fell",
                    report.stage + 1,
                    state.step
                ));
            }
            progress.set(planned(stages, state), &message);
        }
        let entry = || self.session.entry(report, self.seconds());
        self.session.watch.step(&entry);
        if trainer.finished() {
            self.last = message();
        }
        Ok(if self.session.watch.stopped() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    fn due(&mut self) -> bool {
        company::elapsed(self.last_checkpoint) >= self.session.checkpoint_every
    }

    fn keep(&mut self, state: &State, moment: Moment) -> Result<()> {
        let in_the_end = moment == Moment::Finished;
        self.session.refuse_changed_data(in_the_end)?;
        self.session.save(state)?;
        match moment {
            Moment::Within => {}
            Moment::Finished => self.last_word = self.session.write_last(state)?,
            Moment::StageEnd | Moment::Stopped => {
                let model = self.session.model(state);
                self.session.folder.write_model(&model)?;
            }
        }
        self.last_checkpoint = Instant::now();
        Ok(())
    }

    fn failed(&mut self, error: CoreError) -> Error {
        // The bar goes before the words come.
        self.progress = None;
        self.session.diverged(error)
    }
}

impl<C: Trained> Course<C> {
    /// Seconds of training, those of earlier sessions included.
    fn seconds(&self) -> f64 {
        self.session.seconds + self.begin.elapsed().as_secs_f64()
    }
}

impl<C: Trained> Session<C> {
    /// Runs to the end, to an interruption or to a number that is not finite.
    pub fn train(self, mut trainer: Trainer) -> Result<()> {
        let stages = self.content.stages();
        let total = stages.iter().copied().fold(0, u64::saturating_add);
        if trainer.finished() {
            self.write_last(trainer.state())?;
            self.watch.note(&format!(
                "finished already: {}",
                self.folder.model_path().display()
            ));
            return Ok(());
        }
        let (begin, done) = (Instant::now(), planned(&stages, trainer.state()));
        let waited = company::waited();
        let mut course = Course {
            progress: Some(self.watch.begin("train", total, done)),
            begin,
            last_checkpoint: begin,
            last: String::new(),
            held_out_loss: None,
            last_word: None,
            session: self,
        };
        let end = run(&mut trainer, &mut course)?;
        let (step, seconds) = (trainer.state().step, course.seconds());
        let Course {
            session,
            progress,
            last,
            last_word,
            ..
        } = course;
        let close = |text: &str| progress.into_iter().for_each(|bar| bar.finish(text));
        if end == End::Stopped {
            close("interrupted");
            return Err(Error::Stopped {
                step,
                total,
                folder: session.folder.path().to_path_buf(),
            });
        }
        close(&format!("{step} steps, {last}"));
        if let Some(text) = company::slowest(begin, waited) {
            session.watch.note(&text);
        }
        if let Some(word) = last_word {
            session.watch.note(&word);
        }
        session.watch.note(&format!(
            "model: {} (trained for {})",
            session.folder.model_path().display(),
            duration_text(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)))
        ));
        Ok(())
    }

    /// Writes the model of the last step, finished.
    fn write_last(&self, state: &State) -> Result<Option<String>> {
        let mut model = self.model(state);
        let word = C::finish(&mut model, &self.rows, &self.pool, self.isa)?;
        self.folder.write_model(&model)?;
        Ok(word)
    }

    fn model(&self, state: &State) -> ModelOf<C> {
        ModelOf {
            content: self.content.after(state.step),
            params: state.params.clone(),
            average: (!state.average.is_empty()).then(|| state.average.clone()),
        }
    }

    /// What was learned from data that have changed is not kept.
    fn refuse_changed_data(&mut self, in_the_end: bool) -> Result<()> {
        for origin in &mut self.origins {
            if !origin.unchanged(in_the_end)? {
                return Err(Error::DataChanged {
                    name: origin.name(),
                    folder: self.folder.path().to_path_buf(),
                });
            }
        }
        Ok(())
    }

    fn save(&mut self, state: &State) -> Result<()> {
        let vectors = [
            &state.params,
            &state.first_moment,
            &state.second_moment,
            &state.average,
        ];
        if vectors.into_iter().flatten().any(|x| !x.is_finite()) {
            return Err(self.diverged(CoreError::NonFinite {
                step: state.step,
                term: "the optimiser's state".into(),
                row: None,
            }));
        }
        self.log.sync()?;
        self.folder.write_checkpoint(&CheckpointOf {
            content: self.content.after(state.step),
            state: state.clone(),
        })
    }

    /// The last good checkpoint stays, and becomes the model.
    fn diverged(&self, error: CoreError) -> Error {
        if !matches!(error, CoreError::NonFinite { .. }) {
            return error.into();
        }
        let folder = self.folder.path().display();
        let kept = match self.folder.checkpoint::<C>() {
            Ok(Some(checkpoint)) => {
                let model = self.model(&checkpoint.state);
                match self.folder.write_model(&model) {
                    Ok(()) => format!(
                        "The checkpoint of step {} is kept in {folder}, and its model is written there",
                        checkpoint.state.step
                    ),
                    Err(error) => error.to_string(),
                }
            }
            Ok(None) => {
                format!("It came before the first checkpoint; log.jsonl in {folder} tells how")
            }
            Err(error) => error.to_string(),
        };
        Error::Diverged {
            source: error,
            kept,
        }
    }

    fn losses(&self, stage: usize, losses: &Losses) -> serde_json::Value {
        let mut entry = serde_json::Map::new();
        for (name, loss) in self.content.losses(stage).iter().zip(&losses.terms) {
            entry.insert((*name).into(), json!(loss));
        }
        entry.insert("total".into(), json!(losses.total));
        entry.into()
    }

    /// A line of the log: every figure of a step.
    fn entry(&self, report: &StepReport, seconds: f64) -> serde_json::Value {
        let mut entry = json!({
            "step": report.step + 1,
            "stage": report.stage,
            "loss": self.losses(report.stage, &report.losses),
            "gradient_norm": report.gradient_norm,
            "rate": report.rate,
            "seconds": seconds,
        });
        if let Some(held_out) = &report.held_out {
            entry["held_out"] = self.losses(report.stage, held_out);
        }
        if report.stopped_early {
            entry["stopped_early"] = json!(true);
        }
        entry
    }

    fn message(&self, report: &StepReport, held_out: Option<f64>) -> String {
        let names = self.content.losses(report.stage);
        let terms: Vec<String> = names
            .iter()
            .zip(&report.losses.terms)
            .map(|(name, loss)| format!("{name} {loss:.4}"))
            .collect();
        let held_out = held_out.map_or(String::new(), |loss| format!(" (held out {loss:.4})"));
        let (stage, stages) = (report.stage + 1, self.content.stages().len());
        format!("stage {stage}/{stages}: {}{held_out}", terms.join(", "))
    }
}

/// Steps behind a state as the plan counts them: a stage that ended early counts in full.
fn planned(stages: &[u64], state: &State) -> u64 {
    let before = stages[..state.stage.min(stages.len())].iter();
    let before = before.copied().fold(0, u64::saturating_add);
    before.saturating_add(state.step.saturating_sub(state.stage_start))
}
