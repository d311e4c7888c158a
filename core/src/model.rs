//! A trained model: definition, parameters, and the record of how it came to be; reads and writes the model file.

use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::energy::{Coordinates, Energy, InDataCoordinates, LearnedEnergy, ModelSpec, OfRows};
use crate::engine::{Isa, Pool};
use crate::format::model::{ModelFile, Tensor};
use crate::metric::Estimate;
use crate::network::Layout;
use crate::objective::ObjectiveName;
use crate::particles::{Frame, View};
use crate::train::{State, TrainSettings};
use crate::{Error, Result};

/// Where the training rows came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataRecord {
    /// File name or system.
    pub name: String,
    /// Seed of the system's own parameters; absent for a file.
    pub system_seed: Option<u64>,
    /// Number of rows; absent for a system that is sampled afresh.
    pub rows: Option<usize>,
    /// SHA-256 of the file, if it is one.
    pub sha256: Option<String>,
    /// Width of the uniform noise that was added to each column because its values are rounded; empty if none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<f64>,
    /// A value of each such column, modulo its step: where the grid of its values begins; empty for zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<f64>,
    /// Names of the columns, where the rows came with any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// SHA-256 of the weights of the rows, where they had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
}

/// How the model was trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record<O = ObjectiveName> {
    /// Version of the library.
    pub version: String,
    /// Settings.
    pub settings: TrainSettings<O>,
    /// Steps done.
    pub steps: u64,
    /// Rows of `x_0`, and of `x_1` for an interpolant.
    pub data: Vec<DataRecord>,
    /// Units of energies.
    pub units: String,
    /// Version of the random streams ([`crate::rng::STREAMS`]); files from before there was a number have version 1.
    #[serde(default = "first_streams")]
    pub streams: u32,
    /// By how much F(t) was moved when the training ended, in nats at the level where it was most; absent: it stayed as it was learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levelled: Option<Estimate>,
}

fn first_streams() -> u32 {
    1
}

/// What the JSON part of a model file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Definition of the energy.
    pub spec: ModelSpec,
    /// Map from the data's coordinates to the model's.
    pub standardisation: Coordinates,
    /// The row of particles onto which all rows are turned; none: rows stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Vec<f64>>,
    /// Training.
    pub record: Record,
}

/// The description of a model of some kind, as its files hold it: what is common to energies of points and of states.
pub trait Describes: Clone + Serialize + DeserializeOwned {
    /// The `kind` of a file that holds such a model.
    const MODEL: &'static str;
    /// The `kind` of its checkpoints.
    const CHECKPOINT: &'static str;
    /// The objectives that it is trained by.
    type Objective;

    /// How it was trained.
    fn record(&self) -> &Record<Self::Objective>;

    /// The same, to be written.
    fn record_mut(&mut self) -> &mut Record<Self::Objective>;

    /// Refuses what cannot be built.
    fn validate(&self) -> Result<()>;

    /// The parameters.
    fn layout(&self) -> Layout;

    /// Steps done.
    fn steps(&self) -> u64 {
        self.record().steps
    }

    /// The same after so many steps.
    fn after(&self, steps: u64) -> Self {
        let mut content = self.clone();
        content.record_mut().steps = steps;
        content
    }

    /// Version of the random streams.
    fn streams(&self) -> u32 {
        self.record().streams
    }
}

impl Describes for Content {
    const MODEL: &'static str = "model";
    const CHECKPOINT: &'static str = "checkpoint";
    type Objective = ObjectiveName;

    fn record(&self) -> &Record {
        &self.record
    }

    fn record_mut(&mut self) -> &mut Record {
        &mut self.record
    }

    fn validate(&self) -> Result<()> {
        self.check()
    }

    fn layout(&self) -> Layout {
        self.spec.layout()
    }
}

