//! Dynamics on energies, and observables of frames.

use crate::array::{Rows, array};
use crate::energy::{Composed, settings};
use crate::error::detached;
use crate::json::written;
use crate::machine::{isa, threads};
use crate::watch::Listener;
use diffclf::observable::{Observable, TicaSettings};
use diffclf_run::files::MappedNpy;
use diffclf_run::named::{word, words_of};
use diffclf_run::observe::{Frames, Observing, SlowCoordinates};
use diffclf_run::outputs;
use diffclf_run::simulate::{Asking, Given, Landscape, Simulation, in_space};
use diffclf_run::trajectory::{kind_of, outputs_of, writable, write_chains};
use diffclf_run::{Error, Result};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// What `simulate` asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SimulateRequest {
    scheme: String,
    units: String,
    step: f64,
    friction: f64,
    temperature: Option<f64>,
    masses: Vec<f64>,
    bonds: Vec<[usize; 2]>,
    topology: Option<PathBuf>,
    particles: Option<bool>,
    chains: Option<usize>,
    frames: usize,
    thin: usize,
    time: Option<f64>,
    seed: u64,
    system_seed: u64,
}

/// Rows of an array, or the name of their file.
enum Source {
    Array(Rows),
    File(PathBuf),
}

impl Source {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        match object.extract::<PathBuf>() {
            Ok(path) => Ok(Self::File(path)),
            Err(_) => Ok(Self::Array(Rows::of(object)?)),
        }
    }

    fn given(&self, name: &str) -> Result<Given> {
        let rows = match self {
            Self::File(path) => return Given::read(path),
            Self::Array(rows) => rows,
        };
        let mut values = vec![0.0; rows.shape.iter().product()];
        rows.read(0, &mut values);
        Ok(Given {
            name: name.into(),
            values,
            dim: rows.dim(),
            shaped: in_space(&rows.shape),
        })
    }
}

/// Points (chains, frames, columns), energies (chains, frames), a summary, and the settings with all that was left open.
type Simulated<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
);

/// Chains from rows.
#[pyfunction]
pub fn energy_simulate<'py>(
    py: Python<'py>,
    composed: Composed,
    x: Option<&Bound<'py, PyAny>>,
    data: Option<&Bound<'py, PyAny>>,
    request: SimulateRequest,
    progress: Option<Py<PyAny>>,
) -> PyResult<Simulated<'py>> {
    let start = x.map(Source::of).transpose()?;
    let data = data.map(Source::of).transpose()?;
    let (found, asked) = detached(py, || {
        let asking = Asking {
            scheme: chosen("scheme", &request.scheme)?,
            units: chosen("units", &request.units)?,
            step: request.step,
            friction: request.friction,
            temperature: request.temperature,
            masses: request.masses,
            bonds: request.bonds,
            topology: request.topology,
            particles: request.particles,
            chains: request.chains,
            frames: request.frames,
            thin: request.thin,
            time: request.time,
            seed: request.seed,
        };
        let (expression, models, systems) = composed.parts(
            "dynamics with masses runs on models and systems; for a function use langevin()",
        )?;
        let landscape = Landscape {
            expression: &expression,
            models: &models,
            systems: &systems,
            system_seed: request.system_seed,
        };
        let watch = Listener::new(progress, None);
        let given = |source: &Option<Source>, name: &str| {
            let source = source.as_ref();
            source.map(|source| source.given(name)).transpose()
        };
        let (start, data) = (given(&start, "x")?, given(&data, "data")?);
        let settled = asking.settle(&landscape, start, data, &watch)?;
        let asked = settled.simulation;
        let machine = (threads()?, isa());
        let done = asked.run(
            &landscape,
            &settled.start,
            &settled.data,
            machine,
            None,
            &watch,
        )?;
        Ok((done.finish("done"), asked))
    })?;
    let (chains, dim) = (
        found.chains,
        found.points.len() / found.energies.len().max(1),
    );
    Ok((
        array(py, found.points, &[chains, asked.frames, dim])?,
        array(py, found.energies, &[chains, asked.frames])?,
        written(py, &found.summary)?,
        written(py, &asked)?,
    ))
}

