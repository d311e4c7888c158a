//! The functions of time that objectives need besides those of the energy: weights, coefficients of targets, kernels.

use super::partner::Partner;
use super::setting::Words;
use crate::coupling::Coupling;
use crate::energy::{ModelSpec, TimeFunction};
use crate::{Error, Result};

/// How errors of a time derivative are weighted against those at other times: by `tau(t)^2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeWeight {
    /// `tau^2 = gamma^2 / (2 gamma'^2 + v (alpha'^2 + beta'^2))`, `v` the mean square of a coordinate of the data: the
    /// conditional time score has a variance of about `d / tau^2`, so every time counts alike and nothing is unbounded.
    Balanced,
    /// `tau = gamma / gamma'` (the paper's weight of CtSM): the same up to a factor where `X_t` does not move (ve, edm), but
    /// without bound at the end of vp and in the middle of an interpolant, where gamma is stationary.
    Noise,
    /// `tau = 1`.
    One,
}

impl Words for TimeWeight {
    const WORDS: &'static [(&'static str, TimeWeight)] = &[
        ("balanced", TimeWeight::Balanced),
        ("noise", TimeWeight::Noise),
        ("one", TimeWeight::One),
    ];
}

impl TimeWeight {
    /// Refuses a weight that is not finite in the process's range.
    pub(super) fn validate(self, spec: &ModelSpec) -> Result<()> {
        if self == TimeWeight::Noise && spec.process.is_interpolant() {
            return Err(Error::Value {
                name: "weight",
                found: format!("noise with the {} process", spec.process.name()),
                expected:
                    "balanced or one: gamma/gamma' is infinite in the middle of an interpolant"
                        .into(),
            });
        }
        Ok(())
    }

    /// `tau(t)`, linear between the levels of the grid: there F(t) has one slope, and times are drawn so that the weighted mean
    /// of what the slope should be is its plain mean over the cell (`inside_cell`).
    pub fn scale(self, spec: &ModelSpec, time: f64) -> f64 {
        let (k, weight) = spec.grid.locate(time);
        let (low, high) = (spec.grid.times()[k], spec.grid.times()[k + 1]);
        if weight == 0.0 || weight == 1.0 {
            return self.at(spec, time);
        }
        (1.0 - weight) * self.at(spec, low) + weight * self.at(spec, high)
    }

    /// A time in the cell above the level at `time` (below the last one): `t = t_k + w (t_{k+1} - t_k)` with
    /// `w = u tau_k / (u tau_k + (1 - u) tau_{k+1})` has, for a uniform `u`, the density `1 / tau(t)^2` up to a constant, with the
    /// balanced tau. Times in a cell then have all the same weight per time: the slope of F that a loss weighted by `tau^2` learns
    /// is the mean of the time derivative over the cell, and F at the levels is its integral.
    pub(crate) fn inside_cell(spec: &ModelSpec, time: f64, u: f64) -> f64 {
        let k = spec.grid.locate(time).0;
        let (low, high) = (spec.grid.times()[k], spec.grid.times()[k + 1]);
        let [below, above] = [low, high].map(|t| TimeWeight::Balanced.at(spec, t));
        low + (high - low) * u * below / (u * below + (1.0 - u) * above)
    }

    fn at(self, spec: &ModelSpec, time: f64) -> f64 {
        let p = &spec.process;
        match self {
            TimeWeight::Balanced => {
                let centre: f64 = spec.mean.iter().map(|m| m * m).sum();
                p.time_scale(time, spec.variance + centre / spec.dim as f64)
            }
            TimeWeight::Noise => p.noise(time).powi(2) / p.noise_times_rate(time).abs(),
            TimeWeight::One => 1.0,
        }
    }
}

/// A function of time for an objective, one number per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectiveColumn {
    /// `tau`, see [`TimeWeight`].
    TimeScale(TimeWeight),
    /// `tau gamma'/gamma`: the factor of `|z|^2 - d` in tau times the conditional time score.
    ConditionalNoise(TimeWeight),
    /// `tau alpha'/gamma`: the factor of `z . x_0`.
    ConditionalStart(TimeWeight),
    /// `tau beta'/gamma`: the factor of `z . x_1`.
    ConditionalEnd(TimeWeight),
    /// `alpha'`.
    StartRate,
    /// `beta'`.
    EndRate,
    /// `f`.
    Drift,
    /// `g^2 / 2`.
    HalfDiffusion,
    /// `t' - t` of the partner.
    PartnerGap(Partner),
    /// `8 (tau / (t' - t))^2`.
    PartnerWeight(Partner, TimeWeight),
    /// `(1/m - 1 + delta f) / (sqrt(delta) g)`, `m = S_t / S_s`: the factor of `y_t` in the backward step of Bayes' rule.
    BackwardPoint(Partner),
    /// `c / (m sqrt(delta) g)`, `c^2 = gamma_t^2 - m^2 gamma_s^2`: the factor of the forward noise there.
    BackwardNoise(Partner),
    /// `sqrt(delta) g`: the factor of the score there.
    BackwardScore(Partner),
    /// `d/2 log(c^2 / (delta g^2))`: the ratio of both kernels' normalisers.
    KernelRatio(Partner),
    /// `(tau / delta)^2`, or 0 for the first levels, which have no partner.
    BayesWeight(Partner, TimeWeight),
    /// Factor of the score in target score matching: `gamma sd / sqrt(sigma^2 + sd^2)`; for an interpolant gamma, or what its springs say.
    TargetScale,
    /// Factor of the start's score there: that divided by alpha; 0 in the later half of an interpolant.
    TargetStart,
    /// Factor of the end's score: the same divided by beta in the later half of an interpolant, 0 otherwise.
    TargetEnd,
}

