//! Blindness: how much each kind of loss sees of a change of the data's density, such as other mixture weights. Losses of
//! derivatives (score, time score, Fokker-Planck) hardly see what happens between separate modes; classification does.

use super::Estimate;
use crate::energy::Energy;
use crate::energy::exact::ExactPath;
use crate::system::log_sum::log_sum_exp;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["ouyang2026diffclf"];

/// By how much each loss rises when the marginals `p` of a diffusion are replaced by those of another one, `q`; means over
/// samples of `p`. The first time is the one whose derivatives are compared; all times are the classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blindness {
    /// `E |grad log q - grad log p|^2`: the rise of (denoising) score matching, unweighted.
    pub score: Estimate,
    /// `E |grad log p|^2`, for comparison.
    pub score_size: Estimate,
    /// `E (d/dt log q - d/dt log p)^2`: the rise of (conditional) time score matching.
    pub time_score: Estimate,
    /// `E (d/dt log p)^2`.
    pub time_score_size: Estimate,
    /// `E R^2`, the squared Fokker-Planck residual of `q`: zero, since `q` obeys the same equation.
    pub fokker_planck: Estimate,
    /// Rise of the cross-entropy of telling the times apart, in nats.
    pub classification: Estimate,
    /// The cross-entropy itself at `p`.
    pub classification_size: Estimate,
}

/// Compares `changed` with `reference`, two paths of the same diffusion; `samples` points of `reference` at each time.
pub fn blindness(
    reference: &ExactPath,
    changed: &ExactPath,
    times: &[f64],
    samples: usize,
    seed: u64,
) -> Result<Blindness> {
    let process = reference.process();
    if process.is_interpolant() || process != changed.process() || times.len() < 2 || samples < 2 {
        return Err(Error::Value {
            name: "comparison of paths",
            found: format!(
                "{} and {}, {} times, {samples} samples",
                process.name(),
                changed.process().name(),
                times.len()
            ),
            expected: "one diffusion, at least two times and two samples".into(),
        });
    }
    let (d, t) = (reference.start().dim(), times[0]);
    let points = reference.sample(t, samples, seed);
    let both = |f: &dyn Fn(&ExactPath, &mut [f64]), width: usize| {
        [reference, changed].map(|path| {
            let mut out = vec![0.0; samples * width];
            f(path, &mut out);
            out
        })
    };
    let scores = both(&|path, out| path.score(&[t], &points, out), d);
    let rates = both(&|path, out| path.time_score(&[t], &points, out), 1);
    let rows = |f: &dyn Fn(usize) -> f64| Estimate::of(&(0..samples).map(f).collect::<Vec<_>>());
    let row = |values: &[f64], i: usize| values[i * d..(i + 1) * d].to_vec();
    let distance = |i: usize| {
        let (p, q) = (row(&scores[0], i), row(&scores[1], i));
        p.iter().zip(&q).map(|(p, q)| (p - q).powi(2)).sum()
    };
    let residuals = residuals(changed, t, &points, &scores[1], &rates[1]);
    let (rise, size) = classification(reference, changed, times, samples, seed);
    Ok(Blindness {
        score: rows(&distance),
        score_size: rows(&|i| row(&scores[0], i).iter().map(|s| s * s).sum()),
        time_score: rows(&|i| (rates[1][i] - rates[0][i]).powi(2)),
        time_score_size: rows(&|i| rates[0][i].powi(2)),
        fokker_planck: rows(&|i| residuals[i].powi(2)),
        classification: Estimate::of(&rise),
        classification_size: Estimate::of(&size),
    })
}

