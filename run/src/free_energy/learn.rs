//! From samples of two states, through a learned path between them, to their free-energy difference.

use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::machine::Machine;
use crate::memory::refuse_rows;
use crate::molecule::MoleculeChoice;
use crate::weights::{GivenWeights, weights_of_drawn_rows};
use crate::words;
use crate::words::Setting;
use diffclf::energy::Energy;
use diffclf::free_energy::{
    Bar, EndCorrection, LearnedDifference, MbarSettings, PathEstimate, PathSamples, bar,
    end_correction,
};
use diffclf::model::{Content, Model};
use diffclf::rng::Purpose;
use diffclf::system::System;
use diffclf::weights::kept;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fewest samples of a time of the integration.
const FEWEST_SLOPES: usize = 128;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct LearnedRequest {
    /// What is known of the states A and B.
    pub states: [StateFiles; 2],
    /// The molecule that the rows are frames of, in the solvents of A and B: it tells all energies.
    pub molecule: Option<MoleculeChoice>,
    /// Times along the path.
    pub levels: usize,
    /// Samples at each time.
    pub samples: usize,
    /// Times of the integration, among which the path's samples are shared; 0 for the times along the path.
    pub integration_levels: usize,
    /// Samples of each built-in system at the ends.
    pub end_samples: usize,
    /// Seed.
    pub seed: u64,
}

/// Files about a state; a built-in system that the model was trained on needs none.
#[derive(Debug, Clone, Default)]
pub struct StateFiles {
    /// Its samples.
    pub rows: Option<PathBuf>,
    /// Their weights.
    pub weights: Option<PathBuf>,
    /// Its energy at them.
    pub own: Option<PathBuf>,
    /// The other state's energy at them.
    pub other: Option<PathBuf>,
}

impl StateFiles {
    fn has_energies(&self) -> bool {
        self.own.is_some() || self.other.is_some()
    }
}

/// What was found.
#[derive(Debug)]
pub struct LearnedFound {
    /// Estimates along the path.
    pub path: PathEstimate,
    /// From the states to the ends of the path, where their energies are known.
    pub corrections: Option<(EndCorrection, EndCorrection)>,
    /// Whether an objective of the training sees F.
    pub classified: bool,
    /// BAR between the states themselves, where all energies are known.
    pub direct: Option<diffclf::Result<Bar>>,
    /// Whether both states are built-in systems, whose densities are normalised.
    pub normalised: bool,
    /// Steps of the training.
    pub steps: u64,
    /// The answer.
    pub difference: LearnedDifference,
}

/// What is known of a state: its samples in the model's coordinates, and energies at them.
struct End {
    rows: Vec<f64>,
    own: Option<Vec<f64>>,
    /// The other state's energy.
    other: Option<Vec<f64>>,
}

impl End {
    /// The samples at these places, with their energies.
    fn at(&self, places: &[usize], dim: usize) -> Self {
        let energies = |all: &Option<Vec<f64>>| -> Option<Vec<f64>> {
            let all = all.as_ref()?;
            Some(places.iter().map(|place| all[*place]).collect())
        };
        let row = |place: &usize| &self.rows[place * dim..][..dim];
        Self {
            rows: places.iter().flat_map(row).copied().collect(),
            own: energies(&self.own),
            other: energies(&self.other),
        }
    }
}

