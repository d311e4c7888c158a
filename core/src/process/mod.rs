//! The noising process Y_t = alpha(t) X_0 + beta(t) X_1 + gamma(t) Z: schedules and their rates in numerically stable forms.
//!
//! One file per process, all behind the trait [`Schedule`]; [`Process`] is the serde-tagged choice between them. A diffusion has
//! alpha = S (the scale) and beta = 0; a stochastic interpolant joins two samples. Times run from 0 (data) to
//! [`Process::horizon`]. [`TimeGrid`] fixes the levels of a model, [`TimeSampler`] draws times for training.
//!
//! Adding a process: a file with its struct and `impl Schedule`, a variant of [`Process`], a line in `Process::schedule`.

mod edm;
mod grid;
mod interpolant;
mod linear;
pub mod sampler;
mod trigonometric;
mod variance_exploding;
mod variance_preserving;

pub use edm::Edm;
pub use grid::{Spacing, TimeGrid};
pub use interpolant::Interpolant;
pub use linear::Linear;
pub use sampler::TimeSampler;
pub use trigonometric::Trigonometric;
pub use variance_exploding::VarianceExploding;
pub use variance_preserving::VariancePreserving;

use crate::citation::Cites;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// The schedules of one process. Times are in [0, horizon]; rates are derivatives in time.
pub trait Schedule {
    /// Name used in files and reports.
    fn name(&self) -> &'static str;
    /// Whom to cite: keys of BibTeX entries.
    fn cites(&self) -> Cites;
    /// Checks the parameters.
    fn validate(&self) -> Result<()>;
    /// The last time T (noise, or the second endpoint).
    fn horizon(&self) -> f64 {
        1.0
    }
    /// Whether the process joins two data sets.
    fn is_interpolant(&self) -> bool {
        false
    }
    /// alpha(t), the factor of X_0.
    fn x0_scale(&self, time: f64) -> f64;
    /// alpha'(t).
    fn x0_rate(&self, time: f64) -> f64;
    /// beta(t), the factor of X_1; 0 for diffusions.
    fn x1_scale(&self, _time: f64) -> f64 {
        0.0
    }
    /// beta'(t).
    fn x1_rate(&self, _time: f64) -> f64 {
        0.0
    }
    /// gamma(t), the factor of the noise Z.
    fn noise(&self, time: f64) -> f64;
    /// gamma(t) gamma'(t), finite wherever the process is, also where gamma' is not.
    fn noise_times_rate(&self, time: f64) -> f64;
    /// gamma'(t); infinite where gamma vanishes like a square root.
    fn noise_rate(&self, time: f64) -> f64 {
        self.noise_times_rate(time) / self.noise(time)
    }
    /// sigma(t) = gamma / S.
    fn noise_level(&self, time: f64) -> f64;
    /// sigma'(t).
    fn noise_level_rate(&self, time: f64) -> f64;
    /// The time at which a diffusion has this noise level; `None` for interpolants, whose noise rises and falls.
    fn time_of_noise_level(&self, noise_level: f64) -> Option<f64>;
    /// f(t) = S'/S, the linear drift of the noising SDE.
    fn drift(&self, time: f64) -> f64;
    /// g(t)^2, the squared noise of the noising SDE.
    fn diffusion_squared(&self, time: f64) -> f64;
}

/// A noising process, as written in configuration and model files: `{"kind": "vp", "beta_min": 0.1, "beta_max": 20.0}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Process {
    /// Variance preserving diffusion.
    #[serde(rename = "vp")]
    VariancePreserving(VariancePreserving),
    /// Variance exploding diffusion.
    #[serde(rename = "ve")]
    VarianceExploding(VarianceExploding),
    /// The process of Karras et al. 2022: noise level = time.
    Edm(Edm),
    /// Linear stochastic interpolant.
    Linear(Linear),
    /// Trigonometric stochastic interpolant.
    Trigonometric(Trigonometric),
}

impl Default for Process {
    fn default() -> Self {
        Self::VariancePreserving(VariancePreserving::default())
    }
}

