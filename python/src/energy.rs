//! Energies at work: models, systems and Python functions, composed, run by chains, particles and ladders.

use crate::array::{Rows, array};
use crate::error::{Kind, detached};
use crate::json::written;
use crate::machine::{isa, pool};
use crate::model::Model;
use crate::system::System;
use crate::watch::Listener;
use diffclf::energy::compose::{Composition, Expression};
use diffclf::energy::{Energy, SystemEnergy};
use diffclf::sample::mcmc::HeldEnergy;
use diffclf::sample::{ChainSettings, Particles, Smc};
use diffclf_report::annealing;
use diffclf_run::anneal::{AnnealMethod, Annealed, Annealing, own_target};
use diffclf_run::bridge::BridgeChoice;
use diffclf_run::compare::{Comparing, Reference};
use diffclf_run::compose::Compound;
use diffclf_run::molecule::MoleculeChoice;
use diffclf_run::named::word;
use diffclf_run::{Error, Result};
use numpy::{PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What a Python function raised: the work goes on with undefined energies, and the exception follows at its end.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// An energy that Python computes: an object with `dim`, `_energy(points)` and `_score(points)`, the same at all times.
struct Function {
    object: Py<PyAny>,
    dim: usize,
    raised: Raised,
}

impl Function {
    fn call(&self, method: &str, points: &[f64], out: &mut [f64]) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        if raised.is_none() {
            let answer = Python::attach(|py| -> PyResult<()> {
                let rows = points.len() / self.dim;
                let points = array(py, points.to_vec(), &[rows, self.dim])?;
                let values = self.object.bind(py).call_method1(method, (points,))?;
                let values = values.cast::<PyArrayDyn<f64>>()?.try_readonly()?;
                let values = values.as_slice()?;
                if values.len() != out.len() {
                    return Err(Kind::Internal.raised(py, "a function gave too few numbers"));
                }
                out.copy_from_slice(values);
                Ok(())
            });
            match answer {
                Ok(()) => return,
                Err(error) => *raised = Some(error),
            }
        }
        out.fill(f64::NAN);
    }
}

impl Energy for Function {
    fn dim(&self) -> usize {
        self.dim
    }

    fn free_energy(&self, _time: f64) -> f64 {
        0.0
    }

    fn energy(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
        self.call("_energy", points, out);
    }

    fn score(&self, _times: &[f64], points: &[f64], out: &mut [f64]) {
        self.call("_score", points, out);
    }

    fn time_score(&self, _times: &[f64], _points: &[f64], out: &mut [f64]) {
        out.fill(0.0);
    }
}

/// A member of an expression, as Python has it.
enum Leaf {
    Model(Py<Model>),
    System(Py<System>),
    /// A system by its name alone, for dynamics: `go:FILE`.
    Name(String),
    Function(Py<PyAny>, usize),
}

/// Named energies and how they are composed.
pub struct Composed {
    members: Vec<(String, Leaf)>,
    expression: String,
}

impl<'py> FromPyObject<'_, 'py> for Composed {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (expression, given): (String, Vec<(String, Bound<'py, PyAny>)>) = object.extract()?;
        let mut members = Vec::new();
        for (name, object) in given {
            let leaf = if let Ok(model) = object.cast::<Model>() {
                Leaf::Model(model.clone().unbind())
            } else if let Ok(system) = object.cast::<System>() {
                Leaf::System(system.clone().unbind())
            } else if let Ok(name) = object.extract::<String>() {
                Leaf::Name(name)
            } else {
                let dim = object.getattr("dim")?.extract()?;
                Leaf::Function(object.unbind(), dim)
            };
            members.push((name, leaf));
        }
        Ok(Self {
            members,
            expression,
        })
    }
}

/// An expression, its models and its systems, by name.
type Parts<'a> = (
    Expression,
    Vec<(&'a str, diffclf::model::Model)>,
    Vec<(&'a str, &'a str)>,
);

