//! The trainer: runs the stages of [`TrainSettings`] one step at a time. Its [`State`] is all there is: a run that is
//! stopped anywhere and continued from a saved state ends with the same bytes as one that was not.

use std::sync::Arc;

use super::adam::{average, clip};
use super::course::{Course, EnergyCourse, Lesson};
use super::settings::TrainSettings;
use super::step::{Endpoints, Losses};
use crate::energy::ModelSpec;
use crate::engine::{Isa, Pool};
use crate::rng::{Part, STREAMS};
use crate::{Error, Result};

/// Everything that changes during training.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Steps done, in all stages together.
    pub step: u64,
    /// Stage of the next step.
    pub stage: usize,
    /// Step of the stage at which the stage began.
    pub stage_start: u64,
    /// Parameters.
    pub params: Vec<f32>,
    /// First moment of Adam.
    pub first_moment: Vec<f32>,
    /// Second moment of Adam.
    pub second_moment: Vec<f32>,
    /// Moving average of the parameters (empty if none is kept).
    pub average: Vec<f32>,
    /// Best held-out loss of this stage.
    pub best: Option<f64>,
    /// Parameters of the best held-out loss of this stage (empty if there is none).
    pub best_params: Vec<f32>,
    /// Held-out evaluations since then.
    pub since_best: u64,
    /// Version of the random streams it came from ([`STREAMS`]).
    pub streams: u32,
}

/// What one step reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepReport {
    /// Number of the step, from 0.
    pub step: u64,
    /// Stage it belongs to.
    pub stage: usize,
    /// Losses before the update.
    pub losses: Losses,
    /// Norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// Learning rate.
    pub rate: f64,
    /// Held-out losses after the update, if this was a step to evaluate them.
    pub held_out: Option<Losses>,
    /// The stage ended here because the held-out loss did not improve.
    pub stopped_early: bool,
}

/// See the module's text.
pub struct Trainer {
    course: Box<dyn Course>,
    settings: TrainSettings<()>,
    state: State,
    built: Option<Built>,
    gradient: Vec<f32>,
    free_energy: std::ops::Range<usize>,
}

/// The lessons of the present stage.
struct Built {
    stage: usize,
    train: Box<dyn Lesson>,
    held_out: Option<Box<dyn Lesson>>,
    pins: bool,
}

