//! Free energies from arrays: works, slopes, reduced energies.

use crate::array::{Rows, array};
use crate::energy::settings;
use crate::error::detached;
use crate::json::object;
use crate::machine::{Key, isa, kept, pool};
use crate::model::Model;
use diffclf::free_energy::{
    Blocks, Ensemble, Matrix, Mbar, MbarSettings, ReducedEnergies, statistical_inefficiency,
};
use diffclf::metric::Estimate;
use diffclf_report::free_energy::{Sheet, bar, fep, learn, ti};
use diffclf_run::data::Array;
use diffclf_run::free_energy::Resample;
use diffclf_run::free_energy::learn::{LearnedRequest, StateFiles};
use diffclf_run::machine::Machine;
use diffclf_run::{Error, Result};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The error in kT that a sheet counts efforts for.
const WANTED: f64 = 0.1;

/// Figures, notices and text.
type Told<'py> = (Bound<'py, PyAny>, Vec<String>, String);

fn told<'py>(py: Python<'py>, sheet: &Sheet) -> PyResult<Told<'py>> {
    Ok((
        object(py, &sheet.record)?,
        sheet.notices.clone(),
        sheet.text(),
    ))
}

fn resample(replicas: Option<usize>, seed: u64) -> Resample {
    Resample { replicas, seed }
}

/// Free-energy perturbation.
#[pyfunction]
pub fn free_energy_fep<'py>(
    py: Python<'py>,
    forward: Vec<f64>,
    reverse: Option<Vec<f64>>,
    correlated: bool,
    replicas: Option<usize>,
    seed: u64,
) -> PyResult<Told<'py>> {
    let found = detached(py, || {
        let resample = resample(replicas, seed);
        diffclf_run::free_energy::fep::of(&forward, reverse.as_deref(), correlated, resample)
    })?;
    told(py, &fep(&found, WANTED))
}

/// Bennett's acceptance ratio.
#[pyfunction]
pub fn free_energy_bar<'py>(
    py: Python<'py>,
    forward: Vec<f64>,
    reverse: Vec<f64>,
    subsample: bool,
    replicas: Option<usize>,
    seed: u64,
) -> PyResult<Told<'py>> {
    let found = detached(py, || {
        diffclf_run::free_energy::bar::of([forward, reverse], subsample, resample(replicas, seed))
    })?;
    told(py, &bar(&found, WANTED))
}

/// Thermodynamic integration.
#[pyfunction]
pub fn free_energy_ti<'py>(
    py: Python<'py>,
    slopes: Vec<Vec<f64>>,
    lambdas: Vec<f64>,
    independent: bool,
) -> PyResult<Told<'py>> {
    let found = detached(py, || {
        diffclf_run::free_energy::ti::of(&slopes, lambdas, independent)
    })?;
    told(py, &ti(&found, WANTED))
}

/// What a learned path is asked for: rows and energies of both states are files.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct LearnRequest {
    rows: [Option<PathBuf>; 2],
    weights: [Option<PathBuf>; 2],
    own: [Option<PathBuf>; 2],
    other: [Option<PathBuf>; 2],
    molecule: Option<String>,
    levels: usize,
    samples: usize,
    integration_levels: usize,
    end_samples: usize,
    seed: u64,
}

/// The difference through the path that a model has learned.
#[pyfunction]
pub fn free_energy_learn<'py>(
    py: Python<'py>,
    model: &Model,
    request: LearnRequest,
) -> PyResult<Told<'py>> {
    let found = detached(py, || {
        let state = |k: usize| StateFiles {
            rows: request.rows[k].clone(),
            weights: request.weights[k].clone(),
            own: request.own[k].clone(),
            other: request.other[k].clone(),
        };
        let asked = LearnedRequest {
            states: [state(0), state(1)],
            molecule: request.molecule.as_deref().map(settings).transpose()?,
            levels: request.levels,
            samples: request.samples,
            integration_levels: request.integration_levels,
            end_samples: request.end_samples,
            seed: request.seed,
        };
        asked.run(model.core(), &Machine::default())
    })?;
    told(py, &learn(&found))
}

