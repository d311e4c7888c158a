//! Every objective and their sums: values against a second implementation, parameter gradients against central differences,
//! and the invariances and optima that the formulas promise.

mod formulas;
mod gradients;
mod invariances;
mod optima;
mod slopes;
mod theory;
mod values;

use std::sync::Arc;

use crate::energy::exact::ExactPath;
use crate::energy::{Form, ModelSpec};
use crate::engine::{Isa, Pool, Real};
use crate::objective::{DreInfinity, ObjectiveName, Term, parse_terms, validate_terms};
use crate::process::sampler::{Grid, GridStratified, LogSnrNormal, Stratified, Uniform};
use crate::process::{Process, TimeSampler};
use crate::rng::{Part, Purpose, Stream};
use crate::system::{Covariance, GaussianMixture};
use crate::train::{Endpoints, Losses, Source, Step, StepSpec};

/// Normal rows, not centred, of a spread of their own in each coordinate.
#[derive(Clone)]
pub(crate) struct Cloud {
    pub(crate) seed: u64,
    pub(crate) mean: Vec<f64>,
    pub(crate) std: f64,
}

impl Source for Cloud {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let mut stream = Stream::new(self.seed, Purpose::Test, step, unit as u64);
        for (x, mean) in out.iter_mut().zip(&self.mean) {
            *x = (mean + self.std * stream.normal()) as f32;
        }
    }
}

/// Start and end rows that suit a model.
pub(crate) fn clouds(spec: &ModelSpec) -> (Cloud, Cloud) {
    let cloud = |seed, shift: f64| Cloud {
        seed,
        mean: spec.mean.iter().map(|m| m + shift).collect(),
        std: spec.variance.sqrt(),
    };
    (cloud(31, 0.0), cloud(32, 0.9))
}

pub(crate) fn endpoints(spec: &ModelSpec, rows: &(Cloud, Cloud)) -> Endpoints {
    let end = spec.process.is_interpolant();
    Endpoints {
        start: Arc::new(rows.0.clone()),
        end: end.then(|| Arc::new(rows.1.clone()) as Arc<dyn Source>),
    }
}

/// A sum of objectives on rows of so many times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    pub(crate) terms: &'static str,
    pub(crate) levels: usize,
    pub(crate) times: TimeSampler,
}

pub(crate) const BATCH: usize = 5;

/// Mostly small batches; every seventh model one of many tiles and several chunks.
pub(crate) fn batch_of(number: usize) -> usize {
    if number.is_multiple_of(7) { 61 } else { BATCH }
}

pub(crate) fn step<T: Real>(
    spec: &ModelSpec,
    sum: Sum,
    batch: usize,
    gradient: bool,
    threads: usize,
    isa: Isa,
) -> Step<T> {
    step_on(Pool::new(threads), spec, sum, batch, gradient, isa)
}

/// The same on threads that are given.
pub(crate) fn step_on<T: Real>(
    pool: Pool,
    spec: &ModelSpec,
    sum: Sum,
    batch: usize,
    gradient: bool,
    isa: Isa,
) -> Step<T> {
    let plan = StepSpec {
        terms: parse_terms(sum.terms).unwrap(),
        levels: sum.levels,
        batch,
        times: sum.times,
        seed: 17,
        part: Part::Training,
    };
    Step::new(spec, plan, gradient, Arc::new(pool), isa)
        .unwrap()
        .with_truth(Some(Arc::new(truth(spec))))
}

/// The exact marginals of the clouds.
pub(crate) fn truth(spec: &ModelSpec) -> ExactPath {
    let (start, end) = clouds(spec);
    let gaussian = |cloud: Cloud| {
        let covariance = Covariance::Isotropic(vec![cloud.std * cloud.std]);
        GaussianMixture::new(spec.dim, vec![1.0], cloud.mean, covariance).unwrap()
    };
    let end = spec.process.is_interpolant().then(|| gaussian(end));
    ExactPath::new(spec.process, gaussian(start), end).unwrap()
}

/// Losses and gradient of one step in double precision.
pub(crate) fn run(
    spec: &ModelSpec,
    sum: Sum,
    batch: usize,
    params: &[f64],
    number: u64,
) -> (Losses, Vec<f64>) {
    let mut step = step::<f64>(spec, sum, batch, true, 1, Isa::detect());
    let rows = clouds(spec);
    let (mut losses, mut gradient) = (Losses::default(), vec![0.0; params.len()]);
    step.run(
        params,
        number,
        &endpoints(spec, &rows),
        &mut losses,
        &mut gradient,
    )
    .unwrap();
    (losses, gradient)
}

