//! The trainer's state is all there is: a run continued from a checkpoint's bytes ends with the bytes of the uninterrupted one.

use super::*;
use crate::energy::Energy;
use crate::model::{Checkpoint, Content, Model, Record};
use crate::objective::tests::{Cloud, clouds, endpoints};

fn content(spec: &ModelSpec, settings: &TrainSettings, steps: u64) -> Content {
    Content {
        spec: spec.clone(),
        standardisation: Coordinates {
            shift: vec![0.1, 1.0 / 3.0],
            scale: 2.5.into(),
            kinds: Vec::new(),
        },
        frame: None,
        record: Record {
            version: "0.0.0".into(),
            settings: settings.clone(),
            steps,
            data: Vec::new(),
            units: "kT".into(),
            streams: crate::rng::STREAMS,
            levelled: None,
        },
    }
}

fn bytes(spec: &ModelSpec, settings: &TrainSettings, state: &State) -> Vec<u8> {
    let checkpoint = Checkpoint {
        content: content(spec, settings, state.step),
        state: state.clone(),
    };
    checkpoint.to_bytes().unwrap()
}

fn finish(trainer: &mut Trainer) {
    super::finish(trainer).unwrap();
}

/// Stops after every single step, the ends of stages and early stops among them.
#[test]
fn resuming_anywhere_gives_the_same_bytes() {
    let impatient = HeldOut {
        share: 0.3,
        every: 1,
        patience: 2,
    };
    for (process, form) in [
        ("vp", Form::InnerProduct),
        ("linear", Form::InnerProductPlusScalar),
    ] {
        for (average, held_out, peak) in [
            (Some(0.9), Some(impatient), 1e-3),
            (None, Some(impatient), 1.0),
            (Some(0.9), None, 1e-3),
        ] {
            let spec = small(process, form);
            let mut settings = TrainSettings {
                average,
                held_out,
                ..settings([7, 9])
            };
            settings
                .stages
                .iter_mut()
                .for_each(|stage| stage.rate.peak = peak);
            let rows = clouds(&spec);
            let from = endpoints(&spec, &rows);
            let kept = held_out.map(|_| (from.clone(), 10));
            let make = || trainer(&spec, &settings, from.clone(), kept.clone());
            let mut whole = make();
            let mut saved = vec![bytes(&spec, &settings, whole.state())];
            let (mut report, mut early) = (StepReport::default(), 0);
            while !whole.finished() {
                whole.advance(&mut report).unwrap();
                early += u32::from(report.stopped_early);
                saved.push(bytes(&spec, &settings, whole.state()));
            }
            // The wild learning rate makes the held-out loss rise: stages end early there.
            assert!(early > 0 || peak < 0.1, "no early stop at rate {peak}");
            let last = saved[saved.len() - 1].clone();
            for (k, saved) in saved.iter().enumerate() {
                let checkpoint = Checkpoint::from_bytes(saved).unwrap();
                assert_eq!(checkpoint.state.step, k as u64);
                assert_eq!(checkpoint.to_bytes().unwrap(), *saved);
                let mut rest = make();
                rest.resume(checkpoint.state).unwrap();
                finish(&mut rest);
                assert!(
                    bytes(&spec, &settings, rest.state()) == last,
                    "{process}: resumed at step {k}, another end"
                );
            }
        }
    }
}

#[test]
fn a_foreign_checkpoint_is_refused() {
    let spec = small("vp", Form::InnerProduct);
    let settings = settings([2, 2]);
    let (start, _) = clouds(&spec);
    let other = ModelSpec {
        network: NetworkSpec::Mlp {
            width: 10,
            depth: 2,
        },
        ..spec.clone()
    };
    let foreign = trainer(&other, &settings, one(&start), None)
        .state()
        .clone();
    let mut run = trainer(&spec, &settings, one(&start), None);
    let own = run.state().clone();
    let without_average = State {
        average: Vec::new(),
        ..own.clone()
    };
    let beyond = State {
        stage: 3,
        ..own.clone()
    };
    let backwards = State {
        stage_start: 1,
        ..own.clone()
    };
    for state in [foreign, without_average, beyond, backwards] {
        let message = run.resume(state).unwrap_err().to_string();
        assert!(message.contains("train into a new folder"), "{message}");
    }
    let older = State {
        streams: 1,
        ..own.clone()
    };
    let message = run.resume(older).unwrap_err().to_string();
    assert!(
        message.contains("random streams is 1, expected 3"),
        "{message}"
    );
    assert_eq!(*run.state(), own);
}

