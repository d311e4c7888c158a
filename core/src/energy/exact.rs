//! The exact path of Gaussian mixtures: log-density, score, time score, velocity and samples of Y_t under every process.
//!
//! With X_0 from sum_n w_n N(mu_n, Sigma_n) and X_1 from sum_m v_m N(nu_m, Lambda_m), independent, the law of
//! Y_t = alpha X_0 + beta X_1 + gamma Z is the mixture over pairs (n, m) of N(alpha mu_n + beta nu_m, C),
//! C = alpha^2 Sigma_n + beta^2 Lambda_m + gamma^2 I. A diffusion is the case of a single, absent second component.
//!
//! What can be done before the time is known, and what before the point is known, depends on the covariances, so there are three
//! families: `isotropic` (scalar products only), `diagonal` (diagonal in fixed axes) and `dense` (an inverse per time and pair).

mod batch;
mod buffer;
mod dense;
mod diagonal;
mod draw;
mod isotropic;

use super::{Energy, Velocity};
use crate::process::Process;
use crate::system::log_sum::{log_softmax_sum, log_sum_exp};
use crate::system::{Covariance, GaussianMixture};
use crate::{Error, Result};
use batch::{Outputs, launch, threads_for};
use buffer::Buffer;
use std::thread;

/// alpha, beta, gamma^2 and their rates at one time.
#[derive(Clone, Copy, Debug)]
struct Coefficients {
    alpha: f64,
    alpha_rate: f64,
    beta: f64,
    beta_rate: f64,
    gamma_squared: f64,
    /// 2 gamma gamma', finite at the ends of an interpolant.
    gamma_squared_rate: f64,
}

impl Coefficients {
    fn at(process: &Process, time: f64) -> Self {
        Self {
            alpha: process.x0_scale(time),
            alpha_rate: process.x0_rate(time),
            beta: process.x1_scale(time),
            beta_rate: process.x1_rate(time),
            gamma_squared: process.noise(time).powi(2),
            gamma_squared_rate: 2.0 * process.noise_times_rate(time),
        }
    }

    /// alpha^2 s + beta^2 l + gamma^2.
    fn variance(&self, start: f64, end: f64) -> f64 {
        self.alpha * self.alpha * start + self.beta * self.beta * end + self.gamma_squared
    }

    /// d/dt of [`Self::variance`].
    fn variance_rate(&self, start: f64, end: f64) -> f64 {
        2.0 * (self.alpha * self.alpha_rate * start + self.beta * self.beta_rate * end)
            + self.gamma_squared_rate
    }
}

/// The part of the mixtures that does not depend on time.
trait Family: Send + Sync {
    /// Everything about one time that does not depend on the point.
    fn slice(&self, coefficients: Coefficients) -> AnySlice<'_>;
    /// Numbers [`Family::prepare`] writes per point.
    fn prepared_len(&self) -> usize;
    /// Everything about one point that does not depend on time.
    fn prepare(&self, point: &[f64], prepared: &mut [f64]);
    /// Numbers a slice holds, so that many slices stay within memory.
    fn slice_len(&self) -> usize;
}

/// The marginal at one time. `shares` are the responsibilities of the components, `prepared` comes from the family.
trait Slice: Send + Sync {
    /// Writes log weight + log N for every component (n, m), m fastest.
    fn log_components(&self, point: &[f64], prepared: &[f64], out: &mut [f64]);
    /// Writes grad log p.
    fn score(&self, point: &[f64], prepared: &[f64], shares: &[f64], out: &mut [f64]);
    /// d/dt log p.
    fn time_score(&self, point: &[f64], prepared: &[f64], shares: &[f64]) -> f64;
    /// Writes E[alpha' X_0 + beta' X_1 | Y_t = y].
    fn velocity(&self, point: &[f64], prepared: &[f64], shares: &[f64], out: &mut [f64]);
}