/// Statistical inefficiency of a series.
#[pyfunction]
pub fn inefficiency(py: Python<'_>, series: Vec<f64>) -> PyResult<f64> {
    detached(py, || Ok(statistical_inefficiency(&series)))
}

/// Reduced energies where Python has them.
struct Energies {
    array: Array,
    states: usize,
    samples: usize,
}

impl ReducedEnergies for Energies {
    fn states(&self) -> usize {
        self.states
    }

    fn samples(&self) -> usize {
        self.samples
    }

    fn read(&self, state: usize, first: usize, out: &mut [f64]) {
        self.array.copy_f64(state * self.samples + first, out);
    }
}

/// The solved equations beside the energies they point to; fields are dropped in this order.
struct Solved {
    mbar: Mbar<'static>,
    _energies: Arc<Energies>,
}

/// MBAR: all states from all samples.
#[pyclass(frozen, name = "Mbar", module = "diffclf._native")]
pub struct MbarSolution {
    energies: Arc<Energies>,
    counts: Vec<usize>,
    tolerance: f64,
    iterations: usize,
    solved: Mutex<Option<(Key, Arc<Solved>)>>,
}

impl MbarSolution {
    /// The solution on the threads of this process; found again in a forked child.
    fn solved(&self) -> Result<Arc<Solved>> {
        kept(&self.solved, || {
            let settings = MbarSettings {
                tolerance: self.tolerance,
                max_iterations: self.iterations,
                pool: Some(pool()?),
                isa: isa(),
            };
            let energies = self.energies.clone();
            // SAFETY: the energies live in the Arc that stands beside the solution and is dropped after it; nothing hands the
            // reference on with its long lifetime.
            let lasting: &'static Energies = unsafe { &*Arc::as_ptr(&energies) };
            Ok(Solved {
                mbar: Mbar::solve(lasting, &self.counts, &settings)?,
                _energies: energies,
            })
        })
    }

    /// Means and errors of `delta` between all pairs of `count` states.
    fn pairs<'py>(
        py: Python<'py>,
        count: usize,
        of: impl Fn(usize, usize) -> Estimate,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let all: Vec<Estimate> = (0..count * count)
            .map(|at| of(at / count, at % count))
            .collect();
        let shape = [count, count];
        Ok((
            array(py, all.iter().map(|e| e.mean).collect(), &shape)?,
            array(py, all.iter().map(|e| e.error).collect(), &shape)?,
        ))
    }
}

#[pymethods]
impl MbarSolution {
    #[new]
    fn new(
        py: Python<'_>,
        energies: &Bound<'_, PyAny>,
        counts: Vec<usize>,
        tolerance: f64,
        iterations: usize,
    ) -> PyResult<Self> {
        let rows = Rows::of(energies)?;
        let solution = Self {
            energies: Arc::new(Energies {
                states: rows.shape.first().copied().unwrap_or(0),
                samples: rows.dim(),
                array: rows.array,
            }),
            counts,
            tolerance,
            iterations,
            solved: Mutex::new(None),
        };
        detached(py, || solution.solved().map(|_| ()))?;
        Ok(solution)
    }

