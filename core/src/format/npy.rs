//! `NpyView`: a whole .npy file image seen as rows of numbers, whatever the type, byte order and memory order in
//! which they were saved.
//!
//! The view borrows the bytes and converts one row at a time, so an array larger than memory is read through a memory
//! map. The first axis counts rows; all other axes together are the columns, in C order: shape `(n, a, b)` gives `n`
//! rows of `a * b` numbers, shape `(n)` gives `n` rows of one. The format is NumPy's own (NEP 1, versions 1.0 to
//! 3.0). The header is parsed here by hand rather than by a general Python-literal parser: three keys are all it may
//! hold, and hostile nesting cannot arise.
//!
//! Left out: structured, complex, text and object arrays, which are refused with advice; .npz archives.

mod columns;
mod header;
mod write;

pub use columns::ColumnStatistics;
pub use write::{NpyNumber, write_npy};

use crate::{Error, Result};
use header::{Element, Header};

/// Rows of numbers over the bytes of one .npy file, borrowed.
pub type NpyView<'a> = Npy<&'a [u8]>;

/// Rows of numbers over the bytes of one .npy file, which `B` owns, shares or borrows. It must give the same bytes at every call.
#[derive(Debug, Clone)]
pub struct Npy<B> {
    bytes: B,
    /// Where the numbers begin.
    start: usize,
    element: Element,
    big_endian: bool,
    shape: Vec<usize>,
    dim: usize,
    /// Fortran order only: distance of each column from its row's first element, counted in elements.
    column_offsets: Option<Vec<usize>>,
}

impl<B: AsRef<[u8]>> Npy<B> {
    /// Reads the header and checks that `bytes` holds exactly the array it announces.
    ///
    /// # Errors
    /// [`Error::NotNpy`], [`Error::NpyHeader`], [`Error::NpyType`], [`Error::NpySize`] or [`Error::EmptyArray`].
    pub fn parse(bytes: B) -> Result<Self> {
        let Header {
            element,
            big_endian,
            fortran,
            shape,
            data,
        } = Header::parse(bytes.as_ref())?;
        if shape.is_empty() {
            return Err(Error::Shape {
                what: "the .npy array".into(),
                found: "() (a single number)".into(),
                expected: "(rows, columns); save it with numpy.save(path, numpy.atleast_2d(array))"
                    .into(),
            });
        }
        if shape.contains(&0) {
            return Err(Error::EmptyArray {
                shape: shape_text(&shape),
            });
        }
        let count = shape
            .iter()
            .try_fold(1usize, |product, &side| product.checked_mul(side));
        let expected = count.and_then(|count| count.checked_mul(element.size()));
        if expected != Some(data.len()) {
            return Err(Error::NpySize {
                shape: shape_text(&shape),
                expected: expected
                    .map_or("more bytes than any machine can address".into(), |bytes| {
                        format!("{bytes} bytes")
                    }),
                found: data.len(),
            });
        }
        let dim = shape[1..].iter().product();
        let column_offsets = (fortran && shape.len() > 1).then(|| fortran_offsets(&shape, dim));
        let start = bytes.as_ref().len() - data.len();
        Ok(Self {
            start,
            bytes,
            element,
            big_endian,
            shape,
            dim,
            column_offsets,
        })
    }

    /// Number of rows: the length of the first axis.
    pub fn rows(&self) -> usize {
        self.shape[0]
    }

