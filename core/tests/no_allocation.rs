//! A training step allocates nothing: counted by a global allocator, after a first step has built what the stage needs.

use std::alloc::{GlobalAlloc, Layout, System as Memory};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use diffclf::base::{BaseEnds, MixtureBase};
use diffclf::discrete::model::StatesSpec;
use diffclf::discrete::train::{StatesPlan, StatesStep};
use diffclf::discrete::{self, Space};
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Coordinates, Form, ModelSpec};
use diffclf::engine::{Isa, Pool};
use diffclf::network::NetworkSpec;
use diffclf::objective::{ObjectiveName, parse_sum, parse_terms};
use diffclf::process::sampler::{GridStratified, LogSnrNormal, Uniform};
use diffclf::process::{Process, TimeSampler};
use diffclf::rng::Part;
use diffclf::system::System;
use diffclf::train::{
    Adam, Endpoints, InMemory, Losses, Resampled, Shuffled, Source, Step, StepReport, StepSpec,
    TrainSettings, Trainer, average, clip,
};

/// Counts what every thread asks for while it is told to.
struct Counter;

static COUNTING: AtomicBool = AtomicBool::new(false);
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

fn note() {
    if COUNTING.load(Ordering::Relaxed) {
        REQUESTS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator; counting touches only atomics.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        unsafe { Memory.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        unsafe { Memory.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        unsafe { Memory.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note();
        unsafe { Memory.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTER: Counter = Counter;

/// Requests to the allocator, frees included, that `work` makes on all threads together. The test harness and threads that have just
/// been started allocate a little of their own, once; what allocates by itself does so every time, so the least of some tries counts.
fn requests(mut work: impl FnMut()) -> usize {
    (0..TRIES).map(|_| once(&mut work)).min().unwrap_or(0)
}

const TRIES: usize = 4;
/// One to build the stage, and five for each try.
const STEPS: u64 = 1 + 5 * TRIES as u64;

fn once(work: &mut impl FnMut()) -> usize {
    REQUESTS.store(0, Ordering::SeqCst);
    COUNTING.store(true, Ordering::SeqCst);
    work();
    COUNTING.store(false, Ordering::SeqCst);
    REQUESTS.load(Ordering::SeqCst)
}

fn model(process: &str, form: Form, dim: usize) -> ModelSpec {
    ModelSpec {
        network: NetworkSpec::Mlp {
            width: 32,
            depth: 3,
        },
        form,
        ..ModelSpec::new(dim, Process::by_name(process).unwrap())
    }
}

/// The only test of this file: another one on a thread of its own would be counted too.
#[test]
fn steps_do_not_allocate() {
    assert!(requests(|| drop(vec![1u8; 100])) == 2, "the counter works");
    let wide = (0..300 * 50).map(|i| (i as f32).sin()).collect();
    let wide = Arc::new(InMemory::new(wide, 300));
    for threads in [1, 2] {
        let pool = Arc::new(Pool::new(threads));

        assert_eq!(states(&pool), 0, "states");

        // The trainer, its source, optimiser and average, through two stages; 300 columns are more than any fixed buffer.
        for (process, form, dim) in [
            ("vp", Form::InnerProduct, 8),
            ("vp", Form::InnerProduct, 300),
            ("edm", Form::Scalar, 8),
            ("linear", Form::InnerProductPlusScalar, 8),
        ] {
            let mut spec = model(process, form, dim);
            if form == Form::Scalar {
                let mixture = System::by_name("mog40", dim, 0).unwrap();
                spec.base = Some(BaseEnds {
                    start: MixtureBase::try_from(mixture.mixture().unwrap()).unwrap(),
                    end: None,
                });
            }
            let settings = TrainSettings::two_stages(200, STEPS, STEPS, 4);
            let system = Arc::new(System::by_name("mog40", dim, 0).unwrap());
            let identity = Coordinates::identity(dim);
            let fresh = Resampled::new(0, system, 1, identity.clone());
            let (dealt, _) = Shuffled::split(0, wide.clone(), &identity, 200, 2, 5);
            let start: Arc<dyn Source> = if dim == 300 {
                Arc::new(dealt)
            } else {
                Arc::new(fresh)
            };
            let from = Endpoints {
                end: spec.process.is_interpolant().then(|| start.clone()),
                start,
            };
            let mut trainer =
                Trainer::new(&spec, &settings, from, None, pool.clone(), Isa::detect()).unwrap();
            let mut report = StepReport::default();
            for stage in 0..2 {
                trainer.advance(&mut report).unwrap();
                assert_eq!(report.stage, stage);
                let found = requests(|| {
                    for _ in 0..5 {
                        trainer.advance(&mut report).unwrap();
                    }
                });
                assert_eq!(
                    found, 0,
                    "{process}, {dim} columns, stage {stage}, {threads} threads"
                );
            }
            assert!(trainer.finished());
        }

        // The parts by themselves; every objective, on the grid and between its levels.
        let sums = [
            ("vp", "dsm", 1),
            ("vp", "dsm+diffclf", 3),
            ("vp", "dsm+binary-diffclf", 2),
            ("vp", "binary-bregman(generator=kl)", 2),
            ("vp", "bregman(generator=js)", 3),
            ("vp", "dsm+known-diffclf(ends=both)", 2),
            ("vp", "0.5*anchor+diffclf", 3),
            ("vp", "ctsm", 2),
            ("vp", "tsm", 2),
            ("vp", "dre-infinity", 2),
            ("vp", "0.1*fokker-planck", 2),
            ("vp", "0.1*bayes", 2),
            ("vp", "target-score", 2),
            ("linear", "dsm+ctsm+tsm+target-score", 2),
            ("linear", "known-diffclf(ends=both)+velocity", 2),
        ];
        for name in ObjectiveName::ALL.map(|o| o.objective().name()) {
            assert!(sums.iter().any(|sum| sum.1.contains(name)), "{name}");
        }
        for (process, terms, levels) in sums {
            for times in [
                TimeSampler::GridStratified(GridStratified {}),
                TimeSampler::Uniform(Uniform {}),
            ] {
                let found = step_requests(process, terms, levels, times, &pool);
                assert_eq!(found, 0, "{process}, {terms}, {times:?}, {threads} threads");
            }
        }
        let normal = TimeSampler::LogSnrNormal(LogSnrNormal {
            mean: -1.0,
            std: 1.0,
        });
        assert_eq!(step_requests("vp", "dsm+diffclf", 2, normal, &pool), 0);
    }
}

/// Requests of steps on a sum, with the exact densities of its data known.
fn step_requests(
    process: &str,
    terms: &str,
    levels: usize,
    times: TimeSampler,
    pool: &Arc<Pool>,
) -> usize {
    let mut spec = model(process, Form::ResidualSquaredNorm, 5);
    let interpolant = spec.process.is_interpolant();
    spec.velocity = interpolant;
    let parts = StepSpec {
        terms: parse_terms(terms).unwrap(),
        levels,
        batch: 100,
        times,
        seed: 3,
        part: Part::Training,
    };
    let system = |name: &str| Arc::new(System::by_name(name, 5, 0).unwrap());
    let (start, end) = (system("mog40"), system("mog2"));
    let mixture = |system: &System| system.mixture().unwrap().clone();
    let truth = ExactPath::new(
        spec.process,
        mixture(&start),
        interpolant.then(|| mixture(&end)),
    );
    let source = |endpoint, system| -> Arc<dyn Source> {
        Arc::new(Resampled::new(
            endpoint,
            system,
            1,
            Coordinates::identity(5),
        ))
    };
    let from = Endpoints {
        start: source(0, start),
        end: interpolant.then(|| source(1, end)),
    };
    let mut step = Step::<f32>::new(&spec, parts, true, pool.clone(), Isa::detect())
        .unwrap()
        .with_truth(Some(Arc::new(truth.unwrap())));
    let mut params: Vec<f32> = spec.layout().initialise(1);
    let zero = vec![0f32; params.len()];
    let (mut gradient, mut m, mut v, mut mean) = (zero.clone(), zero.clone(), zero.clone(), zero);
    let mut losses = Losses::default();
    let mut advance = |number: u64| {
        step.run(&params, number, &from, &mut losses, &mut gradient)
            .unwrap();
        clip(&mut gradient, Some(0.5));
        let state = (&mut params[..], &mut m[..], &mut v[..]);
        Adam::default().update(number + 1, 1e-3, &gradient, state, pool);
        average(number, 0.99, &params, &mut mean, pool);
    };
    advance(0);
    let mut number = 0;
    requests(|| {
        number += 5;
        (number..number + 5).for_each(&mut advance);
    })
}

/// Requests of a step on rows of symbols, with changes of sites and levels compared.
fn states(pool: &Arc<Pool>) -> usize {
    let space = Space {
        sites: 9,
        states: 4,
    };
    let values: Vec<f32> = (0..9 * 50).map(|i| (i * i % 7 % 4) as f32).collect();
    let (source, _) = Shuffled::split(
        0,
        Arc::new(InMemory::new(values, 9)),
        &Coordinates::identity(9),
        64,
        1,
        0,
    );
    let mut least = 0;
    for process in ["uniform", "masked"] {
        let spec = StatesSpec::new(space, discrete::Process::by_name(process).unwrap()).unwrap();
        let plan = StatesPlan {
            terms: parse_sum("score-entropy(sites=3)+diffclf").unwrap(),
            levels: 3,
            batch: 64,
            times: TimeSampler::default(),
            seed: 1,
            part: Part::Training,
        };
        let mut step =
            StatesStep::<f32>::new(&spec, plan, true, pool.clone(), Isa::detect()).unwrap();
        let params: Vec<f32> = spec.layout().initialise(1);
        let mut gradient = vec![0f32; params.len()];
        let mut losses = Losses::default();
        let mut advance = |number: u64| {
            step.run(&params, number, &source, &mut losses, &mut gradient)
                .unwrap();
        };
        advance(0);
        let mut number = 0;
        least += requests(|| {
            number += 5;
            (number..number + 5).for_each(&mut advance);
        });
    }
    least
}
