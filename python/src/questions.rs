//! Questions about a model: weights of regions and free energies along columns, in data, density and samples.

use crate::array::Rows;
use crate::error::detached;
use crate::json::written;
use crate::model::Model;
use crate::watch::Listener;
use diffclf::expression::Expression;
use diffclf_run::judging::asked_files;
use diffclf_run::questions::{Along, Sample, names, surfaces};
use diffclf_run::weights::GivenWeights;
use diffclf_run::{Error, Result};
use pyo3::prelude::*;
use std::path::PathBuf;

/// What both questions ask for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Question {
    rows: Option<Py<PyAny>>,
    weights: Option<Py<PyAny>>,
    /// Where the model is, if it is a file: the rows of its training are looked for from there.
    path: Option<PathBuf>,
    texts: Vec<String>,
    bins: usize,
    draws: usize,
    samples: usize,
    seed: u64,
    progress: Option<Py<PyAny>>,
}

/// The rows that the question is asked of.
struct Given {
    rows: Option<Rows>,
    weights: Option<Rows>,
    path: Option<PathBuf>,
}

impl Question {
    fn given(&self, py: Python<'_>) -> PyResult<Given> {
        let of = |x: &Option<Py<PyAny>>| x.as_ref().map(|x| Rows::of(x.bind(py))).transpose();
        Ok(Given {
            rows: of(&self.rows)?,
            weights: of(&self.weights)?,
            path: self.path.clone(),
        })
    }
}

impl Given {
    fn sample(self, model: &Model) -> Result<Option<Sample>> {
        let content = &model.core().content;
        let Some(rows) = self.rows else {
            let Some(path) = &self.path else {
                return Ok(None);
            };
            return match asked_files(content, path, None, None)? {
                Some((file, weights)) => {
                    Ok(Some(Sample::file(content, &file, weights.as_deref())?))
                }
                None => Ok(None),
            };
        };
        let count = rows.shape.first().copied().unwrap_or(0);
        let weights = match self.weights {
            Some(weights) => {
                let given = GivenWeights::array(weights.array, count)?;
                given.values.values().to_vec()
            }
            None => vec![1.0; count],
        };
        Ok(Some(Sample::of(content, rows.finite("data")?, weights)?))
    }
}

fn density(model: &Model, draws: usize, seed: u64) -> Result<Option<Sample>> {
    if draws == 0 {
        return Err(Error::setting("draws", 0, "at least 1"));
    }
    Sample::density(&model.core().content, &*model.energy()?, draws, seed)
}

/// Weights of regions: for each condition its share in data, density and samples, none where it is not known.
#[pyfunction]
pub fn region_weights<'py>(
    py: Python<'py>,
    model: Py<Model>,
    question: Question,
) -> PyResult<Bound<'py, PyAny>> {
    let given = question.given(py)?;
    let model = model.get();
    let found = detached(py, move || {
        let content = &model.core().content;
        let regions = question
            .texts
            .iter()
            .map(|text| Expression::condition(text, names(content), content.spec.dim))
            .collect::<diffclf::Result<Vec<_>>>()?;
        let watch = Listener::new(question.progress, None);
        let samples = match question.samples {
            0 => None,
            // An interpolant has no noise to start from.
            _ if content.spec.process.is_interpolant() => None,
            number => Some(Sample::generated(
                content,
                &*model.energy()?,
                number,
                question.seed,
                &watch,
            )?),
        };
        let all = [
            given.sample(model)?,
            density(model, question.draws, question.seed)?,
            samples,
        ];
        let of = |region: &Expression| {
            let found = all.each_ref();
            found.map(|sample| sample.as_ref().map(|sample| sample.weight(region)))
        };
        Ok(regions.iter().map(of).collect::<Vec<_>>())
    })?;
    written(py, &found)
}

/// Free energies along columns or numbers made of them: of the density, and of the data if there are any.
#[pyfunction]
pub fn free_energy_surface<'py>(
    py: Python<'py>,
    model: Py<Model>,
    question: Question,
) -> PyResult<Bound<'py, PyAny>> {
    let given = question.given(py)?;
    let model = model.get();
    let found = detached(py, move || {
        let content = &model.core().content;
        let along = question
            .texts
            .iter()
            .map(|text| Along::new(text, content))
            .collect::<Result<Vec<_>>>()?;
        let Some(density) = density(model, question.draws, question.seed)? else {
            return Err(Error::Usage(
                "the energy of this model stands on one Gaussian, from which its density cannot be integrated well; train with base='mixture'".into(),
            ));
        };
        let data = given.sample(model)?;
        let samples: Vec<&Sample> = [Some(&density), data.as_ref()]
            .into_iter()
            .flatten()
            .collect();
        surfaces(&samples, &along, question.bins)
    })?;
    written(py, &found)
}
