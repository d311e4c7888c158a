//! MBAR over the learned energies of a model against the F(t) it learned.

use crate::error::Result;
use crate::files::read_model;
use crate::judging::{GivenFiles, Judging};
use crate::machine::Machine;
use crate::memory::refuse_rows;
use diffclf::free_energy::{MbarSettings, PathEstimate, PathSamples};
use std::path::PathBuf;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Levelling {
    /// The model's file.
    pub model: PathBuf,
    /// Samples of the endpoints; drawn from the systems the model was trained on if absent.
    pub data: [Option<PathBuf>; 2],
    /// Weights of those samples.
    pub weights: [Option<PathBuf>; 2],
    /// Levels, evenly over the grid of the model.
    pub levels: usize,
    /// Samples at each level.
    pub samples: usize,
    /// Seed of the samples.
    pub seed: u64,
}

/// What was found.
#[derive(Debug)]
pub struct LevelsFound {
    /// Estimates at the levels.
    pub path: PathEstimate,
    /// The rows were trained on: there are no others.
    pub only_trained: bool,
}

impl Levelling {
    /// MBAR at the levels.
    pub fn run(&self, machine: &Machine) -> Result<LevelsFound> {
        let model = read_model(&self.model)?;
        let content = &model.content;
        let spec = &content.spec;
        let times = spec.grid.with_levels(self.levels)?;
        let numbers = self.levels.saturating_mul(self.levels + spec.dim);
        refuse_rows("samples", self.samples, numbers, 8)?;
        // Rows the model was not trained on, where there are any: on its own rows a model that knows them by heart looks right.
        let files = GivenFiles::of(&self.data, &self.weights);
        let judging = Judging::gather(content, files, &self.model)?;
        let rows = judging.rows();
        let (pool, isa) = (machine.pool()?, machine.isa()?);
        let energy = model.energy(pool.clone(), isa)?;
        let samples = PathSamples::new(
            &spec.process,
            spec.dim,
            times.times(),
            (rows.start, rows.end),
            self.samples,
            self.seed,
        )?;
        let settings = MbarSettings {
            pool: Some(pool),
            isa,
            ..MbarSettings::default()
        };
        Ok(LevelsFound {
            path: PathEstimate::new(&energy, &samples, &settings)?,
            only_trained: judging.only_trained,
        })
    }
}
