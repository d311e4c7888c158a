//! The kernels of a diffusion or an interpolant as proposals of sequential Monte Carlo (Phillips et al. 2024): where the process
//! would take a particle, and how likely the way back is.

use super::diffusion::Stepper;
use super::{Diffusivity, Integrator, ReverseSde};
use crate::energy::{Coordinates, Energy, Velocity};
use crate::process::Process;

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = &["phillips2024particle"];

/// Proposals between the levels of a path: `q(x | y)` from a level to the next, `f(y | x)` back.
pub trait Transport: Send + Sync {
    /// Dimension of a point.
    fn dim(&self) -> usize;

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

/// Gaussian kernels without correlations. A kernel says mean and variance; proposals and their densities follow.
pub trait GaussianKernels: Send + Sync {
    /// Dimension of a point.
    fn dim(&self) -> usize;

    /// Writes the mean of `q(. | y)` for every row `y` of `points` at time `from`; returns its variance in every coordinate.
    fn forth(&self, from: f64, to: f64, points: &[f64], mean: &mut [f64]) -> f64;

    /// Writes the mean of `f(. | x)` for every row `x` of `proposed` at time `to`; returns its variance in every coordinate.
    fn back(&self, from: f64, to: f64, proposed: &[f64], mean: &mut [f64]) -> f64;
}

impl<K: GaussianKernels> Transport for K {
    fn dim(&self) -> usize {
        GaussianKernels::dim(self)
    }

    fn propose(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        noise: &[f32],
        proposed: &mut [f64],
        log_density: &mut [f64],
    ) {
        let dim = GaussianKernels::dim(self);
        let variance = self.forth(from, to, points, proposed);
        let (kick, peak) = (variance.sqrt(), log_peak(variance, dim));
        for (x, z) in proposed.iter_mut().zip(noise) {
            *x += kick * f64::from(*z);
        }
        for (out, z) in log_density.iter_mut().zip(noise.chunks_exact(dim)) {
            *out = peak - 0.5 * z.iter().map(|z| f64::from(*z).powi(2)).sum::<f64>();
        }
    }

    fn log_return(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        proposed: &[f64],
        log_density: &mut [f64],
    ) {
        let dim = GaussianKernels::dim(self);
        let mut mean = vec![0.0; points.len()];
        let variance = self.back(from, to, proposed, &mut mean);
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

/// Proposals of a model's coordinates in those of its data: the same draws, densities less the volume of the map.
pub struct DataTransport<'a> {
    /// Proposals in the model's coordinates.
    pub inner: &'a dyn Transport,
    /// The map.
    pub map: &'a Coordinates,
}

impl DataTransport<'_> {
    fn inward(&self, points: &[f64]) -> Vec<f64> {
        let mut moved = points.to_vec();
        self.map.to_model(&mut moved);
        moved
    }

    fn less_volume(&self, log_density: &mut [f64]) {
        let volume = self.map.log_volume();
        log_density.iter_mut().for_each(|value| *value -= volume);
    }
}

impl Transport for DataTransport<'_> {
    fn dim(&self) -> usize {
        self.map.dim()
    }

    fn propose(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        noise: &[f32],
        proposed: &mut [f64],
        log_density: &mut [f64],
    ) {
        let points = self.inward(points);
        self.inner
            .propose(from, to, &points, noise, proposed, log_density);
        self.map.to_data(proposed);
        self.less_volume(log_density);
    }

    fn log_return(
        &self,
        from: f64,
        to: f64,
        points: &[f64],
        proposed: &[f64],
        log_density: &mut [f64],
    ) {
        let (points, proposed) = (self.inward(points), self.inward(proposed));
        self.inner
            .log_return(from, to, &points, &proposed, log_density);
        self.less_volume(log_density);
    }
}

/// `log N(0; 0, variance I)` in `dim` dimensions.
fn log_peak(variance: f64, dim: usize) -> f64 {
    -0.5 * dim as f64 * (std::f64::consts::TAU * variance).ln()
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

impl GaussianKernels for DiffusionKernels<'_> {
    fn dim(&self) -> usize {
        self.energy.dim()
    }

    fn forth(&self, from: f64, to: f64, points: &[f64], mean: &mut [f64]) -> f64 {
        let integrator = Integrator::Exponential;
        let step = ReverseSde { integrator }.transition(&self.process, from, to);
        self.energy.score(&[from], points, mean);
        for (x, y) in mean.iter_mut().zip(points) {
            *x = step.keep * y + step.pull * *x;
        }
        step.kick.powi(2)
    }

    fn back(&self, from: f64, to: f64, proposed: &[f64], mean: &mut [f64]) -> f64 {
        let scale = self.process.scale(from);
        let ratio = scale / self.process.scale(to);
        for (mean, x) in mean.iter_mut().zip(proposed) {
            *mean = ratio * x;
        }
        // S_from^2 (sigma_from^2 - sigma_to^2): no cancellation beyond that of the noise levels.
        let (a, b) = (self.process.noise_level(from), self.process.noise_level(to));
        scale * scale * (a - b) * (a + b)
    }
}

/// Interpolant: both directions by steps of its SDE with noise `g`, taken in the middle of a step, where it is the same both ways and,
/// between the ends, not zero. The drift is followed to second order (Heun): the way back of an Euler step misses where it came from by
/// `h^2 b grad b`, which must be small beside the noise `g sqrt(h)`, and with a small `g` is not.
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
    pub g: Diffusivity,
}

