//! How far apart two samples are, beside how far apart two samples of the second's law are.

use crate::data::read_rows;
use crate::error::{Error, Result};
use crate::memory::refuse_rows;
use crate::states::{draws, recognised};
use crate::weights::GivenWeights;
use crate::words;
use crate::words::Setting;
use diffclf::discrete::compare::StatesComparison;
use diffclf::discrete::{self, MOST_STATES};
use diffclf::metric::{Comparison, ComparisonSettings, Sample};
use diffclf::rng::Purpose;
use diffclf::system::{GaussianMixture, System};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What samples are compared with.
#[derive(Debug, Clone)]
pub enum Reference {
    /// Rows of a file; the second half is kept for the floor.
    File(PathBuf),
    /// Exact samples of a built-in system.
    System {
        /// Its name.
        name: String,
        /// Seed of its own parameters.
        seed: u64,
    },
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Comparing {
    /// The samples: a .npy file.
    pub sample: PathBuf,
    /// Their weights: a .npy file with one number each.
    pub weights: Option<PathBuf>,
    /// What they are compared with.
    pub reference: Reference,
    /// Weights of the reference's rows, likewise.
    pub reference_weights: Option<PathBuf>,
    /// States of a site, for rows of symbols; 0 for rows of numbers; none: recognised by themselves.
    pub states: Option<usize>,
    /// Directions and seed.
    pub settings: ComparisonSettings,
}

/// The distances, of points or of states.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Distances {
    /// Of points.
    Points(Comparison),
    /// Of rows of symbols.
    States(StatesComparison),
}

/// Distances, and what they are between.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The distances.
    pub distances: Distances,
    /// Name of the reference.
    pub reference: String,
    /// Rows of the sample, of the reference, and of the part that gives the floor.
    pub rows: [usize; 3],
}

/// Two samples of the reference's law, and its modes if they are known.
struct Pair {
    first: Vec<f64>,
    second: Vec<f64>,
    /// Weights of both; none where all rows count the same.
    weights: Option<[Vec<f64>; 2]>,
    modes: Option<GaussianMixture>,
    name: String,
}

impl Pair {
    fn weights_of(&self, half: usize) -> Option<&[f64]> {
        self.weights.as_ref().map(|halves| halves[half].as_slice())
    }
}

impl Comparing {
    /// Computes the distances.
    pub fn run(&self) -> Result<Compared> {
        let (points, dim) = read_rows(&self.sample)?;
        refuse_rows("directions", self.settings.directions, dim, 8)?;
        let weights = match &self.weights {
            Some(path) => {
                let weights = GivenWeights::file(path, points.len() / dim)?;
                Some(weights.values.values().to_vec())
            }
            None => None,
        };
        let sample = Sample::new(&points, dim, weights.as_deref())?;
        let of_states = self.of_states()?;
        let pair = self.pair(dim, sample.rows(), of_states)?;
        let (reference, other) = (
            Sample::new(&pair.first, dim, pair.weights_of(0))?,
            Sample::new(&pair.second, dim, pair.weights_of(1))?,
        );
        let distances = if of_states {
            let all = points.iter().chain(&pair.first).chain(&pair.second);
            let most = all.copied().fold(1.0, f64::max) as usize;
            let states = self.states.unwrap_or(0).max(most.min(MOST_STATES) + 1);
            let seed = self.settings.seed;
            let found = StatesComparison::run(&sample, &reference, &other, states, seed)?;
            Distances::States(found)
        } else {
            let modes = pair.modes.as_ref();
            Distances::Points(Comparison::run(
                &sample,
                &reference,
                &other,
                modes,
                self.settings,
            )?)
        };
        Ok(Compared {
            distances,
            rows: [sample.rows(), reference.rows(), other.rows()],
            reference: pair.name,
        })
    }

    /// Whether rows are symbols: asked for, a system of states, or files that hold nothing else.
    fn of_states(&self) -> Result<bool> {
        let is_symbols = |path: &Path| {
            let npy = path.extension().is_some_and(|e| e == "npy") && path.is_file();
            if npy { recognised(path) } else { Ok(false) }
        };
        match (&self.reference, self.states) {
            (_, Some(states)) => Ok(states > 0),
            (Reference::System { name, .. }, None) => Ok(discrete::system::is_known(name)),
            (Reference::File(path), None) => Ok(is_symbols(&self.sample)? && is_symbols(path)?),
        }
    }

    fn pair(&self, dim: usize, rows: usize, of_states: bool) -> Result<Pair> {
        let path = match &self.reference {
            Reference::System { name, seed } => {
                if self.reference_weights.is_some() {
                    return Err(Error::Refused(words!(
                        Setting::new("reference_weights"),
                        " belongs to a reference of given rows; leave it out for a system"
                    )));
                }
                if of_states {
                    let states = self.states;
                    let system = discrete::system::by_name(name, Some(dim), states, *seed)?;
                    let draw =
                        |half| draws(&*system, Purpose::Reference(half), rows, self.settings.seed);
                    return Ok(Pair {
                        first: draw(0),
                        second: draw(1),
                        weights: None,
                        modes: None,
                        name: system.name().into(),
                    });
                }
                let system = System::by_name(name, dim, *seed)?;
                let draw = |half: u32| -> Vec<f64> {
                    let purpose = Purpose::Reference(half);
                    let values = system.sample_for(purpose, rows, self.settings.seed);
                    values.iter().map(|x| f64::from(*x)).collect()
                };
                return Ok(Pair {
                    first: draw(0),
                    second: draw(1),
                    weights: None,
                    modes: system.mixture().cloned(),
                    name: system.name().to_string(),
                });
            }
            Reference::File(path) => path,
        };
        let (mut values, columns) = read_rows(path)?;
        if columns != dim {
            return Err(Error::Usage(format!(
                "{} has {columns} columns and {} has {dim}; compare samples of the same kind",
                path.display(),
                self.sample.display()
            )));
        }
        let mut weights = Vec::new();
        if let Some(file) = &self.reference_weights {
            let given = GivenWeights::file(file, values.len() / dim)?;
            // Rows of weight zero are none.
            let counted = |(row, w): (&[f64], &f64)| (*w > 0.0).then(|| row.to_vec());
            let rows = values.chunks_exact(dim).zip(given.values.values());
            values = rows.filter_map(counted).flatten().collect();
            let positive = given.values.values().iter().filter(|w| **w > 0.0);
            weights = positive.copied().collect();
        }
        if values.len() < 4 * dim {
            return Err(Error::Usage(format!(
                "{} has {} rows, expected at least 4: half of them are needed for the floor",
                path.display(),
                values.len() / dim
            )));
        }
        // Halves, not even and odd rows: neighbours may be correlated.
        let half = values.len() / dim / 2 * dim;
        Ok(Pair {
            first: values[..half].to_vec(),
            second: values[half..].to_vec(),
            weights: (!weights.is_empty()).then(|| {
                let (first, second) = weights.split_at(half / dim);
                [first.to_vec(), second.to_vec()]
            }),
            modes: None,
            name: path.display().to_string(),
        })
    }
}
