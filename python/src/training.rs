//! A training in its run folder: the settings as JSON, the rows as arrays or as files.

use crate::array::Rows;
use crate::error::{Kind, detached, exception};
use crate::machine::pool_of;
use crate::watch::{Listener, Reason};
use diffclf_run::Error;
use diffclf_run::data::DataSet;
use diffclf_run::settings::Settings;
use diffclf_run::train::{Job, train, train_on};
use diffclf_run::weights::GivenWeights;
use pyo3::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A training as the Python half asks for it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Request {
    settings: String,
    rows: Vec<Given>,
    out: PathBuf,
    resume: bool,
    force: bool,
    checkpoint_every: f64,
    threads: Option<usize>,
    hidden: Option<String>,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
}

/// Rows of an endpoint.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Given {
    array: Option<Py<PyAny>>,
    path: Option<PathBuf>,
    name: String,
    columns: Vec<String>,
    weights: Option<Py<PyAny>>,
}

/// Rows with weights, if there are any.
pub fn with_weights(set: DataSet, weights: Option<Rows>) -> Result<DataSet, Error> {
    match weights {
        None => Ok(set),
        Some(weights) => {
            let rows = set.record().rows.unwrap_or(0);
            set.with_weights(GivenWeights::array(weights.array, rows)?)
        }
    }
}

/// The names of all settings.
#[pyfunction]
pub fn setting_names() -> Vec<String> {
    Settings::keys()
}

/// Settings from a JSON object; a value that does not fit is told with its name.
pub fn settings_of(py: Python<'_>, text: &str) -> PyResult<Settings> {
    let refuse = |words: String| Err(Kind::Input.raised(py, words));
    let Ok(Value::Object(all)) = serde_json::from_str(text) else {
        return refuse("the settings are no JSON object".into());
    };
    for (key, value) in &all {
        let one = serde_json::Map::from_iter([(key.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<Settings>(Value::Object(one)) {
            return refuse(format!("{key} is {value}: {error}"));
        }
    }
    match serde_json::from_value(Value::Object(all)) {
        Ok(settings) => Ok(settings),
        Err(error) => refuse(error.to_string()),
    }
}

/// Trains in a run folder. Returns how it ended (finished, stopped or interrupted), the step and the steps of the plan.
#[pyfunction]
pub fn train_run(py: Python<'_>, request: Request) -> PyResult<(&'static str, u64, u64)> {
    let settings = settings_of(py, &request.settings)?;
    let mut rows = Vec::new();
    for given in &request.rows {
        let array = match &given.array {
            Some(array) => Some(Rows::of(array.bind(py))?),
            None => None,
        };
        rows.push((
            array,
            given.path.clone(),
            given.name.clone(),
            given.columns.clone(),
            match &given.weights {
                Some(weights) => Some(Rows::of(weights.bind(py))?),
                None => None,
            },
        ));
    }
    if !(0.0..=3.2e7).contains(&request.checkpoint_every) {
        let expected = "seconds, from 0 to a year";
        let error = Error::setting("checkpoint_every", request.checkpoint_every, expected);
        return Err(exception(py, &error));
    }
    let (progress, callback) = (request.progress, request.callback);
    let outcome = detached(py, move || {
        let mut sets = Vec::new();
        for (array, path, name, columns, weights) in rows {
            let set = match (array, path) {
                (Some(array), _) => array.data_set(&name, columns)?,
                (None, Some(path)) => DataSet::file(&path)?,
                (None, None) => return Err(Error::Nothing),
            };
            sets.push(with_weights(set, weights)?);
        }
        let listener = Arc::new(Listener::new(progress, callback).within(request.hidden));
        let job = Job {
            settings,
            path: request.out,
            first_stage: None,
            from: None,
            time: None,
            resume: request.resume,
            force: request.force,
            checkpoint_every: Duration::from_secs_f64(request.checkpoint_every),
            watch: listener.clone(),
            pool: pool_of(request.threads)?,
        };
        let outcome = if sets.is_empty() {
            train(job)
        } else {
            train_on(job, sets)
        };
        match outcome {
            Ok(()) => Ok(("finished", 0, 0, None)),
            Err(Error::Stopped { step, total, .. }) => {
                let word = match listener.reason() {
                    Some(Reason::Raised(error)) => {
                        return Ok(("stopped", step, total, Some(error)));
                    }
                    Some(Reason::Callback) => "stopped",
                    Some(Reason::Interrupt) | None => "interrupted",
                };
                Ok((word, step, total, None))
            }
            Err(error) => Err(error),
        }
    })?;
    match outcome {
        (_, _, _, Some(error)) => Err(error),
        (word, step, total, None) => Ok((word, step, total)),
    }
}
