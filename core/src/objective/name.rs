//! Objectives by name: `dsm`, `fokker-planck(laplacian=exact)`, and weighted sums such as `dsm+0.5*diffclf`. The text is the
//! form in configuration files, in model files and on the command line.

use serde::{Deserialize, Serialize};

use super::*;

/// Every objective, with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ObjectiveName {
    /// Denoising score matching.
    Dsm,
    /// Classification among N noise levels.
    Diffclf,
    /// Classification between two noise levels, as a logistic loss.
    BinaryDiffclf,
    /// A Bregman divergence between the density ratios of two levels.
    BinaryBregman(BinaryBregman),
    /// A Bregman divergence between the class probabilities of N levels.
    Bregman(Bregman),
    /// Classification in which marginals that are known take part.
    KnownDiffclf(KnownDiffclf),
    /// Classification of noisy data against draws of the inflated base.
    Anchor,
    /// Conditional time score matching.
    Ctsm(Ctsm),
    /// Time score matching against a known time score.
    Tsm(Tsm),
    /// Classification of two close times, linearised.
    DreInfinity(DreInfinity),
    /// Residual of the Fokker-Planck equation.
    FokkerPlanck(FokkerPlanck),
    /// Residual of Bayes' rule between two close times.
    Bayes(Bayes),
    /// Score matching against the score of the data.
    TargetScore,
    /// Regression of an interpolant's velocity.
    Velocity,
}

impl ObjectiveName {
    /// All of them, with their usual settings.
    pub const ALL: [ObjectiveName; 14] = [
        ObjectiveName::Dsm,
        ObjectiveName::Diffclf,
        ObjectiveName::BinaryDiffclf,
        ObjectiveName::BinaryBregman(BinaryBregman::USUAL),
        ObjectiveName::Bregman(Bregman::USUAL),
        ObjectiveName::KnownDiffclf(KnownDiffclf::USUAL),
        ObjectiveName::Anchor,
        ObjectiveName::Ctsm(Ctsm::USUAL),
        ObjectiveName::Tsm(Tsm::USUAL),
        ObjectiveName::DreInfinity(DreInfinity::USUAL),
        ObjectiveName::FokkerPlanck(FokkerPlanck::USUAL),
        ObjectiveName::Bayes(Bayes::USUAL),
        ObjectiveName::TargetScore,
        ObjectiveName::Velocity,
    ];

    /// All of them, a line of help each, grouped by what they teach.
    pub fn help() -> String {
        let width = Self::ALL
            .iter()
            .map(|name| name.objective().name().len())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        let mut groups: Vec<Teaches> = Vec::new();
        for name in &Self::ALL {
            let teaches = name.objective().teaches();
            if !groups.contains(&teaches) {
                groups.push(teaches);
            }
        }
        for teaches in groups {
            text.push_str(&format!("  {}:\n", teaches.words()));
            for name in &Self::ALL {
                let objective = name.objective();
                if objective.teaches() == teaches {
                    let (name, about) = (objective.name(), objective.about());
                    text.push_str(&format!("    {name:width$}  {about}\n"));
                }
            }
        }
        text
    }

    /// The objective itself.
    pub fn objective(&self) -> &dyn Objective {
        match self {
            ObjectiveName::Dsm => &Dsm,
            ObjectiveName::Diffclf => &Diffclf,
            ObjectiveName::BinaryDiffclf => &BinaryDiffclf,
            ObjectiveName::BinaryBregman(objective) => objective,
            ObjectiveName::Bregman(objective) => objective,
            ObjectiveName::KnownDiffclf(objective) => objective,
            ObjectiveName::Anchor => &Anchor,
            ObjectiveName::Ctsm(objective) => objective,
            ObjectiveName::Tsm(objective) => objective,
            ObjectiveName::DreInfinity(objective) => objective,
            ObjectiveName::FokkerPlanck(objective) => objective,
            ObjectiveName::Bayes(objective) => objective,
            ObjectiveName::TargetScore => &TargetScore,
            ObjectiveName::Velocity => &VelocityRegression,
        }
    }