/// A slice of any family.
enum AnySlice<'a> {
    Isotropic(isotropic::IsotropicSlice<'a>),
    Diagonal(diagonal::DiagonalSlice<'a>),
    Dense(dense::DenseSlice<'a>),
}

impl<'a> std::ops::Deref for AnySlice<'a> {
    type Target = dyn Slice + 'a;

    fn deref(&self) -> &(dyn Slice + 'a) {
        match self {
            AnySlice::Isotropic(slice) => slice,
            AnySlice::Diagonal(slice) => slice,
            AnySlice::Dense(slice) => slice,
        }
    }
}

/// The weights, means and sizes that all families share. A diffusion has one end component of mean 0 and variance 0.
struct Pairs {
    dim: usize,
    starts: usize,
    ends: usize,
    /// log (w_n v_m), m fastest.
    log_weights: Vec<f64>,
    start_means: Vec<f64>,
    end_means: Vec<f64>,
}

impl Pairs {
    fn new(start: &GaussianMixture, end: Option<&GaussianMixture>) -> Self {
        let dim = start.dim();
        let (end_weights, end_means) = match end {
            Some(end) => (end.weights().to_vec(), end.means().to_vec()),
            None => (vec![1.0], vec![0.0; dim]),
        };
        Self {
            dim,
            starts: start.components(),
            ends: end_weights.len(),
            log_weights: start
                .weights()
                .iter()
                .flat_map(|w| end_weights.iter().map(move |v| (w * v).ln()))
                .collect(),
            start_means: start.means().to_vec(),
            end_means,
        }
    }

    fn len(&self) -> usize {
        self.starts * self.ends
    }

    fn start_mean(&self, n: usize) -> &[f64] {
        &self.start_means[n * self.dim..][..self.dim]
    }

    fn end_mean(&self, m: usize) -> &[f64] {
        &self.end_means[m * self.dim..][..self.dim]
    }
}

/// Below this share a component adds nothing in double precision.
const NEGLIGIBLE: f64 = 1e-40;

/// The exact marginals of a process between Gaussian mixtures. As an [`Energy`] it has F = 0 and U = -log p.
///
/// ```
/// use diffclf::energy::{Energy, exact::ExactPath};
/// use diffclf::process::Process;
/// use diffclf::system::two_modes;
/// let path = ExactPath::new(Process::by_name("vp")?, two_modes()?, None)?;
/// let points = path.sample(0.3, 4, 1);
/// let mut log_density = [0.0; 4];
/// path.log_density(&[0.3], &points, &mut log_density);
/// # Ok::<(), diffclf::Error>(())
/// ```
pub struct ExactPath {
    process: Process,
    start: GaussianMixture,
    end: Option<GaussianMixture>,
    components: usize,
    family: Box<dyn Family>,
}

impl std::fmt::Debug for ExactPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExactPath")
            .field("process", &self.process)
            .field("start", &self.start)
            .field("end", &self.end)
            .finish()
    }
}

impl ExactPath {
    /// The path of a diffusion from `start` (no `end`), or of an interpolant from `start` to `end`.
    pub fn new(
        process: Process,
        start: GaussianMixture,
        end: Option<GaussianMixture>,
    ) -> Result<Self> {
        process.validate()?;
        if process.is_interpolant() != end.is_some() {
            return Err(Error::Value {
                name: "end of the exact path",
                found: if end.is_some() {
                    "a mixture".into()
                } else {
                    "none".into()
                },
                expected: format!(
                    "{} for the {} process",
                    if process.is_interpolant() {
                        "a mixture"
                    } else {
                        "none"
                    },
                    process.name()
                ),
            });
        }
        if let Some(end) = &end
            && end.dim() != start.dim()
        {
            return Err(Error::Shape {
                what: "end of the exact path".into(),
                found: format!("dimension {}", end.dim()),
                expected: format!("{}, the dimension of the start", start.dim()),
            });
        }
        let pairs = Pairs::new(&start, end.as_ref());
        let components = pairs.len();
        let mixtures = || std::iter::once(&start).chain(&end);
        let family: Box<dyn Family> =
            if mixtures().all(|mixture| matches!(mixture.covariance(), Covariance::Isotropic(_))) {
                Box::new(isotropic::Isotropic::new(pairs, &start, end.as_ref()))
            } else if end.is_none()
                || mixtures().all(|mixture| !matches!(mixture.covariance(), Covariance::Full(_)))
            {
                Box::new(diagonal::Diagonal::new(pairs, &start, end.as_ref()))
            } else {
                Box::new(dense::Dense::new(pairs, mixtures()))
            };
        Ok(Self {
            process,
            start,
            end,
            components,
            family,
        })
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The law of X_0.
    pub fn start(&self) -> &GaussianMixture {
        &self.start
    }

    /// The law of X_1, for interpolants.
    pub fn end(&self) -> Option<&GaussianMixture> {
        self.end.as_ref()
    }

    /// Probability of every component of X_0 given Y_t = y: `out` has one row of start components per point.
    pub fn start_responsibilities(&self, time: f64, points: &[f64], out: &mut [f64]) {
        let slice = self.slice(time);
        let mut prepared = vec![0.0; self.family.prepared_len()];
        let mut shares = vec![0.0; self.components];
        let starts = self.start.components();
        let rows = points
            .chunks_exact(self.start.dim())
            .zip(out.chunks_exact_mut(starts));
        for (point, row) in rows {
            self.family.prepare(point, &mut prepared);
            slice.log_components(point, &prepared, &mut shares);
            log_softmax_sum(&mut shares);
            for (value, ends) in row
                .iter_mut()
                .zip(shares.chunks_exact(self.components / starts))
            {
                *value = ends.iter().sum();
            }
        }
    }

    fn slice(&self, time: f64) -> AnySlice<'_> {
        self.family.slice(Coefficients::at(&self.process, time))
    }

