//! An interpolant run from one endpoint to the other: the rows to start from, and the velocity that moves them.

use crate::data::read_rows;
use crate::endpoints::mixtures;
use crate::error::{Error, Result};
use crate::exact::known_path;
use crate::named::Named;
use crate::words;
use crate::words::Setting;
use diffclf::energy::exact::ExactPath;
use diffclf::energy::{Energy, LearnedEnergy, LearnedVelocity, Velocity};
use diffclf::model::Content;
use diffclf::process::{Process, TimeGrid};
use diffclf::rng::Purpose;
use diffclf::sample::{Diffusivity, depart};
use diffclf::system::System;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Rows brought to their first time at once.
const PIECE: usize = 1 << 13;

/// An endpoint of an interpolant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    /// The first data set, time 0
    Start,
    /// The second data set, time 1
    End,
}

impl Endpoint {
    /// The times of the endpoints, from where to where.
    pub(crate) fn ends(self, process: &Process) -> (f64, f64) {
        match self {
            Endpoint::Start => (process.horizon(), 0.0),
            Endpoint::End => (0.0, process.horizon()),
        }
    }

    /// Names of a model's data sets, from where to where.
    pub(crate) fn names(self, content: &Content) -> [String; 2] {
        let name = |k: usize| {
            let data = content.record.data.get(k);
            data.map_or(String::new(), |data| data.name.clone())
        };
        match self {
            Endpoint::Start => [name(1), name(0)],
            Endpoint::End => [name(0), name(1)],
        }
    }
}

/// Where the velocity comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VelocityOrigin {
    /// The model's network, trained with the objective velocity
    Learned,
    /// The formula, for a model between two built-in mixtures
    Exact,
}

/// How an interpolant is run. Nothing of it belongs to a diffusion.
#[derive(Debug, Clone, Default)]
pub struct BridgeChoice {
    /// Endpoint to go to; the start if absent.
    pub towards: Option<Endpoint>,
    /// Rows of the other endpoint to start from; fresh ones if it is a built-in system.
    pub rows: Option<PathBuf>,
    /// Where the velocity comes from; learned if absent.
    pub velocity: Option<VelocityOrigin>,
    /// Noise of the SDE.
    pub g: Option<Diffusivity>,
}

/// The noise of the SDE from a number, or from a table such as `{kind = "bridge", factor = 0.5}`.
pub fn noise(text: &str) -> std::result::Result<Diffusivity, String> {
    let g = match text.parse() {
        Ok(value) => Diffusivity::Constant { value },
        Err(_) => text.parse::<Named<Diffusivity>>()?.0,
    };
    let (Diffusivity::Constant { value: size } | Diffusivity::Bridge { factor: size }) = g;
    if size.is_finite() && size >= 0.0 {
        Ok(g)
    } else {
        Err(format!("the noise is {size}, expected a number from 0"))
    }
}

impl BridgeChoice {
    /// Endpoint to go to.
    pub fn towards(&self) -> Endpoint {
        self.towards.unwrap_or(Endpoint::Start)
    }

    /// Where the velocity comes from.
    pub fn velocity(&self) -> VelocityOrigin {
        self.velocity.unwrap_or(VelocityOrigin::Learned)
    }

    /// The noise, or this constant.
    pub fn g_or(&self, value: f64) -> Diffusivity {
        self.g.unwrap_or(Diffusivity::Constant { value })
    }

    /// Refuses all of it for other models.
    pub fn refuse_for_diffusion(&self, content: &Content) -> Result<()> {
        self.refuse(
            [true; 4],
            &format!(
                "interpolants, and the model's process is {}",
                content.spec.process.name()
            ),
        )
    }

    /// Refuses the noise where nothing is noisy.
    pub fn refuse_g(&self, method: &str) -> Result<()> {
        self.refuse(
            [false, false, false, true],
            &format!("interpolant-sde, and the method is {method}"),
        )
    }

    /// Refuses what the model's velocity needs where it moves nothing.
    pub(crate) fn refuse_velocity(&self) -> Result<()> {
        self.refuse(
            [false, false, true, true],
            "particles that the model's velocity moves; between known energies MCMC alone does",
        )
    }

    fn refuse(&self, which: [bool; 4], owner: &str) -> Result<()> {
        let given = [
            ("towards", self.towards.is_some()),
            ("rows", self.rows.is_some()),
            ("velocity", self.velocity.is_some()),
            ("g", self.g.is_some()),
        ];
        for ((key, given), refused) in given.into_iter().zip(which) {
            if given && refused {
                return Err(Error::Refused(words!(
                    Setting::new(key),
                    " belongs to ",
                    owner,
                    "; leave it out"
                )));
            }
        }
        Ok(())
    }

    /// What a record says of it.
    pub fn record(&self) -> serde_json::Value {
        serde_json::json!({
            "towards": self.towards(),
            "rows": self.rows,
            "velocity": self.velocity(),
        })
    }
}

enum Field<'a> {
    Learned(LearnedVelocity<'a>),
    Exact(Box<ExactPath>),
}

/// An interpolant to be run from one endpoint to the other.
pub struct Bridge<'a> {
    content: &'a Content,
    energy: &'a LearnedEnergy,
    rows: Option<&'a PathBuf>,
    towards: Endpoint,
    field: Field<'a>,
}

