//! `StatesModel`: a model of rows of symbols in Python's hands. Its methods have the names and requests of `Model`'s.

use crate::array::{Rows, array, array_u8};
use crate::energy::Weighted;
use crate::error::{detached, guarded};
use crate::json::written;
use crate::machine::{Key, isa, kept, pool};
use crate::model::{DiagnoseRequest, SampleRequest, quantity};
use crate::watch::Listener;
use diffclf::discrete::model::{Content, StatesModel as CoreModel, StatesSpec};
use diffclf::discrete::sample::Kernel;
use diffclf::discrete::{Energy, LearnedStates};
use diffclf::energy::compose::Expression;
use diffclf::format::model::ModelFile;
use diffclf::model::Describes;
use diffclf_run::states::{
    StatesAnnealing, StatesCompound, StatesFound, StatesGeneration, StatesJudgement, StatesJudging,
    densities, energy, open,
};
use diffclf_run::words::Setting;
use diffclf_run::{Error, Result, words};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A trained model of states. It is never changed, so threads may share it.
#[pyclass(frozen, module = "diffclf._native")]
pub struct StatesModel {
    model: CoreModel,
    energy: Mutex<Option<(Key, Arc<LearnedStates>)>>,
}

impl StatesModel {
    fn new(model: CoreModel) -> Self {
        Self {
            model,
            energy: Mutex::new(None),
        }
    }

    fn energy(&self) -> Result<Arc<LearnedStates>> {
        kept(&self.energy, || energy(&self.model, pool()?, isa()))
    }

    fn content_ref(&self) -> &Content {
        &self.model.content
    }
}

/// What `anneal` and `states_compose` ask for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct AnnealRequest {
    n: usize,
    target: Option<String>,
    ais: bool,
    levels: Option<usize>,
    kernel: Option<String>,
    sweeps: usize,
    threshold: f64,
    runs: usize,
    seed: u64,
    progress: Option<Py<PyAny>>,
}

impl AnnealRequest {
    fn asked(&self) -> Result<StatesAnnealing> {
        let kernel = match self.kernel.as_deref() {
            None | Some("gibbs") => Kernel::Gibbs,
            Some("metropolis") => Kernel::Metropolis,
            Some(other) => {
                let found = format!("'{other}'");
                return Err(Error::setting("kernel", found, "gibbs or metropolis"));
            }
        };
        Ok(StatesAnnealing {
            target: self.target.clone(),
            particles: self.n,
            runs: self.runs,
            sweeps: self.sweeps,
            levels: self.levels,
            resample_below: if self.ais { 0.0 } else { self.threshold },
            kernel,
            seed: self.seed,
        })
    }
}

/// Rows with weights, and figures.
fn weighted<'py>(py: Python<'py>, found: StatesFound) -> PyResult<Weighted<'py>> {
    let rows = found.weights.len();
    let sites = found.rows.len() / rows.max(1);
    let points = found.rows.iter().map(|s| f64::from(*s)).collect();
    let figures = serde_json::json!({ "log_z": found.log_z, "ess": found.ess });
    Ok((
        array(py, points, &[rows, sites])?,
        array(py, found.weights, &[rows])?,
        written(py, &figures)?,
    ))
}

/// The one time of all rows, if it is told.
fn one_time(times: Option<&[f64]>) -> Result<Option<f64>> {
    match times {
        None => Ok(None),
        Some([time]) => Ok(Some(*time)),
        Some(times) => Err(Error::setting(
            "time",
            format!("{} times", times.len()),
            "one time for all rows of states",
        )),
    }
}

/// What `StatesModel.evaluate` asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct EvaluateRequest {
    system: Option<String>,
    system_seed: Option<u64>,
    levels: Option<usize>,
    samples: usize,
    classified: usize,
    seed: u64,
    progress: Option<Py<PyAny>>,
}

/// An expression and the models of states that its names stand for.
type Members = (String, Vec<(String, Py<StatesModel>)>);

/// Calls `work` with the energy of a composition of models of states.
fn composed<T>(
    (text, members): &Members,
    work: impl FnOnce(&StatesSpec, &dyn Energy) -> Result<T>,
) -> Result<T> {
    let models: Vec<(&str, CoreModel)> = members
        .iter()
        .map(|(name, model)| (name.as_str(), model.get().model.clone()))
        .collect();
    let compound = StatesCompound {
        expression: &Expression::parse(text)?,
        models: &models,
        systems: &[],
        system_seed: 0,
    };
    compound.with(&pool()?, isa(), work)
}

/// A quantity of a composition of models of states at rows of symbols.
#[pyfunction]
pub fn states_evaluate<'py>(
    py: Python<'py>,
    members: Members,
    what: &str,
    x: &Bound<'py, PyAny>,
    time: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let (quantity, rows) = (quantity(py, what)?, Rows::of(x)?);
    let found = detached(py, || {
        let values = rows.finite("data")?;
        composed(&members, |spec, energy| {
            densities(quantity, (spec, energy), ("x", &values, rows.dim()), time)
        })
    })?;
    array(py, found.values, &found.shape)
}

/// Weighted rows of a composition of models of states, led down from noise.
#[pyfunction]
pub fn states_compose<'py>(
    py: Python<'py>,
    members: Members,
    request: AnnealRequest,
) -> PyResult<Weighted<'py>> {
    let found = detached(py, move || {
        let asked = request.asked()?;
        let watch = Listener::new(request.progress, None);
        let done = composed(&members, |spec, energy| {
            asked.lead(energy, &spec.grid, None, &watch)
        })?;
        Ok(done.finish("done"))
    })?;
    weighted(py, found)
}

