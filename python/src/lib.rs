//! The native half of the Python package: numpy in, numpy out, over the run layer. The Python half (`diffclf/*.py`) has the names that
//! users see, their types and their documentation.

mod array;
mod company;
mod dynamics;
mod energy;
mod error;
mod free_energy;
mod json;
mod machine;
mod model;
mod molecule;
mod questions;
mod states;
mod system;
mod training;
mod watch;

use pyo3::prelude::*;

/// The program of the command line, in this process. Returns its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    // The program's own panics are told as the program tells them.
    drop(std::panic::take_hook());
    py.detach(|| diffclf_cli::main_with(arguments))
}

/// Sets the number of threads; none is one per core.
#[pyfunction]
#[pyo3(signature = (threads))]
fn set_threads(py: Python<'_>, threads: Option<usize>) -> PyResult<()> {
    machine::set_threads(threads).map_err(|error| error::exception(py, &error))
}

/// Threads in use.
#[pyfunction]
fn threads(py: Python<'_>) -> PyResult<usize> {
    error::detached(py, machine::threads)
}

/// Fails as a fault of this package would: for tests.
#[pyfunction]
fn fail_inside(py: Python<'_>) -> PyResult<()> {
    error::detached(py, || {
        machine::pool()?.run(64, &|_, job| {
            assert!(job != 17, "job {job} was made to fail")
        });
        Ok(())
    })
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::company::{company_bytes, company_leads, join_company};
    #[pymodule_export]
    use super::dynamics::{energy_simulate, observe_frames, read_frames, write_frames};
    #[pymodule_export]
    use super::energy::{
        compare_samples, energy_anneal, energy_chains, energy_compose, energy_evaluate,
    };
    #[pymodule_export]
    use super::free_energy::{
        MbarSolution, free_energy_bar, free_energy_fep, free_energy_learn, free_energy_ti,
        inefficiency,
    };
    #[pymodule_export]
    use super::model::{Model, rows_address, write_report};
    #[pymodule_export]
    use super::molecule::Molecule;
    #[pymodule_export]
    use super::questions::{free_energy_surface, region_weights};
    #[pymodule_export]
    use super::states::{StatesModel, states_compose, states_evaluate};
    #[pymodule_export]
    use super::system::System;
    #[pymodule_export]
    use super::training::{setting_names, train_run};
    #[pymodule_export]
    use super::{fail_inside, main, set_threads, threads};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::error::quiet_panics();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