    fn settings(&mut self) -> SettingList<'_> {
        match self {
            ObjectiveName::BinaryBregman(objective) => objective.settings(),
            ObjectiveName::Bregman(objective) => objective.settings(),
            ObjectiveName::KnownDiffclf(objective) => objective.settings(),
            ObjectiveName::Ctsm(objective) => objective.settings(),
            ObjectiveName::Tsm(objective) => objective.settings(),
            ObjectiveName::DreInfinity(objective) => objective.settings(),
            ObjectiveName::FokkerPlanck(objective) => objective.settings(),
            ObjectiveName::Bayes(objective) => objective.settings(),
            ObjectiveName::Dsm
            | ObjectiveName::Diffclf
            | ObjectiveName::BinaryDiffclf
            | ObjectiveName::Anchor
            | ObjectiveName::TargetScore
            | ObjectiveName::Velocity => Vec::new(),
        }
    }

    /// Settings with their present values, as text.
    #[cfg(test)]
    pub(super) fn values(self) -> Vec<(&'static str, String)> {
        values(self)
    }
}

impl Choice for ObjectiveName {
    const ALL: &'static [ObjectiveName] = &ObjectiveName::ALL;
    const SUM: &'static str = "dsm+0.5*diffclf";

    fn name(&self) -> &'static str {
        self.objective().name()
    }

    fn settings(&mut self) -> SettingList<'_> {
        self.settings()
    }
}

/// A family of objectives that are named in text, with settings in parentheses.
pub trait Choice: Copy + 'static {
    /// All members, with their usual settings.
    const ALL: &'static [Self];
    /// An example of a weighted sum.
    const SUM: &'static str;

    /// Name in text.
    fn name(&self) -> &'static str;

    /// Its settings.
    fn settings(&mut self) -> SettingList<'_>;
}

/// Settings with their present values, as text.
fn values<C: Choice>(mut choice: C) -> Vec<(&'static str, String)> {
    let settings = choice.settings().into_iter();
    settings
        .map(|(name, setting)| (name, setting.text()))
        .collect()
}

fn set<C: Choice>(choice: &mut C, setting: &str, value: &str) -> Result<()> {
    let name = choice.name();
    let settings = choice.settings();
    let known: Vec<&str> = settings.iter().map(|(known, _)| *known).collect();
    let expected = match known.as_slice() {
        [] => format!("none: write {name} without parentheses"),
        _ => format!("one of {}", known.join(", ")),
    };
    match settings.into_iter().find(|(known, _)| *known == setting) {
        Some((known, place)) => place.read(known, value),
        None => Err(Error::Value {
            name: "objective setting",
            found: format!("{setting:?} of {name}"),
            expected,
        }),
    }
}

/// The same objective with its usual settings.
fn usual<C: Choice>(name: &str) -> Option<C> {
    C::ALL.iter().copied().find(|choice| choice.name() == name)
}

/// The name, with the settings that differ from the usual ones.
pub(crate) fn choice_text<C: Choice>(choice: C) -> String {
    let name = choice.name();
    let usual = usual::<C>(name).map_or(Vec::new(), values);
    let changed: Vec<String> = values(choice)
        .into_iter()
        .filter(|setting| !usual.contains(setting))
        .map(|(setting, value)| format!("{setting}={value}"))
        .collect();
    if changed.is_empty() {
        return name.into();
    }
    format!("{name}({})", changed.join(","))
}

/// `name` or `name(setting=value,...)`.
pub(crate) fn parse_choice<C: Choice>(text: &str) -> Result<C> {
    let wrong = |expected: String| Error::Value {
        name: "objective",
        found: format!("{text:?}"),
        expected,
    };
    let text = text.trim();
    let (name, settings) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(settings) if !settings.trim().is_empty() => (name.trim(), settings),
            _ => {
                return Err(wrong(
                    "settings between parentheses, such as fokker-planck(laplacian=exact)".into(),
                ));
            }
        },
    };
    let Some(mut choice) = usual::<C>(name) else {
        let names: Vec<&str> = C::ALL.iter().map(|choice| choice.name()).collect();
        return Err(wrong(format!(
            "one of {}, or a weighted sum such as {}",
            names.join(", "),
            C::SUM
        )));
    };
    for setting in settings.split(',').filter(|s| !s.trim().is_empty()) {
        let Some((setting, value)) = setting.split_once('=') else {
            return Err(wrong(format!("setting=value instead of {setting:?}")));
        };
        set(&mut choice, setting.trim(), value.trim())?;
    }
    Ok(choice)
}

