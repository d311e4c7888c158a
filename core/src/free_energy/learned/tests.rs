//! Every route through paths that are known: exact ones with a constant of time, rows that belong together, and what is refused.

use super::*;
use crate::coupling::{Coupling, Shape};
use crate::energy::exact::ExactPath;
use crate::process::Linear;
use crate::system::{Covariance, GaussianMixture};

/// An exact path whose energy carries a known constant c(t) and a known F.
struct Shifted {
    inner: ExactPath,
}

fn constant(time: f64) -> f64 {
    0.7 * time * time - 1.3 * time
}

impl Energy for Shifted {
    fn dim(&self) -> usize {
        self.inner.dim()
    }
    fn free_energy(&self, time: f64) -> f64 {
        constant(time) + 0.05 * time
    }
    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.energy(times, points, out);
        for (i, out) in out.iter_mut().enumerate() {
            *out += constant(times[if times.len() == 1 { 0 } else { i }]);
        }
    }
    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.score(times, points, out);
    }
    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.inner.time_score(times, points, out);
        out.iter_mut().for_each(|out| *out += 0.05);
    }
}

fn mixture(weights: Vec<f64>, means: Vec<f64>, variances: Vec<f64>) -> GaussianMixture {
    GaussianMixture::new(2, weights, means, Covariance::Isotropic(variances)).unwrap()
}

/// On the exact path all routes give -c(1) + c(0) = 0.6, the ends correct for c, and the gap finds the error 0.05 t of F.
#[test]
fn every_route_through_an_exact_path_agrees() {
    let process = Process::Linear(Linear { a: 1.0 });
    let a = mixture(vec![2.0, 1.0], vec![-0.8, 0.3, 1.1, -0.4], vec![0.3, 0.5]);
    let b = mixture(vec![1.0, 3.0], vec![0.5, 1.0, -0.9, -1.2], vec![0.6, 0.2]);
    let path = ExactPath::new(process, a.clone(), Some(b.clone())).unwrap();
    let (x, end) = path.sample_endpoints(4000, 3);
    let y = end.unwrap();
    let energy = Shifted { inner: path };
    let times: Vec<f64> = (0..=24)
        .map(|i| 0.001 + 0.998 * f64::from(i) / 24.0)
        .collect();
    let samples = PathSamples::new(&process, 2, &times, (&x, Some(&y)), 400, 5).unwrap();
    assert_eq!(samples.count(), 400);
    let found = PathEstimate::new(&energy, &samples, &MbarSettings::default()).unwrap();
    let exact = constant(0.001) - constant(0.999);
    for (rule, delta) in &found.integrals {
        // Beyond the statistical error, that of the rules on 24 smooth intervals.
        assert!(
            (delta.mean - exact).abs() < 4.0 * delta.error + 0.01,
            "{rule:?} {delta:?} {exact}"
        );
    }
    assert!(
        (found.mbar.mean - exact).abs() < 4.0 * found.mbar.error,
        "{:?} {exact}",
        found.mbar
    );
    assert!((found.learned - exact + 0.05 * 0.998).abs() < 1e-12);
    let last = found.gaps.len() - 1;
    assert!((found.gaps[last].mean - 0.0499).abs() < 4.0 * found.gaps[last].error);
    assert!(
        found.blind.mean.abs() < 4.0 * found.blind.error,
        "{}",
        found.blind
    );
    assert!(found.integral(Rule::Spline).is_some());
    assert!(found.overlap.weak_links().is_empty());
    // States known by -log p + 0.4: log(Z_0 / Z_A) = -c(0) + 0.4.
    let own: Vec<f64> = x.chunks_exact(2).map(|x| 0.4 - a.log_density(x)).collect();
    let correction = end_correction(&energy, 0.001, &x, &own)
        .unwrap()
        .perturbation
        .exponential;
    let exact = 0.4 - constant(0.001);
    assert!(
        (correction.mean - exact).abs() < 4.0 * correction.error + 1e-3,
        "{correction:?}"
    );
    assert!(end_correction(&energy, 0.001, &x, &own[1..]).is_err());
}

#[test]
fn endpoints_must_fit_the_process() {
    let linear = Process::Linear(Linear { a: 1.0 });
    let rows = [0.0; 6];
    let times = [0.1, 0.9];
    assert!(PathSamples::new(&linear, 2, &times, (&rows, None), 5, 0).is_err());
    assert!(PathSamples::new(&linear, 4, &times, (&rows, Some(&rows)), 5, 0).is_err());
    assert!(PathSamples::new(&linear, 2, &[0.5, 0.5], (&rows, Some(&rows)), 5, 0).is_err());
    assert!(PathSamples::new(&linear, 2, &times, (&rows, Some(&[])), 5, 0).is_err());
    let vp = Process::by_name("vp").unwrap();
    assert!(PathSamples::new(&vp, 2, &times, (&rows, Some(&rows)), 5, 0).is_err());
    assert!(PathSamples::new(&vp, 2, &times, (&rows, None), 5, 0).is_ok());
}

