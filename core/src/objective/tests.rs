//! Every objective and their sums: values against a second implementation, parameter gradients against central differences,
//! and the invariances and optima that the formulas promise.

mod formulas;
mod gradients;
mod invariances;
mod optima;
mod theory;
mod values;

use std::sync::Arc;

use crate::energy::exact::ExactPath;
use crate::energy::{Form, ModelSpec};
use crate::network::{Isa, Pool, Real};
use crate::objective::{ObjectiveName, Term, parse_terms, validate_terms};
use crate::process::{Process, TimeSampler};
use crate::rng::{Purpose, Stream};
use crate::system::{Covariance, GaussianMixture};
use crate::train::{Endpoints, Losses, Source, Step, StepPlan};

/// Normal rows, not centred, of a spread of their own in each coordinate.
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

pub(crate) fn endpoints<'a>(spec: &ModelSpec, rows: &'a (Cloud, Cloud)) -> Endpoints<'a> {
    Endpoints {
        start: &rows.0,
        end: spec
            .process
            .is_interpolant()
            .then_some(&rows.1 as &dyn Source),
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
    let plan = StepPlan {
        terms: parse_terms(sum.terms).unwrap(),
        levels: sum.levels,
        batch,
        times: sum.times,
        seed: 17,
        purpose: Purpose::Noise,
    };
    Step::new(spec, plan, gradient, Arc::new(Pool::new(threads)), isa)
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
        endpoints(spec, &rows),
        &mut losses,
        &mut gradient,
    )
    .unwrap();
    (losses, gradient)
}

/// Each objective alone and the sums that share evaluations, on a grid and between its levels.
pub(crate) fn sums(spec: &ModelSpec) -> Vec<Sum> {
    let mut samplers = vec![
        TimeSampler::Grid {},
        TimeSampler::GridStratified {},
        TimeSampler::Uniform {},
        TimeSampler::Stratified {},
    ];
    if !spec.process.is_interpolant() {
        samplers.push(TimeSampler::LogSnrNormal {
            mean: -0.5,
            std: 1.0,
        });
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
    ];
    if spec.process.is_interpolant() {
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
                    TimeSampler::Grid {}
                } else {
                    TimeSampler::Uniform {}
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
    }
}