impl Content {
    /// Refuses a definition that cannot be built, and a map that does not fit it.
    fn check(&self) -> Result<()> {
        self.spec.validate()?;
        self.standardisation.validate(self.spec.dim)?;
        let columns = self.columns();
        let fits = |frame: &Vec<f64>| frame.len() == columns;
        if self.frame.as_ref().is_some_and(|frame| !fits(frame)) {
            return Err(Error::ModelContent {
                problem: format!("the frame has not the {columns} numbers of a row"),
            });
        }
        self.turned_onto().map(|_| ())
    }

    /// Numbers of a row of data, which may be more than the model's dimension: those of particles whose centre it does not know.
    pub fn columns(&self) -> usize {
        let subspace = self.spec.subspace();
        subspace.map_or(self.spec.dim, |subspace| subspace.columns())
    }

    fn turned_onto(&self) -> Result<Option<Frame>> {
        let frame = self.frame.as_ref().zip(self.spec.network.particles());
        frame.map(|(row, n)| Frame::new(row, n)).transpose()
    }

    /// What happens to rows of data before the map to the model's coordinates; none if nothing does.
    pub fn view(&self) -> Option<View> {
        let (frame, subspace) = (self.turned_onto().ok()?, self.spec.subspace());
        let needed = frame.is_some() || subspace.is_some();
        needed.then(|| View::new(self.columns(), frame, subspace))
    }

    /// Rows of data before the map to the model's coordinates.
    pub fn rows_inward(&self, rows: Vec<f64>) -> Vec<f64> {
        match self.view() {
            Some(view) => view.rows_inward(rows),
            None => rows,
        }
    }

    /// Points after the map to the data's coordinates, as rows of data.
    pub fn rows_outward(&self, points: Vec<f64>) -> Vec<f64> {
        match self.view() {
            Some(view) => view.rows_outward(points),
            None => points,
        }
    }

    /// An energy of the model's coordinates at rows of data, whatever these are.
    pub fn at_rows<'a, P>(&self, inner: P) -> Box<dyn Energy + 'a>
    where
        P: Deref<Target: Energy> + Send + Sync + 'a,
    {
        let inner = Box::new(self.in_data_coordinates(inner));
        match self.view() {
            Some(view) => Box::new(OfRows { inner, view }),
            None => inner,
        }
    }

    /// An energy or velocity of the model's coordinates (`&LearnedEnergy`, `&dyn Energy`, `Arc<...>`) in those of the data.
    pub fn in_data_coordinates<P>(&self, inner: P) -> InDataCoordinates<P> {
        InDataCoordinates {
            inner,
            map: self.standardisation.clone(),
        }
    }
}

/// A model of points in space and its parameters.
pub type Model = ModelOf<Content>;

/// A model of some kind and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelOf<C> {
    /// Definition and record.
    pub content: C,
    /// Parameters as the last step left them.
    pub params: Vec<f32>,
    /// Their moving average, if one was kept.
    pub average: Option<Vec<f32>>,
}

impl Model {
    /// The energy in the model's own (standardised) coordinates.
    pub fn energy(&self, pool: Arc<Pool>, isa: Isa) -> Result<LearnedEnergy<f32>> {
        LearnedEnergy::new(self.content.spec.clone(), self.best().to_vec(), pool, isa)
    }

    /// The energy in the coordinates of the data.
    pub fn in_data_coordinates(
        &self,
        pool: Arc<Pool>,
        isa: Isa,
    ) -> Result<InDataCoordinates<Arc<LearnedEnergy>>> {
        let energy = Arc::new(self.energy(pool, isa)?);
        Ok(self.content.in_data_coordinates(energy))
    }
}

impl<C: Describes> ModelOf<C> {
    /// The parameters to use: the moving average if there is one.
    pub fn best(&self) -> &[f32] {
        self.average.as_ref().unwrap_or(&self.params)
    }

