//! The trainer: runs the stages of [`TrainSettings`] one step at a time. Its [`State`] is all there is: a run that is
//! stopped anywhere and continued from a saved state ends with the same bytes as one that was not.

use std::sync::Arc;

use super::adam::{average, clip};
use super::settings::TrainSettings;
use super::step::{Endpoints, Losses, Step, StepSpec};
use crate::energy::{Energy, ModelSpec};
use crate::engine::{Isa, Pool};
use crate::objective::Term;
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
    spec: ModelSpec,
    settings: TrainSettings,
    train: Endpoints,
    held_out: Option<(Endpoints, usize)>,
    pool: Arc<Pool>,
    isa: Isa,
    state: State,
    built: Option<(usize, Step<f32>, Option<Step<f32>>)>,
    gradient: Vec<f32>,
    free_energy: std::ops::Range<usize>,
    truth: Option<Arc<dyn Energy>>,
}

impl Trainer {
    /// A run from the start. `held_out`: rows that are not trained on, and how many to evaluate.
    pub fn new(
        spec: &ModelSpec,
        settings: &TrainSettings,
        train: Endpoints,
        held_out: Option<(Endpoints, usize)>,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<Trainer> {
        spec.validate()?;
        settings.validate(spec)?;
        let layout = spec.layout();
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
            spec: spec.clone(),
            settings: settings.clone(),
            train,
            held_out,
            pool,
            isa,
            state,
            built: None,
            gradient: zero,
            free_energy,
            truth: None,
        })
    }

    /// Gives the run the exact densities of its data, in the model's coordinates, for objectives that compare with them.
    pub fn with_truth(mut self, truth: Option<Arc<dyn Energy>>) -> Trainer {
        self.truth = truth;
        self.built = None;
        self
    }

    /// Continues from a saved state.
    pub fn resume(&mut self, state: State) -> Result<()> {
        let slope = |t: &Term| t.objective.objective().sees_slope();
        let mut terms = self.settings.stages.iter().flat_map(|s| &s.objectives);
        let as_before = self.held_out.is_none() && !terms.any(slope);
        if state.streams != STREAMS && !(state.streams == 2 && as_before) {
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
        if self.built.as_ref().is_some_and(|b| b.0 == stage) {
            return Ok(());
        }
        let s = &self.settings.stages[stage];
        let plan = |part, batch| StepSpec {
            terms: s.objectives.clone(),
            levels: s.levels,
            batch,
            times: self.settings.times,
            seed: self.settings.seed,
            part,
        };
        let make = |plan, gradient| {
            let step = Step::new(&self.spec, plan, gradient, self.pool.clone(), self.isa)?;
            Ok::<_, Error>(step.with_truth(self.truth.clone()))
        };
        let train = make(plan(Part::Training, self.settings.batch), true)?;
        let held_out = match &self.held_out {
            Some((_, rows)) => Some(make(plan(Part::HeldOut, *rows), false)?),
            None => None,
        };
        self.built = Some((stage, train, held_out));
        Ok(())
    }

    /// One step: losses and gradient, clipping, Adam, re-anchoring of F, average, and the held-out losses when due.
    pub fn advance(&mut self, report: &mut StepReport) -> Result<()> {
        self.build()?;
        let Some((stage, train, held_out)) = &mut self.built else {
            unreachable!("built above")
        };
        let s = &self.settings.stages[*stage];
        let state = &mut self.state;
        let number = state.step;
        train.run(
            &state.params,
            number,
            &self.train,
            &mut report.losses,
            &mut self.gradient,
        )?;
        report.step = number;
        report.stage = *stage;
        report.gradient_norm = clip(&mut self.gradient, self.settings.clip);
        report.rate = s.rate.at(number - state.stage_start, s.steps);
        self.settings.adam.update(
            number + 1,
            report.rate,
            &self.gradient,
            &mut state.params,
            &mut state.first_moment,
            &mut state.second_moment,
        );
        // Unless a term fixes it, adding a constant to F changes no loss: pin the reference level to zero.
        let fixes = |t: &Term| t.objective.objective().fixes_free_energy();
        if !s.objectives.iter().any(fixes) {
            let anchor = state.params[self.free_energy.start + self.spec.reference_level()];
            state.params[self.free_energy.clone()]
                .iter_mut()
                .for_each(|f| *f -= anchor);
        }
        if let Some(decay) = self.settings.average {
            average(number, decay, &state.params, &mut state.average);
        }
        state.step += 1;
        report.held_out = None;
        report.stopped_early = false;
        let done = state.step - state.stage_start;
        if let (Some(rule), Some((from, _)), Some(step)) =
            (self.settings.held_out, &self.held_out, held_out)
            && (done.is_multiple_of(rule.every) || done == s.steps)
        {
            let mut losses = Losses::default();
            let params = if state.average.is_empty() {
                &state.params
            } else {
                &state.average
            };
            // The draws are always those of step 0; an error is one of this step.
            step.run(params, 0, from, &mut losses, &mut [])
                .map_err(|error| match error {
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
                state.since_best += 1;
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