impl Composed {
    /// Calls `work` with the energy, in the data's coordinates, and raises what a function raised in it.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn Energy, f64) -> Result<T> + Send,
    ) -> PyResult<T> {
        let raised = Raised::default();
        let outcome = detached(py, || {
            let (energies, time) = self.leaves(&raised)?;
            if let [energy] = &energies[..]
                && self.expression == self.members[0].0
            {
                return work(&**energy, time);
            }
            let named: Vec<(&str, &dyn Energy)> = self
                .members
                .iter()
                .zip(&energies)
                .map(|((name, _), energy)| (name.as_str(), &**energy as &dyn Energy))
                .collect();
            let expression = Expression::parse(&self.expression)?;
            work(&Composition::new(&expression, &named)?, time)
        });
        let error = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        match error {
            Some(error) => Err(error),
            None => outcome,
        }
    }

    /// The expression, its models and its systems; a function among them is refused with these words.
    pub(crate) fn parts(&self, no_function: &str) -> Result<Parts<'_>> {
        let expression = Expression::parse(&self.expression)?;
        let (mut models, mut systems) = (Vec::new(), Vec::new());
        for (name, leaf) in &self.members {
            match leaf {
                Leaf::Model(model) => models.push((name.as_str(), model.get().core().clone())),
                Leaf::System(system) => {
                    systems.push((name.as_str(), system.get().core().name()));
                }
                Leaf::Name(system) => systems.push((name.as_str(), system.as_str())),
                Leaf::Function(..) => return Err(Error::Usage(no_function.into())),
            }
        }
        Ok((expression, models, systems))
    }

    /// The members' energies, and the smallest time that all models know.
    fn leaves(&self, raised: &Raised) -> Result<(Vec<Box<dyn Energy>>, f64)> {
        let mut time = 0.0_f64;
        let mut energies: Vec<Box<dyn Energy>> = Vec::new();
        for (name, leaf) in &self.members {
            energies.push(match leaf {
                Leaf::Model(model) => {
                    let model = model.get();
                    let content = &model.core().content;
                    time = time.max(content.spec.grid.t_min());
                    content.at_rows(model.energy()?)
                }
                Leaf::System(system) => match SystemEnergy::new(system.get().core().clone()) {
                    Some(energy) => Box::new(energy),
                    None => {
                        return Err(Error::Failed(format!(
                            "the density of {name} is not known exactly; train a model on its samples"
                        )));
                    }
                },
                Leaf::Name(system) => {
                    return Err(Error::Usage(format!(
                        "{system} is the name of a system; give diffclf.system(name), or use simulate()"
                    )));
                }
                Leaf::Function(object, dim) => Box::new(Function {
                    object: Python::attach(|py| object.clone_ref(py)),
                    dim: *dim,
                    raised: raised.clone(),
                }),
            });
        }
        Ok((energies, time))
    }
}

/// A quantity of a composition at points.
#[pyfunction]
pub fn energy_evaluate<'py>(
    py: Python<'py>,
    composed: Composed,
    what: &str,
    x: &Bound<'py, PyAny>,
    time: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = Rows::of(x)?;
    let (values, shape) = composed.with(py, |energy, smallest| {
        let points = rows.finite("data")?;
        let times = [time.unwrap_or(smallest)];
        let count = points.len() / energy.dim();
        let mut out = vec![0.0; if what == "score" { points.len() } else { count }];
        match what {
            "score" => energy.score(&times, &points, &mut out),
            "energy" => energy.energy(&times, &points, &mut out),
            _ => energy.log_density(&times, &points, &mut out),
        }
        let shape = if what == "score" {
            rows.shape.clone()
        } else {
            vec![count]
        };
        Ok((out, shape))
    })?;
    array(py, values, &shape)
}

/// Settings of the core from JSON.
pub(crate) fn settings<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Usage(format!("a setting is wrong: {error}")))
}

/// Chains from points: draws (draws, chains, columns), and what they say of themselves.
#[pyfunction]
pub fn energy_chains<'py>(
    py: Python<'py>,
    composed: Composed,
    x: &Bound<'py, PyAny>,
    time: Option<f64>,
    chain_settings: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let rows = Rows::of(x)?;
    let (found, draws) = composed.with(py, |energy, smallest| {
        let asked: ChainSettings = settings(chain_settings)?;
        let points = rows.finite("data")?;
        let room = asked.draws.checked_mul(points.len());
        if !matches!(
            room.map(|room| Vec::<f64>::new().try_reserve_exact(room)),
            Some(Ok(()))
        ) {
            return Err(Error::setting(
                "draws",
                asked.draws,
                "no more than fit in memory",
            ));
        }
        let watch = Listener::new(progress, None);
        let total = asked.warm_up + asked.draws * asked.thin;
        let mut bar = diffclf_run::Watch::begin(&watch, "chains", total as u64, 0);
        let target = HeldEnergy {
            energy,
            time: time.unwrap_or(smallest),
        };
        let found = asked.run(target, points, &mut |done| {
            bar.set(done as u64, &|| "steps".into());
        })?;
        bar.finish("done");
        Ok((found, asked.draws))
    })?;
    let chains = found.state.rows();
    let shape = [draws, chains, found.state.dim()];
    Ok((
        array(py, found.draws, &shape)?,
        written(py, &found.summary)?,
    ))
}

/// Points, weights and figures.
pub type Weighted<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

fn weighted<'py>(py: Python<'py>, found: Particles) -> PyResult<Weighted<'py>> {
    let rows = found.weights.len();
    let figures = annealing::record(&found);
    let dim = found.points.len() / rows.max(1);
    Ok((
        array(py, found.points, &[rows, dim])?,
        array(py, found.weights, &[rows])?,
        written(py, &figures)?,
    ))
}