    /// Evaluates what is asked for, rows split over threads.
    fn run(&self, times: &[f64], points: &[f64], outputs: Outputs<'_>) {
        let dim = self.start.dim();
        let rows = points.len() / dim;
        // With one time for all, its slice is made once and shared.
        let shared = if let [time] = times {
            Some(self.slice(*time))
        } else {
            None
        };
        let shared = shared.as_deref();
        let chunk = rows
            .div_ceil(threads_for(rows * dim * self.components))
            .max(1);
        if rows <= chunk {
            return self.run_rows(shared, times, points, outputs);
        }
        thread::scope(|scope| {
            let mut rest = outputs;
            for (block, part) in points.chunks(chunk * dim).enumerate() {
                let (head, tail) = rest.split(part.len() / dim, dim);
                rest = tail;
                let times = if shared.is_some() {
                    times
                } else {
                    &times[block * chunk..]
                };
                let work = move || self.run_rows(shared, times, part, head);
                launch(scope, rows > chunk, work);
            }
        });
    }

    fn run_rows(
        &self,
        shared: Option<&dyn Slice>,
        times: &[f64],
        points: &[f64],
        mut outputs: Outputs<'_>,
    ) {
        let dim = self.start.dim();
        let mut prepared = Buffer::zeros(self.family.prepared_len());
        let mut shares = Buffer::zeros(self.components);
        let mut last: Option<(f64, AnySlice<'_>)> = None;
        for (i, point) in points.chunks_exact(dim).enumerate() {
            let slice = match shared {
                Some(slice) => slice,
                // Rows often share their time with the row before.
                None => {
                    let entry = last.take().filter(|(time, _)| *time == times[i]);
                    &*last
                        .insert(entry.unwrap_or_else(|| (times[i], self.slice(times[i]))))
                        .1
                }
            };
            self.family.prepare(point, &mut prepared);
            slice.log_components(point, &prepared, &mut shares);
            let log_density = log_softmax_sum(&mut shares);
            if let Some(out) = &mut outputs.energy {
                out[i] = -log_density;
            }
            if let Some(out) = &mut outputs.score {
                slice.score(point, &prepared, &shares, &mut out[i * dim..][..dim]);
            }
            if let Some(out) = &mut outputs.time_score {
                out[i] = slice.time_score(point, &prepared, &shares);
            }
            if let Some(out) = &mut outputs.velocity {
                slice.velocity(point, &prepared, &shares, &mut out[i * dim..][..dim]);
            }
        }
    }
}

impl Velocity for ExactPath {
    fn dim(&self) -> usize {
        self.start.dim()
    }

    fn velocity(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.run(
            times,
            points,
            Outputs {
                velocity: Some(out),
                ..Outputs::default()
            },
        );
    }
}

impl Energy for ExactPath {
    fn dim(&self) -> usize {
        self.start.dim()
    }

    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }

    fn energy(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.run(
            times,
            points,
            Outputs {
                energy: Some(out),
                ..Outputs::default()
            },
        );
    }

    fn score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.run(
            times,
            points,
            Outputs {
                score: Some(out),
                ..Outputs::default()
            },
        );
    }

    fn energy_and_score(
        &self,
        times: &[f64],
        points: &[f64],
        energy: &mut [f64],
        score: &mut [f64],
    ) {
        self.run(
            times,
            points,
            Outputs {
                energy: Some(energy),
                score: Some(score),
                ..Outputs::default()
            },
        );
    }

    fn time_score(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        self.run(
            times,
            points,
            Outputs {
                time_score: Some(out),
                ..Outputs::default()
            },
        );
    }

    fn log_density_grid(&self, times: &[f64], points: &[f64], out: &mut [f64]) {
        /// Numbers that the slices of one block of times may hold together (64 MB).
        const BUDGET: usize = 1 << 23;
        let (dim, width) = (self.start.dim(), times.len());
        let rows = points.len() / dim;
        let block = (BUDGET / self.family.slice_len()).max(1);
        let chunk = rows
            .div_ceil(threads_for(rows * self.components * width))
            .max(1);
        for (b, block_times) in times.chunks(block).enumerate() {
            let slices: Vec<_> = block_times.iter().map(|&time| self.slice(time)).collect();
            let slices = &slices;
            thread::scope(|scope| {
                for (part, out) in points
                    .chunks(chunk * dim)
                    .zip(out.chunks_mut(chunk * width))
                {
                    let work = move || {
                        let mut prepared = vec![0.0; self.family.prepared_len()];
                        let mut shares = vec![0.0; self.components];
                        for (point, row) in part.chunks_exact(dim).zip(out.chunks_exact_mut(width))
                        {
                            self.family.prepare(point, &mut prepared);
                            for (slice, value) in slices.iter().zip(&mut row[b * block..]) {
                                slice.log_components(point, &prepared, &mut shares);
                                *value = log_sum_exp(&mut shares);
                            }
                        }
                    };
                    launch(scope, rows > chunk, work);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests;
