//! The loop: what is kept and when, stops that can be continued, a failure that leaves only states that proved good.

use std::ops::ControlFlow;

use super::*;
use crate::Error;
use crate::objective::tests::clouds;

/// Notes what the loop tells it; wants a state every `every` steps and stops after `stop` steps.
struct Notes {
    every: u64,
    stop: u64,
    step: u64,
    kept: Vec<(u64, Moment)>,
    failed: Option<u64>,
}

impl Notes {
    fn new(every: u64, stop: u64) -> Notes {
        Notes {
            every,
            stop,
            step: 0,
            kept: Vec::new(),
            failed: None,
        }
    }
}

impl Observer for Notes {
    type Error = Error;

    fn after_step(
        &mut self,
        trainer: &Trainer,
        report: &StepReport,
    ) -> Result<ControlFlow<()>, Error> {
        assert_eq!(trainer.state().step, report.step + 1);
        self.step = trainer.state().step;
        Ok(if self.step == self.stop {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    fn due(&mut self) -> bool {
        self.step.is_multiple_of(self.every)
    }

    fn keep(&mut self, state: &State, moment: Moment) -> Result<(), Error> {
        // The step after a state within a stage is done by then, though not yet told.
        assert_eq!(state.step, self.step);
        self.kept.push((state.step, moment));
        Ok(())
    }

    fn failed(&mut self, error: Error) -> Error {
        self.failed = Some(self.step);
        error
    }
}

#[test]
fn states_are_kept_once_the_next_step_is_good() {
    let spec = small("vp", Form::InnerProduct);
    let (start, _) = clouds(&spec);
    let mut run_of = trainer(&spec, &settings([5, 4]), one(&start), None);
    let mut notes = Notes::new(2, 100);
    assert_eq!(run(&mut run_of, &mut notes).unwrap(), End::Finished);
    let kept = [
        (2, Moment::Within),
        (4, Moment::Within),
        (5, Moment::StageEnd),
        (6, Moment::Within),
        (8, Moment::Within),
        (9, Moment::Finished),
    ];
    assert_eq!(notes.kept, kept);
    // A run that is finished already is kept as it is.
    notes.kept.clear();
    assert_eq!(run(&mut run_of, &mut notes).unwrap(), End::Finished);
    assert_eq!(notes.kept, [(9, Moment::Finished)]);
}

#[test]
fn a_stopped_run_goes_on_where_it_was() {
    let spec = small("vp", Form::InnerProduct);
    let (start, _) = clouds(&spec);
    let make = || trainer(&spec, &settings([3, 4]), one(&start), None);
    let mut whole = make();
    finish(&mut whole).unwrap();
    for stop in 1..=7 {
        let (mut first, mut notes) = (make(), Notes::new(100, stop));
        let end = run(&mut first, &mut notes).unwrap();
        // A wish to stop after the last step comes too late.
        assert_eq!(end == End::Stopped, stop < 7);
        let last = notes.kept.last().copied().unwrap();
        let moment = if stop < 7 {
            Moment::Stopped
        } else {
            Moment::Finished
        };
        assert_eq!(last, (stop, moment));
        let mut second = make();
        second.resume(first.state().clone()).unwrap();
        finish(&mut second).unwrap();
        assert_eq!(second.state(), whole.state());
    }
}

/// Rows that spoil step 4: the state after step 3 was due but never proved good.
#[test]
fn a_failed_step_spoils_the_state_before_it() {
    #[derive(Clone)]
    struct Spoiled(crate::objective::tests::Cloud);
    impl Source for Spoiled {
        fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
            self.0.fill(step, unit, out);
            if step == 4 {
                out[0] = f32::NAN;
            }
        }
    }
    let spec = small("vp", Form::InnerProduct);
    let source = Spoiled(clouds(&spec).0);
    let mut run_of = trainer(&spec, &settings([9, 0]), one(&source), None);
    let mut notes = Notes::new(2, 100);
    let error = run(&mut run_of, &mut notes).unwrap_err();
    assert!(matches!(error, Error::NonFinite { step: 4, .. }), "{error}");
    assert_eq!(notes.failed, Some(4));
    assert_eq!(notes.kept, [(2, Moment::Within)]);
}

/// A training can live in an object and move between threads.
#[test]
fn a_trainer_is_free_of_borrows() {
    fn owned<T: Send + 'static>(_: &T) {}
    let spec = small("vp", Form::InnerProduct);
    let (start, _) = clouds(&spec);
    let mut run_of = trainer(&spec, &settings([2, 2]), one(&start), None);
    owned(&run_of);
    let state = std::thread::spawn(move || {
        finish(&mut run_of).unwrap();
        run_of.state().step
    });
    assert_eq!(state.join().unwrap(), 4);
}
