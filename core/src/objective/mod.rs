//! Objectives: one file per loss. An objective builds its loss from the energies, scores and log-densities of a
//! [`Scene`]; it never sees the network's inside, and terms that ask for the same node share it.

mod binary_diffclf;
mod diffclf;
mod dsm;
mod scene;

pub use binary_diffclf::BinaryDiffclf;
pub use diffclf::Diffclf;
pub use dsm::Dsm;
pub use scene::{Scene, Slots};

use serde::{Deserialize, Serialize};

use crate::network::Node;
use crate::{Error, Result};

/// A loss.
pub trait Objective {
    /// Name in configuration, log and errors.
    fn name(&self) -> &'static str;

    /// Smallest number of levels a row must have.
    fn least_levels(&self) -> usize {
        1
    }

    /// Largest number of levels a row may have.
    fn most_levels(&self) -> usize {
        MAX_LEVELS
    }

    /// The loss of each source row, `Unit(1) x 1`; the objective is its mean over the batch.
    fn loss(&self, scene: &mut Scene<'_>) -> Node;
}

/// Most levels of one row.
pub const MAX_LEVELS: usize = 64;

/// Every objective, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectiveName {
    /// Denoising score matching.
    Dsm,
    /// Classification among N noise levels.
    Diffclf,
    /// Classification between two noise levels, as a logistic loss.
    BinaryDiffclf,
}

impl ObjectiveName {
    /// All of them.
    pub const ALL: [ObjectiveName; 3] = [
        ObjectiveName::Dsm,
        ObjectiveName::Diffclf,
        ObjectiveName::BinaryDiffclf,
    ];

    /// The objective itself.
    pub fn objective(self) -> &'static dyn Objective {
        match self {
            ObjectiveName::Dsm => &Dsm,
            ObjectiveName::Diffclf => &Diffclf,
            ObjectiveName::BinaryDiffclf => &BinaryDiffclf,
        }
    }
}

/// A term of the training loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Which objective.
    pub objective: ObjectiveName,
    /// Its weight in the sum.
    #[serde(default = "one")]
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

impl std::str::FromStr for Term {
    type Err = Error;

    /// `name` or `weight*name`.
    fn from_str(text: &str) -> Result<Term> {
        let wrong = |expected: String| Error::Value {
            name: "objective",
            found: format!("{text:?}"),
            expected,
        };
        let (weight, name) = match text.split_once('*') {
            Some((weight, name)) => {
                let weight = weight
                    .trim()
                    .parse()
                    .map_err(|_| wrong("a number before the `*`".into()))?;
                (weight, name)
            }
            None => (1.0, text),
        };
        let found = ObjectiveName::ALL
            .into_iter()
            .find(|o| o.objective().name() == name.trim());
        let names = ObjectiveName::ALL.map(|o| o.objective().name()).join(", ");
        match found {
            Some(objective) => Ok(Term { objective, weight }),
            None => Err(wrong(format!(
                "one of {names}, or a weighted sum such as dsm+0.5*diffclf"
            ))),
        }
    }
}

/// Parses a sum of terms such as `dsm+0.5*diffclf`.
pub fn parse_terms(text: &str) -> Result<Vec<Term>> {
    text.split('+').map(str::parse).collect()
}

/// Checks a weighted sum for rows of `levels` levels.
pub fn validate_terms(terms: &[Term], levels: usize) -> Result<()> {
    let wrong = |name, found: String, expected: String| {
        Err(Error::Value {
            name,
            found,
            expected,
        })
    };
    if terms.is_empty() {
        return wrong(
            "objectives",
            "none".into(),
            "at least one, for instance dsm".into(),
        );
    }
    for (k, term) in terms.iter().enumerate() {
        let objective = term.objective.objective();
        if !(term.weight.is_finite() && term.weight > 0.0) {
            return wrong(
                "objective weight",
                term.weight.to_string(),
                "a positive number".into(),
            );
        }
        if terms[..k].iter().any(|t| t.objective == term.objective) {
            return wrong(
                "objectives",
                format!("{} twice", objective.name()),
                "each at most once".into(),
            );
        }
        let (least, most) = (objective.least_levels(), objective.most_levels());
        if !(least..=most).contains(&levels) {
            let expected = format!("between {least} and {most} for {}", objective.name());
            return wrong("levels", levels.to_string(), expected);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
