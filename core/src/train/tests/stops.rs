//! What ends a stage or a run before its last step: no better held-out loss, a number that is not finite, settings that make
//! no sense.

use super::*;
use crate::error::Error;
use crate::objective::parse_terms;
use crate::objective::tests::{Cloud, clouds};
use crate::process::sampler::LogSnrNormal;

fn patient(every: u64, patience: u64, steps: [u64; 2], peak: f64) -> TrainSettings {
    let mut settings = TrainSettings {
        held_out: Some(HeldOut {
            share: 0.2,
            every,
            patience,
        }),
        ..settings(steps)
    };
    settings
        .stages
        .iter_mut()
        .for_each(|stage| stage.rate.peak = peak);
    settings
}

/// With a rate below the resolution of f32 nothing moves, the held-out loss stays the same, and a stage ends after the first
/// evaluation and `patience` more.
#[test]
fn a_stage_ends_when_nothing_improves() {
    let spec = small("vp", Form::InnerProduct);
    let (start, end) = clouds(&spec);
    let settings = patient(3, 2, [100, 10], 1e-30);
    let mut run = trainer(&spec, &settings, one(&start), Some((one(&end), 20)));
    let mut report = StepReport::default();
    let mut seen = Vec::new();
    while !run.finished() {
        run.advance(&mut report).unwrap();
        assert_eq!(
            report.held_out.is_some(),
            (report.step + 1 - 9 * report.stage as u64).is_multiple_of(3) || report.step == 18,
            "step {}",
            report.step
        );
        if let Some(losses) = &report.held_out {
            seen.push((report.step, losses.total));
        }
        assert_eq!(
            report.stopped_early,
            report.step == 8 || report.step == 17,
            "step {}",
            report.step
        );
    }
    // Stage 1: steps 0 to 8 (evaluations after 3, 6, 9). Stage 2 ends one step before its last.
    assert_eq!(run.state().step, 18);
    assert!(seen[..3].iter().all(|(_, loss)| *loss == seen[0].1));
    // Its losses are of the second stage's terms.
    assert!(seen[3].1 > seen[0].1);
    // Without patience nothing stops.
    let settings = patient(3, 0, [10, 10], 1e-30);
    let mut run = trainer(&spec, &settings, one(&start), Some((one(&end), 20)));
    while !run.finished() {
        run.advance(&mut report).unwrap();
        assert!(!report.stopped_early);
    }
    assert_eq!(run.state().step, 20);
}

/// A rate far too large: the stage ends with the parameters of its best evaluation.
#[test]
fn a_patient_stage_ends_with_its_best_parameters() {
    let spec = small("vp", Form::InnerProduct);
    let (start, end) = clouds(&spec);
    for average in [None, Some(0.5)] {
        let settings = TrainSettings {
            average,
            ..patient(2, 3, [60, 0], 0.4)
        };
        let mut run = trainer(&spec, &settings, one(&start), Some((one(&end), 50)));
        let mut report = StepReport::default();
        let mut best: Option<(f64, Vec<f32>)> = None;
        while !run.finished() {
            run.advance(&mut report).unwrap();
            if let Some(losses) = &report.held_out
                && best.as_ref().is_none_or(|(loss, _)| losses.total < *loss)
            {
                best = Some((losses.total, run.averaged().to_vec()));
            }
        }
        assert!(report.stopped_early && run.state().step < 60);
        let (_, params) = best.unwrap();
        assert_eq!(run.state().params, params);
        assert_eq!(run.averaged(), params);
    }
}

/// Finite rows but for one row of one step.
#[derive(Clone)]
struct Spoiled {
    rows: Cloud,
    step: u64,
    unit: usize,
    value: f32,
}

impl Source for Spoiled {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        self.rows.fill(step, unit, out);
        if (step, unit) == (self.step, self.unit) {
            out[1] = self.value;
        }
    }

    fn row(&self, _step: u64, unit: usize) -> Option<usize> {
        Some(100 + 2 * unit)
    }
}

fn spoiled(spec: &ModelSpec, step: u64, unit: usize, value: f32) -> Spoiled {
    Spoiled {
        rows: clouds(spec).0,
        step,
        unit,
        value,
    }
}

#[test]
fn a_number_that_is_not_finite_is_located() {
    let spec = small("vp", Form::InnerProduct);
    // An infinite distance, no number at all, and a distance whose square overflows.
    for value in [f32::INFINITY, f32::NAN, 1e25] {
        for threads in [1, 2] {
            let source = spoiled(&spec, 3, 61, value);
            let settings = TrainSettings {
                batch: 100,
                ..settings([5, 5])
            };
            let pool = Arc::new(Pool::new(threads));
            let mut run =
                Trainer::new(&spec, &settings, one(&source), None, pool, Isa::detect()).unwrap();
            let mut report = StepReport::default();
            for _ in 0..3 {
                run.advance(&mut report).unwrap();
            }
            let before = run.state().clone();
            let error = run.advance(&mut report).unwrap_err();
            let Error::NonFinite { step, term, row } = &error else {
                panic!("{error}")
            };
            assert_eq!((*step, term.as_str(), *row), (3, "dsm", Some(222)));
            assert!(
                error
                    .to_string()
                    .starts_with("dsm is not finite at step 3, row 222 of the data")
            );
            // The state is that of the last good step.
            assert_eq!(*run.state(), before);
        }
    }
}