    /// Newton steps it took.
    fn iterations(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, || Ok(self.solved()?.mbar.iterations()))
    }

    /// log(Z_k / Z_0).
    fn log_z<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = detached(py, || Ok(self.solved()?.mbar.log_z()))?;
        let count = values.len();
        array(py, values, &[count])
    }

    /// delta[i, j] = log(Z_j / Z_i), and its errors.
    fn differences<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let solved = detached(py, || self.solved())?;
        Self::pairs(py, self.counts.len(), |i, j| solved.mbar.difference(i, j))
    }

    /// Asymptotic covariance of log Z.
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = detached(py, || Ok(self.solved()?.mbar.covariance().to_vec()))?;
        array(py, values, &[self.counts.len(), self.counts.len()])
    }

    /// Effective samples of each state.
    fn effective_samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = detached(py, || Ok(self.solved()?.mbar.effective_samples()))?;
        let count = values.len();
        array(py, values, &[count])
    }

    /// Overlap of the sampled states.
    fn overlap<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let overlap = detached(py, || Ok(self.solved()?.mbar.overlap()))?;
        crate::json::written(py, &overlap)
    }

    /// Errors of all differences by the bootstrap; blocks follow the correlation of each state's series if wanted.
    fn bootstrap<'py>(
        &self,
        py: Python<'py>,
        replicas: usize,
        correlated: bool,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let found = detached(py, || {
            let mut blocks = Vec::new();
            let mut first = 0;
            for (state, &count) in self.counts.iter().enumerate() {
                blocks.push(if correlated && count > 1 {
                    let mut series = vec![0.0; count];
                    self.energies.read(state, first, &mut series);
                    Blocks::of_series(&series)
                } else {
                    Blocks::SINGLE
                });
                first += count;
            }
            Ok(self.solved()?.mbar.bootstrap(replicas, &blocks, seed)?)
        })?;
        Self::pairs(py, self.counts.len(), |i, j| found.difference(i, j))
    }

    /// Expectations of observables (rows) in a state, or in an ensemble given by its energies.
    fn expectations<'py>(
        &self,
        py: Python<'py>,
        observables: &Bound<'py, PyAny>,
        state: usize,
        energies: Option<Vec<f64>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let rows = Rows::of(observables)?;
        let found = detached(py, || {
            let values = rows.finite("observables")?;
            let columns: Vec<&[f64]> = values.chunks_exact(rows.dim().max(1)).collect();
            let target = self.ensemble(state, energies.as_deref())?;
            Ok(self.solved()?.mbar.expectations(target, &columns)?)
        })?;
        let shape = [found.len()];
        Ok((
            array(py, found.iter().map(|e| e.mean).collect(), &shape)?,
            array(py, found.iter().map(|e| e.error).collect(), &shape)?,
        ))
    }

    /// Of further states: delta to state 0 with errors, and delta and errors between all pairs of them.
    #[allow(clippy::type_complexity)]
    fn perturbed<'py>(
        &self,
        py: Python<'py>,
        energies: &Bound<'py, PyAny>,
    ) -> PyResult<(
        (Bound<'py, PyAny>, Bound<'py, PyAny>),
        (Bound<'py, PyAny>, Bound<'py, PyAny>),
    )> {
        let rows = Rows::of(energies)?;
        let states = rows.shape.first().copied().unwrap_or(0);
        let found = detached(py, || {
            let mut values = vec![0.0; rows.shape.iter().product()];
            rows.read(0, &mut values);
            let others = Matrix::new(&values, states)?;
            Ok(self.solved()?.mbar.perturbed(&others)?)
        })?;
        let relative: Vec<Estimate> = (0..states).map(|k| found.relative(k)).collect();
        let relative = (
            array(py, relative.iter().map(|e| e.mean).collect(), &[states])?,
            array(py, relative.iter().map(|e| e.error).collect(), &[states])?,
        );
        let between = Self::pairs(py, states, |i, j| found.difference(i, j))?;
        Ok((relative, between))
    }

    /// The free-energy surface along a coordinate.
    fn surface<'py>(
        &self,
        py: Python<'py>,
        coordinate: Vec<f64>,
        edges: Vec<f64>,
        state: usize,
        energies: Option<Vec<f64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = detached(py, || {
            let target = self.ensemble(state, energies.as_deref())?;
            Ok(self.solved()?.mbar.surface(target, &coordinate, &edges)?)
        })?;
        crate::json::written(py, &found)
    }
}

impl MbarSolution {
    fn ensemble<'a>(&self, state: usize, energies: Option<&'a [f64]>) -> Result<Ensemble<'a>> {
        match energies {
            Some(energies) => Ok(Ensemble::Energies(energies)),
            None if state < self.counts.len() => Ok(Ensemble::State(state)),
            None => Err(Error::setting(
                "state",
                state,
                format!("a state from 0 to {}", self.counts.len() - 1),
            )),
        }
    }
}
