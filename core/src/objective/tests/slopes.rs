//! Losses of time derivatives see F(t) through its slope: with the usual times, on a grid whose first cell spans a factor of 200 in
//! time, the best F for given energies is the integral of what the slope should be, not a Riemann sum.

use super::*;
use crate::energy::{Energy, LearnedEnergy};
use crate::network::NetworkSpec;
use crate::process::TimeGrid;

/// Two modes of different weight and width.
#[derive(Clone)]
struct Modes(GaussianMixture);

impl Source for Modes {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let mut point = [0.0];
        let mut stream = Stream::new(3, Purpose::Data, step, unit as u64);
        self.0.sample_point(&mut stream, &mut point);
        out[0] = point[0] as f32;
    }
}

fn modes() -> GaussianMixture {
    let covariance = Covariance::Isotropic(vec![0.05, 0.15]);
    GaussianMixture::new(1, vec![0.7, 0.3], vec![-1.1, 0.9], covariance).unwrap()
}

/// The slope that F should have at `time`: the mean of what the loss compares `dF/dt` with. For all but Fokker-Planck
/// that is the mean of `dU/dt`, since time scores of true densities have the mean 0.
fn wanted_slope(objective: &str, spec: &ModelSpec, energy: &dyn Energy, time: f64) -> f64 {
    let path = ExactPath::new(spec.process, modes(), None).unwrap();
    let (from, to, n) = (-8.0, 8.0, 2000);
    let h = (to - from) / n as f64;
    let points: Vec<f64> = (0..n).map(|k| from + h * (k as f64 + 0.5)).collect();
    let value = |f: &dyn Fn(&[f64], &mut [f64])| {
        let mut out = vec![0.0; n];
        f(&points, &mut out);
        out
    };
    let density = value(&|y, out| path.log_density(&[time], y, out));
    let mut slope = value(&|y, out| energy.energy_rate(&[time], y, out));
    if objective == "fokker-planck" {
        let step = 1e-4 * spec.process.noise(time);
        let score = |shift: f64| {
            value(&|y, out| {
                let moved: Vec<f64> = y.iter().map(|y| y + shift).collect();
                energy.score(&[time], &moved, out);
            })
        };
        let (here, left, right) = (score(0.0), score(-step), score(step));
        let half = 0.5 * spec.process.diffusion_squared(time);
        let drift = spec.process.drift(time);
        for (k, slope) in slope.iter_mut().enumerate() {
            let laplacian = (right[k] - left[k]) / (2.0 * step);
            *slope += half * (laplacian + here[k] * here[k]) - drift * (points[k] * here[k] + 1.0);
        }
    }
    let terms = density.iter().zip(&slope);
    terms.map(|(l, slope)| l.exp() * slope * h).sum()
}

/// The mean of `dF/dt` over a cell, by Gauss-Legendre quadrature in log t.
fn wanted_rise(objective: &str, spec: &ModelSpec, energy: &dyn Energy, cell: usize) -> f64 {
    let (low, high) = (
        spec.grid.times()[cell].ln(),
        spec.grid.times()[cell + 1].ln(),
    );
    let pieces = 8;
    let width = (high - low) / f64::from(pieces);
    let nodes = [
        (-0.6f64.sqrt(), 5.0 / 9.0),
        (0.0, 8.0 / 9.0),
        (0.6f64.sqrt(), 5.0 / 9.0),
    ];
    let mut rise = 0.0;
    for piece in 0..pieces {
        for (node, weight) in nodes {
            let time = (low + width * (f64::from(piece) + 0.5 + 0.5 * node)).exp();
            rise += 0.5 * width * weight * time * wanted_slope(objective, spec, energy, time);
        }
    }
    rise
}

#[test]
fn the_best_free_energy_is_the_integral_of_its_slope() {
    let data = modes();
    let process = Process::default();
    let spec = ModelSpec {
        grid: TimeGrid::default_for(&process).with_levels(48).unwrap(),
        network: NetworkSpec::Mlp { width: 8, depth: 2 },
        form: Form::InnerProductPlusScalar,
        features: 8,
        mean: data.mean(),
        variance: data.variance(),
        ..ModelSpec::new(1, process)
    };
    let levels = spec.grid.levels();
    let layout = spec.layout();
    // A network that is not zero, small enough that the energies are no caricature: its factor 1/sigma still makes U at the
    // smallest time some nats away from normalised.
    let mut params: Vec<f64> = layout.initialise(5);
    let table = params.len() - levels;
    let mut stream = Stream::new(5, Purpose::Test, 0, 0);
    for x in &mut params[..table] {
        *x += 0.02 * stream.normal();
    }
    let pool = Arc::new(Pool::new(1));
    let energy = LearnedEnergy::new(spec.clone(), params.clone(), pool, Isa::detect()).unwrap();
    let (cells, steps, batch) = ([0, 1, 5, 30], 40, 1500);
    for objective in ["ctsm", "tsm", "dre-infinity", "fokker-planck"] {
        let plan = StepSpec {
            terms: parse_terms(objective).unwrap(),
            levels: 1,
            batch,
            times: TimeSampler::default(),
            seed: 11,
            part: Part::Training,
        };
        let truth = ExactPath::new(spec.process, data.clone(), None).unwrap();
        let mut step = Step::<f64>::new(&spec, plan, true, Arc::new(Pool::new(1)), Isa::detect())
            .unwrap()
            .with_truth(Some(Arc::new(truth)));
        let from = Endpoints {
            start: Arc::new(Modes(data.clone())),
            end: None,
        };
        // The loss is (nearly) a square in each rise of F, so its slopes at two values of a rise give the best one.
        let mut exact = vec![0.0; levels - 1];
        for cell in cells {
            exact[cell] = wanted_rise(objective, &spec, &energy, cell);
        }
        let mut slopes = |number: u64, shift: f64| {
            let mut f = 0.0;
            for k in 0..levels {
                params[table + k] = f;
                f += exact.get(k).map_or(0.0, |rise| rise + shift);
            }
            let (mut losses, mut gradient) = (Losses::default(), vec![0.0; params.len()]);
            step.run(&params, number, &from, &mut losses, &mut gradient)
                .unwrap();
            let mut sum = 0.0;
            let rises = gradient[table..].iter().map(|g| {
                sum -= g;
                sum
            });
            rises.collect::<Vec<f64>>()
        };
        let mut sums = vec![[0.0; 3]; cells.len()];
        for number in 0..steps {
            let (low, high) = (slopes(number, -0.01), slopes(number, 0.01));
            for (sums, &cell) in sums.iter_mut().zip(&cells) {
                let (mean, rise) = (0.5 * (low[cell] + high[cell]), high[cell] - low[cell]);
                sums[0] += mean;
                sums[1] += mean * mean;
                sums[2] += rise / 0.02;
            }
        }
        for (sums, &cell) in sums.iter().zip(&cells) {
            let n = steps as f64;
            let [mean, square, curvature] = sums.map(|s| s / n);
            let error = ((square - mean * mean) / (n - 1.0)).sqrt() / curvature;
            let off = -mean / curvature;
            // dre-infinity is of first order in its delta of 0.01; the left Riemann sum of the first cell is some hundred times the
            // integral, and the slope at equally likely times with the weight tau^2 a tenth of it.
            let bound = 4.0 * error + 0.01 * exact[cell].abs();
            let found = format!(
                "{objective}, cell {cell}: {} off by {off} +- {error}",
                exact[cell]
            );
            assert!(off.abs() < bound, "{found}");
            assert!(
                cell > 0 || bound < 0.35 * exact[0].abs(),
                "too noisy to tell: {found}"
            );
        }
    }
}
