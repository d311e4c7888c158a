//! What a run leaves: weighted particles, every level's figures, log Z and who descends from whom.

use serde::{Deserialize, Serialize};

use crate::rng::{Purpose, Stream};
use crate::sample::Resampling;

/// One level of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SmcLevel {
    /// Its time.
    pub time: f64,
    /// Conditional effective sample size of the step to this level, a share (Zhou, Johansen, Aston 2016): the overlap of the
    /// levels. 1 if they agree.
    pub conditional_ess: f64,
    /// Effective sample size of all weights since the last resampling, a share.
    pub ess: f64,
    /// Whether particles were resampled.
    pub resampled: bool,
    /// Mean acceptance of the moves; NaN without moves.
    pub acceptance: f64,
    /// Step size of the last move.
    pub step: f64,
    /// log Z up to this level, relative to the start.
    pub log_z: f64,
}

/// An estimate of log Z and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogNormaliser {
    /// `log Z` of `exp(-U + F)` at the last level, relative to the start's law: see [`Particles::baseline`].
    pub value: f64,
    /// Standard error; `None` where it is not known.
    ///
    /// With [`Smc::runs`](super::Smc::runs) it comes from the spread of independent runs (1.96 of it cover 95 %), and is unknown if a
    /// few of them hold most of the sum. From one run it comes from the families of the first particles (Lee and Whiteley 2018),
    /// on the safe side for all but multinomial resampling, and is unknown if fewer than 20 families (without resampling:
    /// effective particles) carry the weight. Neither sees a mode that no particle found.
    pub error: Option<f64>,
}

impl std::fmt::Display for LogNormaliser {
    /// `1.234 ± 0.005`, to the precision asked for, or `1.234, error unknown`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let precision = f.precision().unwrap_or(3);
        match self.error {
            Some(error) => write!(f, "{:.precision$} ± {error:.precision$}", self.value),
            None => write!(f, "{:.precision$}, error unknown", self.value),
        }
    }
}

/// What weights and log Z of a run are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// The start's density is known and the first weight holds it: log Z is that of `exp(-U + F)` at the last level, and weighted
    /// particles are draws of that level.
    StartDensity,
    /// The start was taken on trust as draws of the first level: log Z is `log(Z_last / Z_first)`, and both it and the shares of
    /// modes that the moves do not connect are off by the ratio between the first level and the points' true law. What is within
    /// one mode of the moves is right.
    FirstLevel,
}

/// Who descends from whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Genealogy {
    /// For every level: where each particle came from, or `None` if all stayed themselves.
    pub ancestors: Vec<Option<Vec<u32>>>,
}

impl Genealogy {
    /// The places of a final particle's ancestors, from the first level to the last.
    pub fn line(&self, particle: u32) -> Vec<u32> {
        let mut at = particle;
        let mut line: Vec<u32> = self
            .ancestors
            .iter()
            .rev()
            .map(|parents| {
                at = parents.as_ref().map_or(at, |parents| parents[at as usize]);
                at
            })
            .collect();
        line.reverse();
        line
    }
}

/// Weighted particles of the last level.
#[derive(Debug, Clone, PartialEq)]
pub struct Particles {
    /// Points, row after row.
    pub points: Vec<f64>,
    /// Weights, summing to 1.
    pub weights: Vec<f64>,
    /// log Z.
    pub log_z: LogNormaliser,
    /// What weights and log Z are relative to.
    pub baseline: Baseline,
    /// The moves do not keep a level's density (no acceptance test): the weights carry the error of their step size, which no
    /// number of particles removes.
    pub biased_moves: bool,
    /// Every level; of independent runs, those of the first.
    pub levels: Vec<SmcLevel>,
    /// First particles that still have descendants.
    pub families: usize,
    /// Ancestors, if asked for.
    pub genealogy: Option<Genealogy>,
}

impl Particles {
    /// Effective sample size of the weights, a share of the particles.
    pub fn ess(&self) -> f64 {
        let squares: f64 = self.weights.iter().map(|w| w * w).sum();
        1.0 / (self.weights.len() as f64 * squares)
    }

    /// Smallest overlap of neighbouring levels.
    pub fn least_overlap(&self) -> f64 {
        let overlaps = self.levels.iter().map(|level| level.conditional_ess);
        overlaps.fold(f64::INFINITY, f64::min)
    }

    /// The step sizes of all levels, for [`super::Smc::frozen_steps`].
    pub fn steps(&self) -> Vec<f64> {
        self.levels.iter().map(|level| level.step).collect()
    }

    /// `n` equally weighted points, drawn by systematic resampling.
    pub fn equally_weighted(&self, n: usize, seed: u64) -> Vec<f64> {
        let dim = self.points.len() / self.weights.len();
        let mut ancestors = vec![0; n];
        let mut stream = Stream::new(seed, Purpose::Equalise, 0, 0);
        Resampling::Systematic.draw(&self.weights, &mut stream, &mut ancestors);
        ancestors
            .iter()
            .flat_map(|&a| &self.points[a as usize * dim..][..dim])
            .copied()
            .collect()
    }
}
