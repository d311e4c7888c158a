//! The same result whatever the kernels, the threads, an interruption or a way through a file; and samples of the right law.

use super::{Finding, Rows, normals, random_params, small_spec, step, worst};
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Coordinates, Energy, LearnedEnergy, ModelSpec, Prior};
use diffclf::engine::{Isa, Pool};
use diffclf::format::npy::{NpyView, write_npy};
use diffclf::model::{Checkpoint, Content, Model, Record};
use diffclf::process::Process;
use diffclf::rng::STREAMS;
use diffclf::sample::{Sampler, Task, times_of};
use diffclf::system::System;
use diffclf::train::{Losses, StepReport, TrainSettings, Trainer, finish};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Every kernel path in single precision: energies and scores against double precision, parameter gradients against
/// the portable path.
pub(super) fn kernels() -> diffclf::Result<Finding> {
    let spec = small_spec("vp")?;
    let (wide, narrow) = (random_params::<f64>(&spec), random_params::<f32>(&spec));
    let pool = Arc::new(Pool::new(1));
    let (points, time) = (normals(300, 1.0), 0.3);
    let evaluate = |energy: &dyn Energy| {
        let (mut energies, mut scores) = (vec![0.0; 100], vec![0.0; 300]);
        energy.energy_and_score(&[time], &points, &mut energies, &mut scores);
        (energies, scores)
    };
    let double = LearnedEnergy::new(spec.clone(), wide, pool.clone(), Isa::PORTABLE)?;
    let (energies, scores) = evaluate(&double);
    let rows = Rows::new()?.endpoints(false);
    let mut reference: Option<Vec<f64>> = None;
    let mut largest = 0.0f64;
    for isa in Isa::available() {
        let single = LearnedEnergy::new(spec.clone(), narrow.clone(), pool.clone(), isa)?;
        let found = evaluate(&single);
        largest = largest
            .max(worst(&found.0, &energies))
            .max(worst(&found.1, &scores));
        let mut step = step::<f32>(&spec, 200, pool.clone(), isa)?;
        let (mut gradient, mut losses) = (vec![0f32; narrow.len()], Losses::default());
        step.run(&narrow, 0, &rows, &mut losses, &mut gradient)?;
        let gradient: Vec<f64> = gradient.iter().map(|x| f64::from(*x)).collect();
        largest = largest.max(worst(
            &gradient,
            reference.get_or_insert_with(|| gradient.clone()),
        ));
    }
    // Single precision carries 6e-8 a rounding; a few hundred of them in a row of sums stay below this.
    let text = format!("{} paths, largest relative error", Isa::available().len());
    Ok(Finding::below(&text, largest, 1e-4))
}

/// A short run of two stages with everything in it that a state can hold.
fn settings() -> TrainSettings {
    let mut settings = TrainSettings::two_stages(300, 6, 8, 3);
    settings.average = Some(0.9);
    settings
}