/// Each objective alone and the sums that share evaluations, on a grid and between its levels.
pub(crate) fn sums(spec: &ModelSpec) -> Vec<Sum> {
    let mut samplers = vec![
        TimeSampler::Grid(Grid {}),
        TimeSampler::GridStratified(GridStratified {}),
        TimeSampler::Uniform(Uniform {}),
        TimeSampler::Stratified(Stratified {}),
    ];
    if !spec.process.is_interpolant() {
        samplers.push(TimeSampler::LogSnrNormal(LogSnrNormal {
            mean: -0.5,
            std: 1.0,
        }));
    }
    let terms = [
        ("dsm", 1),
        ("dsm", 3),
        ("diffclf", 4),
        ("binary-diffclf", 2),
        ("0.4*dsm+1.7*diffclf", 3),
        ("diffclf+0.3*dsm+2*binary-diffclf", 2),
    ];
    let mut sums = Vec::new();
    for (k, (terms, levels)) in terms.into_iter().enumerate() {
        // One sampler on the grid and one beside it for each; all are used.
        for times in [samplers[k % 2], samplers[2 + k % (samplers.len() - 2)]] {
            sums.push(Sum {
                terms,
                levels,
                times,
            });
        }
    }
    sums
}

/// The objectives beyond DSM and DiffCLF that suit a model, with settings of all kinds. Each model takes a third of them.
pub(crate) fn more_sums(spec: &ModelSpec, number: usize) -> Vec<Sum> {
    let mut terms = vec![
        ("binary-bregman", 2),
        ("binary-bregman(generator=kl)", 2),
        ("binary-bregman(generator=log)+dsm", 2),
        ("0.1*binary-bregman(generator=square)", 2),
        ("bregman", 3),
        ("bregman(generator=js)+diffclf", 3),
        ("bregman(generator=square)", 4),
        ("0.1*bregman(generator=inverse)", 2),
        ("ctsm", 2),
        ("0.3*dsm+ctsm(weight=one)", 2),
        ("tsm", 2),
        ("dre-infinity(delta=0.03)", 2),
        ("target-score+0.5*diffclf", 2),
        ("known-diffclf(ends=both)+dsm", 2),
        // So far apart that the classifier leaves (0, 1).
        ("dre-infinity(delta=0.4,weight=one)", 2),
    ];
    if spec.process.is_interpolant() {
        if spec.base.is_some() {
            terms.extend([("anchor", 2), ("0.5*anchor+diffclf", 2)]);
        }
        terms.extend([
            ("known-diffclf(ends=first)", 3),
            ("velocity", 2),
            ("dsm+diffclf+velocity", 2),
        ]);
    } else {
        terms.extend([
            ("known-diffclf", 1),
            ("tsm(weight=noise)", 1),
            ("ctsm(weight=noise)+bregman(generator=square)", 2),
            ("anchor", 1),
            ("dsm+0.5*anchor+diffclf", 3),
            ("fokker-planck", 2),
            ("fokker-planck(laplacian=exact,weight=one)", 1),
            ("dsm+fokker-planck(laplacian=difference,step=0.1)", 2),
            ("bayes", 2),
            ("dsm+2*bayes(gap=3,weight=one)+ctsm", 2),
        ]);
    }
    let mut sums = Vec::new();
    for (k, (terms, levels)) in terms.into_iter().enumerate() {
        if k % 3 == number % 3 {
            let on_grid = (k / 3 + number / 3).is_multiple_of(2);
            sums.push(Sum {
                terms,
                levels,
                times: if on_grid {
                    TimeSampler::Grid(Grid {})
                } else {
                    TimeSampler::Uniform(Uniform {})
                },
            });
        }
    }
    sums
}

/// A model with a velocity network where there can be one.
pub(crate) fn with_velocity(mut spec: ModelSpec) -> ModelSpec {
    spec.velocity = spec.process.is_interpolant();
    spec
}

