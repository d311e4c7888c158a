//! `Array`: numbers in memory, whoever owns them.

use crate::error::Result;
use diffclf::format::npy::write_npy;
use diffclf::format::sha256_of;
use std::sync::Arc;

/// Numbers in memory, row-major, whoever owns them: nothing is copied.
#[derive(Clone)]
pub enum Array {
    /// In single precision.
    F32(Arc<dyn AsRef<[f32]> + Send + Sync>),
    /// In double precision.
    F64(Arc<dyn AsRef<[f64]> + Send + Sync>),
}

impl Array {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::F32(values) => (**values).as_ref().len(),
            Self::F64(values) => (**values).as_ref().len(),
        }
    }

    /// Where the first number lies.
    pub fn address(&self) -> usize {
        match self {
            Self::F32(values) => (**values).as_ref().as_ptr().addr(),
            Self::F64(values) => (**values).as_ref().as_ptr().addr(),
        }
    }

    /// Digest of the .npy file that would hold it.
    pub(crate) fn sha256(&self, shape: &[usize]) -> Result<String> {
        let digest = match self {
            Self::F32(values) => sha256_of(|writer| write_npy(shape, (**values).as_ref(), writer)),
            Self::F64(values) => sha256_of(|writer| write_npy(shape, (**values).as_ref(), writer)),
        };
        Ok(digest?)
    }

    /// The numbers from `first` on.
    pub fn copy_f64(&self, first: usize, out: &mut [f64]) {
        match self {
            Self::F32(values) => {
                for (out, x) in out.iter_mut().zip(&(**values).as_ref()[first..]) {
                    *out = f64::from(*x);
                }
            }
            Self::F64(values) => {
                let count = out.len();
                out.copy_from_slice(&(**values).as_ref()[first..][..count]);
            }
        }
    }
}

impl From<Vec<f32>> for Array {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(Arc::new(values))
    }
}

impl From<Vec<f64>> for Array {
    fn from(values: Vec<f64>) -> Self {
        Self::F64(Arc::new(values))
    }
}
