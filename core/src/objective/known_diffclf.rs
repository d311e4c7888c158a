//! DiffCLF with known marginals: classes whose density is given enter the softmax beside the N learned levels, as the known
//! noise does in noise-contrastive estimation (Gutmann & Hyvarinen 2010).
//!
//! A row has N noisy points at its levels and one point at each known end. Every point is classified among the N learned
//! log-densities `-U + F` and the exact ones at the ends. Since those are normalised, F(t) becomes the true log-normaliser and
//! is no longer free up to a constant.
//!
//! `ends` says which are known. The noise end of a diffusion is the grid's last level, where the density is
//! `N(S mu, S^2 sd^2 + gamma^2)` up to terms of order `S^2`; nothing else is needed. The data end, and both ends of an
//! interpolant (times 0 and 1), come from a system with known densities.

use super::setting::{Settings, Words};
use super::{Objective, Scene};
use crate::energy::ModelSpec;
use crate::engine::Node;
use crate::{Error, Result};

/// Which marginals are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The last one: noise for a diffusion, `q_1` for an interpolant.
    Last,
    /// The first one: the data.
    First,
    /// Both.
    Both,
}

impl Words for Ends {
    const WORDS: &'static [(&'static str, Ends)] = &[
        ("last", Ends::Last),
        ("first", Ends::First),
        ("both", Ends::Both),
    ];
}

impl Ends {
    /// Whether the first end is known, whether the last is.
    pub fn known(self) -> [bool; 2] {
        [self != Ends::Last, self != Ends::First]
    }

    /// How many are known.
    pub fn count(self) -> usize {
        if self == Ends::Both { 2 } else { 1 }
    }
}

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownDiffclf {
    /// Which marginals are known.
    pub ends: Ends,
}

impl KnownDiffclf {
    /// The usual settings.
    pub const USUAL: KnownDiffclf = KnownDiffclf { ends: Ends::Last };
}

impl Objective for KnownDiffclf {
    fn name(&self) -> &'static str {
        "known-diffclf"
    }

    fn settings(&mut self) -> Settings<'_> {
        vec![("ends", &mut self.ends)]
    }

    fn validate(&self, spec: &ModelSpec) -> Result<()> {
        // The noise end is Gaussian only if little of the data is left there.
        let process = &spec.process;
        let left = spec.variance.sqrt() / process.noise_level(spec.grid.t_max());
        if !process.is_interpolant() && self.ends != Ends::First && left > 0.2 {
            return Err(Error::Value {
                name: "objective",
                found: format!(
                    "known-diffclf with {left:.3} of the data's spread left beside the noise at time {}",
                    spec.grid.t_max()
                ),
                expected:
                    "at most 0.2, so that the last marginal is Gaussian; extend the time grid"
                        .into(),
            });
        }
        Ok(())
    }

    fn needs_truth(&self, spec: &ModelSpec) -> bool {
        spec.process.is_interpolant() || self.ends != Ends::Last
    }

    fn compares_levels(&self) -> bool {
        true
    }

    fn fixes_free_energy(&self) -> bool {
        true
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        let (n, e) = (scene.levels(), self.ends.count());
        let own = scene.own_log_density();
        let mut learned = own;
        if n > 1 {
            let others = scene.other_log_densities();
            learned = scene.graph().concat(own, others);
        }
        let (at_ends, known) = scene.known_ends(self.ends);
        let g = scene.graph();
        // Rows: the N noisy points, then the points at the ends. Columns of `known`: the ends.
        let of_points = g.gather(known, &(0..n as u32).collect::<Vec<_>>());
        let of_ends = g.gather(known, &(n as u32..(n + e) as u32).collect::<Vec<_>>());
        let classes = g.concat(learned, of_points);
        let total = g.log_sum_exp(classes);
        let from_points = g.sub(total, own);
        let from_points = g.unit_sum(from_points);
        let classes = g.concat(at_ends, of_ends);
        let total = g.log_sum_exp(classes);
        let mut sum = from_points;
        for k in 0..e {
            let row = g.gather(of_ends, &[k as u32]);
            let right = g.slice(row, k, 1);
            let total = g.gather(total, &[k as u32]);
            let loss = g.sub(total, right);
            sum = g.add(sum, loss);
        }
        g.scale(sum, 1.0 / (n + e) as f64)
    }
}