/// Gaussians on a line whose rows keep their order: halfway their spreads are averaged, not their squares.
struct InOrder;

const ENDS: [(f64, f64); 2] = [(-0.4, 0.5), (0.9, 1.6)];

impl InOrder {
    /// Mean and variance, and their slopes in time.
    fn law(time: f64) -> [f64; 4] {
        let [(m, s), (n, r)] = ENDS;
        let (mean, spread) = ((1.0 - time) * m + time * n, (1.0 - time) * s + time * r);
        let noise = 0.2 * time * (1.0 - time);
        let slope = 2.0 * spread * (r - s) + 0.2 * (1.0 - 2.0 * time);
        [mean, spread * spread + noise, n - m, slope]
    }
}

impl Energy for InOrder {
    fn dim(&self) -> usize {
        1
    }
    fn free_energy(&self, time: f64) -> f64 {
        constant(time) - 0.5 * (std::f64::consts::TAU * InOrder::law(time)[1]).ln()
    }
    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        for (i, (out, y)) in out.iter_mut().zip(points).enumerate() {
            let time = times[i.min(times.len() - 1)];
            let [mean, variance, ..] = InOrder::law(time);
            *out = (y - mean).powi(2) / (2.0 * variance) + constant(time);
        }
    }
    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        for (i, (out, y)) in out.iter_mut().zip(points).enumerate() {
            let [mean, variance, ..] = InOrder::law(times[i.min(times.len() - 1)]);
            *out = -(y - mean) / variance;
        }
    }
    fn energy_rate(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        for (i, (out, y)) in out.iter_mut().zip(points).enumerate() {
            let time = times[i.min(times.len() - 1)];
            let [mean, variance, of_mean, of_variance] = InOrder::law(time);
            let u = (y - mean) / variance;
            *out = -u * of_mean - 0.5 * u * u * of_variance + 1.4 * time - 1.3;
        }
    }
    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.energy_rate(times, points, out);
        for (i, out) in out.iter_mut().enumerate() {
            let time = times[i.min(times.len() - 1)];
            let [_, variance, _, slope] = InOrder::law(time);
            *out = 1.4 * time - 1.3 - 0.5 * slope / variance - *out;
        }
    }
}

/// Rows that are paired by optimal transport, which on a line keeps their order: every route gives the answer of the Gaussians between them, and another path than independent pairs have.
#[test]
fn rows_that_belong_together_have_a_path_of_their_own() {
    let process = Process::Linear(Linear { a: 0.2 });
    let rows = |end: usize| -> Vec<f64> {
        let mut stream = Stream::new(8, Purpose::Test, end as u64, 0);
        let (mean, spread) = ENDS[end];
        (0..4000).map(|_| mean + spread * stream.normal()).collect()
    };
    let (x, y) = (rows(0), rows(1));
    let shape = Shape {
        dim: 1,
        particles: None,
        subspace: None,
    };
    let coupling = Coupling {
        rows: 1000,
        turn: false,
        alike: Vec::new(),
    };
    let pairs = coupling.pairs(shape, &x, &y, 3);
    let times: Vec<f64> = (0..=24)
        .map(|i| 0.001 + 0.998 * f64::from(i) / 24.0)
        .collect();
    let samples = PathSamples::of_pairs(&process, 1, &times, (&pairs, [4000; 2]), 1500, 5).unwrap();
    let found = PathEstimate::new(&InOrder, &samples, &MbarSettings::default()).unwrap();
    let exact = InOrder.free_energy(0.001) - InOrder.free_energy(0.999);
    let simpson = found.integral(Rule::Simpson).unwrap();
    assert!(simpson.error < 0.05 && found.mbar.error < 0.05);
    // Among 1000 rows the order is kept to a few per cent of the spread.
    for delta in [simpson, found.mbar] {
        assert!(
            (delta.mean - exact).abs() < 4.0 * delta.error + 0.01,
            "{delta:?} {exact}"
        );
    }
    let halfway = &samples.points[12 * 1500..13 * 1500];
    let [mean, variance, ..] = InOrder::law(times[12]);
    let spread = halfway.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / 1500.0;
    // Known to sqrt(2/1500) = 3.7 %; independent pairs have 0.75 where these have 1.15.
    assert!(
        (spread / variance - 1.0).abs() < 0.15,
        "{spread} {variance}"
    );
}
