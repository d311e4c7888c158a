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
    /// `log Z` of `exp(-U + F)` at the last level, relative to the start's law (which is normalised if it is a mixture).
    pub value: f64,
    /// Standard error from this one run: the families of the first particles tell how far the estimate would vary (Lee and
    /// Whiteley 2018). Larger than 1 means: not to be trusted.
    pub error: f64,
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
    /// Every level.
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