impl InterpolantKernels<'_> {
    /// Writes where the drift takes each row in the time `to - from`, started at `from`; returns the variance of the noise.
    fn step(&self, from: f64, to: f64, points: &[f64], out: &mut [f64]) -> f64 {
        let h = to - from;
        let g = self.g.at(&self.process, 0.5 * (from + to));
        let mut slope = vec![0.0; points.len()];
        self.drift(from, g, h, points, &mut slope);
        for ((out, y), slope) in out.iter_mut().zip(points).zip(&slope) {
            *out = y + h * slope;
        }
        let mut second = vec![0.0; points.len()];
        self.drift(to, g, h, out, &mut second);
        for (((out, y), a), b) in out.iter_mut().zip(points).zip(slope).zip(second) {
            *out = y + 0.5 * h * (a + b);
        }
        g * g * h.abs()
    }

    fn drift(&self, time: f64, g: f64, direction: f64, points: &[f64], out: &mut [f64]) {
        let pull = interpolant_pull(&self.process, time, g, direction);
        let mut score = vec![0.0; points.len()];
        self.energy.score(&[time], points, &mut score);
        self.velocity.velocity(&[time], points, out);
        for (out, score) in out.iter_mut().zip(score) {
            *out += pull * score;
        }
    }
}

/// Factor of the score in the drift of an interpolant's SDE with noise `g`, for steps with the sign of `direction`.
pub(super) fn interpolant_pull(process: &Process, time: f64, g: f64, direction: f64) -> f64 {
    0.5 * g * g * direction.signum() - process.noise_times_rate(time)
}

impl GaussianKernels for InterpolantKernels<'_> {
    fn dim(&self) -> usize {
        self.energy.dim()
    }

    fn forth(&self, from: f64, to: f64, points: &[f64], mean: &mut [f64]) -> f64 {
        self.step(from, to, points, mean)
    }

    fn back(&self, from: f64, to: f64, proposed: &[f64], mean: &mut [f64]) -> f64 {
        self.step(to, from, proposed, mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::Scale;
    use crate::energy::exact::ExactPath;
    use crate::system::{Covariance, GaussianMixture};

    /// Proposals in the data's coordinates are those of a Gaussian there: one column at a time, its density by the formula.
    #[test]
    fn proposals_move_with_the_coordinates() {
        let process = Process::by_name("vp").unwrap();
        let law = GaussianMixture::new(
            2,
            vec![0.7, 0.3],
            vec![-1.0, 0.4, 1.5, -0.2],
            Covariance::Isotropic(vec![0.2, 0.1]),
        )
        .unwrap();
        let exact = ExactPath::new(process, law, None).unwrap();
        let inner = DiffusionKernels {
            process,
            energy: &exact,
        };
        let map = Coordinates {
            shift: vec![5.0, -3.0],
            scale: Scale::Columns(vec![2.5, 0.6]),
            kinds: Vec::new(),
        };
        let moved = DataTransport {
            inner: &inner,
            map: &map,
        };
        let (from, to) = (0.5, 0.4);
        let (y, noise) = ([3.0, -1.1], [0.8f32, -1.3]);
        let (mut x, mut forth, mut back) = ([0.0; 2], [0.0], [0.0]);
        moved.propose(from, to, &y, &noise, &mut x, &mut forth);
        moved.log_return(from, to, &y, &x, &mut back);
        let normal = |x: f64, mean: f64, std: f64| {
            -0.5 * ((x - mean) / std).powi(2) - (std * std::f64::consts::TAU.sqrt()).ln()
        };
        let (mut y_model, mut x_model) = (y, x);
        map.to_model(&mut y_model);
        map.to_model(&mut x_model);
        let (mut mean, mut origin) = ([0.0; 2], [0.0; 2]);
        let there = inner.forth(from, to, &y_model, &mut mean);
        let here = inner.back(from, to, &x_model, &mut origin);
        map.to_data(&mut mean);
        map.to_data(&mut origin);
        let (mut log_q, mut log_f) = (0.0, 0.0);
        for i in 0..2 {
            let scale = map.scale.diagonal(i);
            log_q += normal(x[i], mean[i], scale * there.sqrt());
            log_f += normal(y[i], origin[i], scale * here.sqrt());
            let expected = mean[i] + scale * there.sqrt() * f64::from(noise[i]);
            assert!((x[i] - expected).abs() < 1e-12);
        }
        assert!((forth[0] - log_q).abs() < 1e-6, "{} {log_q}", forth[0]);
        assert!((back[0] - log_f).abs() < 1e-10, "{} {log_f}", back[0]);
    }

    /// Forth and back without noise misses the start by a term of fourth order in the step (those of third order cancel): halving it leaves a sixteenth.
    #[test]
    fn the_way_back_of_an_interpolant_finds_the_start() {
        let mixture = |means: [f64; 2]| {
            let covariance = Covariance::Isotropic(vec![0.2, 0.1]);
            GaussianMixture::new(1, vec![0.7, 0.3], means.to_vec(), covariance).unwrap()
        };
        let process = Process::by_name("linear").unwrap();
        let exact =
            ExactPath::new(process, mixture([-1.0, 1.5]), Some(mixture([-0.4, 0.9]))).unwrap();
        let kernels = InterpolantKernels {
            process,
            velocity: &exact,
            energy: &exact,
            g: Diffusivity::Constant { value: 0.0 },
        };
        let points = [-1.2, -0.1, 0.3, 1.1];
        let miss = |h: f64| {
            let (mut there, mut back) = ([0.0; 4], [0.0; 4]);
            kernels.forth(0.6, 0.6 - h, &points, &mut there);
            kernels.back(0.6, 0.6 - h, &there, &mut back);
            let square = |(a, b): (&f64, &f64)| (a - b).powi(2);
            points.iter().zip(&back).map(square).sum::<f64>().sqrt()
        };
        let order = (miss(0.02) / miss(0.01)).log2();
        assert!((order - 4.0).abs() < 0.15, "{order}");
    }
}