impl Trainer {
    /// A run from the start, of an energy of points in space. `held_out`: rows that are not trained on, and how many to evaluate.
    pub fn new(
        spec: &ModelSpec,
        settings: &TrainSettings,
        train: Endpoints,
        held_out: Option<(Endpoints, usize)>,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<Trainer> {
        let course = EnergyCourse::new(spec, settings, train, held_out, pool, isa)?;
        Trainer::of(course, settings)
    }

    /// A run from the start of whatever a course trains, with the settings of that course.
    pub fn of<O>(course: impl Course + 'static, settings: &TrainSettings<O>) -> Result<Trainer> {
        settings.check()?;
        let layout = course.layout();
        let params: Vec<f32> = layout.initialise(settings.seed);
        let zero = vec![0f32; params.len()];
        let state = State {
            step: 0,
            stage: 0,
            stage_start: 0,
            first_moment: zero.clone(),
            second_moment: zero.clone(),
            average: if settings.average.is_some() {
                params.clone()
            } else {
                Vec::new()
            },
            best: None,
            best_params: Vec::new(),
            since_best: 0,
            streams: STREAMS,
            params,
        };
        let free_energy = layout.get("free_energy").map_or(0..0, |e| e.range());
        Ok(Trainer {
            course: Box::new(course),
            settings: settings.without_objectives(),
            state,
            built: None,
            gradient: zero,
            free_energy,
        })
    }

    /// Continues from a saved state.
    pub fn resume(&mut self, state: State) -> Result<()> {
        if state.streams != STREAMS && !self.course.continues(state.streams) {
            return Err(Error::Value {
                name: "version of the checkpoint's random streams",
                found: state.streams.to_string(),
                expected: format!(
                    "{STREAMS}, that of this program: with other draws the run would not go on as it began; finish it with the \
                     version it was started with, or train into a new folder"
                ),
            });
        }
        let n = self.gradient.len();
        let kept = |v: &Vec<f32>, wanted: bool| v.len() == if wanted { n } else { 0 };
        let fits = state.params.len() == n
            && state.first_moment.len() == n
            && state.second_moment.len() == n
            && kept(&state.average, self.settings.average.is_some())
            && (state.best_params.is_empty() || state.best_params.len() == n)
            && state.stage <= self.settings.stages.len()
            && state.stage_start <= state.step
            && state.step <= self.settings.steps()
            // A stage whose steps are all done is not the present one.
            && (self.settings.stages.get(state.stage))
                .is_none_or(|stage| state.step - state.stage_start < stage.steps.max(1));
        if !fits {
            return Err(Error::Shape {
                what: "the checkpoint".into(),
                found: format!(
                    "{} parameters at step {} of stage {}, which began at step {}",
                    state.params.len(),
                    state.step,
                    state.stage,
                    state.stage_start
                ),
                expected: format!(
                    "{n} parameters of a run with these settings; train into a new folder"
                ),
            });
        }
        self.state = state;
        self.built = None;
        Ok(())
    }

    /// The present state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Parameters to use now: the moving average if one is kept.
    pub fn averaged(&self) -> &[f32] {
        if self.state.average.is_empty() {
            &self.state.params
        } else {
            &self.state.average
        }
    }

    /// All stages are done.
    pub fn finished(&self) -> bool {
        self.settings.stages[self.state.stage.min(self.settings.stages.len())..]
            .iter()
            .all(|s| s.steps == 0)
    }

    /// Builds the programs of the present stage, if they are not.
    fn build(&mut self) -> Result<()> {
        if self.finished() {
            return Err(Error::Value {
                name: "training step",
                found: format!("number {} after the last stage", self.state.step),
                expected: "a step of a stage; ask `finished` first".into(),
            });
        }
        while self.settings.stages[self.state.stage].steps == 0 {
            self.state.stage += 1;
        }
        let stage = self.state.stage;
        if self.built.as_ref().is_some_and(|b| b.stage == stage) {
            return Ok(());
        }
        let Some(train) = self.course.lesson(stage, Part::Training)? else {
            unreachable!("a course has rows to train on")
        };
        self.built = Some(Built {
            stage,
            train,
            held_out: self.course.lesson(stage, Part::HeldOut)?,
            pins: self.course.pins_free_energy(stage),
        });
        Ok(())
    }

    /// One step: losses and gradient, clipping, Adam, re-anchoring of F, average, and the held-out losses when due.
    pub fn advance(&mut self, report: &mut StepReport) -> Result<()> {
        self.build()?;
        let Some(built) = &mut self.built else {
            unreachable!("built above")
        };
        let s = &self.settings.stages[built.stage];
        let state = &mut self.state;
        let number = state.step;
        (built.train).run(
            &state.params,
            number,
            &mut report.losses,
            &mut self.gradient,
        )?;
        report.step = number;
        report.stage = built.stage;
        report.gradient_norm = clip(&mut self.gradient, self.settings.clip);
        report.rate = s.rate.at(number - state.stage_start, s.steps);
        self.settings.adam.update(
            number + 1,
            report.rate,
            &self.gradient,
            (
                &mut state.params,
                &mut state.first_moment,
                &mut state.second_moment,
            ),
            self.course.pool(),
        );
        // Unless a term fixes it, adding a constant to F changes no loss: pin the reference level to zero.
        if built.pins {
            let anchor = state.params[self.free_energy.start + self.course.reference_level()];
            state.params[self.free_energy.clone()]
                .iter_mut()
                .for_each(|f| *f -= anchor);
        }
        if let Some(decay) = self.settings.average {
            let pool = self.course.pool();
            average(number, decay, &state.params, &mut state.average, pool);
        }
        state.step += 1;
        report.held_out = None;
        report.stopped_early = false;
        let done = state.step - state.stage_start;
        if let (Some(rule), Some(lesson)) = (self.settings.held_out, &mut built.held_out)
            && (done.is_multiple_of(rule.every) || done == s.steps)
        {
            let mut losses = Losses::default();
            let params = if state.average.is_empty() {
                &state.params
            } else {
                &state.average
            };
            // The draws are always those of step 0; an error is one of this step.
            (lesson.run(params, 0, &mut losses, &mut [])).map_err(|error| match error {
                Error::NonFinite { term, row, .. } => Error::NonFinite {
                    step: number,
                    term: format!("{term} of the held-out rows"),
                    row,
                },
                error => error,
            })?;
            if state.best.is_none_or(|best| losses.total < best) {
                state.best = Some(losses.total);
                state.best_params = params.clone();
                state.since_best = 0;
            } else {
                state.since_best = state.since_best.saturating_add(1);
            }
            report.stopped_early =
                rule.patience > 0 && state.since_best >= rule.patience && done < s.steps;
            report.held_out = Some(losses);
        }
        if done == s.steps || report.stopped_early {
            // With early stopping a stage ends with its best parameters, not with those it went on to afterwards.
            let patient = self.settings.held_out.is_some_and(|rule| rule.patience > 0);
            if patient && state.since_best > 0 && !state.best_params.is_empty() {
                state.params.copy_from_slice(&state.best_params);
                if !state.average.is_empty() {
                    state.average.copy_from_slice(&state.best_params);
                }
            }
            state.best = None;
            state.best_params.clear();
            state.since_best = 0;
            state.stage += 1;
            state.stage_start = state.step;
        }
        Ok(())
    }
}
