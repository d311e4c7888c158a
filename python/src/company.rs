//! Several processes of Python as one, by a communicator of mpi4py: they share the batches of all work.

use crate::error::{Kind, detached};
use diffclf::engine::Company;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use std::sync::Arc;

/// The processes of a communicator.
struct Communicator {
    communicator: Py<PyAny>,
    rank: usize,
    size: usize,
}

impl Communicator {
    /// A message that cannot be sent or taken ends all processes: nothing is known of the others any more.
    fn sure(&self, py: Python<'_>, outcome: PyResult<()>) {
        if let Err(error) = outcome {
            error.print(py);
            let _ = self.communicator.call_method1(py, "Abort", (1,));
            std::process::abort();
        }
    }
}

impl Company for Communicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, bytes: &[u8]) {
        Python::attach(|py| {
            let bytes = PyBytes::new(py, bytes);
            let sent = self.communicator.call_method1(py, "Send", (bytes, to));
            self.sure(py, sent.map(|_| ()));
        });
    }

    fn receive(&self, from: usize, bytes: &mut [u8]) {
        Python::attach(|py| {
            let room = PyByteArray::new(py, &[]);
            let taken = room.resize(bytes.len()).and_then(|()| {
                let arguments = (&room, from);
                self.communicator.call_method1(py, "Recv", arguments)?;
                Ok(())
            });
            self.sure(py, taken);
            bytes.copy_from_slice(&room.to_vec());
        });
    }
}

/// Joins the processes of a communicator, for as long as this one lives.
#[pyfunction]
pub fn join_company(py: Python<'_>, communicator: &Bound<'_, PyAny>) -> PyResult<()> {
    let number = |name: &str| -> PyResult<usize> { communicator.call_method0(name)?.extract() };
    let (rank, size) = (number("Get_rank")?, number("Get_size")?);
    if rank >= size {
        return Err(Kind::Input.raised(py, format!("process {rank} of {size} cannot be")));
    }
    let company = Communicator {
        // Messages of its own, whatever else the communicator is used for.
        communicator: communicator.call_method0("Dup")?.unbind(),
        rank,
        size,
    };
    detached(py, || {
        diffclf_run::company::join(Arc::new(company))?;
        crate::machine::renew();
        Ok(())
    })
}

/// Whether this process writes and speaks: the first, or one that is alone.
#[pyfunction]
pub fn company_leads() -> bool {
    diffclf_run::company::leads()
}

/// Bytes of the first process, for all.
#[pyfunction]
pub fn company_bytes<'py>(py: Python<'py>, own: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let own = own.to_vec();
    let bytes = detached(py, || Ok(diffclf_run::company::from_first(own)))?;
    Ok(PyBytes::new(py, &bytes))
}
