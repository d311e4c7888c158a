//! The loop of `diffclf train`: steps, log, checkpoints, progress, and a good end whatever happens.

use crate::error::{Error, Result};
use crate::run_folder::{Log, RunFolder};
use crate::watch::{Watch, duration_text};
use diffclf::Error as CoreError;
use diffclf::model::{Checkpoint, Content, Model};
use diffclf::train::{Losses, State, StepReport, TrainSettings, Trainer};
use serde_json::json;
use std::time::{Duration, Instant};

/// A trainer at work in its folder.
pub struct Session<'a> {
    /// The run folder.
    pub folder: &'a RunFolder,
    /// What the model file says.
    pub content: &'a Content,
    /// The log, open at the trainer's step.
    pub log: Log,
    /// Steps between two lines of it.
    pub log_every: u64,
    /// Seconds of training before this session.
    pub seconds: f64,
    /// Time between two checkpoints.
    pub checkpoint_every: Duration,
    /// Who follows it.
    pub watch: &'a dyn Watch,
}

impl Session<'_> {
    /// Runs to the end, to an interruption or to a number that is not finite.
    pub fn train(mut self, mut trainer: Trainer<'_>) -> Result<()> {
        let settings = &self.content.record.settings;
        let (stages, total) = (settings.stages.len(), settings.steps());
        if trainer.finished() {
            self.folder.write_model(&self.model(trainer.state()))?;
            self.watch.note(&format!(
                "finished already: {}",
                self.folder.model_path().display()
            ));
            return Ok(());
        }
        let begin = Instant::now();
        let done = planned(settings, trainer.state());
        let mut progress = self.watch.begin("train", total, done);
        let mut report = StepReport::default();
        let mut last_checkpoint = begin;
        // A state counts as good once the step after it came out finite: only then does it become the checkpoint.
        let mut candidate: Option<State> = None;
        while !trainer.finished() {
            if let Err(error) = trainer.advance(&mut report) {
                drop(progress);
                return Err(self.diverged(error));
            }
            if let Some(state) = candidate.take() {
                self.save(&state)?;
                last_checkpoint = Instant::now();
            }
            let state = trainer.state();
            let stage_ended = state.stage != report.stage;
            if stage_ended || report.held_out.is_some() || state.step.is_multiple_of(self.log_every)
            {
                let entry = self.entry(&report, self.seconds + begin.elapsed().as_secs_f64());
                self.log.write(&entry)?;
            }
            if report.stopped_early {
                progress.note(&format!(
                    "stage {} ended at step {}: the held-out loss no longer fell",
                    report.stage + 1,
                    state.step
                ));
            }
            progress.set(planned(settings, state), &|| self.message(&report, stages));
            if trainer.finished() {
                break;
            }
            if self.watch.stopped() {
                self.save(state)?;
                self.folder.write_model(&self.model(state))?;
                progress.finish("interrupted");
                return Err(Error::Interrupted(format!(
                    "step {} of {total} is saved; continue with: diffclf train -o {} --resume",
                    state.step,
                    self.folder.path().display()
                )));
            }
            if stage_ended {
                self.save(state)?;
                self.folder.write_model(&self.model(state))?;
                last_checkpoint = Instant::now();
            } else if last_checkpoint.elapsed() >= self.checkpoint_every {
                candidate = Some(state.clone());
            }
        }
        let state = trainer.state();
        self.save(state)?;
        self.folder.write_model(&self.model(state))?;
        progress.finish(&format!(
            "{} steps, {}",
            state.step,
            self.message(&report, stages)
        ));
        let seconds = self.seconds + begin.elapsed().as_secs_f64();
        self.watch.note(&format!(
            "model: {} (trained for {})",
            self.folder.model_path().display(),
            duration_text(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)))
        ));
        Ok(())
    }

    fn model(&self, state: &State) -> Model {
        let mut content = self.content.clone();
        content.record.steps = state.step;
        Model {
            content,
            params: state.params.clone(),
            average: (!state.average.is_empty()).then(|| state.average.clone()),
        }
    }

    fn save(&mut self, state: &State) -> Result<()> {
        self.log.sync()?;
        let mut content = self.content.clone();
        content.record.steps = state.step;
        self.folder.write_checkpoint(&Checkpoint {
            content,
            state: state.clone(),
        })
    }

    /// The last good checkpoint stays, and becomes the model.
    fn diverged(&self, error: CoreError) -> Error {
        if !matches!(error, CoreError::NonFinite { .. }) {
            return error.into();
        }
        let folder = self.folder.path().display();
        let kept = match self.folder.checkpoint() {
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
        let objectives = &self.content.record.settings.stages[stage].objectives;
        let mut entry = serde_json::Map::new();
        for (term, loss) in objectives.iter().zip(&losses.terms) {
            entry.insert(term.objective.objective().name().into(), json!(loss));
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

    fn message(&self, report: &StepReport, stages: usize) -> String {
        let objectives = &self.content.record.settings.stages[report.stage].objectives;
        let terms: Vec<String> = objectives
            .iter()
            .zip(&report.losses.terms)
            .map(|(term, loss)| format!("{} {loss:.4}", term.objective.objective().name()))
            .collect();
        format!("stage {}/{stages}: {}", report.stage + 1, terms.join(", "))
    }
}

/// Steps behind a state as the plan counts them: a stage that ended early counts in full.
fn planned(settings: &TrainSettings, state: &State) -> u64 {
    let before: u64 = settings.stages[..state.stage.min(settings.stages.len())]
        .iter()
        .map(|stage| stage.steps)
        .sum();
    before + (state.step - state.stage_start)
}
