//! `diffclf selftest`: does this program compute on this machine what it should? Each check holds it against something
//! independent: differences, closed forms, itself in double precision or with other threads.

use crate::error::{Error, Result};
use crate::print::{print, table_text};
use crate::report::page::Table;
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, LearnedEnergy, ModelSpec, NetworkSpec};
use diffclf::engine::{Isa, Pool, Real};
use diffclf::format::npy::{NpyView, write_npy};
use diffclf::model::{Checkpoint, Content, Model, Record};
use diffclf::objective::parse_terms;
use diffclf::process::sampler::GridStratified;
use diffclf::process::{Process, TimeSampler};
use diffclf::rng::{Part, Purpose, STREAMS, Stream};
use diffclf::sample::{Prior, Sampler, Task, times_of};
use diffclf::system::{Covariance, GaussianMixture, System};
use diffclf::train::{
    Endpoints, Losses, Resampled, Source, Standardisation, Step, StepReport, StepSpec,
    TrainSettings, Trainer, finish,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// Check this program on this machine, in under a minute.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code 0 if every check passed, 1 otherwise.")]
pub struct Args {}

/// What a check found: the figure and its limit, or whether it holds at all.
struct Finding {
    text: String,
    passed: bool,
}

impl Finding {
    /// An error that must stay below a limit.
    fn below(what: &str, error: f64, limit: f64) -> Self {
        Self {
            text: format!("{what} {error:.1e}, allowed {limit:.0e}"),
            passed: error < limit,
        }
    }

    fn holds(text: String, passed: bool) -> Self {
        Self { text, passed }
    }
}

type Check = (&'static str, fn() -> diffclf::Result<Finding>);

const CHECKS: [Check; 11] = [
    ("gradients of the losses, diffusion", || gradients("vp")),
    ("gradients of the losses, interpolant", || {
        gradients("linear")
    }),
    ("score and time score of a network", network_derivatives),
    ("score and time score of mixtures", mixture_derivatives),
    ("mixtures stay normalised", mixture_mass),
    ("a network of zeros is a Gaussian", gaussian),
    ("every kernel path gives the same", kernels),
    ("1, 2 and 5 threads, same bits", threads),
    ("resumed run, same bytes", resume),
    ("damaged files are refused", files),
    ("samples have the right mode weights", sampler),
];

/// Runs the command.
pub fn run(_: Args) -> Result<()> {
    let begin = Instant::now();
    let mut rows = Vec::new();
    let mut failed = 0;
    for (name, check) in CHECKS {
        let start = Instant::now();
        let finding = check().unwrap_or_else(|error| Finding::holds(error.to_string(), false));
        failed += usize::from(!finding.passed);
        let verdict = if finding.passed { "passed" } else { "FAILED" };
        rows.push(vec![
            name.to_string(),
            verdict.into(),
            format!("{:.1} s", start.elapsed().as_secs_f64()),
            finding.text,
        ]);
    }
    let kernels: Vec<_> = Isa::available().iter().map(Isa::to_string).collect();
    let table = Table {
        caption: format!(
            "diffclf {} on this machine (kernels: {})",
            env!("CARGO_PKG_VERSION"),
            kernels.join(", ")
        ),
        header: ["check", "result", "time", "found"]
            .map(String::from)
            .to_vec(),
        rows,
    };
    let count = table.rows.len();
    print(&table_text(&table))?;
    if failed > 0 {
        return Err(Error::Failed(format!(
            "{failed} of {count} checks failed: do not trust results on this machine, and please report the table above"
        )));
    }
    print(&format!(
        "All {count} checks passed in {:.0} s.\n",
        begin.elapsed().as_secs_f64()
    ))
}

/// A small model in three dimensions, not standardised.
fn small_spec(process: &str) -> diffclf::Result<ModelSpec> {
    let mut spec = ModelSpec::new(3, Process::by_name(process)?);
    spec.network = NetworkSpec::Mlp {
        width: 12,
        depth: 2,
    };
    spec.features = 8;
    spec.grid = spec.grid.with_levels(16)?;
    (spec.mean, spec.variance) = (vec![0.3, -0.2, 0.1], 1.4);
    Ok(spec)
}

/// Parameters away from zero everywhere.
fn random_params<T: Real>(spec: &ModelSpec) -> Vec<T> {
    let mut stream = Stream::new(11, Purpose::Test, 0, 0);
    let count = spec.layout().len();
    (0..count)
        .map(|_| T::from_f64(0.3 * stream.normal()))
        .collect()
}

/// Rows for a training step: the two ends of an interpolant are different systems.
struct Rows {
    start: Arc<System>,
    end: Arc<System>,
}

impl Rows {
    fn new() -> diffclf::Result<Self> {
        Ok(Self {
            start: Arc::new(System::by_name("mog2", 3, 0)?),
            end: Arc::new(System::by_name("mog40", 3, 5)?),
        })
    }

    fn endpoints(&self, interpolant: bool) -> Endpoints {
        let source = |endpoint, system: &Arc<System>| -> Arc<dyn Source> {
            let identity = Standardisation::identity(3);
            Arc::new(Resampled::new(endpoint, system.clone(), 1, identity))
        };
        Endpoints {
            start: source(0, &self.start),
            end: interpolant.then(|| source(1, &self.end)),
        }
    }
}

fn step<T: Real>(
    spec: &ModelSpec,
    batch: usize,
    pool: Arc<Pool>,
    isa: Isa,
) -> diffclf::Result<Step<T>> {
    let plan = StepSpec {
        terms: parse_terms("dsm+0.7*diffclf")?,
        levels: 3,
        batch,
        times: TimeSampler::GridStratified(GridStratified {}),
        seed: 3,
        part: Part::Training,
    };
    Step::new(spec, plan, true, pool, isa)
}

/// Largest difference, relative to the largest expected value.
fn worst(found: &[f64], expected: &[f64]) -> f64 {
    let scale = expected.iter().fold(0.0, |s: f64, x| s.max(x.abs()));
    let difference = found
        .iter()
        .zip(expected)
        .fold(0.0, |s: f64, (a, b)| s.max((a - b).abs()));
    // Any NaN must fail.
    if found.iter().chain(expected).all(|x| x.is_finite()) {
        difference / scale.max(f64::MIN_POSITIVE)
    } else {
        f64::INFINITY
    }
}

/// Parameter gradients of DSM and DiffCLF against central differences, every parameter.
fn gradients(process: &str) -> diffclf::Result<Finding> {
    let spec = small_spec(process)?;
    let mut step = step::<f64>(&spec, 5, Arc::new(Pool::new(1)), Isa::detect())?;
    let mut params = random_params::<f64>(&spec);
    let mut gradient = vec![0.0; params.len()];
    let mut other = gradient.clone();
    let mut losses = Losses::default();
    let rows = Rows::new()?.endpoints(spec.process.is_interpolant());
    step.run(&params, 0, &rows, &mut losses, &mut gradient)?;
    // Five points: an error of h^4, which leaves room for a step that does not drown in rounding.
    let h = 2e-4;
    let mut expected = Vec::with_capacity(params.len());
    for k in 0..params.len() {
        let value = params[k];
        let mut at = |x: f64| -> diffclf::Result<f64> {
            params[k] = x;
            step.run(&params, 0, &rows, &mut losses, &mut other)?;
            Ok(losses.total)
        };
        let near = at(value + h)? - at(value - h)?;
        let far = at(value + 2.0 * h)? - at(value - 2.0 * h)?;
        let difference = (8.0 * near - far) / (12.0 * h);
        params[k] = value;
        expected.push(difference);
    }
    Ok(Finding::below(
        "largest relative error",
        worst(&gradient, &expected),
        1e-6,
    ))
}

/// Score and time score against differences of the log-density.
fn derivatives(energy: &dyn Energy, times: &[f64], points: &[f64]) -> (f64, f64) {
    let dim = energy.dim();
    let log_density = |time: f64, point: &[f64]| {
        let mut out = [0.0];
        energy.log_density(&[time], point, &mut out);
        out[0]
    };
    let (mut scores, mut expected_scores) = (Vec::new(), Vec::new());
    let (mut rates, mut expected_rates) = (Vec::new(), Vec::new());
    for (&time, point) in times.iter().zip(points.chunks_exact(dim)) {
        let (mut score, mut rate) = (vec![0.0; dim], [0.0]);
        energy.score(&[time], point, &mut score);
        energy.time_score(&[time], point, &mut rate);
        scores.extend(score);
        rates.extend(rate);
        let h = 1e-5;
        for k in 0..dim {
            let moved = |by: f64| {
                let mut point = point.to_vec();
                point[k] += by;
                log_density(time, &point)
            };
            expected_scores.push((moved(h) - moved(-h)) / (2.0 * h));
        }
        let h = 1e-5 * time;
        expected_rates
            .push((log_density(time + h, point) - log_density(time - h, point)) / (2.0 * h));
    }
    (
        worst(&scores, &expected_scores),
        worst(&rates, &expected_rates),
    )
}

fn network_derivatives() -> diffclf::Result<Finding> {
    let mut largest = 0.0f64;
    for process in Process::NAMES {
        let spec = small_spec(process)?;
        let horizon = spec.process.horizon();
        let params = random_params::<f64>(&spec);
        let energy = LearnedEnergy::new(spec, params, Arc::new(Pool::new(1)), Isa::detect())?;
        let points = normals(9, 1.1);
        // Between two levels, where F(t) has a slope.
        let times = [0.21, 0.43, 0.77].map(|t| t * horizon);
        let (score, rate) = derivatives(&energy, &times, &points);
        largest = largest.max(score).max(rate);
    }
    Ok(Finding::below("largest relative error", largest, 1e-6))
}

fn normals(count: usize, scale: f64) -> Vec<f64> {
    let mut stream = Stream::new(17, Purpose::Test, 0, 0);
    (0..count).map(|_| scale * stream.normal()).collect()
}

/// Two correlated components of unequal weight in the plane.
fn crooked() -> diffclf::Result<GaussianMixture> {
    GaussianMixture::new(
        2,
        vec![2.0, 1.0],
        vec![-1.0, 0.4, 1.5, -0.7],
        Covariance::Full(vec![0.5, 0.2, 0.2, 0.3, 0.2, -0.1, -0.1, 0.6]),
    )
}

fn paths() -> diffclf::Result<Vec<ExactPath>> {
    let path = |name: &&str| {
        let process = Process::by_name(name)?;
        let end = GaussianMixture::new(
            2,
            vec![1.0, 3.0],
            vec![0.5, 1.0, -0.5, -1.5],
            Covariance::Diagonal(vec![0.3, 0.8, 1.1, 0.4]),
        )?;
        ExactPath::new(process, crooked()?, process.is_interpolant().then_some(end))
    };
    Process::NAMES.iter().map(path).collect()
}

fn mixture_derivatives() -> diffclf::Result<Finding> {
    let mut largest = 0.0f64;
    for path in paths()? {
        let horizon = path.process().horizon();
        let times = [0.05, 0.3, 0.9].map(|t| t * horizon);
        let points = normals(6, 1.5);
        let (score, rate) = derivatives(&path, &times, &points);
        largest = largest.max(score).max(rate);
    }
    Ok(Finding::below("largest relative error", largest, 1e-6))
}

/// The exact densities integrate to one at every time (the trapezoidal rule converges faster than any power here).
fn mixture_mass() -> diffclf::Result<Finding> {
    let mut largest = 0.0f64;
    for path in paths()? {
        for time in [0.1, 0.5] {
            let time = time * path.process().horizon();
            let spread = 3.0 + path.process().noise(time);
            let (side, half) = (121, 7.0 * spread);
            let h = 2.0 * half / (side - 1) as f64;
            let at = |k: usize| -half + h * k as f64;
            let points: Vec<f64> = (0..side * side)
                .flat_map(|k| [at(k % side), at(k / side)])
                .collect();
            let mut values = vec![0.0; side * side];
            path.log_density(&[time], &points, &mut values);
            let mass: f64 = values.iter().map(|value| value.exp() * h * h).sum();
            largest = largest.max((mass - 1.0).abs());
        }
    }
    Ok(Finding::below("largest error of the mass", largest, 1e-6))
}

/// With zero weights the energy of a diffusion is that of `N(S mu, (S^2 sd^2 + gamma^2) I)`.
fn gaussian() -> diffclf::Result<Finding> {
    let mut largest = 0.0f64;
    for process in ["vp", "ve", "edm"] {
        let spec = small_spec(process)?;
        let zeros = vec![0.0; spec.layout().len()];
        let time = 0.4 * spec.process.horizon();
        let Prior { mean, std } = Prior::new(&spec.process, time, &spec.mean, spec.variance);
        let points = normals(3, 2.0 * std);
        let square: f64 = points
            .iter()
            .zip(&mean)
            .map(|(y, m)| ((y - m) / std).powi(2))
            .sum();
        let expected = -0.5 * square - 1.5 * (std::f64::consts::TAU * std * std).ln();
        let energy = LearnedEnergy::<f64>::new(spec, zeros, Arc::new(Pool::new(1)), Isa::detect())?;
        let mut found = [0.0];
        energy.log_density(&[time], &points, &mut found);
        largest = largest.max((found[0] - expected).abs() / expected.abs());
    }
    Ok(Finding::below("largest relative error", largest, 1e-12))
}

/// Every kernel path in single precision: energies and scores against double precision, parameter gradients against
/// the portable path.
fn kernels() -> diffclf::Result<Finding> {
    let spec = small_spec("vp")?;
    let (wide, narrow) = (random_params::<f64>(&spec), random_params::<f32>(&spec));
    let pool = Arc::new(Pool::new(1));
    let (points, time) = (normals(300, 1.0), 0.3);
    let evaluate = |energy: &dyn Energy| {
        let (mut energies, mut scores) = (vec![0.0; 100], vec![0.0; 300]);
        energy.energy_and_score(&[time], &points, &mut energies, &mut scores);
        (energies, scores)
    };
    let double = LearnedEnergy::new(spec.clone(), wide, pool.clone(), Isa::Portable)?;
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

fn threads() -> diffclf::Result<Finding> {
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
fn resume() -> diffclf::Result<Finding> {
    let spec = small_spec("vp")?;
    let settings = settings();
    let content = |steps| Content {
        spec: spec.clone(),
        standardisation: Standardisation::identity(3),
        record: Record {
            version: env!("CARGO_PKG_VERSION").into(),
            settings: settings.clone(),
            steps,
            data: Vec::new(),
            units: "kT".into(),
            streams: STREAMS,
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
fn files() -> diffclf::Result<Finding> {
    let spec = small_spec("vp")?;
    let model = Model {
        params: random_params(&spec),
        average: None,
        content: Content {
            standardisation: Standardisation::identity(3),
            record: Record {
                version: env!("CARGO_PKG_VERSION").into(),
                settings: settings(),
                steps: 0,
                data: Vec::new(),
                units: "kT".into(),
                streams: STREAMS,
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
fn sampler() -> diffclf::Result<Finding> {
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
