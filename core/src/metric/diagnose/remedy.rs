//! What to do about a flaw: advice that fits the model at hand.

/// What is known of a model besides its density.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// log of the volume that the model's coordinates lose: taken off its log-densities, it gives those of the data's coordinates.
    pub log_volume: f64,
    /// Whether its objective compares levels (as diffclf does); unknown if absent.
    pub compares_levels: Option<bool>,
    /// The rows judged by were trained on: there are no others.
    pub only_trained: bool,
    /// Nothing changes when all particles are moved together: there is no integral over all space.
    pub endless: bool,
    /// How much F(t) was moved when the training ended ([`crate::free_energy::level`]).
    pub levelled: Option<crate::metric::Estimate>,
}

/// Advice by the facts of the model, and by whether it knows its rows by heart.
pub(crate) struct Remedy {
    pub compares_levels: Option<bool>,
    pub over_fitted: bool,
    /// An objective that compares levels.
    pub usual: &'static str,
}

impl Remedy {
    /// What makes the model as a whole better.
    pub fn further(&self) -> &'static str {
        if self.over_fitted {
            "take more data, a smaller network or fewer steps (the model knows its rows by heart)"
        } else {
            "train longer, with a larger batch or network"
        }
    }

    /// What makes densities of the levels fit together.
    pub fn levels(&self) -> String {
        match (self.over_fitted, self.compares_levels) {
            (true, _) => self.further().into(),
            (false, Some(false)) => {
                format!("train with an objective that compares levels, such as {}", self.usual)
            }
            (false, Some(true)) => {
                "diffclf is in the objective already: train longer, or with more levels per row (levels)".into()
            }
            (false, None) => "train longer, with diffclf in the objective".into(),
        }
    }
}
