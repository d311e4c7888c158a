//! Every objective does what it is for: after a common score stage it lowers its own loss on rows of its own, and the densities
//! of the sum come to a stated distance from the true ones.

use super::*;
use crate::energy::exact::ExactPath;
use crate::energy::{Energy, LearnedEnergy};
use crate::objective::{closeness, parse_terms};
use crate::process::sampler::Close;
use crate::rng::{Part, Purpose, Stream};
use crate::system::{Covariance, GaussianMixture};

/// Rows of a mixture on a line.
#[derive(Clone)]
struct Modes(u32, GaussianMixture);

impl Source for Modes {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let mut point = [0.0];
        let mut stream = Stream::new(2, Purpose::Rows(self.0), step, unit as u64);
        self.1.sample_point(&mut stream, &mut point);
        out[0] = point[0] as f32;
    }
}

/// Two modes that overlap, of unlike weight and width.
fn start() -> GaussianMixture {
    let covariance = Covariance::Isotropic(vec![0.15, 0.3]);
    GaussianMixture::new(1, vec![0.65, 0.35], vec![-0.9, 1.1], covariance).unwrap()
}

fn end() -> GaussianMixture {
    let covariance = Covariance::Isotropic(vec![0.4, 0.2]);
    GaussianMixture::new(1, vec![0.3, 0.7], vec![-0.7, 0.8], covariance).unwrap()
}

struct Case {
    spec: ModelSpec,
    from: Endpoints,
    exact: Arc<ExactPath>,
}

impl Case {
    fn new(process: &str) -> Case {
        let process = Process::by_name(process).unwrap();
        let second = process.is_interpolant().then(end);
        let spec = ModelSpec {
            grid: TimeGrid::default_for(&process).with_levels(64).unwrap(),
            network: NetworkSpec::Mlp {
                width: 24,
                depth: 2,
            },
            features: 16,
            mean: start().mean(),
            variance: start().variance(),
            velocity: process.is_interpolant(),
            ..ModelSpec::new(1, process)
        };
        Case {
            spec,
            from: Endpoints {
                start: Arc::new(Modes(0, start())),
                end: second
                    .clone()
                    .map(|end| Arc::new(Modes(1, end)) as Arc<dyn Source>),
            },
            exact: Arc::new(ExactPath::new(process, start(), second).unwrap()),
        }
    }

    /// Parameters after `steps` steps of a sum, from `params`.
    fn train(&self, sum: &str, steps: u64, from: Option<&[f32]>) -> Vec<f32> {
        let terms = parse_terms(sum).unwrap();
        let times = match closeness(&terms) {
            Some(share) => TimeSampler::Close(Close { share }),
            None => TimeSampler::default(),
        };
        let mut settings = TrainSettings {
            seed: 4,
            times,
            average: Some(0.98),
            ..TrainSettings::two_stages(256, 0, steps, 2)
        };
        settings.stages.remove(0);
        settings.stages[0].objectives = terms;
        settings.stages[0].rate.peak = 5e-3;
        let pool = Arc::new(Pool::new(1));
        let from_rows = self.from.clone();
        let course = EnergyCourse::new(&self.spec, &settings, from_rows, None, pool, Isa::detect());
        let course = course.unwrap().with_truth(Some(self.exact.clone()));
        let mut run = Trainer::of(course, &settings).unwrap();
        if let Some(params) = from {
            let mut state = run.state().clone();
            state.params = params.to_vec();
            state.average = params.to_vec();
            run.resume(state).unwrap();
        }
        finish(&mut run).unwrap();
        run.averaged().to_vec()
    }

    /// The loss of one objective on batches of held-out draws, which are the same for all parameters.
    fn losses(&self, objective: &str, params: &[f32], batches: u64) -> Vec<f64> {
        let terms = parse_terms(objective).unwrap();
        let times = match closeness(&terms) {
            Some(share) => TimeSampler::Close(Close { share }),
            None => TimeSampler::default(),
        };
        let plan = StepSpec {
            terms,
            levels: 2,
            batch: 1000,
            times,
            seed: 8,
            part: Part::HeldOut,
        };
        let pool = Arc::new(Pool::new(1));
        let mut step = Step::<f32>::new(&self.spec, plan, false, pool, Isa::detect())
            .unwrap()
            .with_truth(Some(self.exact.clone()));
        let one = |number| {
            let mut losses = Losses::default();
            step.run(params, number, &self.from, &mut losses, &mut [])
                .unwrap();
            losses.total
        };
        (1_000_000..1_000_000 + batches).map(one).collect()
    }