/// `d/dt log p - [g^2/2 (lap log p + |score|^2) - f y . score - d f]`, the Laplacian by central differences of the score.
fn residuals(path: &ExactPath, t: f64, points: &[f64], scores: &[f64], rates: &[f64]) -> Vec<f64> {
    let d = path.start().dim();
    let (f, g2) = (path.process().drift(t), path.process().diffusion_squared(t));
    let h = 1e-4 * path.process().noise(t).max(1e-3);
    let mut laplacian = vec![0.0; rates.len()];
    for c in 0..d {
        let mut shifted = [1.0, -1.0].map(|sign| {
            let mut points = points.to_vec();
            points.chunks_exact_mut(d).for_each(|y| y[c] += sign * h);
            let mut out = vec![0.0; points.len()];
            path.score(&[t], &points, &mut out);
            out
        });
        let [plus, minus] = &mut shifted;
        for (i, sum) in laplacian.iter_mut().enumerate() {
            *sum += (plus[i * d + c] - minus[i * d + c]) / (2.0 * h);
        }
    }
    let residual = |(i, rate): (usize, &f64)| {
        let (y, score) = (&points[i * d..][..d], &scores[i * d..][..d]);
        let square: f64 = score.iter().map(|s| s * s).sum();
        let inner: f64 = y.iter().zip(score).map(|(y, s)| y * s).sum();
        rate - (0.5 * g2 * (laplacian[i] + square) - f * inner - d as f64 * f)
    };
    rates.iter().enumerate().map(residual).collect()
}

/// Per sample: the rise of the cross-entropy among the times, and its value at the reference.
fn classification(
    reference: &ExactPath,
    changed: &ExactPath,
    times: &[f64],
    samples: usize,
    seed: u64,
) -> (Vec<f64>, Vec<f64>) {
    let (mut rise, mut size) = (Vec::new(), Vec::new());
    for (own, &t) in times.iter().enumerate() {
        let points = reference.sample(t, samples, seed);
        let mut grids = [reference, changed].map(|path| {
            let mut grid = vec![0.0; samples * times.len()];
            path.log_density_grid(times, &points, &mut grid);
            grid
        });
        let [p, q] = &mut grids;
        let loss = |row: &mut [f64]| {
            let right = row[own];
            log_sum_exp(row) - right
        };
        let rows = p
            .chunks_exact_mut(times.len())
            .zip(q.chunks_exact_mut(times.len()));
        for (p, q) in rows {
            let here = loss(p);
            rise.push(loss(q) - here);
            size.push(here);
        }
    }
    (rise, size)
}

/// The four panels of the paper's figure on blindness, for one mixture on the line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlindnessPanels {
    /// Density at the first time.
    pub density: Vec<f64>,
    /// Score there.
    pub score: Vec<f64>,
    /// Time score there.
    pub time_score: Vec<f64>,
    /// Probability of the first time among all, given a point.
    pub posterior: Vec<f64>,
}

/// The panels at these points of the line.
pub fn blindness_panels(
    path: &ExactPath,
    times: &[f64],
    points: &[f64],
) -> Result<BlindnessPanels> {
    if path.start().dim() != 1 || times.is_empty() {
        return Err(Error::Value {
            name: "panels of blindness",
            found: format!("dimension {}, {} times", path.start().dim(), times.len()),
            expected: "one dimension and at least one time".into(),
        });
    }
    let mut out = BlindnessPanels {
        density: vec![0.0; points.len()],
        score: vec![0.0; points.len()],
        time_score: vec![0.0; points.len()],
        posterior: vec![0.0; points.len()],
    };
    let first = &times[..1];
    path.log_density(first, points, &mut out.density);
    path.score(first, points, &mut out.score);
    path.time_score(first, points, &mut out.time_score);
    let mut grid = vec![0.0; points.len() * times.len()];
    path.log_density_grid(times, points, &mut grid);
    for (posterior, row) in out
        .posterior
        .iter_mut()
        .zip(grid.chunks_exact_mut(times.len()))
    {
        let own = row[0];
        *posterior = (own - log_sum_exp(row)).exp();
    }
    out.density.iter_mut().for_each(|p| *p = p.exp());
    Ok(out)
}
