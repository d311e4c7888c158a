//! A model beside the exact answer of the system it was trained on.

use crate::error::Result;
use crate::exact::{Systems, exact_path};
use crate::watch::Watch;
use diffclf::energy::LearnedEnergy;
use diffclf::metric::{Evaluation, EvaluationSettings};
use diffclf::model::Content;
use diffclf::process::TimeGrid;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Judgement<'a> {
    /// Systems instead of those of the training.
    pub systems: Systems<'a>,
    /// Levels of the grid, which are also the classes; the model's own if absent.
    pub levels: Option<usize>,
    /// Exact samples per level.
    pub samples: usize,
    /// How many of them enter the classification loss.
    pub classified: usize,
    /// Seed of the samples.
    pub seed: u64,
}

/// The figures, and what they were computed with.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The figures.
    pub evaluation: Evaluation,
    /// Names of the systems.
    pub systems: Vec<String>,
    /// The levels.
    pub grid: TimeGrid,
}

impl Judgement<'_> {
    /// Computes the figures.
    pub fn run(
        &self,
        content: &Content,
        energy: &LearnedEnergy,
        watch: &dyn Watch,
    ) -> Result<Judged> {
        let (exact, systems) = exact_path(&self.systems, content)?;
        let grid = match self.levels {
            Some(levels) => content.spec.grid.with_levels(levels)?,
            None => content.spec.grid.clone(),
        };
        let settings = EvaluationSettings {
            samples_per_level: self.samples,
            classification_samples_per_level: self.classified.min(self.samples),
            seed: self.seed,
            ..EvaluationSettings::default()
        };
        let mut bar = watch.begin("evaluate", grid.levels() as u64, 0);
        let evaluation = Evaluation::run(energy, &exact, &grid, settings, &mut |done, _| {
            bar.set(done as u64, &|| "levels".into());
        })?;
        bar.finish("done");
        Ok(Judged {
            evaluation,
            systems,
            grid,
        })
    }
}
