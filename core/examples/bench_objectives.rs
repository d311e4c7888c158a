//! Time of one training step of every objective, relative to denoising score matching with the same number of score evaluations
//! (batch times levels). All are timed in turns within one run, so that a busy machine disturbs all alike.
//!
//! `cargo run --release --example bench_objectives -- [--dim 8] [--rounds 5] [--steps 8] [--threads 2]`

use std::sync::Arc;
use std::time::Instant;

use diffclf::Result;
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, Form, ModelSpec, NetworkSpec};
use diffclf::network::{Isa, Pool};
use diffclf::objective::parse_terms;
use diffclf::process::{Process, TimeSampler};
use diffclf::rng::{Purpose, Stream};
use diffclf::system::System;
use diffclf::train::{
    Adam, Endpoints, InMemory, Losses, Shuffled, Source, Standardisation, Step, StepPlan, clip,
};

/// Score evaluations of one step.
const EVALUATIONS: usize = 4096;

/// Sums, with the levels of a row; the first is the measure of the others.
const DIFFUSION: [(&str, usize); 21] = [
    ("dsm", 2),
    ("dsm+binary-diffclf", 2),
    ("dsm+diffclf", 2),
    ("dsm+diffclf", 4),
    ("dsm+diffclf", 8),
    ("dsm+binary-bregman", 2),
    ("dsm+bregman(generator=js)", 2),
    ("dsm+bregman(generator=square)", 2),
    ("dsm+known-diffclf", 2),
    ("dsm+ctsm", 2),
    ("dsm+tsm", 2),
    ("dsm+dre-infinity", 2),
    ("dsm+fokker-planck", 2),
    ("dsm+fokker-planck(laplacian=difference)", 2),
    ("dsm+fokker-planck(laplacian=exact)", 2),
    ("dsm+bayes", 2),
    ("dsm+bayes(stop-gradient=yes)", 2),
    ("dsm+target-score", 2),
    ("target-score", 2),
    ("ctsm", 2),
    ("diffclf", 2),
];

const INTERPOLANT: [(&str, usize); 6] = [
    ("dsm", 2),
    ("dsm+diffclf", 2),
    ("dsm+ctsm", 2),
    ("dsm+known-diffclf(ends=both)", 2),
    ("dsm+target-score", 2),
    ("dsm+velocity", 2),
];

/// A step with all it needs to run again and again.
struct Runner {
    name: String,
    step: Step<f32>,
    tables: [InMemory; 2],
    params: Vec<f32>,
    moments: [Vec<f32>; 2],
    gradient: Vec<f32>,
    number: u64,
    milliseconds: Vec<f64>,
}

impl Runner {
    fn new(spec: &ModelSpec, terms: &str, levels: usize, pool: Arc<Pool>) -> Result<Runner> {
        let plan = StepPlan {
            terms: parse_terms(terms)?,
            levels,
            batch: EVALUATIONS / levels,
            times: TimeSampler::Multiscale { snr_share: 0.5 },
            seed: 1,
            purpose: Purpose::Noise,
        };
        let system = |name: &str| System::by_name(name, spec.dim, 0);
        let mixture = |name: &str| -> Result<_> { Ok(system(name)?.mixture().cloned()) };
        let truth: Option<Arc<dyn Energy>> = match (mixture("mog40")?, mixture("mog2")?) {
            (Some(start), end) => {
                let end = end.filter(|_| spec.process.is_interpolant());
                Some(Arc::new(ExactPath::new(spec.process, start, end)?))
            }
            _ => None,
        };
        let mut params: Vec<f32> = spec.layout().initialise(3);
        for (k, p) in params.iter_mut().enumerate().filter(|(_, p)| **p == 0.0) {
            *p = 0.01 * Stream::new(4, Purpose::Test, 0, k as u64).normal() as f32;
        }
        let zero = vec![0f32; params.len()];
        Ok(Runner {
            name: format!("{terms}, N = {levels}"),
            step: Step::new(spec, plan, true, pool, Isa::detect())?.with_truth(truth),
            tables: [
                InMemory::new(system("mog40")?.sample(20_000, 5), spec.dim),
                InMemory::new(system("mog2")?.sample(20_000, 6), spec.dim),
            ],
            moments: [zero.clone(), zero.clone()],
            gradient: zero,
            params,
            number: 0,
            milliseconds: Vec::new(),
        })
    }

    /// So many whole steps: noise, loss, gradient, clipping, Adam.
    fn run(&mut self, spec: &ModelSpec, steps: usize) -> Result<()> {
        let identity = Standardisation::identity(spec.dim);
        let batch = self.step.plan().batch;
        let (start, _) = Shuffled::split(&self.tables[0], &identity, batch, 7, 0);
        let (end, _) = Shuffled::split(&self.tables[1], &identity, batch, 8, 0);
        let interpolant = spec.process.is_interpolant();
        let from = Endpoints {
            start: &start,
            end: interpolant.then_some(&end as &dyn Source),
        };
        let mut losses = Losses::default();
        for _ in 0..steps {
            let begin = Instant::now();
            let gradient = &mut self.gradient;
            self.step
                .run(&self.params, self.number, from, &mut losses, gradient)?;
            clip(gradient, Some(1.0));
            let [m, v] = &mut self.moments;
            Adam::default().update(self.number + 1, 1e-5, gradient, &mut self.params, m, v);
            self.number += 1;
            self.milliseconds.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        Ok(())
    }

    fn median(&self) -> f64 {
        // The first step touches its memory for the first time.
        let mut times = self.milliseconds[1..].to_vec();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let value =
        |flag: &str, default: usize| -> std::result::Result<usize, std::num::ParseIntError> {
            let place = args.iter().position(|a| a == flag);
            place
                .and_then(|i| args.get(i + 1))
                .map_or(Ok(default), |text| text.parse())
        };
    let (dim, rounds, steps) = (
        value("--dim", 8)?,
        value("--rounds", 5)?,
        value("--steps", 8)?,
    );
    let pool = Arc::new(Pool::new(value("--threads", 2)?));
    let diffusion = ModelSpec::new(dim, Process::by_name("vp")?);
    let interpolant = ModelSpec {
        network: NetworkSpec::Mlp {
            width: 64,
            depth: 4,
        },
        form: Form::InnerProductPlusScalar,
        velocity: true,
        ..ModelSpec::new(dim, Process::by_name("linear")?)
    };
    for (spec, sums) in [
        (&diffusion, &DIFFUSION[..]),
        (&interpolant, &INTERPOLANT[..]),
    ] {
        let mut runners = Vec::new();
        for (terms, levels) in sums {
            runners.push(Runner::new(spec, terms, *levels, pool.clone())?);
        }
        for _ in 0..rounds {
            for runner in &mut runners {
                runner.run(spec, steps)?;
            }
        }
        let base = runners[0].median();
        println!(
            "{}, d = {dim}, {EVALUATIONS} score evaluations a step; dsm takes {base:.2} ms",
            spec.process.name()
        );
        for runner in &runners {
            let ratio = runner.median() / base;
            println!("{:<52} {ratio:>6.2}", runner.name);
        }
    }
    Ok(())
}
