//! Conditional score entropy: `sum_y Q_t(y, Y_t) { s(y) - S log s(y) + S log S - S }` over the states y one jump away, with the model's
//! ratio `s = p_t(y) / p_t(Y_t)` and the conditional one `S = p(y | Y_0) / p(Y_t | Y_0)`, whose mean given `Y_t` is the true ratio.
//! (Lou, Meng, Ermon 2024; the last two terms make the least value zero and teach nothing.)
//!
//! The weight is the rate **into** `Y_t`, as in the reverse rates `Q_t(y, Y_t) s(y)`. The DiffCLF paper prints the rate out of it, which
//! under masks is zero wherever there is something to learn.

use super::{StatesObjective, StatesScene};
use crate::engine::{Function, Node};
use crate::objective::{LevelScene, SettingList, Teaches, Words};

/// How levels are weighed against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntropyWeight {
    /// The share of sites that were hit, `1 - alpha(t)`, in place of the rate `beta(t)`: bounded at all times.
    Balanced,
    /// The rate `beta(t)`: the bound of the likelihood, for times that are uniform.
    Rate,
}

impl Words for EntropyWeight {
    const WORDS: &'static [(&'static str, EntropyWeight)] = &[
        ("balanced", EntropyWeight::Balanced),
        ("rate", EntropyWeight::Rate),
    ];
}

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreEntropy {
    /// Sites of a row that are looked at, drawn at random among those that can change back; all of them where there are no more. The
    /// sum over the others is that of these, scaled: right on average.
    pub sites: u32,
    /// Weight of the levels.
    pub weight: EntropyWeight,
}

impl ScoreEntropy {
    /// The usual settings.
    pub const USUAL: ScoreEntropy = ScoreEntropy {
        sites: 4,
        weight: EntropyWeight::Balanced,
    };

    pub(super) fn settings(&mut self) -> SettingList<'_> {
        vec![("sites", &mut self.sites), ("weight", &mut self.weight)]
    }
}

impl StatesObjective for ScoreEntropy {
    fn name(&self) -> &'static str {
        "score-entropy"
    }

    fn about(&self) -> &'static str {
        "ratios of states that differ at one site, against those of one source row"
    }

    fn teaches(&self) -> Teaches {
        Teaches::Score
    }

    fn cites(&self) -> &'static [&'static str] {
        &["lou2024discrete"]
    }

    fn level_range(&self) -> (usize, usize) {
        (1, crate::objective::MAX_LEVELS)
    }

    fn loss(&self, scene: &mut StatesScene<'_>) -> Node {
        let (log_ratio, [rate, target, constant]) = scene.changes(*self);
        let g = scene.graph();
        let ratio = g.unary(Function::Exp, log_ratio);
        let linear = g.mul(target, log_ratio);
        let entropy = g.sub(ratio, linear);
        let weighted = g.mul(rate, entropy);
        let loss = g.add(weighted, constant);
        let sum = g.unit_sum(loss);
        let levels = scene.levels() as f64;
        scene.graph().scale(sum, 1.0 / levels)
    }
}