/// Files from before the streams had a number are of version 1.
#[test]
fn files_without_a_number_have_the_first_streams() {
    let spec = small("vp", Form::InnerProduct);
    let written = content(&spec, &settings([2, 2]), 0);
    let mut value = serde_json::to_value(&written).unwrap();
    assert_eq!(value["record"]["streams"], 3);
    value["record"].as_object_mut().unwrap().remove("streams");
    let read: Content = serde_json::from_value(value).unwrap();
    assert_eq!(read.record.streams, 1);
}

#[test]
fn a_finished_run_refuses_another_step() {
    let spec = small("vp", Form::InnerProduct);
    let mut settings = settings([0, 3]);
    settings.stages.push(StageSettings {
        steps: 0,
        ..settings.stages[0].clone()
    });
    let (start, _) = clouds(&spec);
    let mut run = trainer(&spec, &settings, one(&start), None);
    finish(&mut run);
    assert_eq!(run.state().step, 3);
    let error = run.advance(&mut StepReport::default()).unwrap_err();
    assert!(error.to_string().contains("after the last stage"));
}

#[test]
fn an_interpolant_needs_two_endpoints_and_a_diffusion_one() {
    for (process, two) in [("vp", true), ("linear", false)] {
        let spec = small(process, Form::InnerProduct);
        let (start, end) = clouds(&spec);
        let from = Endpoints {
            start: Arc::new(start),
            end: two.then(|| Arc::new(end) as Arc<dyn Source>),
        };
        let mut run = trainer(&spec, &settings([2, 2]), from, None);
        let message = run
            .advance(&mut StepReport::default())
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("source of training rows is"),
            "{message}"
        );
    }
}

/// F is pinned at the reference level, the average follows, the report tells what happened.
#[test]
fn a_step_does_what_it_reports() {
    for (process, level) in [("vp", 11), ("trigonometric", 0)] {
        let spec = small(process, Form::InnerProduct);
        let settings = settings([2, 4]);
        let rows = clouds(&spec);
        let mut run = trainer(&spec, &settings, endpoints(&spec, &rows), None);
        let mut report = StepReport::default();
        let mut before = run.state().clone();
        while !run.finished() {
            run.advance(&mut report).unwrap();
            let state = run.state();
            assert_eq!((report.step, state.step), (before.step, before.step + 1));
            assert_eq!(report.stage, usize::from(before.step >= 2));
            assert_eq!(report.losses.terms.len(), report.stage + 1);
            assert!(report.gradient_norm > 0.0 && report.held_out.is_none());
            let free_energy = &state.params[state.params.len() - 12..];
            assert_eq!(free_energy[level], 0.0);
            assert_eq!(
                free_energy.iter().any(|f| *f != 0.0),
                report.stage == 1,
                "only classification moves F"
            );
            // Adam moves no parameter by more than a few rates; the average lies between where it was and the parameters.
            for k in 0..state.params.len() {
                let (old, new) = (before.params[k], state.params[k]);
                assert!((old - new).abs() < 20.0 * report.rate as f32);
                let (low, high) = (before.average[k].min(new), before.average[k].max(new));
                assert!((low - 1e-6..=high + 1e-6).contains(&state.average[k]));
            }
            assert_eq!(run.averaged(), state.average);
            before = state.clone();
        }
    }
}