impl ObjectiveColumn {
    /// Value at `time`.
    pub fn value(self, spec: &ModelSpec, time: f64) -> f64 {
        let p = &spec.process;
        let gamma = p.noise(time);
        match self {
            Self::TimeScale(weight) => weight.scale(spec, time),
            Self::ConditionalNoise(weight) => {
                weight.scale(spec, time) * p.noise_times_rate(time) / (gamma * gamma)
            }
            Self::ConditionalStart(weight) => weight.scale(spec, time) * p.x0_rate(time) / gamma,
            Self::ConditionalEnd(weight) => weight.scale(spec, time) * p.x1_rate(time) / gamma,
            Self::StartRate => p.x0_rate(time),
            Self::EndRate => p.x1_rate(time),
            Self::Drift => p.drift(time),
            Self::HalfDiffusion => 0.5 * p.diffusion_squared(time),
            Self::PartnerGap(partner) => partner.time(spec, time) - time,
            Self::PartnerWeight(partner, weight) => {
                let gap = partner.time(spec, time) - time;
                8.0 * (weight.scale(spec, time) / gap).powi(2)
            }
            Self::BackwardPoint(partner) => match Kernels::at(spec, partner, time) {
                Some(k) => (1.0 / k.m - 1.0 + k.delta * p.drift(time)) / k.root,
                None => 0.0,
            },
            Self::BackwardNoise(partner) => match Kernels::at(spec, partner, time) {
                Some(k) => k.c / (k.m * k.root),
                None => 1.0,
            },
            Self::BackwardScore(partner) => {
                Kernels::at(spec, partner, time).map_or(0.0, |k| k.root)
            }
            Self::KernelRatio(partner) => match Kernels::at(spec, partner, time) {
                Some(k) => spec.dim as f64 * (k.c / k.root).ln(),
                None => 0.0,
            },
            Self::BayesWeight(partner, weight) => match Kernels::at(spec, partner, time) {
                Some(k) => (weight.scale(spec, time) / k.delta).powi(2),
                None => 0.0,
            },
            Self::TargetScale if p.is_interpolant() => target_scale(spec, time),
            Self::TargetScale => p.scale(time) * denoiser_scale(spec, time),
            Self::TargetStart if p.is_interpolant() => {
                if starts(spec, time) {
                    target_scale(spec, time) / p.x0_scale(time)
                } else {
                    0.0
                }
            }
            Self::TargetStart => denoiser_scale(spec, time),
            Self::TargetEnd if p.is_interpolant() && !starts(spec, time) => {
                target_scale(spec, time) / p.x1_scale(time)
            }
            Self::TargetEnd => 0.0,
        }
    }
}

/// `sigma sd / sqrt(sigma^2 + sd^2)`.
fn denoiser_scale(spec: &ModelSpec, time: f64) -> f64 {
    let sigma = spec.process.noise_level(time);
    sigma * (spec.variance / (sigma * sigma + spec.variance)).sqrt()
}

/// Root of the weight of target score matching between two ends: gamma, or where springs tell how stiff the ends are, one over the standard deviation of the
/// target. With `kappa` the mean stiffness of the nearer end, a noisy point leaves its source open by `delta^2 = (b^2 v + gamma^2) / a^2` (`a`, `b` the shares of the nearer
/// and the farther end, `v` the variance of the data): the exact score there varies by `kappa^2 delta^2`, and by `kappa` in all. A twentieth of that is
/// added, below which the network's own error counts. Weights of `gamma^2` would leave the ends, where targets are nearly exact, without a voice. Where rows belong together,
/// targets hold close to the ends alone ([`Coupling::REACH`]).
fn target_scale(spec: &ModelSpec, time: f64) -> f64 {
    const FLOOR: f64 = 0.05;
    let p = &spec.process;
    let first = starts(spec, time);
    let (near, far) = match first {
        true => (p.x0_scale(time), p.x1_scale(time)),
        false => (p.x1_scale(time), p.x0_scale(time)),
    };
    if spec.coupling.is_some() && far > Coupling::REACH * near {
        return 0.0;
    }
    let Some(springs) = &spec.springs else {
        return p.noise(time);
    };
    let kappa = springs.mean_stiffness(first).max(1.0 / spec.variance);
    let open = kappa * (far * far * spec.variance + p.noise(time).powi(2)) / (near * near);
    (kappa * (FLOOR + open / (1.0 + open))).sqrt().recip()
}

/// Whether the start has the larger share of an interpolant's point.
fn starts(spec: &ModelSpec, time: f64) -> bool {
    spec.process.x0_scale(time) >= spec.process.x1_scale(time)
}

/// The kernels between a time and its earlier partner: `Y_t = m Y_s + c e` exactly, backward with step delta.
struct Kernels {
    delta: f64,
    m: f64,
    c: f64,
    /// `sqrt(delta) g(t)`.
    root: f64,
}

impl Kernels {
    fn at(spec: &ModelSpec, partner: Partner, time: f64) -> Option<Kernels> {
        let p = &spec.process;
        let earlier = partner.time(spec, time);
        let delta = time - earlier;
        if delta <= 0.0 {
            return None;
        }
        let (sigma, before) = (p.noise_level(time), p.noise_level(earlier));
        Some(Kernels {
            delta,
            m: p.scale(time) / p.scale(earlier),
            // gamma_t^2 - m^2 gamma_s^2 = S_t^2 (sigma_t^2 - sigma_s^2).
            c: p.scale(time) * ((sigma - before) * (sigma + before)).sqrt(),
            root: (delta * p.diffusion_squared(time)).sqrt(),
        })
    }
}

impl TimeFunction for ObjectiveColumn {
    fn value(&self, spec: &ModelSpec, time: f64) -> f64 {
        ObjectiveColumn::value(*self, spec, time)
    }
}
