//! `write_npy`: an array of f32 or f64 in NumPy's own file format, version 1.0, little-endian, C order.

use super::shape_text;
use crate::{Error, Result};
use std::io::Write;

/// A number that can be written: `f32` or `f64`.
pub trait NpyNumber: Copy + private::Sealed {
    /// NumPy's type code.
    const DESCR: &'static str;
    /// Appends the little-endian bytes.
    fn append(self, bytes: &mut Vec<u8>);
}

mod private {
    /// Closes the list of writable numbers.
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl NpyNumber for u8 {
    const DESCR: &'static str = "|u1";
    fn append(self, bytes: &mut Vec<u8>) {
        bytes.push(self);
    }
}

impl NpyNumber for f32 {
    const DESCR: &'static str = "<f4";
    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
}

impl NpyNumber for f64 {
    const DESCR: &'static str = "<f8";
    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
}

/// Writes `data`, in C order with the given `shape`, so that `numpy.load` reads it back. The same content gives the
/// same bytes.
///
/// # Errors
/// [`Error::Shape`] when the shape does not hold exactly the data, [`Error::Write`] when the writer fails.
pub fn write_npy<T: NpyNumber>(shape: &[usize], data: &[T], mut writer: impl Write) -> Result<()> {
    let count = shape
        .iter()
        .try_fold(1usize, |product, &side| product.checked_mul(side));
    if count != Some(data.len()) {
        return Err(Error::Shape {
            what: "the array to write".into(),
            found: shape_text(shape),
            expected: format!("one that holds its {} numbers", data.len()),
        });
    }
    let dictionary = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
        T::DESCR,
        shape_text(shape)
    );
    // The data start at a multiple of 64, as NumPy does; 11 = magic, version, length and the final newline.
    let padded = (dictionary.len() + 11).next_multiple_of(64);
    let length = u16::try_from(padded - 10).map_err(|_| Error::Shape {
        what: "the array to write".into(),
        found: format!("{} axes", shape.len()),
        expected: "fewer: the header of a .npy file is limited".into(),
    })?;
    let mut bytes = Vec::with_capacity(1 << 16);
    bytes.extend_from_slice(b"\x93NUMPY\x01\x00");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(dictionary.as_bytes());
    bytes.resize(padded - 1, b' ');
    bytes.push(b'\n');
    // In pieces: the data may be large, and a second copy of them is not needed.
    for piece in data.chunks(4096) {
        piece.iter().for_each(|number| number.append(&mut bytes));
        writer.write_all(&bytes)?;
        bytes.clear();
    }
    writer.write_all(&bytes)?;
    Ok(writer.flush()?)
}