impl LearnedRequest {
    /// The difference through the path of a model.
    pub fn run(&self, model: &Model, machine: &Machine) -> Result<LearnedFound> {
        let content = &model.content;
        let spec = &content.spec;
        if !spec.process.is_interpolant() {
            return Err(Error::Usage(format!(
                "the model has the {} process of one data set; expected an interpolant between two",
                spec.process.name()
            )));
        }
        refuse_rows("end_samples", self.end_samples, spec.dim, 16)?;
        let times = spec.grid.with_levels(self.levels)?;
        // Points at all times, and energies of all of them at each.
        let numbers = self.levels.saturating_mul(self.levels + spec.dim);
        refuse_rows("path_samples", self.samples, numbers, 8)?;
        let (pool, isa) = (machine.pool()?, machine.isa()?);
        let truth = match &self.molecule {
            Some(_) if self.states.iter().any(StateFiles::has_energies) => {
                return Err(Error::Refused(words!(
                    Setting::new("molecule"),
                    " tells the energies of both states; leave out the files of energies"
                )));
            }
            Some(molecule) => {
                Some(molecule.energy(&content.standardisation, content.view(), 2, isa)?)
            }
            None => None,
        };
        let truth = truth.as_ref();
        let (a, b) = (self.end(content, 0, truth)?, self.end(content, 1, truth)?);
        let energy = model.energy(pool.clone(), isa)?;
        let (process, dim) = (&spec.process, spec.dim);
        let coupling = spec.coupling.as_ref();
        let pairs = coupling.map(|of| of.pairs(spec.shape(), &a.rows, &b.rows, self.seed));
        let along = |times: &[f64], count: usize, seed: u64| match &pairs {
            Some(pairs) => {
                let rows = [&a.rows, &b.rows].map(|rows| rows.len() / dim);
                PathSamples::of_pairs(process, dim, times, (pairs, rows), count, seed)
            }
            None => {
                let rows = (a.rows.as_slice(), Some(b.rows.as_slice()));
                PathSamples::new(process, dim, times, rows, count, seed)
            }
        };
        let samples = along(times.times(), self.samples, self.seed)?;
        let fine = match self.integration_levels {
            0 => None,
            levels => {
                let all = self.levels.saturating_mul(self.samples);
                let count = all.div_ceil(levels).max(FEWEST_SLOPES);
                refuse_rows(
                    "integration_levels",
                    levels,
                    count.saturating_mul(spec.dim),
                    16,
                )?;
                let times = spec.grid.with_levels(levels)?;
                // Another seed: other pairs of rows and other noise than MBAR's.
                Some(along(times.times(), count, self.seed.wrapping_add(1))?)
            }
        };
        let settings = MbarSettings {
            pool: Some(pool),
            isa,
            ..MbarSettings::default()
        };
        let fine = fine.as_ref().unwrap_or(&samples);
        let path = PathEstimate::integrated_over(&energy, &samples, fine, &settings)?;
        let corrections = match (&a.own, &b.own) {
            (Some(own_a), Some(own_b)) => Some((
                end_correction(&energy, spec.grid.t_min(), &a.rows, own_a)?,
                end_correction(&energy, spec.grid.t_max(), &b.rows, own_b)?,
            )),
            _ => None,
        };
        let classified = classified(content);
        let ends = corrections.as_ref().map(|(a, b)| (a, b));
        let known = |k: usize| trained_system(content, k).is_ok();
        Ok(LearnedFound {
            difference: LearnedDifference::new(&path, ends, classified),
            path,
            corrections,
            classified,
            direct: direct(&a, &b),
            normalised: known(0) && known(1),
            steps: content.record.steps,
        })
    }

