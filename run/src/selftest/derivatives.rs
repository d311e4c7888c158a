//! Derivatives against differences, densities against closed forms.

use super::{Finding, Rows, normals, random_params, small_spec, step, worst};
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, LearnedEnergy, Prior};
use diffclf::engine::{Isa, Pool};
use diffclf::process::Process;
use diffclf::system::{Covariance, GaussianMixture};
use diffclf::train::Losses;
use std::sync::Arc;

/// Parameter gradients of DSM and DiffCLF against central differences, every parameter.
pub(super) fn gradients(process: &str) -> diffclf::Result<Finding> {
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

pub(super) fn network_derivatives() -> diffclf::Result<Finding> {
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

pub(super) fn mixture_derivatives() -> diffclf::Result<Finding> {
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
pub(super) fn mixture_mass() -> diffclf::Result<Finding> {
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
pub(super) fn gaussian() -> diffclf::Result<Finding> {
    let mut largest = 0.0f64;
    for process in ["vp", "ve", "edm"] {
        let spec = small_spec(process)?;
        let zeros = vec![0.0; spec.layout().len()];
        let time = 0.4 * spec.process.horizon();
        let Prior { mean, std } = Prior::new(&spec.process, time, &spec.mean, spec.variance);
        let std = std.diagonal(0);
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
