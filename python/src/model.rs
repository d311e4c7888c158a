//! `Model`: a trained model in Python's hands.

use crate::array::{Rows, array};
use crate::error::{Kind, detached, guarded};
use crate::json::written;
use crate::machine::{Key, isa, kept, pool};
use crate::training::with_weights;
use crate::watch::Listener;
use diffclf::energy::{Energy, LearnedEnergy};
use diffclf::model::Model as CoreModel;
use diffclf_run::bridge::{BridgeChoice, noise};
use diffclf_run::data::DataSet;
use diffclf_run::density::{Points, Quantity, evaluate_rows};
use diffclf_run::diagnose::{Diagnosed, Diagnosing};
use diffclf_run::evaluate::Judgement;
use diffclf_run::exact::Systems;
use diffclf_run::files::read_model;
use diffclf_run::generate::Generation;
use diffclf_run::judging::{GivenFiles, Judging};
use diffclf_run::named::word;
use diffclf_run::{Error, Result, Silent};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A trained model. It is never changed, so threads may share it.
#[pyclass(frozen, module = "diffclf._native")]
pub struct Model {
    model: CoreModel,
    energy: Mutex<Option<(Key, Arc<LearnedEnergy>)>>,
}

impl Model {
    fn new(model: CoreModel) -> Self {
        Self {
            model,
            energy: Mutex::new(None),
        }
    }

    /// The energy on the threads of this process.
    pub fn energy(&self) -> Result<Arc<LearnedEnergy>> {
        kept(&self.energy, || Ok(self.model.energy(pool()?, isa())?))
    }

    /// The model itself.
    pub fn core(&self) -> &CoreModel {
        &self.model
    }
}

pub fn quantity(py: Python<'_>, name: &str) -> PyResult<Quantity> {
    Ok(match name {
        "log_density" => Quantity::LogDensity,
        "energy" => Quantity::Energy,
        "score" => Quantity::Score,
        "time_score" => Quantity::TimeScore,
        "flow" => Quantity::FlowLogDensity,
        name => return Err(Kind::Internal.raised(py, format!("no quantity {name}"))),
    })
}

/// What `Model.sample` asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SampleRequest {
    pub n: Option<usize>,
    pub method: Option<String>,
    pub steps: Option<usize>,
    eta: Option<f64>,
    integrator: Option<String>,
    tolerance: Option<f64>,
    log_density: bool,
    probes: Option<usize>,
    towards: Option<String>,
    rows: Option<PathBuf>,
    velocity: Option<String>,
    g: Option<String>,
    pub seed: u64,
    pub progress: Option<Py<PyAny>>,
}

/// A name of a family, or an error that names its argument.
fn named<T: serde::de::DeserializeOwned>(
    key: &'static str,
    text: Option<&String>,
) -> Result<Option<T>> {
    text.map(|text| {
        word::<T>(text).map_err(|reason| Error::setting(key, format!("'{text}'"), reason))
    })
    .transpose()
}

impl SampleRequest {
    /// An argument that is given and means nothing to states.
    pub fn stranger(&self) -> Option<&'static str> {
        let strangers = [
            ("eta", self.eta.is_some()),
            ("integrator", self.integrator.is_some()),
            ("tolerance", self.tolerance.is_some()),
            ("log_density", self.log_density),
            ("probes", self.probes.is_some()),
            ("towards", self.towards.is_some()),
            ("rows", self.rows.is_some()),
            ("velocity", self.velocity.is_some()),
            ("g", self.g.is_some()),
        ];
        let found = strangers.into_iter().find(|(_, given)| *given);
        found.map(|(name, _)| name)
    }

    fn generation(&self) -> Result<Generation> {
        Ok(Generation {
            number: self.n,
            method: self.method.clone(),
            steps: self.steps,
            eta: self.eta,
            integrator: named("integrator", self.integrator.as_ref())?,
            tolerance: self.tolerance,
            log_density: self.log_density,
            probes: self.probes,
            bridge: BridgeChoice {
                towards: named("towards", self.towards.as_ref())?,
                rows: self.rows.clone(),
                velocity: named("velocity", self.velocity.as_ref())?,
                g: match &self.g {
                    Some(text) => Some(
                        noise(text)
                            .map_err(|reason| Error::setting("g", format!("'{text}'"), reason))?,
                    ),
                    None => None,
                },
            },
            seed: self.seed,
        })
    }
}

