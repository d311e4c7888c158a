//! The model file: named tensors and a JSON document in one safetensors file, sealed by a SHA-256 over every byte.
//!
//! ```text
//! 8 bytes   length of the header, little-endian
//! header    JSON: "__metadata__" {program, format_version, kind, content}, then each tensor's dtype, shape, place
//! tensors   little-endian, wide types first, then by name
//! 32 bytes  the tensor "sha256": SHA-256 of all bytes before it
//! ```
//!
//! Any safetensors reader opens it. `content` is the JSON document as text (architecture, process, statistics,
//! training record: whatever the writer needs to make the file self-contained). The seal lies at the very end and
//! covers header and tensors alike, so that one altered byte anywhere is noticed. The same content gives the same
//! bytes. Training checkpoints use the same container with another `kind`.
//!
//! The container is written and read here, not by the safetensors crate: its reader adds up announced sizes without
//! an overflow check, and its writer orders metadata at random. The tests hold both against that crate.

mod tensor;

pub use tensor::{Tensor, TensorData};

use crate::{Error, Result};
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::error::Category;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// The newest format version that is read, and the one that is written.
pub const FORMAT_VERSION: u32 = 1;

const PROGRAM: &str = "diffclf";
const SEAL: &str = "sha256";
const SEAL_LENGTH: usize = 32;
/// Bytes of the length field before the header.
const PREFIX: usize = 8;
/// The safetensors format allows no longer header; in a file, a larger number means that it is no length at all.
const MAX_HEADER: usize = 100_000_000;

/// A model or a checkpoint in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    kind: String,
    /// JSON, as text: a value of an unknown shape takes up to a hundred times the room of its text.
    content: String,
    tensors: BTreeMap<String, Tensor>,
}

impl ModelFile {
    /// An empty file of a `kind` such as `model` or `checkpoint`, with a JSON document that says what the tensors
    /// mean.
    ///
    /// # Errors
    /// [`Error::ModelContent`] when `content` cannot be written as JSON.
    pub fn new(kind: &str, content: &impl Serialize) -> Result<Self> {
        let content = serde_json::to_value(content).map_err(|error| {
            unusable(format!(
                "its description cannot be written as JSON ({error})"
            ))
        })?;
        Ok(Self {
            kind: kind.into(),
            content: content.to_string(),
            tensors: BTreeMap::new(),
        })
    }

    /// Adds a tensor under a name of its own.
    ///
    /// # Errors
    /// [`Error::ModelContent`] when the name is taken or reserved.
    pub fn insert(&mut self, name: &str, tensor: Tensor) -> Result<()> {
        if name == SEAL || name == "__metadata__" {
            return Err(unusable(format!("the tensor name '{name}' is reserved")));
        }
        match self.tensors.insert(name.into(), tensor) {
            None => Ok(()),
            Some(_) => Err(unusable(format!("the tensor name '{name}' is given twice"))),
        }
    }