/// Checkpoints that were sealed by somebody else: steps beyond the stage would be trained for ever.
#[test]
fn states_that_no_run_has_are_refused() {
    let spec = small("vp", Form::InnerProduct);
    let settings = settings([3, 2]);
    let start = Cloud {
        seed: 1,
        mean: vec![0.3, 0.4],
        std: 0.8,
    };
    let mut run = trainer(&spec, &settings, one(&start), None);
    run.advance(&mut StepReport::default()).unwrap();
    let good = run.state().clone();
    run.resume(good.clone()).unwrap();
    for (stage, stage_start, step) in [
        (0, 0, 3),
        (0, 0, 4),
        (0, 0, u64::MAX),
        (0, 2, 1),
        (1, 1, 3),
        (1, 0, 2),
        (3, 0, 1),
        (2, 6, 6),
    ] {
        let state = State {
            stage,
            stage_start,
            step,
            ..good.clone()
        };
        assert!(run.resume(state).is_err(), "{stage} {stage_start} {step}");
    }
}

#[test]
fn numbers_that_are_none_are_refused() {
    let spec = small("vp", Form::InnerProduct);
    let settings = settings([2, 2]);
    let start = Cloud {
        seed: 1,
        mean: vec![0.3, 0.4],
        std: 0.8,
    };
    let run = trainer(&spec, &settings, one(&start), None);
    for wrong in [f32::NAN, f32::INFINITY] {
        let mut model = Model {
            content: content(&spec, &settings, 4),
            params: run.state().params.clone(),
            average: None,
        };
        model.params[3] = wrong;
        let error = Model::from_bytes(&model.to_bytes().unwrap()).unwrap_err();
        assert!(error.to_string().contains("expected finite"), "{error}");
        let mut state = run.state().clone();
        state.second_moment[1] = wrong;
        let error = Checkpoint::from_bytes(&bytes(&spec, &settings, &state)).unwrap_err();
        assert!(error.to_string().contains("second_moment"), "{error}");
    }
}

#[test]
fn model_and_checkpoint_read_back() {
    let spec = small("edm", Form::InnerProductPlusScalar);
    let spec = ModelSpec {
        grid: TimeGrid::new(12, 0.02, 40.0, Spacing::Power { rho: 5.0 }).unwrap(),
        ..spec
    };
    let settings = settings([2, 2]);
    let start = Cloud {
        seed: 1,
        mean: vec![0.3, 0.4],
        std: 0.8,
    };
    let mut run = trainer(&spec, &settings, one(&start), None);
    finish(&mut run);
    for average in [None, Some(run.state().average.clone())] {
        let model = Model {
            content: content(&spec, &settings, 4),
            params: run.state().params.clone(),
            average,
        };
        let bytes = model.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes).unwrap(), model);
        let best = model.average.as_ref().unwrap_or(&model.params);
        assert_eq!(model.best(), best);
        let energy = model.energy(Arc::new(Pool::new(1)), Isa::detect()).unwrap();
        assert_eq!(energy.params(), best);
        let in_data = model.in_data_coordinates(Arc::new(Pool::new(1)), Isa::detect());
        let (mut point, mut here, mut there) = ([0.6, 1.9], [0.0], [0.0]);
        in_data.unwrap().log_density(&[0.3], &point, &mut here);
        model.content.standardisation.to_model(&mut point);
        energy.log_density(&[0.3], &point, &mut there);
        assert_eq!(here[0], there[0] - 2.0 * 2.5f64.ln());
        // One kind of file is not the other.
        assert!(Checkpoint::from_bytes(&bytes).is_err());
        for cut in [0, 7, bytes.len() / 2, bytes.len() - 1] {
            assert!(Model::from_bytes(&bytes[..cut]).is_err());
        }
    }
    let saved = self::bytes(&spec, &settings, run.state());
    assert_eq!(Checkpoint::from_bytes(&saved).unwrap().state, *run.state());
    assert!(Model::from_bytes(&saved).is_err());
    let mut wrong = content(&spec, &settings, 4);
    wrong.standardisation.shift.pop();
    let model = Model {
        content: wrong,
        params: run.state().params.clone(),
        average: None,
    };
    let message = Model::from_bytes(&model.to_bytes().unwrap())
        .unwrap_err()
        .to_string();
    assert!(message.contains("standardisation"), "{message}");
}
