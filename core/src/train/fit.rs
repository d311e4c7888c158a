//! The loop of training: steps until the end or until the observer says stop, and the rule which states are worth keeping.

use std::ops::ControlFlow;

use super::trainer::{State, StepReport, Trainer};
use crate::Error;

/// When a state is handed to [`Observer::keep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Within a stage, when one was [`due`](Observer::due).
    Within,
    /// At the end of a stage that is not the last.
    StageEnd,
    /// The observer stopped the run here.
    Stopped,
    /// After the last step.
    Finished,
}

/// How a training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All stages are done.
    Finished,
    /// The observer stopped it.
    Stopped,
}

/// What goes along with a training: progress, log, checkpoints, a wish to stop. A closure of the shape of
/// [`after_step`](Observer::after_step) is an observer.
pub trait Observer {
    /// What can go wrong in it, besides the training itself.
    type Error: From<Error>;

    /// Called after every step; `Break` ends the run here, in a state that can be continued.
    fn after_step(
        &mut self,
        trainer: &Trainer,
        report: &StepReport,
    ) -> Result<ControlFlow<()>, Self::Error>;

    /// Whether the present state should be kept; asked after every step within a stage.
    fn due(&mut self) -> bool {
        false
    }

    /// Takes a state that is worth keeping. A state within a stage counts as good, and comes here, only once the step after it
    /// came out finite; at the end of a stage and of the run it comes at once.
    fn keep(&mut self, state: &State, moment: Moment) -> Result<(), Self::Error> {
        let _ = (state, moment);
        Ok(())
    }

    /// A step failed; what the caller of [`run`] is told.
    fn failed(&mut self, error: Error) -> Self::Error {
        error.into()
    }
}

impl<F, E: From<Error>> Observer for F
where
    F: FnMut(&Trainer, &StepReport) -> Result<ControlFlow<()>, E>,
{
    type Error = E;

    fn after_step(&mut self, trainer: &Trainer, report: &StepReport) -> Result<ControlFlow<()>, E> {
        self(trainer, report)
    }
}

/// Trains to the end, or until the observer stops it.
pub fn run<O: Observer>(trainer: &mut Trainer, observer: &mut O) -> Result<End, O::Error> {
    let mut report = StepReport::default();
    let mut candidate: Option<State> = None;
    while !trainer.finished() {
        if let Err(error) = trainer.advance(&mut report) {
            return Err(observer.failed(error));
        }
        if let Some(state) = candidate.take() {
            observer.keep(&state, Moment::Within)?;
        }
        let flow = observer.after_step(trainer, &report)?;
        if trainer.finished() {
            break;
        }
        let state = trainer.state();
        if flow.is_break() {
            observer.keep(state, Moment::Stopped)?;
            return Ok(End::Stopped);
        }
        if state.stage != report.stage {
            observer.keep(state, Moment::StageEnd)?;
        } else if observer.due() {
            candidate = Some(state.clone());
        }
    }
    observer.keep(trainer.state(), Moment::Finished)?;
    Ok(End::Finished)
}

/// Trains to the end, unobserved.
pub fn finish(trainer: &mut Trainer) -> crate::Result<()> {
    run(trainer, &mut |_: &Trainer, _: &StepReport| {
        Ok::<_, Error>(ControlFlow::Continue(()))
    })
    .map(|_| ())
}
