//! MBAR over the learned energies of a model against the F(t) it learned.

use crate::coordinates::Coordinates;
use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::machine::Machine;
use diffclf::free_energy::{MbarSettings, PathEstimate, PathSamples};
use diffclf::model::{Content, Model};
use diffclf::system::System;
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Levelling {
    /// Samples of the endpoints; drawn from the systems the model was trained on if absent.
    pub data: [Option<PathBuf>; 2],
    /// Levels, evenly over the grid of the model.
    pub levels: usize,
    /// Samples at each level.
    pub samples: usize,
    /// Seed of the samples.
    pub seed: u64,
}

impl Levelling {
    /// MBAR at the levels.
    pub fn run(&self, model: &Model, machine: &Machine) -> Result<PathEstimate> {
        let content = &model.content;
        let spec = &content.spec;
        let draws = (self.levels * self.samples).clamp(1000, 100_000);
        let rows = |endpoint: usize| {
            let file = self.data[endpoint].as_deref();
            endpoint_rows(content, endpoint, file, draws, self.seed ^ endpoint as u64)
        };
        let start = rows(0)?;
        let end = if spec.process.is_interpolant() {
            Some(rows(1)?)
        } else {
            None
        };
        let (pool, isa) = (machine.pool()?, machine.isa()?);
        let energy = model.energy(pool.clone(), isa)?;
        let times = spec.grid.with_levels(self.levels)?;
        let samples = PathSamples::new(
            &spec.process,
            spec.dim,
            times.times(),
            (&start, end.as_deref()),
            self.samples,
            self.seed,
        )?;
        let settings = MbarSettings {
            pool: Some(pool),
            isa,
            ..MbarSettings::default()
        };
        Ok(PathEstimate::new(&energy, &samples, &settings)?)
    }
}

/// Rows of an endpoint in the model's coordinates.
pub fn endpoint_rows(
    content: &Content,
    endpoint: usize,
    file: Option<&Path>,
    draws: usize,
    seed: u64,
) -> Result<Vec<f64>> {
    let spec = &content.spec;
    let mut rows = match file {
        Some(path) => {
            let mapped = MappedNpy::open(path)?;
            let view = mapped.view()?;
            if view.dim() != spec.dim {
                return Err(Error::Usage(format!(
                    "{}: the samples have {} coordinates, but the model has {}",
                    path.display(),
                    view.dim(),
                    spec.dim
                )));
            }
            view.to_vec_f64()
        }
        None => {
            let system = trained_system(content, endpoint)?;
            system
                .sample(draws, seed)
                .iter()
                .map(|x| f64::from(*x))
                .collect()
        }
    };
    // Both endpoints are data: their coordinates change as at time 0, where one of them stands alone.
    Coordinates::of(content).points_to_model(0.0, &mut rows);
    Ok(rows)
}

/// The system an endpoint was trained on.
pub fn trained_system(content: &Content, endpoint: usize) -> Result<System> {
    let record = content.record.data.get(endpoint);
    match record.and_then(|record| record.system_seed.map(|seed| (&record.name, seed))) {
        Some((name, seed)) => Ok(System::by_name(name, content.spec.dim, seed)?),
        None => Err(Error::Usage(format!(
            "the model was trained on a file: give samples of {} as .npy",
            ["the data", "the second endpoint (--end)"][endpoint.min(1)]
        ))),
    }
}
