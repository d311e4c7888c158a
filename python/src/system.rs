//! Built-in systems with exact answers.

use crate::array::{Rows, array, array_f32};
use crate::error::detached;
use diffclf::system::System as CoreSystem;
use diffclf_run::Error;
use pyo3::prelude::*;

/// A system by its name.
#[pyclass(frozen, module = "diffclf._native")]
pub struct System {
    system: CoreSystem,
}

impl System {
    /// The system itself.
    pub fn core(&self) -> &CoreSystem {
        &self.system
    }
}

#[pymethods]
impl System {
    #[new]
    fn new(py: Python<'_>, name: &str, dim: usize, seed: u64) -> PyResult<Self> {
        let system = detached(py, || {
            if !(1..=1 << 20).contains(&dim) {
                return Err(Error::setting("dim", dim, "a number from 1 to 1048576"));
            }
            Ok(CoreSystem::by_name(name, dim, seed)?)
        })?;
        Ok(Self { system })
    }

    /// All names.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        CoreSystem::NAMES.to_vec()
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &'static str {
        self.system.name()
    }

    /// Numbers of a point.
    #[getter]
    fn dim(&self) -> usize {
        self.system.dim()
    }

    /// Exact samples.
    fn sample<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> PyResult<Bound<'py, PyAny>> {
        let dim = self.system.dim();
        let values = detached(py, || {
            let size = n.checked_mul(dim);
            match size.map(|size| Vec::<f32>::new().try_reserve_exact(size)) {
                Some(Ok(())) => Ok(self.system.sample(n, seed)),
                _ => Err(Error::setting(
                    "number",
                    n,
                    "no more samples than fit in memory",
                )),
            }
        })?;
        array_f32(py, values, &[n, dim])
    }

    /// The exact log-density at points.
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = Rows::of(x)?;
        let values = detached(py, || {
            let points = rows.finite("data")?;
            let values = points.chunks_exact(self.system.dim()).map(|point| {
                self.system.log_density(point).ok_or_else(|| {
                    Error::Failed(format!(
                        "the density of {} is not known exactly; it can be sampled alone",
                        self.system.name()
                    ))
                })
            });
            values.collect::<Result<Vec<_>, _>>()
        })?;
        let count = values.len();
        array(py, values, &[count])
    }
}