impl Process {
    /// The names of all processes, as [`Process::by_name`] takes them.
    pub const NAMES: [&'static str; 5] = ["vp", "ve", "edm", "linear", "trigonometric"];

    /// The process of that name with its default parameters.
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "vp" => Ok(Self::VariancePreserving(VariancePreserving::default())),
            "ve" => Ok(Self::VarianceExploding(VarianceExploding::default())),
            "edm" => Ok(Self::Edm(Edm::default())),
            "linear" => Ok(Self::Linear(Linear::default())),
            "trigonometric" => Ok(Self::Trigonometric(Trigonometric::default())),
            _ => Err(Error::Value {
                name: "process",
                found: format!("'{name}'"),
                expected: format!("one of {}", Self::NAMES.join(", ")),
            }),
        }
    }

    fn schedule(&self) -> &dyn Schedule {
        match self {
            Self::VariancePreserving(schedule) => schedule,
            Self::VarianceExploding(schedule) => schedule,
            Self::Edm(schedule) => schedule,
            Self::Linear(schedule) => schedule,
            Self::Trigonometric(schedule) => schedule,
        }
    }

    /// Name used in files and reports.
    pub fn name(&self) -> &'static str {
        self.schedule().name()
    }

    /// Whom to cite: keys of BibTeX entries.
    pub fn cites(&self) -> Cites {
        self.schedule().cites()
    }

    /// Checks the parameters.
    pub fn validate(&self) -> Result<()> {
        self.schedule().validate()
    }

    /// The last time T.
    pub fn horizon(&self) -> f64 {
        self.schedule().horizon()
    }

    /// Whether the process joins two data sets (a stochastic interpolant) or noises one (a diffusion).
    pub fn is_interpolant(&self) -> bool {
        self.schedule().is_interpolant()
    }

    /// alpha(t), the factor of X_0.
    pub fn x0_scale(&self, time: f64) -> f64 {
        self.schedule().x0_scale(time)
    }

    /// alpha'(t).
    pub fn x0_rate(&self, time: f64) -> f64 {
        self.schedule().x0_rate(time)
    }

    /// beta(t), the factor of X_1; 0 for diffusions.
    pub fn x1_scale(&self, time: f64) -> f64 {
        self.schedule().x1_scale(time)
    }

    /// beta'(t).
    pub fn x1_rate(&self, time: f64) -> f64 {
        self.schedule().x1_rate(time)
    }

    /// gamma(t), the factor of the noise Z.
    pub fn noise(&self, time: f64) -> f64 {
        self.schedule().noise(time)
    }

    /// gamma'(t); infinite where gamma vanishes like a square root (time 0, and time 1 of an interpolant).
    pub fn noise_rate(&self, time: f64) -> f64 {
        self.schedule().noise_rate(time)
    }

    /// gamma(t) gamma'(t), finite at the ends.
    pub fn noise_times_rate(&self, time: f64) -> f64 {
        self.schedule().noise_times_rate(time)
    }

    /// `tau(t) = gamma / sqrt(2 gamma'^2 + v (alpha'^2 + beta'^2))`: one over the standard deviation of the conditional time score
    /// of one coordinate whose second moment is v. Marginals so far apart in time overlap; d coordinates, within `tau / sqrt(d)`.
    pub fn time_scale(&self, time: f64, second_moment: f64) -> f64 {
        let square = self.noise(time).powi(2);
        let rate = self.noise_times_rate(time);
        let motion = second_moment * (self.x0_rate(time).powi(2) + self.x1_rate(time).powi(2));
        square / (2.0 * rate * rate + square * motion).sqrt()
    }

    /// S(t): alpha for diffusions, 1 for interpolants.
    pub fn scale(&self, time: f64) -> f64 {
        if self.is_interpolant() {
            1.0
        } else {
            self.x0_scale(time)
        }
    }

    /// S'(t).
    pub fn scale_rate(&self, time: f64) -> f64 {
        if self.is_interpolant() {
            0.0
        } else {
            self.x0_rate(time)
        }
    }

    /// sigma(t) = gamma / S; gamma itself for interpolants.
    pub fn noise_level(&self, time: f64) -> f64 {
        self.schedule().noise_level(time)
    }

    /// sigma'(t).
    pub fn noise_level_rate(&self, time: f64) -> f64 {
        self.schedule().noise_level_rate(time)
    }

    /// The time at which a diffusion has this noise level; `None` for interpolants, whose noise rises and falls.
    pub fn time_of_noise_level(&self, noise_level: f64) -> Option<f64> {
        self.schedule().time_of_noise_level(noise_level)
    }

    /// log SNR = -2 log sigma; infinite where sigma is 0.
    pub fn log_snr(&self, time: f64) -> f64 {
        -2.0 * self.noise_level(time).ln()
    }

    /// d/dt log SNR = -2 sigma'/sigma.
    pub fn log_snr_rate(&self, time: f64) -> f64 {
        -2.0 * self.noise_level_rate(time) / self.noise_level(time)
    }

    /// f(t) = S'/S, the linear drift of the noising SDE dY = f Y dt + g dW; 0 for interpolants.
    pub fn drift(&self, time: f64) -> f64 {
        self.schedule().drift(time)
    }

    /// g(t)^2 = 2 S^2 sigma sigma' of the noising SDE.
    ///
    /// An interpolant has the same marginals for every g. The value returned for it is a^2: with it the noise is that of the
    /// Brownian bridge whose standard deviation is gamma = a sqrt(t (1-t)).
    pub fn diffusion_squared(&self, time: f64) -> f64 {
        self.schedule().diffusion_squared(time)
    }
}

