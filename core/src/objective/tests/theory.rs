//! The theory of the objectives, proved by numbers on exact asymmetric mixtures: what is least at the true marginals, what cannot
//! be seen, which limits hold with which constants, and what more levels buy. The losses are those of `formulas`, which
//! `values` compares with the graph. Misprints of the paper that these tests show are listed in docs/errata.md.

mod averages;
mod blindness;
mod covariance;
mod invariance;
mod limits;
mod minima;

use super::formulas::{Model, Row};
use super::*;
use crate::energy::{Energy, Velocity};
use crate::objective::anchor::anchors;
use crate::process::{Linear, Spacing, TimeGrid, VariancePreserving};

/// Something added to the exact log-density: a function of time and point.
type Change<'a> = &'a dyn Fn(f64, &[f64]) -> f64;

/// The exact log-density of a path plus a change, and its velocity scaled by a factor.
struct Changed<'a> {
    path: &'a ExactPath,
    change: Change<'a>,
    speed: f64,
}

/// Five-point central difference.
fn difference(h: f64, f: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

fn moved(y: &[f64], i: usize, h: f64) -> Vec<f64> {
    let mut y = y.to_vec();
    y[i] += h;
    y
}

impl Model for Changed<'_> {
    fn log_density(&self, time: f64, y: &[f64]) -> f64 {
        let mut out = [0.0];
        self.path.log_density(&[time], y, &mut out);
        out[0] + (self.change)(time, y)
    }

    fn score(&self, time: f64, y: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; y.len()];
        self.path.score(&[time], y, &mut out);
        for (i, out) in out.iter_mut().enumerate() {
            *out += difference(1e-3, |h| (self.change)(time, &moved(y, i, h)));
        }
        out
    }

    fn time_score(&self, time: f64, y: &[f64]) -> f64 {
        let mut out = [0.0];
        self.path.time_score(&[time], y, &mut out);
        out[0] + difference(1e-3, |h| (self.change)(time + h, y))
    }

    fn hessian(&self, time: f64, y: &[f64], i: usize, j: usize) -> f64 {
        difference(1e-3, |h| self.score(time, &moved(y, i, h))[j])
    }

    fn velocity(&self, time: f64, y: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; y.len()];
        self.path.velocity(&[time], y, &mut out);
        out.iter_mut().for_each(|v| *v *= self.speed);
        out
    }
}

fn nothing(_: f64, _: &[f64]) -> f64 {
    0.0
}

fn mixture(dim: usize, weights: [f64; 2], means: &[f64], variances: [f64; 2]) -> GaussianMixture {
    let covariance = Covariance::Isotropic(variances.to_vec());
    GaussianMixture::new(dim, weights.to_vec(), means.to_vec(), covariance).unwrap()
}

fn vp() -> Process {
    Process::VariancePreserving(VariancePreserving {
        beta_min: 0.3,
        beta_max: 11.0,
    })
}

fn linear() -> Process {
    Process::Linear(Linear { a: 0.7 })
}

/// Two modes on a line, unequal in every respect, under a diffusion or towards two others.
fn line(process: Process) -> ExactPath {
    let start = mixture(1, [0.7, 0.3], &[-1.1, 0.9], [0.15, 0.3]);
    let end = process
        .is_interpolant()
        .then(|| mixture(1, [0.45, 0.55], &[0.4, 2.0], [0.5, 0.2]));
    ExactPath::new(process, start, end).unwrap()
}

/// The same in the plane.
fn plane(process: Process) -> ExactPath {
    let start = mixture(2, [0.7, 0.3], &[-1.1, 0.4, 0.9, -0.6], [0.15, 0.3]);
    let end = process
        .is_interpolant()
        .then(|| mixture(2, [0.45, 0.55], &[0.4, 1.0, 2.0, -0.3], [0.5, 0.2]));
    ExactPath::new(process, start, end).unwrap()
}

/// The definition of a model for a path: its weights over time depend on the data's moments.
fn spec_of(path: &ExactPath) -> ModelSpec {
    let start = path.start();
    ModelSpec {
        grid: TimeGrid::new(101, 0.05, 0.95, Spacing::Linear {}).unwrap(),
        mean: start.mean(),
        variance: start.variance(),
        ..ModelSpec::new(start.dim(), *path.process())
    }
}

/// Row number `number` of a batch: two times, not far from each other.
fn row<'a>(spec: &'a ModelSpec, path: &'a ExactPath, model: &'a dyn Model, number: u64) -> Row<'a> {
    let d = spec.dim;
    let mut stream = Stream::new(3, Purpose::Test, 1, number);
    let first = 0.15 + 0.6 * stream.uniform();
    let times = vec![first, first + 0.02 + 0.1 * stream.uniform()];
    let mut x0 = vec![0.0; d];
    path.start().sample_point(&mut stream, &mut x0);
    let mut x1 = vec![0.0; if path.end().is_some() { d } else { 0 }];
    if let Some(end) = path.end() {
        end.sample_point(&mut stream, &mut x1);
    }
    let mut normal = |n: usize| (0..n).map(|_| stream.normal()).collect::<Vec<f64>>();
    let mut pair = || vec![normal(d), normal(d)];
    let (noise, partner_noise) = (pair(), pair());
    let mut signs = || {
        let signs = |z: Vec<f64>| z.iter().map(|z| z.signum()).collect();
        pair().into_iter().map(signs).collect()
    };
    let probes = [signs(), signs()];
    let anchors = anchors(spec, &times, Stream::new(4, Purpose::Test, 2, number));
    Row {
        spec,
        model,
        backward: model,
        truth: path,
        times,
        x0,
        x1,
        noise,
        partner_noise,
        probes,
        end_noise: pair().swap_remove(0),
        anchors,
    }
}

/// Trapezoid rule on the line: for smooth functions that vanish at the ends its error is that of rounding.
fn integral(low: f64, high: f64, n: usize, f: impl Fn(f64) -> f64) -> f64 {
    let h = (high - low) / n as f64;
    (0..=n).map(|k| f(low + k as f64 * h)).sum::<f64>() * h
}

fn normal_density(x: f64, mean: f64, variance: f64) -> f64 {
    (-0.5 * (x - mean).powi(2) / variance).exp() / (std::f64::consts::TAU * variance).sqrt()
}