impl std::fmt::Display for ObjectiveName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&choice_text(*self))
    }
}

impl std::str::FromStr for ObjectiveName {
    type Err = Error;

    /// `name` or `name(setting=value,...)`.
    fn from_str(text: &str) -> Result<ObjectiveName> {
        parse_choice(text)
    }
}

impl From<ObjectiveName> for String {
    fn from(name: ObjectiveName) -> String {
        name.to_string()
    }
}

impl TryFrom<String> for ObjectiveName {
    type Error = Error;

    fn try_from(text: String) -> Result<ObjectiveName> {
        text.parse()
    }
}

/// A term of the training loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term<O = ObjectiveName> {
    /// Which objective.
    pub objective: O,
    /// Its weight in the sum.
    #[serde(default = "one")]
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

impl<O: Choice> std::str::FromStr for Term<O> {
    type Err = Error;

    /// `objective` or `weight*objective`.
    fn from_str(text: &str) -> Result<Term<O>> {
        let (weight, objective) = match text.split_once('*') {
            Some((weight, objective)) => {
                let weight = weight.trim().parse().map_err(|_| Error::Value {
                    name: "objective",
                    found: format!("{text:?}"),
                    expected: "a number before the `*`".into(),
                })?;
                (weight, objective)
            }
            None => (1.0, text),
        };
        Ok(Term {
            objective: parse_choice(objective)?,
            weight,
        })
    }
}

/// Parses a sum of terms such as `dsm+0.5*diffclf` or `dsm+bayes(gap=4)`.
pub fn parse_terms(text: &str) -> Result<Vec<Term>> {
    parse_sum(text)
}

/// A sum of terms of any family.
pub fn parse_sum<O: Choice>(text: &str) -> Result<Vec<Term<O>>> {
    text.split('+').map(str::parse).collect()
}

/// The smallest [closeness](Objective::closeness) that a sum asks for, if any of its terms does.
pub fn closeness(terms: &[Term]) -> Option<f64> {
    terms
        .iter()
        .filter_map(|term| term.objective.objective().closeness())
        .reduce(f64::min)
}

/// Checks a weighted sum for a model and rows of `levels` levels.
pub fn validate_terms(terms: &[Term], spec: &ModelSpec, levels: usize) -> Result<()> {
    check_sum(terms, levels, |name| {
        let objective = name.objective();
        (objective.least_levels(), objective.most_levels())
    })?;
    let mut objectives = terms.iter().map(|term| term.objective.objective());
    objectives.try_for_each(|objective| objective.validate(spec))
}

/// Checks a weighted sum for rows of `levels` levels, each member with the fewest and most levels it takes.
pub(crate) fn check_sum<O: Choice>(
    terms: &[Term<O>],
    levels: usize,
    range: impl Fn(&O) -> (usize, usize),
) -> Result<()> {
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
            format!("at least one, for instance {}", O::ALL[0].name()),
        );
    }
    for (k, term) in terms.iter().enumerate() {
        let name = term.objective.name();
        if !(term.weight.is_finite() && term.weight > 0.0) {
            return wrong(
                "objective weight",
                term.weight.to_string(),
                "a positive number".into(),
            );
        }
        let same = |t: &Term<O>| t.objective.name() == name;
        if terms[..k].iter().any(same) {
            return wrong(
                "objectives",
                format!("{name} twice"),
                "each at most once".into(),
            );
        }
        let (least, most) = range(&term.objective);
        if !(least..=most).contains(&levels) {
            let expected = format!("between {least} and {most} for {name}");
            return wrong("levels", levels.to_string(), expected);
        }
        // A value that text could not give is out of range.
        let mut copy = term.objective;
        for (setting, place) in copy.settings() {
            let text = place.text();
            place.read(setting, &text)?;
        }
    }
    Ok(())
}