#[test]
fn sums_are_read_and_checked() {
    let terms = parse_terms("dsm + 0.5*diffclf").unwrap();
    assert_eq!(
        terms,
        [
            Term {
                objective: ObjectiveName::Dsm,
                weight: 1.0
            },
            Term {
                objective: ObjectiveName::Diffclf,
                weight: 0.5
            }
        ]
    );
    let spec = crate::energy::tests::spec(Process::default(), Some(Form::InnerProduct), true);
    validate_terms(&terms, &spec, 2).unwrap();
    for (text, wanted) in [
        ("dms", "one of dsm, diffclf, binary-diffclf"),
        ("", "one of dsm"),
        ("x*dsm", "a number before the `*`"),
    ] {
        let message = parse_terms(text).unwrap_err().to_string();
        assert!(message.contains(wanted), "{message}");
    }
    for (text, levels, wanted) in [
        ("dsm+dsm", 1, "dsm twice"),
        ("0*dsm", 1, "a positive number"),
        ("nan*dsm", 1, "a positive number"),
        ("diffclf", 1, "between 2 and 64 for diffclf"),
        ("diffclf", 65, "between 2 and 64 for diffclf"),
        ("binary-diffclf", 3, "between 2 and 2 for binary-diffclf"),
        ("dsm", 0, "between 1 and 64 for dsm"),
    ] {
        let message = validate_terms(&parse_terms(text).unwrap(), &spec, levels)
            .unwrap_err()
            .to_string();
        assert!(message.contains(wanted), "{message}");
    }
    assert!(validate_terms(&[], &spec, 1).is_err());
    for name in ObjectiveName::ALL {
        let text = serde_json::to_string(&name).unwrap();
        assert_eq!(text, format!("\"{}\"", name.objective().name()));
        assert_eq!(serde_json::from_str::<ObjectiveName>(&text).unwrap(), name);
    }
}

#[test]
fn settings_are_read_written_and_checked() {
    for (text, written) in [
        (
            "bayes( gap = 4 , stop-gradient=yes)",
            "bayes(gap=4,stop-gradient=yes)",
        ),
        ("bayes(gap=1)", "bayes"),
        (
            "dre-infinity(delta=0.01,weight=one)",
            "dre-infinity(weight=one)",
        ),
        (
            "fokker-planck(laplacian=exact,step=0.5)",
            "fokker-planck(laplacian=exact,step=0.5)",
        ),
        ("known-diffclf(ends=both)", "known-diffclf(ends=both)"),
        (
            "binary-bregman(generator=kl)",
            "binary-bregman(generator=kl)",
        ),
        ("bregman(generator=inverse)", "bregman(generator=inverse)"),
        ("ctsm(weight=noise)", "ctsm(weight=noise)"),
        ("tsm(weight=balanced)", "tsm"),
    ] {
        let objective: ObjectiveName = text.parse().unwrap();
        assert_eq!(objective.to_string(), written);
        assert_eq!(written.parse::<ObjectiveName>().unwrap(), objective);
    }
    for (text, wanted) in [
        ("dsm(weight=one)", "without parentheses"),
        ("velocity(x=1)", "without parentheses"),
        ("bayes(gap=0)", "at least 1"),
        ("bayes(gap=1.5)", "whole number"),
        ("bayes(stop-gradient=maybe)", "no, yes"),
        ("bayes(step=1)", "gap, stop-gradient, weight"),
        ("bayes(gap)", "setting=value"),
        ("bayes()", "between parentheses"),
        ("bayes(gap=1", "between parentheses"),
        ("dre-infinity(delta=-1)", "a positive number"),
        ("dre-infinity(gap=1)", "delta, weight"),
        (
            "fokker-planck(laplacian=some)",
            "hutchinson, difference, exact",
        ),
        ("fokker-planck(steps=1)", "laplacian, step, weight"),
        ("binary-bregman(generator=entropy)", "js, kl, log, square"),
        ("bregman(phi=js)", "generator"),
        ("known-diffclf(ends=none)", "last, first, both"),
        ("ctsm(weight=two)", "balanced, noise, one"),
        ("tsm(w=one)", "weight"),
    ] {
        let message = text.parse::<ObjectiveName>().unwrap_err().to_string();
        assert!(message.contains(wanted), "{text}: {message}");
    }
    let diffusion = crate::energy::tests::spec(Process::default(), Some(Form::InnerProduct), true);
    let linear = Process::by_name("linear").unwrap();
    let interpolant = crate::energy::tests::spec(linear, Some(Form::InnerProduct), true);
    let wide = ModelSpec::new(33, Process::default());
    let mut short = diffusion.clone();
    short.grid =
        crate::process::TimeGrid::new(9, 0.01, 0.2, crate::process::Spacing::Linear {}).unwrap();
    for (text, spec, wanted) in [
        ("velocity", &diffusion, "linear, trigonometric"),
        ("velocity", &interpolant, "velocity = true"),
        ("bayes", &interpolant, "vp, ve, edm"),
        ("fokker-planck", &interpolant, "vp, ve, edm"),
        ("ctsm(weight=noise)", &interpolant, "balanced or one"),
        ("tsm(weight=noise)", &interpolant, "balanced or one"),
        ("bayes(gap=9)", &diffusion, "below 9"),
        ("fokker-planck(laplacian=exact)", &wide, "above 32"),
        ("known-diffclf", &short, "extend the time grid"),
    ] {
        let terms = parse_terms(text).unwrap();
        let message = validate_terms(&terms, spec, 2).unwrap_err().to_string();
        assert!(message.contains(wanted), "{text}: {message}");
    }
    let backwards = Term {
        objective: ObjectiveName::DreInfinity(DreInfinity {
            delta: -0.01,
            ..DreInfinity::USUAL
        }),
        weight: 1.0,
    };
    let message = validate_terms(&[backwards], &diffusion, 2).unwrap_err();
    assert!(message.to_string().contains("a positive number"));
    assert!(
        ModelSpec {
            velocity: true,
            ..diffusion.clone()
        }
        .validate()
        .is_err()
    );
}