/// Error of a parameter that must be positive and finite.
fn check_positive(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::Value {
            name,
            found: value.to_string(),
            expected: "a positive finite number".into(),
        })
    }
}

/// Error of two parameters that must be positive, finite and in this order.
fn check_ordered(name: &'static str, low: f64, high: f64) -> Result<()> {
    if low > 0.0 && low < high && high.is_finite() {
        Ok(())
    } else {
        Err(Error::Value {
            name,
            found: format!("{low} to {high}"),
            expected: "0 < minimum < maximum, finite".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every process away from its default parameters.
    fn unusual() -> Vec<Process> {
        vec![
            Process::VariancePreserving(VariancePreserving {
                beta_min: 0.3,
                beta_max: 11.0,
            }),
            Process::VarianceExploding(VarianceExploding {
                sigma_min: 0.02,
                sigma_max: 37.0,
            }),
            Process::Edm(Edm { sigma_max: 60.0 }),
            Process::Linear(Linear { a: 0.7 }),
            Process::Trigonometric(Trigonometric { a: 1.3 }),
        ]
    }

    fn all() -> Vec<Process> {
        let defaults = Process::NAMES.map(|name| Process::by_name(name).expect("a known name"));
        unusual().into_iter().chain(defaults).collect()
    }

    fn assert_close(found: f64, expected: f64, relative: f64, what: &str) {
        let size = expected.abs().max(1e-8);
        assert!(
            (found - expected).abs() <= relative * size,
            "{what}: {found}, expected {expected}"
        );
    }

    /// Central difference, five points: error h^4 f'''''/30, far below 1e-8 for these smooth schedules away from the ends.
    fn difference(function: impl Fn(f64) -> f64, x: f64) -> f64 {
        let h = 1e-4 * x;
        (8.0 * (function(x + h) - function(x - h)) - function(x + 2.0 * h) + function(x - 2.0 * h))
            / (12.0 * h)
    }

    #[test]
    fn rates_are_derivatives() {
        for process in all() {
            for fraction in [1e-3, 0.01, 0.2, 0.5001, 0.83, 0.97] {
                let t = fraction * process.horizon();
                let what = format!("{} at {t}", process.name());
                let check = |rate: f64, function: &dyn Fn(f64) -> f64| {
                    // Differences lose digits where the function is large beside t times its rate.
                    let expected = difference(function, t);
                    let rounding = 1e-11 * function(t).abs() / t;
                    assert!(
                        (rate - expected).abs() <= 1e-6 * rate.abs() + rounding,
                        "{what}: {rate} {expected}"
                    );
                };
                check(process.x0_rate(t), &|t| process.x0_scale(t));
                check(process.x1_rate(t), &|t| process.x1_scale(t));
                check(process.scale_rate(t), &|t| process.scale(t));
                check(process.noise_rate(t), &|t| process.noise(t));
                check(process.noise_times_rate(t), &|t| {
                    0.5 * process.noise(t).powi(2)
                });
                check(process.noise_level_rate(t), &|t| process.noise_level(t));
                check(process.log_snr_rate(t), &|t| process.log_snr(t));
            }
        }
    }

    #[test]
    fn identities_hold() {
        for process in all() {
            for fraction in [1e-3, 0.01, 0.2, 0.5001, 0.83, 0.97] {
                let t = fraction * process.horizon();
                let (scale, sigma, gamma) =
                    (process.scale(t), process.noise_level(t), process.noise(t));
                assert_close(gamma, scale * sigma, 1e-13, "gamma = S sigma");
                assert_close(
                    process.noise_times_rate(t),
                    gamma * process.noise_rate(t),
                    1e-13,
                    "gamma gamma'",
                );
                if process.is_interpolant() {
                    assert_eq!(process.time_of_noise_level(sigma), None);
                } else {
                    assert_close(
                        process.drift(t),
                        process.scale_rate(t) / scale,
                        1e-12,
                        "f = S'/S",
                    );
                    let g2 = 2.0 * scale * scale * sigma * process.noise_level_rate(t);
                    assert_close(process.diffusion_squared(t), g2, 1e-12, "g^2");
                    // d gamma^2/dt = 2 f gamma^2 + g^2, the variance equation of the noising SDE.
                    let right =
                        process.drift(t) * gamma * gamma + 0.5 * process.diffusion_squared(t);
                    assert_close(
                        process.noise_times_rate(t),
                        right,
                        1e-11,
                        "variance equation",
                    );
                    assert_close(
                        process.time_of_noise_level(sigma).unwrap(),
                        t,
                        1e-12,
                        "inverse",
                    );
                }
            }
        }
    }

    #[test]
    fn ends_are_exact() {
        for process in all() {
            let end = process.horizon();
            assert_eq!(
                (
                    process.x0_scale(0.0),
                    process.noise(0.0),
                    process.x1_scale(0.0)
                ),
                (1.0, 0.0, 0.0)
            );
            assert!(
                process.noise_times_rate(0.0).is_finite()
                    && process.noise_times_rate(end).is_finite()
            );
            if process.is_interpolant() {
                assert!(process.x0_scale(end).abs() < 1e-16);
                assert_eq!((process.x1_scale(end), process.noise(end)), (1.0, 0.0));
            }
        }
        let linear = Process::Linear(Linear { a: 2.0 });
        assert_eq!(
            (linear.noise_times_rate(0.0), linear.noise_times_rate(1.0)),
            (2.0, -2.0)
        );
    }

    #[test]
    fn small_times_keep_their_digits() {
        let process = Process::by_name("vp").unwrap();
        for t in [1e-5, 1e-8, 1e-12] {
            let b: f64 = 0.1 * t + 19.9 * t * t / 2.0;
            // sigma^2 = B + B^2/2 + B^3/6 ...; four terms suffice for B <= 1e-6.
            let sigma2 = b * (1.0 + b / 2.0 * (1.0 + b / 3.0));
            assert_close(process.noise_level(t).powi(2), sigma2, 1e-14, "sigma^2");
            assert_close(
                process.noise(t).powi(2),
                b * (1.0 - b / 2.0 * (1.0 - b / 3.0)),
                1e-14,
                "gamma^2",
            );
        }
        let process = Process::by_name("ve").unwrap();
        let b: f64 = 2.0 * 1e-9 * 5000.0_f64.ln();
        assert_close(
            process.noise(1e-9).powi(2),
            1e-4 * b * (1.0 + b / 2.0),
            1e-14,
            "ve",
        );
    }

    #[test]
    fn files_name_the_kind_and_refuse_what_they_do_not_know() {
        for process in all() {
            let text = serde_json::to_string(&process).unwrap();
            assert!(
                text.starts_with(&format!("{{\"kind\":\"{}\"", process.name())),
                "{text}"
            );
            assert_eq!(serde_json::from_str::<Process>(&text).unwrap(), process);
            assert!(process.validate().is_ok());
        }
        let default: Process = serde_json::from_str(r#"{"kind": "vp", "beta_max": 7.0}"#).unwrap();
        assert_eq!(
            default,
            Process::VariancePreserving(VariancePreserving {
                beta_max: 7.0,
                ..Default::default()
            })
        );
        assert!(serde_json::from_str::<Process>(r#"{"kind": "vp", "beta": 7.0}"#).is_err());
        assert!(serde_json::from_str::<Process>(r#"{"kind": "edm", "sigma_min": 7.0}"#).is_err());
        assert!(serde_json::from_str::<Process>(r#"{"kind": "cosine"}"#).is_err());
        assert!(
            Process::by_name("cosine")
                .unwrap_err()
                .to_string()
                .contains("vp, ve, edm")
        );
    }

    #[test]
    fn bad_parameters_are_named() {
        for process in [
            Process::VariancePreserving(VariancePreserving {
                beta_min: -0.1,
                beta_max: 20.0,
            }),
            Process::VariancePreserving(VariancePreserving {
                beta_min: 0.1,
                beta_max: f64::NAN,
            }),
            Process::VarianceExploding(VarianceExploding {
                sigma_min: 5.0,
                sigma_max: 0.1,
            }),
            Process::Edm(Edm { sigma_max: 0.0 }),
            Process::Linear(Linear { a: -1.0 }),
            Process::Trigonometric(Trigonometric { a: f64::INFINITY }),
        ] {
            assert!(process.validate().is_err(), "{process:?}");
        }
    }
}