#[pymethods]
impl StatesModel {
    /// Reads the bytes of a model file; none if they are a model of another kind.
    #[staticmethod]
    fn read(py: Python<'_>, bytes: &[u8]) -> PyResult<Option<Self>> {
        detached(py, || {
            if ModelFile::from_bytes(bytes)?.kind() != Content::MODEL {
                return Ok(None);
            }
            Ok(Some(Self::new(CoreModel::from_bytes(bytes)?)))
        })
    }

    /// Reads a model file, or that of a run folder; none if it holds a model of another kind.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Option<Self>> {
        detached(py, || Ok(open(&path)?.map(Self::new)))
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, || Ok(self.model.to_bytes()?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Definition and record, as in the model file.
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(py, || written(py, self.content_ref()))
    }

    /// Sites of a row.
    #[getter]
    fn dim(&self) -> usize {
        self.content_ref().spec.space.sites
    }

    /// The levels of the model.
    #[getter]
    fn times<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let times = self.content_ref().spec.grid.times();
        array(py, times.to_vec(), &[times.len()])
    }

    /// Parameters of the network.
    #[getter]
    fn parameters(&self) -> usize {
        self.model.params.len()
    }

    /// A quantity at rows of symbols, at one time.
    fn evaluate_points<'py>(
        &self,
        py: Python<'py>,
        what: &str,
        x: &Bound<'py, PyAny>,
        times: Option<Vec<f64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (quantity, rows) = (quantity(py, what)?, Rows::of(x)?);
        let found = detached(py, || {
            let time = one_time(times.as_deref())?;
            let values = rows.finite("data")?;
            let energy = self.energy()?;
            let subject = (&self.content_ref().spec, &*energy as &dyn Energy);
            densities(quantity, subject, ("x", &values, rows.dim()), time)
        })?;
        array(py, found.values, &found.shape)
    }

    /// F(t).
    fn free_energy<'py>(&self, py: Python<'py>, times: Vec<f64>) -> PyResult<Bound<'py, PyAny>> {
        let values = detached(py, || {
            let grid = &self.content_ref().spec.grid;
            let inside = |t: &&f64| !(grid.t_min()..=grid.t_max()).contains(*t);
            if let Some(time) = times.iter().find(inside) {
                let expected = format!("times from {} to {}", grid.t_min(), grid.t_max());
                return Err(Error::setting("time", time, expected));
            }
            let energy = self.energy()?;
            Ok(times
                .iter()
                .map(|t| energy.free_energy(*t))
                .collect::<Vec<_>>())
        })?;
        array(py, values, &[times.len()])
    }

    /// New rows of symbols.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        request: SampleRequest,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let found = detached(py, move || {
            if let Some(name) = request.stranger() {
                return Err(Error::Refused(words!(
                    Setting::new(name),
                    " does not go with states; leave it out"
                )));
            }
            let asked = StatesGeneration {
                number: request.n.unwrap_or(0),
                method: request.method,
                steps: request.steps,
                seed: request.seed,
            };
            let watch = Listener::new(request.progress, None);
            let done = asked.run((self.content_ref(), &*self.energy()?), &watch)?;
            Ok(done.finish("done"))
        })?;
        let sites = self.dim();
        let shape = [found.rows.len() / sites, sites];
        Ok((array_u8(py, found.rows, &shape)?, None))
    }

    /// The verdict without ground truth: figures, and the whole as text.
    fn diagnose<'py>(
        &self,
        py: Python<'py>,
        request: DiagnoseRequest,
    ) -> PyResult<(Bound<'py, PyAny>, String)> {
        let rows = request.given(py)?;
        let (found, text) = detached(py, move || {
            let [set, end] = rows.sets()?;
            if end.is_some() {
                return Err(Error::Refused(words!(
                    Setting::new("end"),
                    " is for interpolants, and states have none; leave it out"
                )));
            }
            let (content, energy) = (self.content_ref(), self.energy()?);
            let judging = StatesJudging::of(content, set, &request.path)?;
            let asked = request.asked();
            let watch = Listener::new(request.progress, None);
            let found = asked.judge_states(judging, (content, &*energy), &watch)?;
            let text = diffclf_report::verdict::text("the model", &found);
            Ok((found, text))
        })?;
        Ok((crate::model::told(py, &found)?, text))
    }

    /// Beside the exact law of a system, by default the one it was trained on.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        request: EvaluateRequest,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = detached(py, move || {
            let asked = StatesJudgement {
                system: request.system.as_deref(),
                system_seed: request.system_seed,
                levels: request.levels,
                samples: (request.samples, request.classified),
                seed: request.seed,
            };
            let watch = Listener::new(request.progress, None);
            let done = asked.run((self.content_ref(), &*self.energy()?), &watch)?;
            Ok(done.finish("done"))
        })?;
        written(py, &found)
    }

    /// Weighted rows from noise to the model, or to the weights of a lattice: rows, weights, figures.
    fn anneal<'py>(&self, py: Python<'py>, request: AnnealRequest) -> PyResult<Weighted<'py>> {
        let found = detached(py, move || {
            let asked = request.asked()?;
            let watch = Listener::new(request.progress, None);
            let done = asked.run((self.content_ref(), &*self.energy()?), &watch)?;
            Ok(done.finish("done"))
        })?;
        weighted(py, found)
    }
}