    /// What the file is: `model`, `checkpoint`, ...
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Refuses a file of another kind.
    ///
    /// # Errors
    /// [`Error::ModelContent`] that names both kinds.
    pub fn expect_kind(&self, kind: &str) -> Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        Err(unusable(format!(
            "it is a {}, expected a {kind}; give the path of a {kind}",
            self.kind
        )))
    }

    /// The JSON document, whatever it holds. [`content_as`](Self::content_as) needs less room.
    ///
    /// # Errors
    /// [`Error::ModelContent`] when it is not JSON.
    pub fn content(&self) -> Result<Value> {
        serde_json::from_str(&self.content)
            .map_err(|error| unusable(format!("its description is not JSON ({error})")))
    }

    /// The JSON document as a typed value.
    ///
    /// # Errors
    /// [`Error::ModelContent`] when it does not fit the type.
    pub fn content_as<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.content).map_err(|error| match error.classify() {
            Category::Data => unusable(format!(
                "its description does not fit ({error}); it was written by another release"
            )),
            _ => unusable(format!("its description is not JSON ({error})")),
        })
    }

    /// All tensors by name.
    pub fn tensors(&self) -> &BTreeMap<String, Tensor> {
        &self.tensors
    }

    /// The f32 tensor of this name and shape.
    ///
    /// # Errors
    /// [`Error::ModelContent`] when it is missing or differs in type or shape.
    pub fn f32(&self, name: &str, shape: &[usize]) -> Result<&[f32]> {
        match self.tensor(name, shape)? {
            TensorData::F32(data) => Ok(data),
            other => Err(wrong_type(name, other, "F32")),
        }
    }

    /// The f64 tensor of this name and shape.
    ///
    /// # Errors
    /// [`Error::ModelContent`] when it is missing or differs in type or shape.
    pub fn f64(&self, name: &str, shape: &[usize]) -> Result<&[f64]> {
        match self.tensor(name, shape)? {
            TensorData::F64(data) => Ok(data),
            other => Err(wrong_type(name, other, "F64")),
        }
    }

    /// The u64 tensor of this name and shape.
    ///
    /// # Errors
    /// [`Error::ModelContent`] when it is missing or differs in type or shape.
    pub fn u64(&self, name: &str, shape: &[usize]) -> Result<&[u64]> {
        match self.tensor(name, shape)? {
            TensorData::U64(data) => Ok(data),
            other => Err(wrong_type(name, other, "U64")),
        }
    }

    fn tensor(&self, name: &str, shape: &[usize]) -> Result<&TensorData> {
        let tensor = self
            .tensors
            .get(name)
            .ok_or_else(|| unusable(format!("it has no tensor '{name}'")))?;
        if tensor.shape != shape {
            let found = &tensor.shape;
            return Err(unusable(format!(
                "tensor '{name}' has shape {found:?}, expected {shape:?}"
            )));
        }
        Ok(&tensor.data)
    }

    /// The file as bytes. The same content gives the same bytes.
    ///
    /// # Errors
    /// [`Error::ModelContent`] when names, shapes and description together pass the 100 MB that the format allows.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        // Wide types first keeps every tensor aligned to its own size; the seal, of single bytes, comes last.
        let mut order: Vec<_> = self.tensors.iter().collect();
        order.sort_by_key(|(name, tensor)| (std::cmp::Reverse(tensor.data.size()), *name));
        let mut header = Map::new();
        let metadata = [
            ("program", PROGRAM.to_string()),
            ("format_version", FORMAT_VERSION.to_string()),
            ("kind", self.kind.clone()),
            ("content", self.content.clone()),
        ];
        let metadata = metadata
            .into_iter()
            .map(|(key, text)| (key.to_string(), Value::String(text)));
        header.insert("__metadata__".into(), Value::Object(metadata.collect()));
        let mut end = 0;
        for (name, tensor) in &order {
            let start = end;
            end += tensor.data.len() * tensor.data.size();
            header.insert(
                (*name).clone(),
                entry(tensor.data.type_name(), &tensor.shape, start, end),
            );
        }
        header.insert(
            SEAL.into(),
            entry("U8", &[SEAL_LENGTH], end, end + SEAL_LENGTH),
        );
        let mut header = Value::Object(header).to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        if header.len() > MAX_HEADER {
            return Err(unusable(format!(
                "its header would have {} bytes, allowed are {MAX_HEADER}",
                header.len()
            )));
        }

        let mut bytes = Vec::with_capacity(PREFIX + header.len() + end + SEAL_LENGTH);
        bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&header);
        order
            .iter()
            .for_each(|(_, tensor)| tensor.data.append(&mut bytes));
        let seal = Sha256::digest(&bytes);
        bytes.extend_from_slice(&seal);
        Ok(bytes)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. The bytes may come from anywhere: what is allocated is bounded
    /// by a few times the bytes at hand, and nothing in them can cause a panic.
    ///
    /// # Errors
    /// [`Error::NotModel`], [`Error::ModelLength`], [`Error::ModelNewer`], [`Error::ModelAltered`] or
    /// [`Error::ModelContent`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, data) = split_header(bytes)?;
        let metadata = own_metadata(header)?;
        let entries = read_entries(header)?;
        let announced = entries.last().map_or(0, |entry| entry.end);
        if announced != data.len() {
            let before = bytes.len() - data.len();
            return Err(Error::ModelLength {
                found: bytes.len(),
                expected: announced
                    .checked_add(before)
                    .map_or("an impossible number".into(), |n| n.to_string()),
            });
        }
        check_seal(bytes)?;
        // From here on the bytes are those that a writer sealed; a refusal means that the writer was not ours.
        let mut file = Self {
            kind: lacking(metadata.kind.as_ref(), "kind")?.clone(),
            content: lacking(metadata.content.as_ref(), "content")?.clone(),
            tensors: BTreeMap::new(),
        };
        for entry in entries.iter().filter(|entry| entry.name != SEAL) {
            let bytes = data
                .get(entry.start..entry.end)
                .ok_or_else(|| entry.refused("lies outside the file"))?;
            let data = TensorData::read(&entry.type_name, bytes)
                .ok_or_else(|| entry.refused("is neither F32, F64 nor U64"))?;
            if data.len().checked_mul(data.size()) != Some(bytes.len()) {
                return Err(entry.refused("does not fill its place"));
            }
            let tensor = Tensor::new(entry.shape.clone(), data)?;
            file.tensors.insert(entry.name.clone(), tensor);
        }
        Ok(file)
    }
}