pub(super) fn threads() -> diffclf::Result<Finding> {
    let spec = small_spec("vp")?;
    let rows = Rows::new()?.endpoints(false);
    let run = |threads: usize| {
        let (pool, from) = (Arc::new(Pool::new(threads)), rows.clone());
        let mut trainer = Trainer::new(&spec, &settings(), from, None, pool, Isa::detect())?;
        finish(&mut trainer)?;
        let params = &trainer.state().params;
        Ok::<_, diffclf::Error>(params.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
    };
    let one = run(1)?;
    let same = run(2)? == one && run(5)? == one;
    let text = format!("{} parameters after 14 steps", one.len());
    Ok(Finding::holds(text, same))
}

/// Stops after every possible step, goes through the bytes of a checkpoint, and compares the final models.
pub(super) fn resume() -> diffclf::Result<Finding> {
    let spec = small_spec("vp")?;
    let settings = settings();
    let content = |steps| Content {
        spec: spec.clone(),
        standardisation: Coordinates::identity(3),
        frame: None,
        record: Record {
            version: env!("CARGO_PKG_VERSION").into(),
            settings: settings.clone(),
            steps,
            data: Vec::new(),
            units: "kT".into(),
            streams: STREAMS,
            levelled: None,
        },
    };
    let pool = Arc::new(Pool::new(2));
    let rows = Rows::new()?.endpoints(false);
    let make = || {
        let (pool, from) = (pool.clone(), rows.clone());
        Trainer::new(&spec, &settings, from, None, pool, Isa::detect())
    };
    let end_of = |mut trainer: Trainer| {
        finish(&mut trainer)?;
        let state = trainer.state();
        let model = Model {
            content: content(state.step),
            params: state.params.clone(),
            average: Some(state.average.clone()),
        };
        model.to_bytes()
    };
    let whole = end_of(make()?)?;
    let (mut same, mut stops) = (true, 0);
    diffclf::train::run(&mut make()?, &mut |first: &Trainer,
                                            _: &StepReport|
     -> diffclf::Result<ControlFlow<()>> {
        let checkpoint = Checkpoint {
            content: content(first.state().step),
            state: first.state().clone(),
        };
        let mut second = make()?;
        second.resume(Checkpoint::from_bytes(&checkpoint.to_bytes()?)?.state)?;
        same &= end_of(second)? == whole;
        stops += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Finding::holds(
        format!("stopped after each of {stops} steps"),
        same,
    ))
}

/// Models and arrays come back as they were; a cut or altered one does not.
pub(super) fn files() -> diffclf::Result<Finding> {
    let spec = small_spec("vp")?;
    let model = Model {
        params: random_params(&spec),
        average: None,
        content: Content {
            standardisation: Coordinates::identity(3),
            frame: None,
            record: Record {
                version: env!("CARGO_PKG_VERSION").into(),
                settings: settings(),
                steps: 0,
                data: Vec::new(),
                units: "kT".into(),
                streams: STREAMS,
                levelled: None,
            },
            spec,
        },
    };
    let bytes = model.to_bytes()?;
    let mut passed = Model::from_bytes(&bytes)? == model;
    let places: Vec<usize> = (0..bytes.len()).step_by(bytes.len() / 97 + 1).collect();
    for &place in &places {
        let mut altered = bytes.clone();
        altered[place] ^= 0x10;
        passed &=
            Model::from_bytes(&altered).is_err() && Model::from_bytes(&bytes[..place]).is_err();
    }
    let numbers = normals(12, 1e3);
    let mut array = Vec::new();
    write_npy(&[4, 3], &numbers, &mut array)?;
    passed &= NpyView::parse(&array)?.to_vec_f64() == numbers;
    passed &= NpyView::parse(&array[..array.len() - 1]).is_err();
    let text = format!("{} cuts and {} altered bytes", places.len(), places.len());
    Ok(Finding::holds(text, passed))
}

/// DDIM with the exact score of a mixture: the share of samples on each side must be its weight.
pub(super) fn sampler() -> diffclf::Result<Finding> {
    let process = Process::by_name("vp")?;
    let system = System::by_name("two-modes", 2, 0)?;
    let Some(mixture) = system.mixture() else {
        return Ok(Finding::holds("two-modes is no mixture".into(), false));
    };
    let path = ExactPath::new(process, mixture.clone(), None)?;
    let grid = ModelSpec::new(2, process).grid.with_levels(100)?;
    let count = 4000;
    let task = Task {
        energy: &path,
        process: &process,
        times: &times_of(&grid),
        start: &Prior::new(&process, grid.t_max(), &mixture.mean(), mixture.variance()),
        particles: 0..count,
        seed: 1,
    };
    let points = Sampler::by_name("ddim")?.run(&task, &mut |_| ())?;
    let left = points.chunks_exact(2).filter(|x| x[0] < 0.1).count() as f64 / count as f64;
    let weight = mixture.weights()[0];
    // A binomial share, four standard errors; the bias of 100 steps is far below.
    let limit = 4.0 * (weight * (1.0 - weight) / count as f64).sqrt();
    let text = format!("{left:.3} of {count} samples, expected {weight:.3} ± {limit:.3}");
    Ok(Finding::holds(text, (left - weight).abs() < limit))
}