    /// Mean over the true density of `|log p_model - log p|` at a time; `log p_model` is normalised by quadrature.
    fn distance(&self, params: &[f32], time: f64) -> f64 {
        let pool = Arc::new(Pool::new(1));
        let model = LearnedEnergy::new(self.spec.clone(), params.to_vec(), pool, Isa::detect());
        let (from, n, h) = (-6.0, 1200, 0.01);
        let points: Vec<f64> = (0..n).map(|k| from + h * (f64::from(k) + 0.5)).collect();
        let log_density = |energy: &dyn Energy| {
            let mut out = vec![0.0; points.len()];
            energy.log_density(&[time], &points, &mut out);
            let most = out.iter().fold(f64::MIN, |m, l| m.max(*l));
            let mass: f64 = out.iter().map(|l| (l - most).exp() * h).sum();
            out.iter_mut().for_each(|l| *l -= most + mass.ln());
            out
        };
        let (found, exact) = (log_density(&model.unwrap()), log_density(&*self.exact));
        let terms = found.iter().zip(&exact);
        terms.map(|(a, b)| b.exp() * (a - b).abs() * h).sum()
    }
}

/// Objectives that lower their own loss and leave a good density behind.
const BOTH: [&str; 15] = [
    "dsm",
    "diffclf",
    "binary-diffclf",
    "bregman(generator=js)",
    "bregman(generator=square)",
    "binary-bregman",
    "ctsm",
    "tsm",
    "dre-infinity",
    "target-score",
    "known-diffclf(ends=both)",
    "binary-bregman(generator=kl)",
    "binary-bregman(generator=log)",
    "binary-bregman(generator=square)",
    "bregman(generator=inverse)",
];

const DIFFUSION: [&str; 4] = [
    "known-diffclf",
    "fokker-planck",
    "fokker-planck(laplacian=exact)",
    "fokker-planck(laplacian=difference)",
];

/// Each objective of a list, to these distances in nats at t = 0.1.
fn check(process: &str, objectives: &[(&str, f64)]) {
    let case = Case::new(process);
    let fresh: Vec<f32> = case.spec.layout().initialise(4);
    let scored = case.train("dsm", 300, None);
    for &(objective, bound) in objectives {
        // DSM is judged against the start, what it leaves to the others against it.
        let (before, sum) = match objective {
            "dsm" => (&fresh, "dsm".into()),
            "velocity" => (&scored, "dsm+diffclf+velocity".into()),
            _ => (&scored, format!("dsm+{objective}")),
        };
        let after = case.train(&sum, 400, Some(&scored));
        let [before, now] = [before, &after].map(|params| case.losses(objective, params, 32));
        let gains: Vec<f64> = before.iter().zip(&now).map(|(b, a)| b - a).collect();
        let n = gains.len() as f64;
        let mean = gains.iter().sum::<f64>() / n;
        let square = gains.iter().map(|g| (g - mean).powi(2)).sum::<f64>();
        let error = (square / (n * (n - 1.0))).sqrt();
        // Losses that contain density ratios have means that rest on few draws: there the batches are counted.
        let risen = gains.iter().filter(|gain| **gain <= 0.0).count();
        assert!(
            mean > 3.0 * error || risen <= 4,
            "{process}, {objective}: gain {mean} +- {error}, {risen} of 32 batches rose"
        );
        let distance = case.distance(&after, 0.1);
        assert!(distance < bound, "{process}, {objective}: {distance} nats");
    }
}

/// The Gaussian of the start is 0.43 nats away, score matching leaves 0.067, and what looks at all levels with so small a network up
/// to 0.14; the bound is half of the Gaussian's.
#[test]
fn every_objective_learns_a_diffusion() {
    let mut all: Vec<(&str, f64)> = BOTH
        .into_iter()
        .chain(DIFFUSION)
        .map(|o| (o, 0.2))
        .collect();
    // Without a weight the loss is that of the smallest time. Bayes' rule is biased (docs/errata.md): its loss falls, the density
    // does not become better.
    all.extend([("ctsm(weight=one)", 0.4), ("bayes", f64::INFINITY)]);
    check("vp", &all);
}

/// The zero network of the start is no density; score matching leaves 0.11 nats, and every sum less than half of that.
#[test]
fn every_objective_learns_an_interpolant() {
    let all: Vec<(&str, f64)> = BOTH
        .into_iter()
        .chain(["velocity"])
        .map(|o| (o, 0.055))
        .collect();
    check("linear", &all);
}
