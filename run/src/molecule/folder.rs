//! The folder of a simulation: parts that only grow, a checkpoint that says how much of them counts, and the arrays made of them at the end.

use crate::company;
use crate::error::{Error, Result};
use crate::files::{FolderLock, read_text, remove_leftovers, write_atomic};
use crate::outputs;
use diffclf::format::npy::write_npy;
use diffclf::molecule::{ReplicaSettings, ReplicaState};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const CHECKPOINT: &str = "checkpoint.json";

/// What a run goes on from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Checkpoint {
    pub settings: ReplicaSettings,
    pub warm_up: u64,
    pub every: u64,
    /// Digest of the topology.
    pub topology: String,
    /// Frames written to the parts.
    pub frames: usize,
    /// Seconds of work so far.
    pub seconds: f64,
    pub state: ReplicaState,
}

/// An array under way: rows of little-endian numbers.
pub(super) struct Part {
    path: PathBuf,
    /// None where the first process of a company has it.
    writer: Option<BufWriter<File>>,
    /// Bytes of a frame.
    stride: u64,
}

impl Part {
    fn open(path: PathBuf, stride: usize, frames: usize) -> Result<Self> {
        let writer = || Self::writer(path.clone(), stride, frames).map(Some);
        Ok(Part {
            writer: company::once(|| None, writer)?,
            path,
            stride: stride as u64,
        })
    }

    fn writer(path: PathBuf, stride: usize, frames: usize) -> Result<BufWriter<File>> {
        let writing = |source| Error::Write {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(writing)?;
        let length = (stride * frames) as u64;
        let there = file.metadata().map_err(writing)?.len();
        if there < length {
            return Err(Error::Content {
                path,
                source: diffclf::Error::Shape {
                    what: "a part of the simulation".into(),
                    found: format!("{there} bytes"),
                    expected: format!(
                        "at least the {length} that the checkpoint tells of; it was cut"
                    ),
                },
            });
        }
        // What was written after the checkpoint is written again.
        file.set_len(length).map_err(writing)?;
        let mut writer = BufWriter::new(file);
        writer.seek(SeekFrom::End(0)).map_err(writing)?;
        Ok(writer)
    }

    pub(super) fn push_f32(&mut self, values: impl Iterator<Item = f32>) -> Result<()> {
        for value in values {
            self.write(&value.to_le_bytes())?;
        }
        Ok(())
    }

    pub(super) fn push(&mut self, values: impl Iterator<Item = f64>) -> Result<()> {
        for value in values {
            self.write(&value.to_le_bytes())?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        writer.write_all(bytes).map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }

    fn sync(&mut self) -> Result<()> {
        let Self { writer, path, .. } = self;
        let sync = || {
            let Some(writer) = writer else {
                return Ok(());
            };
            let done = writer.flush().and_then(|()| writer.get_ref().sync_data());
            done.map_err(|source| Error::Write {
                path: path.clone(),
                source,
            })
        };
        company::once(|| (), sync)
    }

    /// All numbers of the first `frames` frames.
    fn bytes(&mut self, frames: usize) -> Result<Vec<u8>> {
        self.sync()?;
        let mut bytes = fs::read(&self.path).map_err(|source| Error::Read {
            path: self.path.clone(),
            source,
        })?;
        bytes.truncate(self.stride as usize * frames);
        Ok(bytes)
    }

    pub(super) fn numbers(&mut self, frames: usize) -> Result<Vec<f64>> {
        Ok(self
            .bytes(frames)?
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| f64::from_le_bytes(*b))
            .collect())
    }

    fn singles(&mut self, frames: usize) -> Result<Vec<f32>> {
        Ok(self
            .bytes(frames)?
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect())
    }
}

/// The folder, held by this process.
pub(super) struct Folder {
    path: PathBuf,
    _lock: FolderLock,
    /// Frames of each solvent, by name.
    pub frames: Vec<(String, Part)>,
    /// Vacuum, polar and surface energies of every state.
    pub energies: Part,
    /// phi and psi of every state.
    pub angles: Part,
}

/// What a folder holds.
pub(super) struct Layout<'a> {
    pub names: &'a [String],
    /// Coordinates of a molecule.
    pub dim: usize,
    /// Rows of a frame: one for each ladder.
    pub ladders: usize,
    pub states: usize,
}