    /// Bytes of the model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut file = ModelFile::new(C::MODEL, &self.content)?;
        self.insert(&mut file, "", &self.params)?;
        if let Some(average) = &self.average {
            self.insert(&mut file, "average.", average)?;
        }
        file.to_bytes()
    }

    fn insert(&self, file: &mut ModelFile, prefix: &str, params: &[f32]) -> Result<()> {
        for entry in self.content.layout().entries() {
            let tensor = Tensor::new(vec![entry.rows, entry.cols], params[entry.range()].to_vec())?;
            file.insert(&format!("{prefix}{}", entry.name), tensor)?;
        }
        Ok(())
    }

    /// Reads a model file; whatever is wrong with it is an error that says what.
    pub fn from_bytes(bytes: &[u8]) -> Result<ModelOf<C>> {
        let file = ModelFile::from_bytes(bytes)?;
        file.expect_kind(C::MODEL)?;
        let content: C = file.content_as()?;
        content.validate()?;
        let layout = content.layout();
        let read = |prefix: &str| -> Result<Vec<f32>> {
            let mut params = Vec::new();
            for entry in layout.entries() {
                let name = format!("{prefix}{}", entry.name);
                params
                    .extend_from_slice(finite(&name, file.f32(&name, &[entry.rows, entry.cols])?)?);
            }
            Ok(params)
        };
        let averaged = file
            .tensors()
            .keys()
            .any(|name| name.starts_with("average."));
        let average = if averaged {
            Some(read("average.")?)
        } else {
            None
        };
        Ok(ModelOf {
            params: read("")?,
            average,
            content,
        })
    }
}

/// Refuses parameters that are no numbers: every density would be none.
fn finite<'a>(name: &str, values: &'a [f32]) -> Result<&'a [f32]> {
    match values.iter().position(|x| !x.is_finite()) {
        None => Ok(values),
        Some(at) => Err(Error::ModelContent {
            problem: format!(
                "number {at} of the tensor '{name}' is {}, expected finite numbers; train again, or take an earlier file",
                values[at]
            ),
        }),
    }
}

/// The JSON part of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointContent<C> {
    content: C,
    stage: usize,
    stage_start: u64,
    best: Option<f64>,
    since_best: u64,
}

/// A checkpoint of a model of points in space.
pub type Checkpoint = CheckpointOf<Content>;

/// A run stopped between two steps: what a model file holds, and the optimiser's state.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointOf<C> {
    /// Definition and record; its steps are those of the state.
    pub content: C,
    /// State of the trainer.
    pub state: State,
}

impl<C: Describes> CheckpointOf<C> {
    /// Bytes of the checkpoint file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let s = &self.state;
        let content = CheckpointContent {
            content: self.content.clone(),
            stage: s.stage,
            stage_start: s.stage_start,
            best: s.best,
            since_best: s.since_best,
        };
        let mut file = ModelFile::new(C::CHECKPOINT, &content)?;
        let vectors = [
            ("params", &s.params),
            ("first_moment", &s.first_moment),
            ("second_moment", &s.second_moment),
            ("average", &s.average),
            ("best_params", &s.best_params),
        ];
        for (name, vector) in vectors {
            if !vector.is_empty() {
                file.insert(name, Tensor::new(vec![vector.len()], vector.clone())?)?;
            }
        }
        file.to_bytes()
    }

    /// Reads a checkpoint file.
    pub fn from_bytes(bytes: &[u8]) -> Result<CheckpointOf<C>> {
        let file = ModelFile::from_bytes(bytes)?;
        file.expect_kind(C::CHECKPOINT)?;
        let c: CheckpointContent<C> = file.content_as()?;
        c.content.validate()?;
        let n = c.content.layout().len();
        let required = |name: &str| Ok::<_, Error>(finite(name, file.f32(name, &[n])?)?.to_vec());
        let optional = |name: &str| {
            if file.tensors().contains_key(name) {
                required(name)
            } else {
                Ok(Vec::new())
            }
        };
        let state = State {
            step: c.content.steps(),
            stage: c.stage,
            stage_start: c.stage_start,
            params: required("params")?,
            first_moment: required("first_moment")?,
            second_moment: required("second_moment")?,
            average: optional("average")?,
            best: c.best,
            best_params: optional("best_params")?,
            since_best: c.since_best,
            streams: c.content.streams(),
        };
        Ok(CheckpointOf {
            content: c.content,
            state,
        })
    }
}
