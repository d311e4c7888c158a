//! The header of a .npy file: magic, version, length, then a Python dictionary with exactly the keys `descr`,
//! `fortran_order` and `shape`.

use crate::{Error, Result};

/// Axes of an array, as in NumPy.
const MOST_AXES: usize = 64;

/// What stands before the data, and the data.
pub(super) struct Header<'a> {
    pub element: Element,
    pub big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<usize>,
    pub data: &'a [u8],
}

/// The number types that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Element {
    /// Bytes per number.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// NumPy's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// Byte order and type from a `descr` such as `<f4`.
    fn from_descr(descr: &str) -> Result<(Self, bool)> {
        let (big_endian, code) = match descr.as_bytes().first() {
            Some(b'<' | b'|') => (false, &descr[1..]),
            Some(b'>') => (true, &descr[1..]),
            Some(b'=') => (cfg!(target_endian = "big"), &descr[1..]),
            _ => (cfg!(target_endian = "big"), descr),
        };
        let element = match code {
            "b1" | "?" => Self::Bool,
            "i1" => Self::I8,
            "i2" => Self::I16,
            "i4" => Self::I32,
            "i8" => Self::I64,
            "u1" => Self::U8,
            "u2" => Self::U16,
            "u4" => Self::U32,
            "u8" => Self::U64,
            "f2" => Self::F16,
            "f4" => Self::F32,
            "f8" => Self::F64,
            _ => return Err(refused_type(descr, code)),
        };
        Ok((element, big_endian))
    }
}

/// Says what the type is and how to save something that can be read.
fn refused_type(descr: &str, code: &str) -> Error {
    let (what, advice) = match code.as_bytes().first() {
        Some(b'O') => (
            "Python objects (rows of different lengths, or mixed types)",
            "build rows of equal length and save them with numpy.save(path, numpy.asarray(rows, dtype='float32'))",
        ),
        Some(b'c') => (
            "complex numbers",
            "save real and imaginary parts as columns: numpy.save(path, numpy.concatenate([array.real, array.imag], axis=1))",
        ),
        Some(b'f') => (
            "extended-precision floats",
            "save it with numpy.save(path, array.astype('float64'))",
        ),
        Some(b'S' | b'U' | b'a') => (
            "text",
            "if the text spells numbers, save it with numpy.save(path, array.astype('float32'))",
        ),
        Some(b'M' | b'm') => (
            "dates or durations",
            "save it with numpy.save(path, array.astype('int64'))",
        ),
        Some(b'V') => (
            "raw bytes (bfloat16 is saved like this)",
            "convert before saving: numpy.save(path, array.astype('float32'))",
        ),
        _ => (
            "an unknown type",
            "save it with numpy.save(path, array.astype('float32'))",
        ),
    };
    Error::NpyType {
        found: format!("{what}, dtype {}", shorten(descr)),
        advice,
    }
}

impl<'a> Header<'a> {
    /// Splits a file image into its header and its data.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Some(rest) = bytes.strip_prefix(b"\x93NUMPY") else {
            return Err(Error::NotNpy {
                found: describe_start(bytes),
            });
        };
        let (length_bytes, rest) = match rest {
            [1, _, rest @ ..] => (2, rest),
            [2 | 3, _, rest @ ..] => (4, rest),
            [major, minor, ..] => {
                return damaged(format!(
                    "its version is {major}.{minor}, expected 1.0, 2.0 or 3.0"
                ));
            }
            _ => return damaged("the file ends within the header".into()),
        };
        let Some((length, rest)) = rest.split_at_checked(length_bytes) else {
            return damaged("the file ends within the header".into());
        };
        let length = length
            .iter()
            .rev()
            .fold(0usize, |sum, &byte| sum << 8 | usize::from(byte));
        let Some((text, data)) = rest.split_at_checked(length) else {
            return damaged(format!(
                "it claims {length} bytes, but only {} follow",
                rest.len()
            ));
        };
        let Ok(text) = std::str::from_utf8(text) else {
            return damaged("it is not text".into());
        };
        let Fields {
            descr,
            fortran,
            shape,
        } = Cursor { rest: text }.fields()?;
        let (element, big_endian) = Element::from_descr(descr)?;
        Ok(Self {
            element,
            big_endian,
            fortran,
            shape,
            data,
        })
    }
}

