//! Does this program compute on this machine what it should? Each check holds it against something independent: differences, closed
//! forms, itself in double precision or with other threads.

mod derivatives;
mod sameness;

use crate::watch::Watch;
use diffclf::energy::{Coordinates, ModelSpec};
use diffclf::engine::{Isa, Pool, Real};
use diffclf::network::NetworkSpec;
use diffclf::objective::parse_terms;
use diffclf::process::sampler::GridStratified;
use diffclf::process::{Process, TimeSampler};
use diffclf::rng::{Part, Purpose, Stream};
use diffclf::system::System;
use diffclf::train::{Endpoints, Resampled, Source, Step, StepSpec};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    ("gradients of the losses, diffusion", || {
        derivatives::gradients("vp")
    }),
    ("gradients of the losses, interpolant", || {
        derivatives::gradients("linear")
    }),
    (
        "score and time score of a network",
        derivatives::network_derivatives,
    ),
    (
        "score and time score of mixtures",
        derivatives::mixture_derivatives,
    ),
    ("mixtures stay normalised", derivatives::mixture_mass),
    ("a network of zeros is a Gaussian", derivatives::gaussian),
    ("every kernel path gives the same", sameness::kernels),
    ("1, 2 and 5 threads, same bits", sameness::threads),
    ("resumed run, same bytes", sameness::resume),
    ("damaged files are refused", sameness::files),
    ("samples have the right mode weights", sameness::sampler),
];

/// A check that was made.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What was checked.
    pub name: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// The figure and its limit.
    pub found: String,
    /// How long it took.
    pub time: Duration,
}

/// Makes all checks.
pub fn run(watch: &dyn Watch) -> Vec<Checked> {
    let mut bar = watch.begin("selftest", CHECKS.len() as u64, 0);
    let mut done = Vec::with_capacity(CHECKS.len());
    for (name, check) in CHECKS {
        let start = Instant::now();
        let finding = check().unwrap_or_else(|error| Finding::holds(error.to_string(), false));
        done.push(Checked {
            name,
            passed: finding.passed,
            found: finding.text,
            time: start.elapsed(),
        });
        bar.set(done.len() as u64, &|| name.into());
    }
    bar.finish("done");
    done
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
            let identity = Coordinates::identity(3);
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

fn normals(count: usize, scale: f64) -> Vec<f64> {
    let mut stream = Stream::new(17, Purpose::Test, 0, 0);
    (0..count).map(|_| scale * stream.normal()).collect()
}
