//! Objectives of states by name: `score-entropy`, `score-entropy(sites=2)+diffclf`.

use super::{ScoreEntropy, StatesObjective};
use crate::objective::{
    BinaryBregman, BinaryDiffclf, Bregman, Choice, Diffclf, Objective, SettingList, choice_text,
    parse_choice,
};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Every objective of states, with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum StatesObjectiveName {
    /// Conditional score entropy.
    ScoreEntropy(ScoreEntropy),
    /// Classification among N noise levels.
    Diffclf,
    /// Classification between two noise levels.
    BinaryDiffclf,
    /// A Bregman divergence between the density ratios of two levels.
    BinaryBregman(BinaryBregman),
    /// A Bregman divergence between the class probabilities of N levels.
    Bregman(Bregman),
}

impl StatesObjectiveName {
    /// The objective itself.
    pub fn objective(&self) -> &dyn StatesObjective {
        match self {
            StatesObjectiveName::ScoreEntropy(objective) => objective,
            StatesObjectiveName::Diffclf => &Diffclf,
            StatesObjectiveName::BinaryDiffclf => &BinaryDiffclf,
            StatesObjectiveName::BinaryBregman(objective) => objective,
            StatesObjectiveName::Bregman(objective) => objective,
        }
    }

    /// A line of help each.
    pub fn help() -> String {
        let line = |name: &StatesObjectiveName| {
            format!(
                "    {:15} {}\n",
                Choice::name(name),
                name.objective().about()
            )
        };
        Self::ALL.iter().map(line).collect()
    }
}

impl Choice for StatesObjectiveName {
    const ALL: &'static [StatesObjectiveName] = &[
        StatesObjectiveName::ScoreEntropy(ScoreEntropy::USUAL),
        StatesObjectiveName::Diffclf,
        StatesObjectiveName::BinaryDiffclf,
        StatesObjectiveName::BinaryBregman(BinaryBregman::USUAL),
        StatesObjectiveName::Bregman(Bregman::USUAL),
    ];
    const SUM: &'static str = "score-entropy+diffclf";

    fn name(&self) -> &'static str {
        self.objective().name()
    }

    fn settings(&mut self) -> SettingList<'_> {
        match self {
            StatesObjectiveName::ScoreEntropy(objective) => objective.settings(),
            StatesObjectiveName::BinaryBregman(objective) => objective.settings(),
            StatesObjectiveName::Bregman(objective) => objective.settings(),
            StatesObjectiveName::Diffclf | StatesObjectiveName::BinaryDiffclf => Vec::new(),
        }
    }
}

impl std::fmt::Display for StatesObjectiveName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&choice_text(*self))
    }
}

impl From<StatesObjectiveName> for String {
    fn from(name: StatesObjectiveName) -> String {
        name.to_string()
    }
}

impl TryFrom<String> for StatesObjectiveName {
    type Error = Error;

    fn try_from(text: String) -> Result<StatesObjectiveName> {
        parse_choice(&text)
    }
}
