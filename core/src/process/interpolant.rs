//! What stochastic interpolants share: two endpoints, and noise that vanishes at both, gamma(t) = a sqrt(t (1-t)) on [0, 1].

use super::{Schedule, check_positive};
use crate::Result;
use crate::citation::Cites;

/// An interpolant: how the endpoints are mixed, and the size of the noise. Everything else of its [`Schedule`] follows.
pub trait Interpolant {
    /// Name used in files and reports.
    const NAME: &'static str;
    /// Whom to cite: keys of BibTeX entries.
    const CITES: Cites;
    /// `a`: the noise has the standard deviation a/2 at time 1/2.
    fn noise_size(&self) -> f64;
    /// alpha(t) and beta(t).
    fn mixing(&self, time: f64) -> [f64; 2];
    /// alpha'(t) and beta'(t).
    fn mixing_rates(&self, time: f64) -> [f64; 2];
}

impl<I: Interpolant> Schedule for I {
    fn name(&self) -> &'static str {
        I::NAME
    }

    fn cites(&self) -> Cites {
        I::CITES
    }

    fn validate(&self) -> Result<()> {
        check_positive("a of the interpolant", self.noise_size())
    }

    fn is_interpolant(&self) -> bool {
        true
    }

    fn x0_scale(&self, time: f64) -> f64 {
        self.mixing(time)[0]
    }

    fn x0_rate(&self, time: f64) -> f64 {
        self.mixing_rates(time)[0]
    }

    fn x1_scale(&self, time: f64) -> f64 {
        self.mixing(time)[1]
    }

    fn x1_rate(&self, time: f64) -> f64 {
        self.mixing_rates(time)[1]
    }

    fn noise(&self, time: f64) -> f64 {
        self.noise_size() * (time * (1.0 - time)).sqrt()
    }

    /// a^2 (1 - 2t)/2.
    fn noise_times_rate(&self, time: f64) -> f64 {
        0.5 * self.noise_size().powi(2) * (1.0 - 2.0 * time)
    }

    fn noise_level(&self, time: f64) -> f64 {
        self.noise(time)
    }

    fn noise_level_rate(&self, time: f64) -> f64 {
        self.noise_rate(time)
    }

    fn time_of_noise_level(&self, _noise_level: f64) -> Option<f64> {
        None
    }

    fn drift(&self, _time: f64) -> f64 {
        0.0
    }

    fn diffusion_squared(&self, _time: f64) -> f64 {
        self.noise_size().powi(2)
    }
}
