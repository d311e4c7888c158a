//! What a simulation keeps while it runs, so that it can go on after an interruption: the frames so far, and where the chains stand.

use crate::company;
use crate::error::{Error, Result};
use crate::files::{read_container, write_atomic};
use diffclf::format::model::{ModelFile, Tensor};
use diffclf::sample::Snapshot;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Frames and checkpoint beside the result: `OUT.frames` and `OUT.checkpoint`.
pub struct Keeping {
    frames: PathBuf,
    checkpoint: PathBuf,
    /// Everything that decides the bytes.
    settings: Value,
}

/// What was found of an earlier run.
pub struct Kept {
    /// Where the chains stand.
    pub snapshot: Snapshot,
    /// Points and energies of the frames so far, each frame's points and then its energies.
    pub numbers: Vec<f64>,
}

impl Keeping {
    /// Beside a result.
    pub fn beside(output: &Path, settings: Value) -> Self {
        let name = |end: &str| {
            let mut name = output.as_os_str().to_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        Self {
            frames: name(".frames"),
            checkpoint: name(".checkpoint"),
            settings,
        }
    }

    /// What an earlier run has left; none if there is nothing. Refuses that of other settings.
    pub fn open(&self, numbers_of_frame: usize, thin: usize) -> Result<Option<Kept>> {
        if !self.checkpoint.exists() {
            return Ok(None);
        }
        let wrong = |source| Error::about(&self.checkpoint, source);
        let bytes = read_container(&self.checkpoint)?;
        let file = ModelFile::from_bytes(&bytes).map_err(wrong)?;
        file.expect_kind("simulation").map_err(wrong)?;
        let content = file.content().map_err(wrong)?;
        if content["settings"] != self.settings {
            return Err(Error::Usage(format!(
                "{} is of a simulation with other settings, start or model; repeat its command, or delete it to start anew",
                self.checkpoint.display()
            )));
        }
        let number = |key: &str| content[key].as_u64().unwrap_or(0);
        let tensor = |name: &str| -> Result<Vec<f64>> {
            let len = number(name) as usize;
            match len {
                0 => Ok(Vec::new()),
                _ => Ok(file.f64(name, &[len]).map_err(wrong)?.to_vec()),
            }
        };
        let snapshot = Snapshot {
            steps: number("steps"),
            points: tensor("points")?,
            momentum: tensor("momentum")?,
            accepted: content["accepted"].as_f64().unwrap_or(f64::NAN),
        };
        let frames = snapshot.steps as usize / thin;
        let mut bytes = Vec::new();
        let reading = |source| Error::Read {
            path: self.frames.clone(),
            source,
        };
        File::open(&self.frames)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(reading)?;
        let needed = frames * numbers_of_frame * 8;
        let Some(whole) = bytes.get(..needed) else {
            return Err(Error::Usage(format!(
                "{} holds {} bytes, expected at least {needed}; delete it and {} to start anew",
                self.frames.display(),
                bytes.len(),
                self.checkpoint.display()
            )));
        };
        let numbers = whole.chunks_exact(8).map(|bytes| {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            f64::from_le_bytes(word)
        });
        // What was written after the last checkpoint is computed again.
        self.cut(needed as u64)?;
        Ok(Some(Kept {
            snapshot,
            numbers: numbers.collect(),
        }))
    }

    fn writing(&self) -> impl Fn(std::io::Error) -> Error {
        let path = self.frames.clone();
        move |source| Error::Write {
            path: path.clone(),
            source,
        }
    }

    fn cut(&self, bytes: u64) -> Result<()> {
        let cut = || {
            let file = OpenOptions::new().write(true).open(&self.frames);
            file.and_then(|file| file.set_len(bytes))
                .map_err(self.writing())
        };
        company::once(|| (), cut)
    }

    /// Begins anew.
    pub fn begin(&self) -> Result<()> {
        let create = || File::create(&self.frames).map(|_| ());
        company::once(|| (), || create().map_err(self.writing()))
    }

    /// Adds frames, then says where the chains stand.
    pub fn save(&self, numbers: &[f64], snapshot: &Snapshot) -> Result<()> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let add = || {
            let mut file = OpenOptions::new().append(true).open(&self.frames)?;
            file.write_all(&bytes)?;
            file.sync_data()
        };
        company::once(|| (), || add().map_err(self.writing()))?;
        let content = json!({
            "settings": self.settings,
            "steps": snapshot.steps,
            "accepted": snapshot.accepted,
            "points": snapshot.points.len(),
            "momentum": snapshot.momentum.len(),
        });
        let mut file = ModelFile::new("simulation", &content)?;
        for (name, values) in [
            ("points", &snapshot.points),
            ("momentum", &snapshot.momentum),
        ] {
            if !values.is_empty() {
                file.insert(name, Tensor::new(vec![values.len()], values.clone())?)?;
            }
        }
        let bytes = file.to_bytes()?;
        write_atomic(&self.checkpoint, |writer| Ok(writer.write_all(&bytes)?))
    }

    /// The result is written: nothing more to keep.
    pub fn finish(&self) -> Result<()> {
        let remove = || {
            for path in [&self.checkpoint, &self.frames] {
                if path.exists() {
                    std::fs::remove_file(path).map_err(|source| Error::Write {
                        path: path.clone(),
                        source,
                    })?;
                }
            }
            Ok(())
        };
        company::once(|| (), remove)
    }
}