/// Samples of a composition of models and systems by sequential Monte Carlo.
#[pyfunction]
pub fn energy_compose<'py>(
    py: Python<'py>,
    composed: Composed,
    n: usize,
    levels: Option<usize>,
    system_seed: u64,
    smc_settings: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Weighted<'py>> {
    let found = detached(py, || {
        let smc: Smc = settings(smc_settings)?;
        let (expression, models, systems) = composed.parts(
            "a function has no path from noise, so a composition with one cannot be sampled along it; run chains on it (mala, \
             hmc), or train a model on its samples",
        )?;
        let compound = Compound {
            expression: &expression,
            models: &models,
            systems: &systems,
            system_seed,
            levels,
        };
        let watch = Listener::new(progress, None);
        let done = compound.sample(&smc, n, pool()?, isa(), &watch)?;
        Ok(done.finish("done").particles)
    })?;
    weighted(py, found)
}

/// What `anneal` asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct AnnealRequest {
    method: String,
    diffusion: bool,
    sweeps: usize,
    n: usize,
    levels: Option<usize>,
    rows: Option<PathBuf>,
    towards: Option<String>,
    target_energy: Option<String>,
    molecule: Option<String>,
    smc: String,
    progress: Option<Py<PyAny>>,
}

/// A model's path run by particles or ladders, to its own density or to a target. Draws of exchange have no weights.
#[pyfunction]
pub fn energy_anneal<'py>(
    py: Python<'py>,
    model: Py<Model>,
    target: Option<Composed>,
    request: AnnealRequest,
) -> PyResult<Weighted<'py>> {
    let model = model.get();
    let run = move |target: Option<&dyn Energy>| -> Result<Annealed> {
        let method: AnnealMethod = word(&request.method)
            .map_err(|reason| Error::setting("method", format!("'{}'", request.method), reason))?;
        let towards = match &request.towards {
            Some(text) => Some(
                word(text)
                    .map_err(|reason| Error::setting("towards", format!("'{text}'"), reason))?,
            ),
            None => None,
        };
        let asked = Annealing {
            method,
            target: None,
            system_seed: 0,
            diffusion: request.diffusion,
            contest: false,
            weights: false,
            bridge: BridgeChoice {
                towards,
                rows: request.rows,
                ..BridgeChoice::default()
            },
            sweeps: request.sweeps,
            particles: request.n,
            levels: request.levels,
            smc: settings(&request.smc)?,
        };
        let watch = Listener::new(request.progress, None);
        let content = &model.core().content;
        let energy = model.energy()?;
        let own = match &request.target_energy {
            Some(text) => Some(own_target(text, content)?),
            None => None,
        };
        let target = own.as_deref().or(target);
        let done = match &request.molecule {
            Some(text) => {
                let molecule: MoleculeChoice = settings(text)?;
                let known = molecule.energy_of_rows(content.columns(), isa())?;
                asked.run_between(&*known, (content, &*energy), &watch)?
            }
            None => asked.run_to(target, (content, &*energy), &watch)?,
        };
        Ok(done.finish("done"))
    };
    let found = match target {
        Some(target) => target.with(py, |energy, _| run(Some(energy)))?,
        None => detached(py, || run(None))?,
    };
    match found {
        Annealed::Descent { mut runs, .. } => weighted(py, runs.remove(0).1),
        Annealed::Crossing { particles, .. } => weighted(py, *particles),
        Annealed::Exchanged { found, ladders, .. } => {
            let dim = model.core().content.columns();
            let draws = found.draws.len() / (ladders * dim).max(1);
            let figures = written(py, &*found)?;
            Ok((
                array(py, found.draws, &[draws, ladders, dim])?,
                array(py, Vec::new(), &[0])?,
                figures,
            ))
        }
    }
}

/// Distances of two samples in files, or of one from a system.
#[pyfunction]
pub fn compare_samples<'py>(
    py: Python<'py>,
    sample: PathBuf,
    weights: Option<PathBuf>,
    reference: (Option<PathBuf>, Option<PathBuf>),
    system: Option<(String, u64)>,
    comparison_settings: &str,
    states: Option<usize>,
) -> PyResult<(Bound<'py, PyAny>, String)> {
    let (reference, reference_weights) = reference;
    let (found, text) = detached(py, || {
        let asked = Comparing {
            sample,
            weights,
            reference_weights,
            reference: match (reference, system) {
                (Some(path), _) => Reference::File(path),
                (None, Some((name, seed))) => Reference::System { name, seed },
                (None, None) => return Err(Error::Nothing),
            },
            states,
            settings: settings(comparison_settings)?,
        };
        let found = asked.run()?;
        let table = diffclf_report::comparison::table("the sample", &found);
        let text = diffclf_report::text::table_text(&table);
        Ok((found, text))
    })?;
    let figures = serde_json::json!({ "rows": found.rows, "distances": found.distances });
    Ok((written(py, &figures)?, text))
}