/// What `Model.evaluate` asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct EvaluateRequest {
    system: Option<String>,
    end_system: Option<String>,
    system_seed: Option<u64>,
    levels: Option<usize>,
    samples: usize,
    classified: usize,
    seed: u64,
    progress: Option<Py<PyAny>>,
}

/// Rows under a name, and their weights.
type NamedRows = (String, Py<PyAny>, Option<Py<PyAny>>);

/// What `Model.diagnose` asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct DiagnoseRequest {
    rows: Vec<Option<NamedRows>>,
    /// Where the log of the training is looked for.
    pub path: PathBuf,
    points: usize,
    generate: usize,
    seed: u64,
    pub progress: Option<Py<PyAny>>,
}

/// Rows that are given for both endpoints, with their names and weights.
pub struct GivenRows(Vec<Option<(String, Rows, Option<Rows>)>>);

impl DiagnoseRequest {
    /// The arrays of the rows.
    pub fn given(&self, py: Python<'_>) -> PyResult<GivenRows> {
        let mut rows = Vec::new();
        for given in &self.rows {
            rows.push(match given {
                Some((name, x, weights)) => {
                    let weights = weights.as_ref().map(|w| Rows::of(w.bind(py)));
                    Some((name.clone(), Rows::of(x.bind(py))?, weights.transpose()?))
                }
                None => None,
            });
        }
        Ok(GivenRows(rows))
    }

    /// What is asked of the diagnosis.
    pub fn asked(&self) -> Diagnosing {
        Diagnosing {
            model: self.path.clone(),
            data: [None, None],
            weights: [None, None],
            points: self.points,
            generate: self.generate,
            seed: self.seed,
        }
    }
}

impl GivenRows {
    /// As data sets.
    pub fn sets(self) -> Result<[Option<(String, DataSet)>; 2]> {
        let mut sets = [None, None];
        for (set, given) in sets.iter_mut().zip(self.0) {
            if let Some((name, rows, weights)) = given {
                let rows = rows.data_set(&name, Vec::new())?;
                *set = Some((name, with_weights(rows, weights)?));
            }
        }
        Ok(sets)
    }
}

/// A diagnosis as Python takes it.
pub fn told<'py, D: serde::Serialize>(
    py: Python<'py>,
    found: &Diagnosed<D>,
) -> PyResult<Bound<'py, PyAny>> {
    written(
        py,
        &serde_json::json!({
            "judged_by": found.origin,
            "only_trained_rows": found.only_trained,
            "settings": found.settings,
            "diagnosis": found.diagnosis,
        }),
    )
}

