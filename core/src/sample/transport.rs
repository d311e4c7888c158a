//! The kernels of a diffusion or an interpolant as proposals of sequential Monte Carlo (Phillips et al. 2024): where the process
//! would take a particle, and how likely the way back is.

use super::diffusion::Step;
use super::{Integrator, ReverseSde};
use crate::energy::{Energy, Velocity};
use crate::process::Process;

/// Gaussian kernels between the levels of a path: `q(x | y)` from a level to the next, `f(y | x)` back.
pub trait Transport: Send + Sync {
    /// Proposes `x ~ q(. | y)` for every row `y` of `points` at time `from`, using the standard normals `noise`, and writes
    /// `log q(x | y)`.
    fn propose(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        noise: &[f32],
        proposed: &mut [f64],
        log_density: &mut [f64],
    );

    /// Writes `log f(y | x)` for rows `y` of `points` at time `from` and `x` of `proposed` at time `to`.
    fn log_return(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        proposed: &[f64],
        log_density: &mut [f64],
    );
}

/// `log N(0; 0, variance I)` in `dim` dimensions.
fn log_peak(variance: f64, dim: usize) -> f64 {
    -0.5 * dim as f64 * (std::f64::consts::TAU * variance).ln()
}

/// Writes the log-density of `mean + std noise` under `N(mean, std^2 I)`.
fn log_of_noise(noise: &[f32], variance: f64, dim: usize, out: &mut [f64]) {
    let peak = log_peak(variance, dim);
    for (out, z) in out.iter_mut().zip(noise.chunks_exact(dim)) {
        *out = peak - 0.5 * z.iter().map(|z| f64::from(*z).powi(2)).sum::<f64>();
    }
}

/// Diffusion: back in time by the exponential integrator of the reverse SDE, forth by the exact noising kernel.
///
/// `f(y | x) = N(y; r x, gamma_from^2 - r^2 gamma_to^2)`, `r = S_from / S_to`.
pub struct DiffusionKernels<'a> {
    /// The process.
    pub process: Process,
    /// Its score drives the proposals; it need not be that of the path's densities.
    pub energy: &'a dyn Energy,
}

impl Transport for DiffusionKernels<'_> {
    fn propose(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        noise: &[f32],
        proposed: &mut [f64],
        log_density: &mut [f64],
    ) {
        let integrator = Integrator::Exponential;
        let step = ReverseSde { integrator }.transition(&self.process, from, to);
        self.energy.score(&[from], points, proposed);
        for ((x, y), z) in proposed.iter_mut().zip(points).zip(noise) {
            *x = step.keep * y + step.pull * *x + step.kick * f64::from(*z);
        }
        log_of_noise(noise, step.kick.powi(2), self.energy.dim(), log_density);
    }

    fn log_return(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        proposed: &[f64],
        log_density: &mut [f64],
    ) {
        let dim = self.energy.dim();
        let scale = self.process.scale(from);
        let ratio = scale / self.process.scale(to);
        // S_from^2 (sigma_from^2 - sigma_to^2): no cancellation beyond that of the noise levels.
        let (a, b) = (self.process.noise_level(from), self.process.noise_level(to));
        let variance = scale * scale * (a - b) * (a + b);
        let peak = log_peak(variance, dim);
        for ((out, y), x) in log_density
            .iter_mut()
            .zip(points.chunks_exact(dim))
            .zip(proposed.chunks_exact(dim))
        {
            let square: f64 = y.iter().zip(x).map(|(y, x)| (y - ratio * x).powi(2)).sum();
            *out = peak - 0.5 * square / variance;
        }
    }
}

/// Interpolant: both directions by Euler-Maruyama steps of its SDE with a constant noise `g`.
///
/// Towards larger times the drift is `v + (g^2/2 - gamma gamma') score`, towards smaller ones `v - (g^2/2 + gamma gamma') score`: each is
/// the time reversal of the other. (The paper writes one drift for both.)
pub struct InterpolantKernels<'a> {
    /// The process.
    pub process: Process,
    /// The velocity.
    pub velocity: &'a dyn Velocity,
    /// Its score enters the drift; it need not be that of the path's densities.
    pub energy: &'a dyn Energy,
    /// Noise of the SDE.
    pub g: f64,
}

impl InterpolantKernels<'_> {
    /// Writes where the drift takes each row in the time `to - from`, started at `from`.
    fn mean(&self, from: f64, to: f64, points: &[f64], out: &mut [f64]) {
        let h = to - from;
        let pull = interpolant_pull(&self.process, from, self.g, h);
        let mut score = vec![0.0; points.len()];
        self.energy.score(&[from], points, &mut score);
        self.velocity.velocity(&[from], points, out);
        for ((out, y), score) in out.iter_mut().zip(points).zip(score) {
            *out = y + h * (*out + pull * score);
        }
    }

    fn variance(&self, from: f64, to: f64) -> f64 {
        self.g * self.g * (to - from).abs()
    }
}

/// Factor of the score in the drift of an interpolant's SDE with noise `g`, for steps with the sign of `direction`.
pub(super) fn interpolant_pull(process: &Process, time: f64, g: f64, direction: f64) -> f64 {
    0.5 * g * g * direction.signum() - process.noise_times_rate(time)
}

impl Transport for InterpolantKernels<'_> {
    fn propose(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        noise: &[f32],
        proposed: &mut [f64],
        log_density: &mut [f64],
    ) {
        self.mean(from, to, points, proposed);
        let variance = self.variance(from, to);
        let kick = variance.sqrt();
        for (x, z) in proposed.iter_mut().zip(noise) {
            *x += kick * f64::from(*z);
        }
        log_of_noise(noise, variance, self.energy.dim(), log_density);
    }

    fn log_return(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        proposed: &[f64],
        log_density: &mut [f64],
    ) {
        let dim = self.energy.dim();
        let mut mean = vec![0.0; points.len()];
        self.mean(to, from, proposed, &mut mean);
        let variance = self.variance(from, to);
        let peak = log_peak(variance, dim);
        for ((out, y), mean) in log_density
            .iter_mut()
            .zip(points.chunks_exact(dim))
            .zip(mean.chunks_exact(dim))
        {
            let square: f64 = y.iter().zip(mean).map(|(y, m)| (y - m).powi(2)).sum();
            *out = peak - 0.5 * square / variance;
        }
    }
}
