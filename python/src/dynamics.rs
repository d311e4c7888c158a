//! Dynamics on energies, and observables of frames.

use crate::array::{Rows, array};
use crate::energy::{Composed, settings};
use crate::error::detached;
use crate::json::written;
use crate::machine::{isa, threads};
use crate::watch::Listener;
use diffclf::observable::{Observable, TicaSettings};
use diffclf_run::observe::{Frames, Observing, SlowCoordinates};
use diffclf_run::simulate::{Landscape, Simulation};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Chains from rows: points (chains, frames, columns), energies (chains, frames) and a summary.
#[pyfunction]
pub fn energy_simulate<'py>(
    py: Python<'py>,
    composed: Composed,
    x: &Bound<'py, PyAny>,
    data: Option<&Bound<'py, PyAny>>,
    system_seed: u64,
    simulation: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let rows = Rows::of(x)?;
    let data = data.map(Rows::of).transpose()?;
    let (found, frames) = detached(py, || {
        let asked: Simulation = settings(simulation)?;
        let (expression, models, systems) = composed.parts(
            "dynamics with masses runs on models and systems; for a function use langevin()",
        )?;
        let landscape = Landscape {
            expression: &expression,
            models: &models,
            systems: &systems,
            system_seed,
        };
        let start = rows.finite("x")?;
        let data = match &data {
            Some(rows) => rows.finite("data")?,
            None => start.clone(),
        };
        let watch = Listener::new(progress, None);
        let machine = (threads()?, isa());
        let done = asked.run(&landscape, &start, &data, machine, None, &watch)?;
        Ok((done.finish("done"), asked.frames))
    })?;
    let (chains, dim) = (
        found.chains,
        found.points.len() / found.energies.len().max(1),
    );
    Ok((
        array(py, found.points, &[chains, frames, dim])?,
        array(py, found.energies, &[chains, frames])?,
        written(py, &found.summary)?,
    ))
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