fn damaged<T>(problem: String) -> Result<T> {
    Err(Error::NpyHeader { problem })
}

/// Names the usual things people hand over instead of a .npy file.
fn describe_start(bytes: &[u8]) -> String {
    match bytes {
        [] => "an empty file".into(),
        [b'P', b'K', 3, 4, ..] => {
            "a zip archive (.npz?); take one array out of it: numpy.save(path, numpy.load(archive)['name'])".into()
        }
        [b'\x89', b'H', b'D', b'F', ..] => "an HDF5 file".into(),
        [b'\x80', ..] => "what looks like a pickle".into(),
        _ if b"\x93NUMPY".starts_with(bytes) => "a file that ends within its first six bytes".into(),
        _ => {
            let start = &bytes[..bytes.len().min(16)];
            if start.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
                "plain text; read it with numpy.loadtxt(path, delimiter=',') first".into()
            } else {
                "a file of some other format".into()
            }
        }
    }
}

/// Keeps a hostile header from flooding the terminal.
fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().count() > 40 {
        short.push_str("...");
    }
    format!("'{short}'")
}

struct Fields<'a> {
    descr: &'a str,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads the dictionary from left to right.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn fields(mut self) -> Result<Fields<'a>> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.accept('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran = Some(self.truth()?),
                "shape" => shape = Some(self.shape()?),
                other => return damaged(format!("it has the unknown key {}", shorten(other))),
            }
            if !self.accept(',') {
                self.expect('}')?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return damaged(format!(
                "{} follows the dictionary",
                shorten(self.rest.trim())
            ));
        }
        match (descr, fortran, shape) {
            (Some(descr), Some(fortran), Some(shape)) => Ok(Fields {
                descr,
                fortran,
                shape,
            }),
            _ => damaged("it lacks one of the keys 'descr', 'fortran_order', 'shape'".into()),
        }
    }

    fn descr(&mut self) -> Result<&'a str> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(['[', '(']) {
            return Err(Error::NpyType {
                found: "a structured array (named fields)".into(),
                advice: "save plain columns: numpy.save(path, numpy.lib.recfunctions.structured_to_unstructured(array))",
            });
        }
        self.string()
    }

    fn truth(&mut self) -> Result<bool> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        damaged(format!(
            "fortran_order is {}, expected True or False",
            shorten(self.rest)
        ))
    }

    fn shape(&mut self) -> Result<Vec<usize>> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.accept(')') {
            self.rest = self.rest.trim_start();
            let end = self
                .rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            let Ok(side) = digits.parse() else {
                return damaged(format!(
                    "its shape continues with {}, expected a length",
                    shorten(self.rest)
                ));
            };
            if shape.len() == MOST_AXES {
                return damaged(format!(
                    "its shape has more than {MOST_AXES} axes, which no array of NumPy has"
                ));
            }
            shape.push(side);
            // Python 2 wrote long integers as 12L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }

    fn string(&mut self) -> Result<&'a str> {
        self.rest = self.rest.trim_start();
        for quote in ['\'', '"'] {
            if let Some((inside, rest)) = self
                .rest
                .strip_prefix(quote)
                .and_then(|rest| rest.split_once(quote))
            {
                self.rest = rest;
                return Ok(inside);
            }
        }
        damaged(format!(
            "{} stands where a quoted name was expected",
            shorten(self.rest)
        ))
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.rest.trim_start().strip_prefix(wanted);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        if self.accept(wanted) {
            return Ok(());
        }
        damaged(format!(
            "{} stands where '{wanted}' was expected",
            shorten(self.rest)
        ))
    }
}
