//! Arrays as rows: those of numpy are read where they lie.

use crate::error::Kind;
use diffclf_run::data::{Array, DataSet};
use diffclf_run::{Error, Result};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyAny;
use std::sync::Arc;

/// Numbers that a Python object owns.
struct Held<T> {
    /// Keeps the numbers where they are: an array with another owner cannot be resized.
    _owner: Py<PyAny>,
    first: *const T,
    count: usize,
}

// SAFETY: the numbers are read and never written here; the owner is only kept.
unsafe impl<T: Sync> Send for Held<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Held<T> {}

impl<T> AsRef<[T]> for Held<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: `Rows::of` took pointer and count of a C-contiguous array, which the owner keeps alive.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }
    }
}

/// An array of float32 or float64 in C order, with its shape.
pub struct Rows {
    /// The numbers, where Python has them.
    pub array: Array,
    /// The shape.
    pub shape: Vec<usize>,
}

impl Rows {
    /// Those of a numpy array, which the Python half has brought to C order and one of the two types.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        fn held<T: numpy::Element + Sync>(
            array: &Bound<'_, PyArrayDyn<T>>,
        ) -> Option<(Held<T>, Vec<usize>)> {
            array.is_c_contiguous().then(|| {
                let held = Held {
                    _owner: array.clone().into_any().unbind(),
                    first: if array.is_empty() {
                        std::ptr::NonNull::dangling().as_ptr()
                    } else {
                        array.data()
                    },
                    count: array.len(),
                };
                (held, array.shape().to_vec())
            })
        }
        if let Ok(array) = object.cast::<PyArrayDyn<f32>>()
            && let Some((held, shape)) = held(array)
        {
            let array = Array::F32(Arc::new(held));
            return Ok(Self { array, shape });
        }
        if let Ok(array) = object.cast::<PyArrayDyn<f64>>()
            && let Some((held, shape)) = held(array)
        {
            let array = Array::F64(Arc::new(held));
            return Ok(Self { array, shape });
        }
        Err(Kind::Usage.raised(
            object.py(),
            "expected a C-contiguous numpy array of float32 or float64",
        ))
    }

    /// Numbers of a row.
    pub fn dim(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// Rows to learn from or to judge by.
    pub fn data_set(self, name: &str, columns: Vec<String>) -> Result<DataSet> {
        Ok(DataSet::from_shaped(name, self.array, &self.shape)?.with_columns(columns))
    }

    /// Writes the numbers from `first` on.
    pub fn read(&self, first: usize, out: &mut [f64]) {
        self.array.copy_f64(first, out);
    }

    /// All of them, which must be finite: `name` is the argument.
    pub fn finite(&self, name: &'static str) -> Result<Vec<f64>> {
        let mut values = vec![0.0; self.shape.iter().product()];
        self.read(0, &mut values);
        match values.iter().position(|x| !x.is_finite()) {
            None => Ok(values),
            Some(at) => Err(Error::setting(
                name,
                format!("{} at position {at}", values[at]),
                "finite numbers",
            )),
        }
    }
}

/// A new array.
pub fn array<'py>(
    py: Python<'py>,
    values: Vec<f64>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?.into_any())
}

/// A new array of bytes.
pub fn array_u8<'py>(
    py: Python<'py>,
    values: Vec<u8>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?.into_any())
}

/// A new array of float32.
pub fn array_f32<'py>(
    py: Python<'py>,
    values: Vec<f32>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?.into_any())
}