/// One of a few words.
fn chosen<T: DeserializeOwned>(name: &'static str, text: &str) -> Result<T> {
    word(text).map_err(|_| Error::setting(name, text, words_of::<T>().join(", ")))
}

/// The numbers of a file of rows, a trajectory's as (frames, atoms, 3) in nm.
#[pyfunction]
pub fn read_frames(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let (values, shape) = detached(py, || {
        let mapped = MappedNpy::open(&path)?;
        let view = mapped.view()?;
        Ok((view.to_vec_f64(), view.shape().to_vec()))
    })?;
    array(py, values, &shape)
}

/// Writes chains by the end of the name; the names of the files.
#[pyfunction]
pub fn write_frames(
    py: Python<'_>,
    path: PathBuf,
    x: &Bound<'_, PyAny>,
    simulation: &str,
    force: bool,
) -> PyResult<Vec<PathBuf>> {
    let rows = Rows::of(x)?;
    detached(py, || {
        let asked: Simulation = settings(simulation)?;
        writable(&path, asked.units)?;
        let chains = rows.shape[0];
        let dim = rows.shape[2..].iter().product::<usize>().max(1);
        let paths = outputs_of(&path, chains);
        outputs::plan(paths.iter().map(PathBuf::as_path), force)?;
        let mut points = vec![0.0; rows.shape.iter().product()];
        rows.read(0, &mut points);
        let spacing = asked.units.time(asked.step) * asked.thin as f64;
        let particles = asked.particles || kind_of(&path).is_some();
        let shape = (chains, dim, particles && dim.is_multiple_of(3));
        write_chains(&path, &points, shape, (asked.units, spacing), force)
    })
}

/// What `observe` asks for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ObserveRequest {
    of: Vec<(String, String)>,
    chains: usize,
    reference_chains: usize,
    states: Vec<(String, Vec<f64>)>,
    bins: usize,
    limits: Option<[f64; 4]>,
    tica: Option<PathBuf>,
    tica_lag: Option<usize>,
    components: usize,
    kinetic_map: bool,
}

/// Observables of frames: their values (frames, observables), and all figures.
#[pyfunction]
pub fn observe_frames<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    reference: Option<&Bound<'py, PyAny>>,
    request: ObserveRequest,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let rows = Rows::of(x)?;
    let reference = reference.map(Rows::of).transpose()?;
    let (found, values, width) = detached(py, || {
        let mut observables = Vec::new();
        for (name, what) in &request.of {
            observables.push((name.clone(), Observable::parse(what)?));
        }
        let tica = match (request.tica, request.tica_lag) {
            (Some(path), _) => Some(SlowCoordinates::Given(path)),
            (None, Some(lag)) => Some(SlowCoordinates::Fitted(TicaSettings {
                lag,
                components: request.components,
                kinetic_map: request.kinetic_map,
            })),
            (None, None) => None,
        };
        let asked = Observing {
            observables,
            tica,
            states: request.states,
            bins: request.bins,
            limits: request.limits,
        };
        let frames = |rows: &Rows, name: &str, chains: usize| {
            let mut values = vec![0.0; rows.shape.iter().product()];
            rows.read(0, &mut values);
            Frames::of(name.into(), values, rows.dim(), chains)
        };
        let own = frames(&rows, "the frames", request.chains)?;
        let other = match &reference {
            Some(rows) => Some(frames(rows, "the reference", request.reference_chains)?),
            None => None,
        };
        let found = asked.run(&own, other.as_ref())?;
        let series = &found.found.series;
        let count = series[0].values.len();
        let values: Vec<f64> = (0..count)
            .flat_map(|k| series.iter().map(move |one| one.values[k]))
            .collect();
        let width = series.len();
        Ok((found, values, width))
    })?;
    let count = values.len() / width.max(1);
    Ok((array(py, values, &[count, width])?, written(py, &found)?))
}