    /// Samples and energies of an endpoint.
    fn end(
        &self,
        content: &Content,
        endpoint: usize,
        truth: Option<&Arc<dyn Energy>>,
    ) -> Result<End> {
        let files = &self.states[endpoint];
        let file = files.rows.as_deref();
        let rows = endpoint_rows(content, endpoint, file, self.end_samples, self.seed)?;
        let count = rows.len() / content.spec.dim;
        if file.is_some() {
            let known = |file: &Option<PathBuf>, state: usize| match truth {
                None => energies_of(file, count),
                Some(truth) => {
                    let mut energies = vec![0.0; count];
                    let time = [0.0, content.spec.process.horizon()][state];
                    truth.energy(&[time], &rows, &mut energies);
                    Ok(Some(energies))
                }
            };
            let end = End {
                own: known(&files.own, endpoint)?,
                other: known(&files.other, 1 - endpoint)?,
                rows,
            };
            let Some(path) = &files.weights else {
                return Ok(end);
            };
            // Errors of the estimates are those of rows that count alike.
            let weights = GivenWeights::file(path, count)?.values;
            let keep = Purpose::Keep(endpoint as u32);
            return Ok(end.at(&kept(weights.values(), self.seed, keep), content.spec.dim));
        }
        if files.weights.is_some() {
            return Err(weights_of_drawn_rows(
                ["weights", "end_weights"][endpoint.min(1)],
            ));
        }
        let systems = [trained_system(content, 0), trained_system(content, 1)];
        let mut data = rows.clone();
        content.standardisation.to_data(&mut data);
        let data = content.rows_outward(data);
        let energies = |system: &Result<System>| -> Option<Vec<f64>> {
            let system = system.as_ref().ok()?;
            data.chunks_exact(content.columns())
                .map(|x| system.log_density(x).map(|value| -value))
                .collect()
        };
        Ok(End {
            own: energies(&systems[endpoint]),
            other: energies(&systems[1 - endpoint]),
            rows,
        })
    }
}

/// Energies of a file, one for each sample.
fn energies_of(path: &Option<PathBuf>, rows: usize) -> Result<Option<Vec<f64>>> {
    let Some(path) = path else { return Ok(None) };
    let values = MappedNpy::open(path)?.view()?.to_vec_f64();
    if values.len() != rows {
        return Err(Error::Usage(format!(
            "{}: {} energies for {rows} samples, expected one for each",
            path.display(),
            values.len()
        )));
    }
    Ok(Some(values))
}

/// Whether an objective of the training teaches F.
fn classified(content: &Content) -> bool {
    let stages = &content.record.settings.stages;
    stages
        .iter()
        .flat_map(|stage| &stage.objectives)
        .any(|term| term.objective.objective().teaches().free_energy())
}

/// BAR between the states themselves, where all energies are known.
fn direct(a: &End, b: &End) -> Option<diffclf::Result<Bar>> {
    let works = |end: &End| -> Option<Vec<f64>> {
        let (own, other) = (end.own.as_ref()?, end.other.as_ref()?);
        Some(
            other
                .iter()
                .zip(own)
                .map(|(other, own)| other - own)
                .collect(),
        )
    };
    Some(bar(&works(a)?, &works(b)?))
}

/// Rows of an endpoint in the model's coordinates.
fn endpoint_rows(
    content: &Content,
    endpoint: usize,
    file: Option<&Path>,
    draws: usize,
    seed: u64,
) -> Result<Vec<f64>> {
    let mut rows = match file {
        Some(path) => {
            let mapped = MappedNpy::open(path)?;
            let view = mapped.view()?;
            if view.dim() != content.columns() {
                return Err(Error::Usage(format!(
                    "{}: the samples have {} coordinates, but the model has {}",
                    path.display(),
                    view.dim(),
                    content.columns()
                )));
            }
            view.to_vec_f64()
        }
        None => {
            let system = trained_system(content, endpoint)?;
            system
                .sample_for(Purpose::State(endpoint as u32), draws, seed)
                .iter()
                .map(|x| f64::from(*x))
                .collect()
        }
    };
    // Both endpoints are data: their coordinates change as at time 0, where one of them stands alone.
    rows = content.rows_inward(rows);
    content.standardisation.to_model(&mut rows);
    Ok(rows)
}

/// The system an endpoint was trained on.
fn trained_system(content: &Content, endpoint: usize) -> Result<System> {
    let record = content.record.data.get(endpoint);
    match record.and_then(|record| record.system_seed.map(|seed| (&record.name, seed))) {
        Some((name, seed)) => Ok(System::by_name(name, content.columns(), seed)?),
        None => Err(Error::Refused(words!(
            "the model was trained on a file: give samples of it as .npy, with ",
            Setting::new(["data", "end"][endpoint.min(1)])
        ))),
    }
}
