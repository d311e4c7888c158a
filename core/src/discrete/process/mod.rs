//! Noise on states: continuous-time Markov chains that change one site at a time, with exact conditionals and reverse rates.
//!
//! A generator is `Q_t = beta(t) R`, `beta(t) = -alpha'(t) / alpha(t)` with `alpha(t)` the chance that a site was left alone until
//! `t` ([`Schedule`]); `R` has rate 1 of being hit. One file per generator, all behind [`Generator`]; [`Process`] names them in files.

mod masked;
mod schedule;
mod uniform;

pub use masked::Masked;
pub use schedule::Schedule;
pub use uniform::Uniform;

use super::Space;
use crate::citation::Cites;
use crate::process::sampler::Noising;
use crate::rng::Stream;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// What a site that is hit becomes.
pub trait Generator {
    /// Name in files.
    fn name(&self) -> &'static str;
    /// What it does, in a line.
    fn about(&self) -> &'static str;
    /// Whom to cite.
    fn cites(&self) -> Cites;
    /// How much is left at each time.
    fn schedule(&self) -> &Schedule;
    /// Symbols of a noisy site.
    fn symbols(&self, states: usize) -> usize;
    /// Law of a site once it is hit: the last marginal, too.
    fn law(&self, states: usize, symbol: usize) -> f64;
}

/// The noising process of states, in a file as `{kind = "uniform", schedule = {kind = "linear", floor = 0.001}}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Process {
    /// A site that is hit becomes any state, all equally likely.
    Uniform(Uniform),
    /// A site that is hit becomes the mask, and stays so.
    Masked(Masked),
}

impl Default for Process {
    fn default() -> Process {
        Process::Uniform(Uniform::default())
    }
}

impl Process {
    /// Names in files.
    pub const NAMES: [&'static str; 2] = ["uniform", "masked"];

    /// The process of this name with its default schedule.
    pub fn by_name(name: &str) -> Result<Process> {
        match name {
            "uniform" => Ok(Process::Uniform(Uniform::default())),
            "masked" => Ok(Process::Masked(Masked::default())),
            _ => Err(Error::Value {
                name: "noise of states",
                found: format!("{name:?}"),
                expected: format!("one of {}", Process::NAMES.join(", ")),
            }),
        }
    }

    /// The member itself.
    pub fn generator(&self) -> &dyn Generator {
        match self {
            Process::Uniform(member) => member,
            Process::Masked(member) => member,
        }
    }

    /// Whether noise is a mask.
    pub fn is_masked(&self) -> bool {
        matches!(self, Process::Masked(_))
    }

    /// Refuses schedules that cannot be.
    pub fn validate(&self) -> Result<()> {
        self.generator().schedule().validate()
    }

    /// Symbols of a noisy site: K, and one more for a mask.
    pub fn symbols(&self, states: usize) -> usize {
        self.generator().symbols(states)
    }

    /// The chance that a site was left alone until `time`.
    pub fn keep(&self, time: f64) -> f64 {
        self.generator().schedule().keep(time)
    }

    /// `beta(t)`: how often a site is hit.
    pub fn rate(&self, time: f64) -> f64 {
        self.generator().schedule().rate(time)
    }

    /// `Q_t(from, to)` of one site, for `from != to`.
    pub fn jump_rate(&self, states: usize, time: f64, from: u8, to: u8) -> f64 {
        self.rate(time) * self.hit(states, from, to)
    }

    /// `R(from, to)` for `from != to`: what becomes of a site that is hit. A mask stays.
    fn hit(&self, states: usize, from: u8, to: u8) -> f64 {
        if self.is_masked() && usize::from(from) == states {
            return 0.0;
        }
        self.generator().law(states, usize::from(to))
    }

    /// `p(to at t | from at s)` of one site with `keep = alpha(t) / alpha(s)`.
    pub fn transition(&self, states: usize, keep: f64, from: u8, to: u8) -> f64 {
        if self.is_masked() && usize::from(from) == states {
            return f64::from(u8::from(from == to));
        }
        let stay = if from == to { keep } else { 0.0 };
        stay + (1.0 - keep) * self.generator().law(states, usize::from(to))
    }

    /// `sum_x p(to at t | x) p(x)` of one site with this law of the data.
    pub fn blur(&self, keep: f64, law: &[f64], to: u8) -> f64 {
        let left = law.get(usize::from(to)).map_or(0.0, |p| keep * p);
        left + (1.0 - keep) * self.generator().law(law.len(), usize::from(to))
    }

    /// Draws a noisy site.
    pub fn draw(&self, states: usize, keep: f64, from: u8, stream: &mut Stream) -> u8 {
        if stream.uniform() < keep {
            return from;
        }
        match self {
            Process::Uniform(_) => stream.below(states as u64) as u8,
            Process::Masked(_) => states as u8,
        }
    }

    /// Draws a row of the last marginal's limit, each site from the law of a site that is hit.
    pub fn draw_noise(&self, space: Space, stream: &mut Stream, row: &mut [u8]) {
        row.iter_mut()
            .for_each(|symbol| *symbol = self.draw(space.states, 0.0, 0, stream));
    }

    /// The symbols that a site may come back from in reverse time when it shows `now`: those with a rate into it.
    pub fn sources(&self, states: usize, now: u8) -> impl Iterator<Item = u8> + use<> {
        let any = !self.is_masked() || usize::from(now) == states;
        let most = if any { states as u8 } else { 0 };
        (0..most).filter(move |symbol| *symbol != now)
    }
}

impl Noising for Process {
    fn name(&self) -> &'static str {
        self.generator().name()
    }
    fn is_interpolant(&self) -> bool {
        false
    }
    /// Signal `alpha`, noise `sqrt(1 - alpha^2)`, as for a diffusion that keeps its variance.
    fn log_snr(&self, time: f64) -> f64 {
        let keep = self.keep(time);
        2.0 * keep.ln() - (-keep * keep).ln_1p()
    }
    fn time_of_noise_level(&self, noise_level: f64) -> Option<f64> {
        let keep = 1.0 / (1.0 + noise_level * noise_level).sqrt();
        Some(self.generator().schedule().time_of(keep))
    }
    /// One over the standard deviation of `d/dt log p(y_t | y_0)` of a site, up to a factor that K decides.
    fn time_scale(&self, time: f64, _second_moment: f64) -> f64 {
        let keep = self.keep(time);
        ((1.0 - keep) / keep).sqrt() / self.rate(time)
    }
}
