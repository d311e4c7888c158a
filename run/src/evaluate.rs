//! A model beside the exact answer of the system it was trained on.

use crate::error::Result;
use crate::exact::{Systems, exact_path};
use crate::memory::refuse_rows;
use crate::watch::Watch;
use diffclf::energy::{Energy, LearnedEnergy};
use diffclf::metric::{Estimate, Evaluation, EvaluationSettings};
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
    /// Log-likelihood of fresh exact samples at the smallest time, in nats per row and in the data's coordinates.
    pub likelihood: Likelihood,
}

/// Log-likelihood beside that of the truth.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Likelihood {
    /// The model's.
    pub model: Estimate,
    /// That of the exact density: no density has more.
    pub exact: Estimate,
    /// The model's minus the exact one, sample by sample.
    pub lead: Estimate,
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
        // Points, scores and log-densities of a level; log-densities of the classified ones at all levels.
        refuse_rows("samples", self.samples, content.spec.dim, 32)?;
        let numbers = grid.levels() * (grid.levels() + content.spec.dim);
        refuse_rows("classified", self.classified.min(self.samples), numbers, 8)?;
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
        let time = grid.t_min();
        let points = exact.sample(time, self.samples.max(2), self.seed);
        let map = &content.standardisation;
        let rows = || points.chunks_exact(content.spec.dim);
        let values = |density: &dyn Energy| {
            let mut out = vec![0.0; points.len() / content.spec.dim];
            density.log_density(&[time], &points, &mut out);
            for (value, point) in out.iter_mut().zip(rows()) {
                *value -= map.log_volume_at(point);
            }
            out
        };
        let (model, truth) = (values(energy), values(&exact));
        let lead: Vec<f64> = model.iter().zip(&truth).map(|(a, b)| a - b).collect();
        Ok(Judged {
            evaluation,
            systems,
            grid,
            likelihood: Likelihood {
                model: Estimate::of(&model),
                exact: Estimate::of(&truth),
                lead: Estimate::of(&lead),
            },
        })
    }
}