#[pymethods]
impl Model {
    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        detached(py, || Ok(Self::new(CoreModel::from_bytes(bytes)?)))
    }

    /// Reads a model file, or that of a run folder.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        detached(py, || Ok(Self::new(read_model(&path)?)))
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, || Ok(self.model.to_bytes()?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Definition and record, as in the model file.
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(py, || written(py, &self.model.content))
    }

    /// Numbers of a point.
    #[getter]
    fn dim(&self) -> usize {
        self.model.content.columns()
    }

    /// The levels of the model.
    #[getter]
    fn times<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let times = self.model.content.spec.grid.times();
        array(py, times.to_vec(), &[times.len()])
    }

    /// Parameters of the network.
    #[getter]
    fn parameters(&self) -> usize {
        self.model.params.len()
    }

    /// A quantity at points, at one time or at one for each.
    fn evaluate_points<'py>(
        &self,
        py: Python<'py>,
        what: &str,
        x: &Bound<'py, PyAny>,
        times: Option<Vec<f64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (quantity, rows) = (quantity(py, what)?, Rows::of(x)?);
        let found = detached(py, || {
            let (content, energy) = (&self.model.content, self.energy()?);
            let dim = rows.dim();
            let points = Points {
                name: "x",
                shape: &rows.shape,
                read: &|first, out| rows.read(first * dim, out),
                mark: false,
            };
            let times = times.unwrap_or_else(|| vec![content.spec.grid.t_min()]);
            let done = evaluate_rows(quantity, (content, &energy), &points, &times, &Silent)?;
            Ok(done.found)
        })?;
        array(py, found.values, &found.shape)
    }

    /// `H e` with H the Hessian of log p and one direction for each point.
    fn hessian_product<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        directions: &Bound<'py, PyAny>,
        time: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (rows, along) = (Rows::of(x)?, Rows::of(directions)?);
        let values = detached(py, || {
            let content = &self.model.content;
            let (points, along) = (rows.finite("data")?, along.finite("directions")?);
            if points.len() != along.len() || rows.dim() != content.columns() {
                return Err(Error::setting(
                    "directions",
                    format!("{} numbers", along.len()),
                    format!("one for each of the {} of x", points.len()),
                ));
            }
            let time = time.unwrap_or(content.spec.grid.t_min());
            let learned = self.energy()?;
            let energy = content.at_rows(&*learned);
            let mut out = vec![0.0; points.len()];
            energy.hessian_product(&[time], &points, &along, &mut out);
            Ok(out)
        })?;
        array(py, values, &rows.shape)
    }

    /// F(t).
    fn free_energy<'py>(&self, py: Python<'py>, times: Vec<f64>) -> PyResult<Bound<'py, PyAny>> {
        let values = detached(py, || {
            let grid = &self.model.content.spec.grid;
            if let Some(time) = times
                .iter()
                .find(|t| !(grid.t_min()..=grid.t_max()).contains(*t))
            {
                let expected = format!("times from {} to {}", grid.t_min(), grid.t_max());
                return Err(Error::setting("time", time, expected));
            }
            let energy = self.energy()?;
            Ok(times
                .iter()
                .map(|time| energy.free_energy(*time))
                .collect::<Vec<_>>())
        })?;
        array(py, values, &[times.len()])
    }

    /// New samples, and their log-densities if those are wanted.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        request: SampleRequest,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let found = detached(py, move || {
            let asked = request.generation()?;
            let watch = Listener::new(request.progress, None);
            let done = asked.run(&self.model.content, &*self.energy()?, &watch)?;
            Ok(done.finish("done"))
        })?;
        let log_density = match found.log_density {
            Some(values) => Some(array(py, values, &[found.number])?),
            None => None,
        };
        let points = array(py, found.points, &[found.number, self.dim()])?;
        Ok((points, log_density))
    }

    /// The model beside the exact answer of a system.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        request: EvaluateRequest,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = detached(py, move || {
            let asked = Judgement {
                systems: Systems {
                    system: request.system.as_deref(),
                    end_system: request.end_system.as_deref(),
                    system_seed: request.system_seed,
                },
                levels: request.levels,
                samples: request.samples,
                classified: request.classified,
                seed: request.seed,
            };
            let watch = Listener::new(request.progress, None);
            asked.run(&self.model.content, &*self.energy()?, &watch)
        })?;
        written(
            py,
            &serde_json::json!({
                "systems": found.systems,
                "grid": found.grid,
                "evaluation": found.evaluation,
                "likelihood": found.likelihood,
            }),
        )
    }

    /// The verdict without ground truth: figures, and the whole as text.
    fn diagnose<'py>(
        &self,
        py: Python<'py>,
        request: DiagnoseRequest,
    ) -> PyResult<(Bound<'py, PyAny>, String)> {
        let rows = request.given(py)?;
        let (found, text) = detached(py, move || {
            let content = &self.model.content;
            let judging = Judging::of(content, rows.sets()?, &request.path)?;
            let asked = request.asked();
            let watch = Listener::new(request.progress, None);
            let found = asked.judge(judging, content, &*self.energy()?, &watch)?;
            let text = diffclf_report::verdict::text("the model", &found);
            Ok((found, text))
        })?;
        Ok((told(py, &found)?, text))
    }
}

/// What `Model.report` asks for: everything is in files.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ReportRequest {
    model: PathBuf,
    data: Option<PathBuf>,
    end: Option<PathBuf>,
    weights: [Option<PathBuf>; 2],
    pair: Option<[usize; 2]>,
    points: usize,
    seed: u64,
    command: String,
    out: PathBuf,
    force: bool,
}

/// Writes the page about a run.
#[pyfunction]
pub fn write_report(py: Python<'_>, request: ReportRequest) -> PyResult<()> {
    detached(py, move || {
        diffclf_run::outputs::plan([request.out.as_path()], request.force)?;
        let machine = diffclf_run::machine::Machine::default();
        let wish = diffclf_report::run::Wish {
            model: request.model,
            files: GivenFiles {
                data: [request.data.as_deref(), request.end.as_deref()],
                weights: request.weights.each_ref().map(|path| path.as_deref()),
            },
            pair: request.pair,
            points: Some(request.points),
            seed: request.seed,
            machine: &machine,
            watch: &Silent,
            command: request.command,
        };
        diffclf_report::run::write(&wish, &request.out, None, request.force).map(|_| ())
    })
}

/// Where the rows that a training would read begin: the array's own memory, or a copy's.
#[pyfunction]
pub fn rows_address(x: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(Rows::of(x)?.array.address())
}