    /// Numbers per row: the product of all axes but the first.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Shape as saved.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Name of the number type as NumPy spells it, such as `float32`.
    pub fn type_name(&self) -> &'static str {
        self.element.name()
    }

    /// Writes row `row` into `out`, rounded to f32. Allocates nothing.
    ///
    /// # Panics
    /// When `row` is not below [`rows`](Self::rows) or `out` is not [`dim`](Self::dim) long, as slice indexing does.
    pub fn copy_row(&self, row: usize, out: &mut [f32]) {
        self.check_length(out.len());
        self.convert_row(row, 0, out, |value| value as f32);
    }

    /// Writes row `row` into `out` in f64. Only 64-bit integers beyond 2^53 are rounded. Allocates nothing.
    ///
    /// # Panics
    /// When `row` is not below [`rows`](Self::rows) or `out` is not [`dim`](Self::dim) long, as slice indexing does.
    pub fn copy_row_f64(&self, row: usize, out: &mut [f64]) {
        self.check_length(out.len());
        self.convert_row(row, 0, out, |value| value);
    }

    /// Writes the numbers of row `row` from column `first` on into `out`, in f64: long rows can be read in pieces.
    ///
    /// # Panics
    /// When the piece is not inside the row, as slice indexing does.
    pub fn copy_part_f64(&self, row: usize, first: usize, out: &mut [f64]) {
        self.convert_row(row, first, out, |value| value);
    }

    fn check_length(&self, length: usize) {
        assert_eq!(length, self.dim, "a row has {} numbers", self.dim);
    }

    /// The whole array, row after row, in f32.
    pub fn to_vec_f32(&self) -> Vec<f32> {
        let mut all = vec![0.0; self.rows() * self.dim];
        for (row, out) in all.chunks_exact_mut(self.dim).enumerate() {
            self.copy_row(row, out);
        }
        all
    }

    /// The whole array, row after row, in f64.
    pub fn to_vec_f64(&self) -> Vec<f64> {
        let mut all = vec![0.0; self.rows() * self.dim];
        for (row, out) in all.chunks_exact_mut(self.dim).enumerate() {
            self.copy_row_f64(row, out);
        }
        all
    }

    /// Row and column of the first number that is NaN, infinite, or too large for f32 (which training would turn into
    /// infinity). Reads row by row in constant memory.
    pub fn first_non_finite(&self) -> Option<(usize, usize)> {
        let mut buffer = vec![0.0f32; self.dim];
        (0..self.rows()).find_map(|row| {
            self.copy_row(row, &mut buffer);
            buffer
                .iter()
                .position(|value| !value.is_finite())
                .map(|column| (row, column))
        })
    }

    /// Mean, variance and range of every column, in one pass and constant memory.
    pub fn column_statistics(&self) -> ColumnStatistics {
        let mut statistics = ColumnStatistics::new(self.dim);
        let mut buffer = vec![0.0f64; self.dim];
        for row in 0..self.rows() {
            self.copy_row_f64(row, &mut buffer);
            statistics.add_row(&buffer);
        }
        statistics
    }

    /// Decodes a row. The type is chosen once per row, so that each inner loop is a plain conversion which the
    /// compiler vectorises; going through f64 changes no f32 (and costs nothing: the pair of conversions folds away).
    fn convert_row<T>(&self, row: usize, first: usize, out: &mut [T], to: impl Fn(f64) -> T) {
        assert!(
            row < self.rows(),
            "row {row} of an array with {} rows",
            self.rows()
        );
        assert!(
            first <= self.dim && out.len() <= self.dim - first,
            "columns {first} and {} more of {}",
            out.len(),
            self.dim
        );
        match self.element {
            Element::Bool => self.decode_row((row, first), out, |[byte]: [u8; 1]| {
                to(f64::from(byte != 0))
            }),
            Element::I8 => self.decode_row((row, first), out, |bytes| {
                to(f64::from(i8::from_le_bytes(bytes)))
            }),
            Element::I16 => self.decode_row((row, first), out, |bytes| {
                to(f64::from(i16::from_le_bytes(bytes)))
            }),
            Element::I32 => self.decode_row((row, first), out, |bytes| {
                to(f64::from(i32::from_le_bytes(bytes)))
            }),
            Element::I64 => self.decode_row((row, first), out, |bytes| {
                to(i64::from_le_bytes(bytes) as f64)
            }),
            Element::U8 => self.decode_row((row, first), out, |bytes| {
                to(f64::from(u8::from_le_bytes(bytes)))
            }),
            Element::U16 => self.decode_row((row, first), out, |bytes| {
                to(f64::from(u16::from_le_bytes(bytes)))
            }),
            Element::U32 => self.decode_row((row, first), out, |bytes| {
                to(f64::from(u32::from_le_bytes(bytes)))
            }),
            Element::U64 => self.decode_row((row, first), out, |bytes| {
                to(u64::from_le_bytes(bytes) as f64)
            }),
            Element::F16 => self.decode_row((row, first), out, |bytes| {
                to(half_to_f64(u16::from_le_bytes(bytes)))
            }),
            Element::F32 => self.decode_row((row, first), out, |bytes| {
                to(f64::from(f32::from_le_bytes(bytes)))
            }),
            Element::F64 => {
                self.decode_row((row, first), out, |bytes| to(f64::from_le_bytes(bytes)))
            }
        }
    }

    /// Finds the bytes of a row from column `first` on, puts each element into little-endian order and hands it to `decode`.
    fn decode_row<T, const SIZE: usize>(
        &self,
        (row, first): (usize, usize),
        out: &mut [T],
        decode: impl Fn([u8; SIZE]) -> T,
    ) {
        let reversed = |mut bytes: [u8; SIZE]| {
            bytes.reverse();
            decode(bytes)
        };
        let (elements, _) = self.bytes.as_ref()[self.start..].as_chunks::<SIZE>();
        match (&self.column_offsets, self.big_endian) {
            (None, big_endian) => {
                let elements = &elements[row * self.dim + first..][..out.len()];
                if big_endian {
                    out.iter_mut()
                        .zip(elements)
                        .for_each(|(slot, bytes)| *slot = reversed(*bytes));
                } else {
                    out.iter_mut()
                        .zip(elements)
                        .for_each(|(slot, bytes)| *slot = decode(*bytes));
                }
            }
            (Some(offsets), true) => {
                out.iter_mut()
                    .zip(&offsets[first..])
                    .for_each(|(slot, offset)| *slot = reversed(elements[row + offset]));
            }
            (Some(offsets), false) => {
                out.iter_mut()
                    .zip(&offsets[first..])
                    .for_each(|(slot, offset)| *slot = decode(elements[row + offset]));
            }
        }
    }
}

/// Where each column of a Fortran-ordered array lies: `dim` is bounded by the data that exist, so this table is never
/// larger than a few times the file.
fn fortran_offsets(shape: &[usize], dim: usize) -> Vec<usize> {
    (0..dim)
        .map(|column| {
            // Peel the C-order column number from its fastest (last) axis; the stride of an axis is the product of
            // all axes before it.
            let (mut rest, mut stride, mut offset) = (column, shape.iter().product::<usize>(), 0);
            for &side in shape[1..].iter().rev() {
                stride /= side;
                offset += (rest % side) * stride;
                rest /= side;
            }
            offset
        })
        .collect()
}

/// IEEE 754 binary16, exactly.
fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = ((bits >> 10) & 0x1f, f64::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => sign * f64::INFINITY,
        0x1f => f64::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    }
}

/// A shape as NumPy prints it.
fn shape_text(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        many => format!(
            "({})",
            many.iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

#[cfg(test)]
mod tests;
