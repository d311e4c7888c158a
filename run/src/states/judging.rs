//! A model of states beside the exact answer of its system.

use super::exact;
use crate::error::Result;
use crate::watch::{Done, Watch};
use diffclf::discrete::LearnedStates;
use diffclf::discrete::metric::{self, Enumerated, Evaluation};
use diffclf::discrete::model::Content;
use diffclf::discrete::system::ExactStates;
use serde::Serialize;

/// How to judge.
#[derive(Debug, Clone)]
pub struct StatesJudgement<'a> {
    /// The system; none: the one that the model was trained on.
    pub system: Option<&'a str>,
    /// Its seed.
    pub system_seed: Option<u64>,
    /// Levels of the grid, which are also the classes; none: the model's own.
    pub levels: Option<usize>,
    /// Exact samples per level, and how many of them are classified.
    pub samples: (usize, usize),
    /// Seed of the samples.
    pub seed: u64,
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct StatesJudged {
    /// The system.
    pub system: String,
    /// Figures.
    pub evaluation: Evaluation,
    /// By enumeration at the smallest time, where there are few enough rows and the noise is uniform.
    pub enumerated: Option<Enumerated>,
    /// Share of the rows with more symbols 1 than 0, learned and exact, for two states.
    pub up: Option<(f64, f64)>,
}

impl StatesJudgement<'_> {
    /// Judges.
    pub fn run(
        &self,
        (content, energy): (&Content, &LearnedStates),
        watch: &dyn Watch,
    ) -> Result<Done<StatesJudged>> {
        let exact = exact(content, self.system, self.system_seed)?;
        let grid = match self.levels {
            Some(levels) => content.spec.grid.with_levels(levels)?,
            None => content.spec.grid.clone(),
        };
        let mut bar = watch.begin("evaluate", grid.levels() as u64, 0);
        let evaluation = metric::evaluate(
            energy,
            &exact,
            grid.times(),
            self.samples,
            self.seed,
            &mut |level| {
                bar.set(level as u64, &|| "levels".into());
            },
        )?;
        let (enumerated, up) = enumerate(content, energy, &exact).unzip();
        let found = StatesJudged {
            system: exact.target.name().into(),
            evaluation,
            enumerated,
            up: up.flatten(),
        };
        Ok(Done::new(found, bar))
    }
}

/// Compares all rows at the smallest time.
pub fn enumerate(
    content: &Content,
    energy: &LearnedStates,
    exact: &ExactStates,
) -> Option<(Enumerated, Option<(f64, f64)>)> {
    if content.spec.process.is_masked() {
        return None;
    }
    let time = content.spec.grid.t_min();
    let learned = metric::all_log_densities(energy, time)?;
    let truth = metric::all_log_densities(exact, time)?;
    let law: Vec<f64> = truth.iter().map(|log_p| log_p.exp()).collect();
    let space = content.spec.space;
    let up = (space.states == 2).then(|| {
        (
            metric::share(space, &learned, metric::is_up),
            metric::share(space, &truth, metric::is_up),
        )
    });
    Some((metric::enumerated(&learned, &law), up))
}