#[test]
fn a_step_without_the_truth_it_needs_is_refused() {
    let spec = crate::energy::tests::spec(Process::default(), Some(Form::InnerProduct), true);
    let params: Vec<f64> = crate::energy::tests::params(&spec, 1);
    for (terms, refused) in [
        ("dsm+tsm", true),
        ("target-score", true),
        ("known-diffclf(ends=first)", true),
        ("known-diffclf", false),
    ] {
        let sum = Sum {
            terms,
            levels: 2,
            times: TimeSampler::Grid(Grid {}),
        };
        let mut step = step::<f64>(&spec, sum, 3, false, 1, Isa::detect()).with_truth(None);
        let rows = clouds(&spec);
        let mut losses = Losses::default();
        let result = step.run(&params, 0, &endpoints(&spec, &rows), &mut losses, &mut []);
        assert_eq!(result.is_err(), refused, "{terms}");
        if let Err(error) = result {
            let message = error.to_string();
            assert!(message.contains("mog40"), "{message}");
        }
    }
}

/// The learned velocity of an interpolant is its network's; that of a diffusion follows from the score.
#[test]
fn a_model_gives_its_velocity() {
    use crate::energy::tests::reference::Reference;
    use crate::energy::tests::{learned, params, spec};
    use crate::energy::{Energy, Velocity};
    let plain = spec(
        Process::by_name("linear").unwrap(),
        Some(Form::InnerProduct),
        true,
    );
    let message = learned::<f64>(&plain, &params(&plain, 1), Isa::detect())
        .velocity()
        .err()
        .unwrap()
        .to_string();
    assert!(message.contains("dsm+diffclf+velocity"), "{message}");
    let (times, points) = ([0.2, 0.7], [0.3, -0.8, 1.1, 0.4, 0.9, -1.6]);
    let mut out = [0.0; 6];
    let spec_ = with_velocity(plain);
    let values: Vec<f64> = params(&spec_, 1);
    let model = learned::<f64>(&spec_, &values, Isa::detect());
    model
        .velocity()
        .unwrap()
        .velocity(&times, &points, &mut out);
    let reference = Reference::new(&spec_, &values);
    for i in 0..2 {
        let expected = reference.velocity(times[i], &points[3 * i..][..3]);
        for (found, expected) in out[3 * i..].iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()));
        }
    }
    // A zero network is exact for Gaussian data.
    let spec_ = spec(Process::default(), Some(Form::InnerProduct), false);
    let model = learned::<f64>(&spec_, &spec_.layout().initialise(1), Isa::detect());
    let exact = truth(&spec_);
    let mut expected = [0.0; 6];
    exact.velocity(&times, &points, &mut expected);
    let velocity = model.velocity().unwrap();
    assert_eq!(Velocity::dim(&velocity), Energy::dim(&model));
    velocity.velocity(&times, &points, &mut out);
    for (found, expected) in out.iter().zip(expected) {
        assert!(
            (found - expected).abs() < 1e-10 * (1.0 + expected.abs()),
            "{found} {expected}"
        );
    }
}
