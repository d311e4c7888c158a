//! `Tensor`: a named array of a model file, with its shape and numbers.

use crate::{Error, Result};

/// A named array in a model file.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) data: TensorData,
}

/// The numbers of a [`Tensor`].
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    /// Weights and their moving averages.
    F32(Vec<f32>),
    /// Reference precision, optimiser state, accumulators.
    F64(Vec<f64>),
    /// Counters and generator states.
    U64(Vec<u64>),
}

impl TensorData {
    /// How many numbers.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(data) => data.len(),
            Self::F64(data) => data.len(),
            Self::U64(data) => data.len(),
        }
    }

    /// Whether there is no number at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of the type in the safetensors format.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::F32(_) => "F32",
            Self::F64(_) => "F64",
            Self::U64(_) => "U64",
        }
    }

    /// Bytes per number.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::F32(_) => 4,
            Self::F64(_) | Self::U64(_) => 8,
        }
    }

    /// Appends the numbers as little-endian bytes.
    pub(super) fn append(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::F32(data) => bytes.extend(data.iter().flat_map(|x| x.to_le_bytes())),
            Self::F64(data) => bytes.extend(data.iter().flat_map(|x| x.to_le_bytes())),
            Self::U64(data) => bytes.extend(data.iter().flat_map(|x| x.to_le_bytes())),
        }
    }

    /// Numbers from little-endian bytes; `None` for a type that is not read.
    pub(super) fn read(type_name: &str, bytes: &[u8]) -> Option<Self> {
        let (fours, eights) = (bytes.as_chunks().0, bytes.as_chunks().0);
        Some(match type_name {
            "F32" => Self::F32(fours.iter().map(|x| f32::from_le_bytes(*x)).collect()),
            "F64" => Self::F64(eights.iter().map(|x| f64::from_le_bytes(*x)).collect()),
            "U64" => Self::U64(eights.iter().map(|x| u64::from_le_bytes(*x)).collect()),
            _ => return None,
        })
    }
}

impl From<Vec<f32>> for TensorData {
    fn from(data: Vec<f32>) -> Self {
        Self::F32(data)
    }
}

impl From<Vec<f64>> for TensorData {
    fn from(data: Vec<f64>) -> Self {
        Self::F64(data)
    }
}

impl From<Vec<u64>> for TensorData {
    fn from(data: Vec<u64>) -> Self {
        Self::U64(data)
    }
}

impl Tensor {
    /// An array in C order.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shape does not hold exactly the data.
    pub fn new(shape: Vec<usize>, data: impl Into<TensorData>) -> Result<Self> {
        let data = data.into();
        let count = shape
            .iter()
            .try_fold(1usize, |product, &side| product.checked_mul(side));
        if count != Some(data.len()) {
            return Err(Error::Shape {
                what: "a tensor of the model file".into(),
                found: format!("{shape:?}"),
                expected: format!("one that holds its {} numbers", data.len()),
            });
        }
        Ok(Self { shape, data })
    }

    /// Length of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The numbers in C order.
    pub fn data(&self) -> &TensorData {
        &self.data
    }
}
