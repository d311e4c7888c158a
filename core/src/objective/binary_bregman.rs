//! Binary Bregman divergences between density ratios: with `r = p_t / p_s` and a convex generator `phi`,
//! `E_s[phi'(r) r - phi(r)] - E_t[phi'(r)]` is least at the true ratio (appendix on Bregman divergences).
//!
//! A row's first level is `s`, its second `t`. With `m = log p_other - log p_own` at each point, `log r = m` at the first and
//! `-m` at the second:
//!
//! | generator | `phi(r)` | loss |
//! | --- | --- | --- |
//! | `js` | `r log r - (1 + r) log(1 + r)` | `softplus(m_s) + softplus(m_t)`, twice binary DiffCLF |
//! | `kl` | `r log r - r` | `exp(m_s) + m_t` |
//! | `log` | `-log r` | `m_s - 1 + exp(m_t)` |
//! | `square` | `r^2 / 2` | `exp(2 m_s) / 2 - exp(-m_t)` |
//!
//! All but `js` are unbounded in the ratio and need [close times](crate::process::TimeSampler::Close). Where the ratio overflows the
//! loss is not finite and the step says so.

use super::setting::{SettingList, Words};
use super::{LevelObjective, LevelScene, Objective, Scene, Teaches};
use crate::engine::{Function, Node};

/// The convex function of a binary Bregman divergence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryGenerator {
    /// `r log r - (1 + r) log(1 + r)`.
    JensenShannon,
    /// `r log r - r`.
    KullbackLeibler,
    /// `-log r`.
    Log,
    /// `r^2 / 2`.
    Square,
}

impl Words for BinaryGenerator {
    const WORDS: &'static [(&'static str, BinaryGenerator)] = &[
        ("js", BinaryGenerator::JensenShannon),
        ("kl", BinaryGenerator::KullbackLeibler),
        ("log", BinaryGenerator::Log),
        ("square", BinaryGenerator::Square),
    ];
}

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryBregman {
    /// The convex function.
    pub generator: BinaryGenerator,
}

impl BinaryBregman {
    /// The usual settings.
    pub const USUAL: BinaryBregman = BinaryBregman {
        generator: BinaryGenerator::JensenShannon,
    };
}

impl Objective for BinaryBregman {
    fn name(&self) -> &'static str {
        "binary-bregman"
    }

    fn about(&self) -> &'static str {
        "Bregman divergences between the density ratios of two levels"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Levels
    }

    fn cites(&self) -> &'static [&'static str] {
        &["ouyang2026diffclf", "gutmann2011bregman"]
    }

    fn least_levels(&self) -> usize {
        2
    }

    fn most_levels(&self) -> usize {
        2
    }

    fn settings(&mut self) -> SettingList<'_> {
        vec![("generator", &mut self.generator)]
    }

    fn compares_levels(&self) -> bool {
        true
    }

    fn closeness(&self) -> Option<f64> {
        match self.generator {
            BinaryGenerator::JensenShannon => None,
            BinaryGenerator::KullbackLeibler => Some(1.0),
            BinaryGenerator::Log => Some(0.3),
            // Not bounded below at a single point: large ratios are sought before they are punished.
            BinaryGenerator::Square => Some(0.1),
        }
    }

    fn loss(&self, scene: &mut Scene<'_>) -> Node {
        self.of_levels(scene)
    }
}

impl LevelObjective for BinaryBregman {
    fn of_levels(&self, scene: &mut dyn LevelScene) -> Node {
        let own = scene.own_log_density();
        let other = scene.other_log_densities();
        let g = scene.graph();
        let margin = g.sub(other, own);
        let (first, second) = (g.gather(margin, &[0]), g.gather(margin, &[1]));
        let (of_s, of_t) = match self.generator {
            BinaryGenerator::JensenShannon => (
                g.unary(Function::Softplus, first),
                g.unary(Function::Softplus, second),
            ),
            BinaryGenerator::KullbackLeibler => (g.unary(Function::Exp, first), second),
            BinaryGenerator::Log => (g.affine(first, 1.0, -1.0), g.unary(Function::Exp, second)),
            BinaryGenerator::Square => {
                let (twice, minus) = (g.scale(first, 2.0), g.scale(second, -1.0));
                let (square, ratio) =
                    (g.unary(Function::Exp, twice), g.unary(Function::Exp, minus));
                (g.scale(square, 0.5), g.scale(ratio, -1.0))
            }
        };
        g.add(of_s, of_t)
    }
}