/// One tensor's line in the header, as written.
fn entry(type_name: &str, shape: &[usize], start: usize, end: usize) -> Value {
    serde_json::json!({ "dtype": type_name, "shape": shape, "data_offsets": [start, end] })
}

/// One tensor's line in the header, as read.
struct Entry {
    name: String,
    type_name: String,
    shape: Vec<usize>,
    start: usize,
    end: usize,
}

impl Entry {
    fn refused(&self, problem: &str) -> Error {
        let name: String = self
            .name
            .chars()
            .take(60)
            .flat_map(char::escape_debug)
            .collect();
        unusable(format!("tensor '{name}' {problem}"))
    }
}

/// A tensor's line as JSON has it. Typed, so that a header of other things ends where the first of them stands.
#[derive(Deserialize)]
struct Line {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// Our own part of the header; others may stand beside it.
#[derive(Default, Deserialize)]
struct Metadata {
    program: Option<String>,
    format_version: Option<String>,
    kind: Option<String>,
    content: Option<String>,
}

/// The header without its tensors.
#[derive(Deserialize)]
struct MetadataAlone {
    __metadata__: Option<Metadata>,
}

/// The header's tensors.
struct Tensors(Vec<Entry>);

impl<'de> Deserialize<'de> for Tensors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Lines;
        impl<'de> Visitor<'de> for Lines {
            type Value = Tensors;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Tensors, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    let Line {
                        dtype,
                        shape,
                        data_offsets: [start, end],
                    } = map.next_value()?;
                    entries.push(Entry {
                        name,
                        type_name: dtype,
                        shape,
                        start,
                        end,
                    });
                }
                Ok(Tensors(entries))
            }
        }
        deserializer.deserialize_map(Lines)
    }
}

/// All tensors in the order of their places, which must follow each other without gap or overlap: otherwise a small
/// file could announce the same data many times over and exhaust memory.
fn read_entries(header: &[u8]) -> Result<Vec<Entry>> {
    let Tensors(mut entries) = serde_json::from_slice(header).map_err(|_| Error::NotModel {
        problem: "the header has an entry that is not a tensor".into(),
    })?;
    entries.sort_by_key(|entry| (entry.start, entry.end));
    let mut end = 0;
    for entry in &entries {
        if entry.start != end || entry.end < entry.start {
            return Err(Error::NotModel {
                problem: "the places of its tensors overlap or leave gaps".into(),
            });
        }
        end = entry.end;
    }
    Ok(entries)
}