impl<'a> Bridge<'a> {
    /// The one of a model, as it is chosen.
    pub fn open(
        choice: &'a BridgeChoice,
        content: &'a Content,
        energy: &'a LearnedEnergy,
    ) -> Result<Self> {
        let names = || {
            let names = content.record.data.iter().map(|data| data.name.as_str());
            names.collect::<Vec<_>>().join(" and ")
        };
        let field = match choice.velocity() {
            VelocityOrigin::Learned if !content.spec.velocity => {
                return Err(Error::Refused(words!(
                    "the model has no velocity, which moves the samples of an interpolant; train one with +velocity in its objective (",
                    Setting::to("objective", "dsm+diffclf+velocity"),
                    "), or, between two built-in mixtures, use ",
                    Setting::to("velocity", "exact")
                )));
            }
            VelocityOrigin::Learned => Field::Learned(energy.velocity()?),
            VelocityOrigin::Exact => match known_path(content)? {
                Some(path) => Field::Exact(Box::new(path)),
                None => {
                    return Err(Error::Refused(words!(
                        "the exact velocity is known between two built-in mixtures (",
                        mixtures().join(", "),
                        "), and the model was trained on ",
                        names(),
                        "; leave out ",
                        Setting::to("velocity", "exact"),
                        ", and train with +velocity in the objective"
                    )));
                }
            },
        };
        Ok(Self {
            content,
            energy,
            rows: choice.rows.as_ref(),
            towards: choice.towards(),
            field,
        })
    }

    /// The velocity.
    pub fn velocity(&self) -> &dyn Velocity {
        match &self.field {
            Field::Learned(field) => field,
            Field::Exact(path) => &**path,
        }
    }

    /// The exact path, where it is to be used.
    pub fn exact(&self) -> Option<&ExactPath> {
        match &self.field {
            Field::Learned(_) => None,
            Field::Exact(path) => Some(path),
        }
    }

    /// Whether the particles start from rows of a file.
    pub fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Times of the grid from where the particles start to where they are needed.
    pub fn times(&self, grid: &TimeGrid) -> Vec<f64> {
        match self.towards {
            Endpoint::Start => grid.times().iter().rev().copied().collect(),
            Endpoint::End => grid.times().to_vec(),
        }
    }

    /// The times of the endpoints, from where to where.
    pub fn ends(&self) -> (f64, f64) {
        self.towards.ends(&self.content.spec.process)
    }

    /// Names of the data sets, from where to where.
    pub fn names(&self) -> [String; 2] {
        self.towards.names(self.content)
    }

    /// Points at the first time, in the model's coordinates: `number` of them, or as many as there are rows.
    pub fn departures(&self, time: f64, number: Option<usize>, seed: u64) -> Result<Vec<f64>> {
        let dim = self.content.spec.dim;
        let (index, which) = match self.towards {
            Endpoint::Start => (1, "second"),
            Endpoint::End => (0, "first"),
        };
        let mut points = match (self.rows, self.exact(), number) {
            (Some(path), _, _) => {
                let mut points = file_rows(self.content, path)?;
                let columns = self.content.columns();
                let rows = points.len() / columns;
                let number = number.unwrap_or(rows);
                if number > rows {
                    return Err(too_few_rows(path, number, rows));
                }
                points.truncate(number * columns);
                points
            }
            (None, Some(exact), Some(number)) => return Ok(exact.sample(time, number, seed)),
            _ => {
                let data = self.content.record.data.get(index);
                let Some((data, system_seed)) =
                    data.and_then(|data| Some((data, data.system_seed?)))
                else {
                    return Err(Error::Refused(words!(
                        "the ",
                        which,
                        " endpoint of the model is a file (",
                        data.map_or("unknown", |data| data.name.as_str()),
                        "); give rows of it to start from with ",
                        Setting::to("rows", "FILE.npy")
                    )));
                };
                let columns = self.content.columns();
                let system = System::by_name(&data.name, columns, system_seed)?;
                let purpose = Purpose::Departure(index as u32);
                let rows = system.sample_for(purpose, number.unwrap_or(0), seed);
                rows.into_iter().map(f64::from).collect()
            }
        };
        let (end, _) = self.ends();
        points = self.content.rows_inward(points);
        self.content.standardisation.to_model(&mut points);
        for (piece, points) in points.chunks_mut(PIECE * dim).enumerate() {
            depart(
                &self.content.spec.process,
                self.velocity(),
                (end, time),
                seed,
                (piece * PIECE) as u64,
                points,
            )?;
        }
        Ok(points)
    }

    /// Log-density at a time, in the model's coordinates: exact, or the model's own.
    pub fn log_density(&self, time: f64, points: &[f64], out: &mut [f64]) {
        let energy = self
            .exact()
            .map_or(self.energy as &dyn Energy, |path| path as &dyn Energy);
        energy.log_density(&[time], points, out);
    }
}

/// Rows of a file, of the kind that a model was trained on.
pub(crate) fn file_rows(content: &Content, path: &Path) -> Result<Vec<f64>> {
    let dim = content.columns();
    let (points, columns) = read_rows(path)?;
    if columns != dim {
        return Err(Error::Usage(format!(
            "{}: the rows have {columns} columns, but the model has {dim}; give rows of the kind it was trained on",
            path.display()
        )));
    }
    Ok(points)
}

/// More are asked for than there are.
pub(crate) fn too_few_rows(path: &Path, number: usize, rows: usize) -> Error {
    Error::Refused(words!(
        Setting::new("number"),
        " is ",
        number,
        ", but ",
        path.display().to_string(),
        " has ",
        rows,
        " rows to start from; choose ",
        Setting::to("number", rows.to_string()),
        ", or give more rows"
    ))
}