#[test]
fn the_term_and_the_held_out_rows_are_named() {
    let spec = small("vp", Form::InnerProduct);
    // Each term alone is the first to see the row.
    for terms in ["diffclf", "binary-diffclf"] {
        let source = spoiled(&spec, 0, 7, f32::NAN);
        let mut settings = settings([5, 0]);
        settings.stages[0].objectives = parse_terms(terms).unwrap();
        let mut run = trainer(&spec, &settings, one(&source), None);
        let error = run.advance(&mut StepReport::default()).unwrap_err();
        let expected = format!("{terms} is not finite at step 0, row 114 of the data");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    let (start, _) = clouds(&spec);
    let source = spoiled(&spec, 0, 4, f32::NAN);
    let settings = patient(2, 0, [5, 0], 1e-3);
    let mut run = trainer(&spec, &settings, one(&start), Some((one(&source), 10)));
    let mut report = StepReport::default();
    run.advance(&mut report).unwrap();
    let error = run.advance(&mut report).unwrap_err();
    let expected = "dsm of the held-out rows is not finite at step 1, row 108";
    assert!(error.to_string().starts_with(expected), "{error}");
}

/// A gradient that overflows although the loss does not is caught before it reaches the parameters.
#[test]
fn a_gradient_that_is_not_finite_is_named() {
    let spec = small("linear", Form::InnerProduct);
    let (start, end) = clouds(&spec);
    let from = Endpoints {
        start: Arc::new(start),
        end: Some(Arc::new(end)),
    };
    let settings = settings([5, 0]);
    let mut run = trainer(&spec, &settings, from, None);
    let mut state = run.state().clone();
    let layout = spec.layout();
    // Scores of 1e16 have a square of 1e32, but its derivative by the weights of 1e-20 is beyond f32.
    let (wo, wx) = (layout.get("net.wo").unwrap(), layout.get("net.wx").unwrap());
    state.params[wo.range()].fill(1e-20);
    state.params[wx.range()].iter_mut().for_each(|w| *w *= 1e36);
    let before = state.clone();
    run.resume(state).unwrap();
    let error = run.advance(&mut StepReport::default()).unwrap_err();
    let expected = "gradient of net.w";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(
        error.to_string().contains("not finite at step 0: lower"),
        "{error}"
    );
    assert_eq!(*run.state(), before);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let spec = small("vp", Form::InnerProduct);
    let good = settings([5, 5]);
    good.validate(&spec).unwrap();
    let refused = |change: &dyn Fn(&mut TrainSettings), wanted: &str| {
        let mut settings = good.clone();
        change(&mut settings);
        let message = settings.validate(&spec).unwrap_err().to_string();
        assert!(message.contains(wanted), "{message}, not {wanted}");
    };
    refused(&|s| s.batch = 0, "batch is 0, expected at least 1");
    refused(&|s| s.stages.clear(), "stages is no steps");
    refused(
        &|s| s.stages.iter_mut().for_each(|s| s.steps = 0),
        "stages is no steps",
    );
    refused(&|s| s.clip = Some(0.0), "clip is 0");
    refused(&|s| s.clip = Some(f64::NAN), "clip is NaN");
    refused(&|s| s.average = Some(1.0), "average is 1");
    refused(&|s| s.adam.beta1 = 1.0, "adam is");
    refused(&|s| s.adam.epsilon = 0.0, "adam is");
    refused(&|s| s.stages[1].rate.peak = -1.0, "rate.peak is -1");
    refused(&|s| s.stages[1].levels = 1, "levels is 1");
    refused(&|s| s.stages[1].levels = 13, "levels of a row is 13");
    refused(&|s| s.stages[0].objectives.clear(), "objectives is none");
    let held_out = |share, every| {
        move |s: &mut TrainSettings| {
            s.held_out = Some(HeldOut {
                share,
                every,
                patience: 1,
            })
        }
    };
    refused(&held_out(0.0, 5), "held_out.share is 0");
    refused(&held_out(1.0, 5), "held_out.share is 1");
    refused(&held_out(0.5, 0), "held_out.every is 0");
    let interpolant = small("linear", Form::InnerProduct);
    let normal = TrainSettings {
        times: TimeSampler::LogSnrNormal(LogSnrNormal {
            mean: 0.0,
            std: 1.0,
        }),
        ..good.clone()
    };
    let message = normal.validate(&interpolant).unwrap_err().to_string();
    assert!(message.contains("a diffusion (vp, ve, edm)"), "{message}");
    // What is written is what is read; unknown keys are errors.
    let text = serde_json::to_string(&good).unwrap();
    assert_eq!(serde_json::from_str::<TrainSettings>(&text).unwrap(), good);
    let unknown = text.replacen("\"batch\"", "\"bach\":1,\"batch\"", 1);
    assert!(serde_json::from_str::<TrainSettings>(&unknown).is_err());
}
