//! Columns: the functions of time that a graph needs next to its points, with their time derivatives.

use super::spec::ModelSpec;

/// A function of time, one number per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// `1 / a(t)`, `a^2 = S^2 sd^2 + gamma^2`.
    InverseInputScale,
    /// `d/2 log(2 pi a^2)`.
    LogNormaliser,
    /// `sd / sigma`.
    Coupling,
    /// `sd / sqrt(sigma^2 + sd^2)`, the factor of the correction to a mixture.
    BaseCoupling,
    /// `S`.
    Scale,
    /// The network's time coordinate.
    Coordinate,
    /// Position between two levels of the grid, 0 to 1: the weight of the upper level's F.
    CellWeight,
    /// `gamma`.
    Noise,
    /// `gamma^2 w`, the factor of `|score + z/gamma|^2` in DSM divided by gamma^2 (so that `|gamma score + z|^2` is weighted):
    /// `(sigma^2 + sd^2) / sd^2` for diffusions, 1 for interpolants.
    DsmWeight,
    /// One that the energy does not know: number so many of [`Wiring::given`](super::Wiring).
    Given(u32),
}

/// A function of time from outside, such as the weight of an objective.
pub trait TimeFunction: std::fmt::Debug + Send + Sync {
    /// Its value.
    fn value(&self, spec: &ModelSpec, time: f64) -> f64;
}

/// Mean and standard deviation of the log-SNR over the grid, for the time coordinate.
#[derive(Debug, Clone, Copy)]
pub struct Coordinate {
    mean: f64,
    std: f64,
}

impl Coordinate {
    /// Statistics of the spec's grid.
    pub fn new(spec: &ModelSpec) -> Coordinate {
        if spec.process.is_interpolant() {
            return Coordinate {
                mean: 0.0,
                std: 1.0,
            };
        }
        let snr: Vec<f64> = spec
            .grid
            .times()
            .iter()
            .map(|&t| spec.process.log_snr(t))
            .collect();
        let mean = snr.iter().sum::<f64>() / snr.len() as f64;
        let variance = snr.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / snr.len() as f64;
        Coordinate {
            mean,
            std: variance.sqrt().max(1e-6),
        }
    }

    /// `0.3 (logSNR - mean) / std - 0.3` for diffusions, `2 t - 1` for interpolants.
    pub fn value(&self, spec: &ModelSpec, time: f64) -> f64 {
        if spec.process.is_interpolant() {
            2.0 * time - 1.0
        } else {
            0.3 * (spec.process.log_snr(time) - self.mean) / self.std - 0.3
        }
    }

    /// Its derivative in t.
    pub fn rate(&self, spec: &ModelSpec, time: f64) -> f64 {
        if spec.process.is_interpolant() {
            2.0
        } else {
            0.3 * spec.process.log_snr_rate(time) / self.std
        }
    }
}

/// Frequency of sine and cosine `k` of `half`: geometric from 1 to 16. The densities change smoothly with the log-SNR, and a
/// step of 1 in it is about 0.1 in the coordinate; higher frequencies would only let neighbouring levels drift apart.
pub fn frequency(k: usize, half: usize) -> f64 {
    if half == 1 {
        1.0
    } else {
        16f64.powf(k as f64 / (half - 1) as f64)
    }
}

/// Time features `[sin(w_k tau), cos(w_k tau)]` and their derivatives in t.
pub fn features(
    spec: &ModelSpec,
    coordinate: &Coordinate,
    time: f64,
    values: &mut [f64],
    rates: &mut [f64],
) {
    let half = spec.features / 2;
    let (tau, rate) = (coordinate.value(spec, time), coordinate.rate(spec, time));
    for k in 0..half {
        let w = frequency(k, half);
        let (sin, cos) = (w * tau).sin_cos();
        values[k] = sin;
        values[half + k] = cos;
        rates[k] = w * rate * cos;
        rates[half + k] = -w * rate * sin;
    }
}

/// `(a, a')` with `a^2 = S^2 sd^2 + gamma^2`.
fn input_scale(spec: &ModelSpec, time: f64) -> (f64, f64) {
    let p = &spec.process;
    let (s, gamma) = (p.scale(time), p.noise(time));
    let a = (s * s * spec.variance + gamma * gamma).sqrt();
    (
        a,
        (s * p.scale_rate(time) * spec.variance + p.noise_times_rate(time)) / a,
    )
}

impl Column {
    /// Value at `time`.
    pub fn value(self, spec: &ModelSpec, coordinate: &Coordinate, time: f64) -> f64 {
        let p = &spec.process;
        match self {
            Column::InverseInputScale => 1.0 / input_scale(spec, time).0,
            Column::LogNormaliser => {
                let a = input_scale(spec, time).0;
                spec.dim as f64 * (0.5 * (2.0 * std::f64::consts::PI).ln() + a.ln())
            }
            Column::Coupling => spec.variance.sqrt() / p.noise_level(time),
            Column::BaseCoupling => {
                let sigma = p.noise_level(time);
                (spec.variance / (sigma * sigma + spec.variance)).sqrt()
            }
            Column::Scale => p.scale(time),
            Column::Coordinate => coordinate.value(spec, time),
            Column::CellWeight => spec.grid.locate(time).1,
            Column::Noise => p.noise(time),
            Column::DsmWeight if p.is_interpolant() => 1.0,
            Column::DsmWeight => (p.noise_level(time).powi(2) + spec.variance) / spec.variance,
            Column::Given(_) => unreachable!("the wiring knows it"),
        }
    }

    /// Derivative at `time`, for the columns through which an energy depends on time.
    pub fn rate(self, spec: &ModelSpec, coordinate: &Coordinate, time: f64) -> f64 {
        let p = &spec.process;
        match self {
            Column::InverseInputScale => {
                let (a, rate) = input_scale(spec, time);
                -rate / (a * a)
            }
            Column::LogNormaliser => {
                let (a, rate) = input_scale(spec, time);
                spec.dim as f64 * rate / a
            }
            Column::Coupling => {
                let sigma = p.noise_level(time);
                -spec.variance.sqrt() * p.noise_level_rate(time) / (sigma * sigma)
            }
            Column::BaseCoupling => {
                let (sigma, rate) = (p.noise_level(time), p.noise_level_rate(time));
                let sum = sigma * sigma + spec.variance;
                -spec.variance.sqrt() * sigma * rate / (sum * sum.sqrt())
            }
            Column::Scale => p.scale_rate(time),
            Column::Coordinate => coordinate.rate(spec, time),
            Column::CellWeight => {
                let (k, _) = spec.grid.locate(time);
                let times = spec.grid.times();
                if (spec.grid.t_min()..=spec.grid.t_max()).contains(&time) {
                    1.0 / (times[k + 1] - times[k])
                } else {
                    0.0
                }
            }
            Column::Noise => p.noise_rate(time),
            Column::DsmWeight if p.is_interpolant() => 0.0,
            Column::DsmWeight => {
                2.0 * p.noise_level(time) * p.noise_level_rate(time) / spec.variance
            }
            Column::Given(_) => unreachable!("no energy depends on time through it"),
        }
    }
}