impl Folder {
    /// Takes the folder; `checkpoint` is what is to be continued.
    pub(super) fn take(
        path: &Path,
        layout: &Layout<'_>,
        resume: bool,
        force: bool,
    ) -> Result<(Self, Option<Checkpoint>)> {
        outputs::plan_folder(path)?;
        let lock = FolderLock::take(path)?;
        let saved = path.join(CHECKPOINT);
        remove_leftovers(&saved)?;
        let exists = company::agreed(saved.exists());
        let checkpoint = match (resume, exists) {
            (true, false) => {
                return Err(Error::NoRun {
                    folder: path.to_path_buf(),
                });
            }
            (true, true) => Some(read_checkpoint(&saved)?),
            (false, _) => {
                let names = layout
                    .names
                    .iter()
                    .map(|name| path.join(format!("frames-{name}.npy")));
                let results = names.chain(
                    ["energies.npy", "angles.npy", "record.json"].map(|name| path.join(name)),
                );
                for result in results.chain([saved.clone()]) {
                    outputs::refuse_existing(&result, force)?;
                }
                if exists {
                    company::once(|| (), || remove(&saved))?;
                }
                None
            }
        };
        let done = checkpoint
            .as_ref()
            .map_or(0, |checkpoint| checkpoint.frames);
        let Layout {
            names,
            dim,
            ladders,
            states,
        } = *layout;
        let part = |name: String, stride: usize| Part::open(path.join(name), stride, done);
        let frames = names.iter().map(|name| {
            Ok((
                name.clone(),
                part(format!("frames-{name}.part"), 4 * dim * ladders)?,
            ))
        });
        let folder = Folder {
            frames: frames.collect::<Result<_>>()?,
            energies: part("energies.part".into(), 24 * states * ladders)?,
            angles: part("angles.part".into(), 16 * states * ladders)?,
            path: path.to_path_buf(),
            _lock: lock,
        };
        Ok((folder, checkpoint))
    }

    /// The parts reach the disk before the checkpoint that counts on them.
    pub(super) fn save(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        for part in self
            .frames
            .iter_mut()
            .map(|(_, part)| part)
            .chain([&mut self.energies, &mut self.angles])
        {
            part.sync()?;
        }
        write_atomic(&self.path.join(CHECKPOINT), |writer| {
            let text = serde_json::to_string(checkpoint).map_err(std::io::Error::from)?;
            Ok(writeln!(writer, "{text}")?)
        })
    }

    /// Turns the parts into arrays, and writes the record.
    pub(super) fn finish(
        mut self,
        layout: &Layout<'_>,
        frames: usize,
        record: &serde_json::Value,
    ) -> Result<()> {
        let Layout {
            dim,
            ladders,
            states,
            ..
        } = *layout;
        let rows = frames * ladders;
        for (name, part) in &mut self.frames {
            let values = part.singles(frames)?;
            write_atomic(&self.path.join(format!("frames-{name}.npy")), |writer| {
                write_npy(&[rows, dim], &values, writer)
            })?;
        }
        for (name, part, width) in [
            ("energies.npy", &mut self.energies, 3),
            ("angles.npy", &mut self.angles, 2),
        ] {
            let values = part.numbers(frames)?;
            write_atomic(&self.path.join(name), |writer| {
                write_npy(&[rows, states, width], &values, writer)
            })?;
        }
        write_atomic(&self.path.join("record.json"), |writer| {
            Ok(writeln!(writer, "{record:#}")?)
        })?;
        let mut done = vec![self.path.join(CHECKPOINT)];
        done.extend(self.frames.into_iter().map(|(_, part)| part.path));
        done.extend([self.energies.path, self.angles.path]);
        company::once(|| (), || done.iter().try_for_each(|path| remove(path)))
    }
}

/// Removes a file. A short run ends before its first checkpoint, which is not there then.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(Error::Write {
            path: path.to_path_buf(),
            source,
        }),
        _ => Ok(()),
    }
}

fn read_checkpoint(path: &Path) -> Result<Checkpoint> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|error| Error::Config {
        path: path.to_path_buf(),
        reason: format!("{error}; it is damaged: begin again"),
    })
}