/// Cuts the file into its header and its data.
fn split_header(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let Some((length, rest)) = bytes.split_first_chunk::<PREFIX>() else {
        let expected = "at least a header".to_string();
        return Err(Error::ModelLength {
            found: bytes.len(),
            expected,
        });
    };
    let length = header_length(*length)?;
    let Some((header, data)) = rest.split_at_checked(length) else {
        let expected = format!("more than {}", PREFIX + length);
        return Err(Error::ModelLength {
            found: bytes.len(),
            expected,
        });
    };
    Ok((header, data))
}

fn header_length(prefix: [u8; PREFIX]) -> Result<usize> {
    // The shortest JSON object has two bytes.
    usize::try_from(u64::from_le_bytes(prefix))
        .ok()
        .filter(|length| (2..=MAX_HEADER).contains(length))
        .ok_or_else(|| Error::NotModel {
            problem: "it is not a safetensors file".into(),
        })
}

/// Length of the header of a file that begins like this, so that a file which is no model need not be read. As many bytes as
/// [`START`] or the whole file.
///
/// # Errors
/// [`Error::NotModel`] or [`Error::ModelLength`].
pub fn peek(start: &[u8]) -> Result<usize> {
    let (length, rest) = start
        .split_first_chunk::<PREFIX>()
        .ok_or(Error::ModelLength {
            found: start.len(),
            expected: "at least a header".into(),
        })?;
    let length = header_length(*length)?;
    match rest.first() {
        Some(b'{') | None => Ok(length),
        Some(_) => Err(Error::NotModel {
            problem: "it is not a safetensors file (the header is not JSON)".into(),
        }),
    }
}

/// Bytes that [`peek`] wants to see.
pub const START: usize = PREFIX + 1;

/// Finds our own metadata and refuses files of other programs and of later releases. Comes before all other checks,
/// because a later release may have changed everything else.
fn own_metadata(header: &[u8]) -> Result<Metadata> {
    let not_model = |problem: &str| Error::NotModel {
        problem: problem.into(),
    };
    let found: MetadataAlone = serde_json::from_slice(header).map_err(|error| {
        not_model(match error.classify() {
            Category::Data => "it is a safetensors file of another program",
            _ => "it is not a safetensors file (the header is not JSON)",
        })
    })?;
    let metadata = found
        .__metadata__
        .filter(|metadata| metadata.program.as_deref() == Some(PROGRAM))
        .ok_or_else(|| not_model("it is a safetensors file of another program"))?;
    let version = lacking(metadata.format_version.as_ref(), "format_version")?;
    match version.parse::<u32>() {
        Ok(1..=FORMAT_VERSION) => Ok(metadata),
        _ => Err(Error::ModelNewer {
            found: version
                .chars()
                .take(20)
                .flat_map(char::escape_debug)
                .collect(),
            supported: FORMAT_VERSION,
        }),
    }
}

fn lacking<'a>(text: Option<&'a String>, key: &str) -> Result<&'a String> {
    text.ok_or_else(|| unusable(format!("its metadata lack '{key}'")))
}

/// Compares the last 32 bytes with the SHA-256 of all others.
fn check_seal(bytes: &[u8]) -> Result<()> {
    let (sealed, seal) = bytes
        .split_last_chunk::<SEAL_LENGTH>()
        .ok_or(Error::ModelAltered)?;
    if Sha256::digest(sealed).as_slice() == seal {
        Ok(())
    } else {
        Err(Error::ModelAltered)
    }
}

fn unusable(problem: String) -> Error {
    Error::ModelContent { problem }
}

fn wrong_type(name: &str, found: &TensorData, expected: &str) -> Error {
    unusable(format!(
        "tensor '{name}' holds {}, expected {expected}",
        found.type_name()
    ))
}

#[cfg(test)]
mod tests;
