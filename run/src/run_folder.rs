//! The run folder: `config.toml`, `log.jsonl`, `checkpoint.safetensors`, `model.safetensors` and `report.html`, each whole at any
//! moment.

use crate::error::{Error, Result};
use crate::files::{FolderLock, read_bytes, remove_leftovers, write_atomic};
use crate::settings::Settings;
use diffclf::model::{Checkpoint, Model};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the settings in a run folder.
pub const CONFIG: &str = "config.toml";
/// Name of the log in a run folder.
pub const LOG: &str = "log.jsonl";
const CHECKPOINT: &str = "checkpoint.safetensors";
/// Name of the page in a run folder.
pub const REPORT: &str = "report.html";
/// Name of the model in a run folder.
pub const MODEL: &str = "model.safetensors";

/// A folder held by this process.
pub struct RunFolder {
    path: PathBuf,
    _lock: FolderLock,
}

impl RunFolder {
    /// Refuses a folder that holds a run already, before any work is done.
    pub fn refuse_existing(path: &Path, force: bool) -> Result<()> {
        if path.exists() && !path.is_dir() {
            return Err(Error::NotAFolder {
                path: path.to_path_buf(),
            });
        }
        let occupied = [CONFIG, LOG, CHECKPOINT, MODEL]
            .iter()
            .any(|name| fs::symlink_metadata(path.join(name)).is_ok());
        if occupied && !force {
            return Err(Error::RunExists {
                path: path.to_path_buf(),
            });
        }
        Ok(())
    }

    /// Whether there is a run that can be continued.
    pub fn has_run(path: &Path) -> bool {
        path.join(CONFIG).is_file()
    }

    /// Takes the folder for a new run; what an earlier one left there is deleted (the caller has asked).
    pub fn create(path: &Path, settings: &Settings) -> Result<Self> {
        fs::create_dir_all(path).map_err(|source| Error::Write {
            path: path.to_path_buf(),
            source,
        })?;
        let folder = Self::take(path)?;
        // The checkpoint goes first: without it nothing of the old run can be continued by mistake.
        for name in [CHECKPOINT, MODEL, LOG, CONFIG, REPORT] {
            let file = path.join(name);
            match fs::remove_file(&file) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::Write { path: file, source });
                }
                _ => {}
            }
        }
        let text = format!(
            "# The settings of this run, defaults included. Repeat it elsewhere with\n#   diffclf train --config {CONFIG} -o \
             OTHER-FOLDER\n{}",
            settings.to_toml()?
        );
        write_atomic(&path.join(CONFIG), |writer| {
            Ok(writer.write_all(text.as_bytes())?)
        })?;
        Ok(folder)
    }

    /// Takes the folder of a run to be continued.
    pub fn take(path: &Path) -> Result<Self> {
        let lock = FolderLock::take(path)?;
        for name in [CONFIG, LOG, CHECKPOINT, MODEL, REPORT] {
            remove_leftovers(&path.join(name))?;
        }
        Ok(Self {
            path: path.to_path_buf(),
            _lock: lock,
        })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the model is.
    pub fn model_path(&self) -> PathBuf {
        self.path.join(MODEL)
    }

    /// The settings of the run.
    pub fn settings(&self) -> Result<Settings> {
        Settings::read(&self.path.join(CONFIG))
    }

    /// The last checkpoint, if one was written.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        let path = self.path.join(CHECKPOINT);
        if !path.exists() {
            return Ok(None);
        }
        Checkpoint::from_bytes(&read_bytes(&path)?)
            .map(Some)
            .map_err(|source| Error::about(&path, source))
    }

    /// Writes the checkpoint.
    pub fn write_checkpoint(&self, checkpoint: &Checkpoint) -> Result<()> {
        let bytes = checkpoint.to_bytes()?;
        write_atomic(&self.path.join(CHECKPOINT), |writer| {
            Ok(writer.write_all(&bytes)?)
        })
    }

    /// Writes the model.
    pub fn write_model(&self, model: &Model) -> Result<()> {
        let bytes = model.to_bytes()?;
        write_atomic(&self.model_path(), |writer| Ok(writer.write_all(&bytes)?))
    }

    /// Opens the log, without what lies beyond `steps`: those steps are done again. Also returns the seconds of training
    /// that the kept lines tell of.
    pub fn log(&self, steps: u64) -> Result<(Log, f64)> {
        let path = self.path.join(LOG);
        let (kept, seconds) = match fs::read_to_string(&path) {
            Ok(text) => kept_lines(&text, steps),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => (String::new(), 0.0),
            Err(source) => return Err(Error::Read { path, source }),
        };
        write_atomic(&path, |writer| Ok(writer.write_all(kept.as_bytes())?))?;
        let file = OpenOptions::new().append(true).open(&path);
        match file {
            Ok(file) => Ok((Log { file, path }, seconds)),
            Err(source) => Err(Error::Write { path, source }),
        }
    }
}

/// The lines of steps up to `steps`, and the seconds on the last of them. A line cut short by a kill is not kept.
fn kept_lines(text: &str, steps: u64) -> (String, f64) {
    let (mut kept, mut seconds) = (String::new(), 0.0);
    for line in text.split_inclusive('\n').filter(|l| l.ends_with('\n')) {
        let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        if entry["step"].as_u64().is_some_and(|step| step <= steps) {
            kept += line;
            seconds = entry["seconds"].as_f64().unwrap_or(seconds);
        }
    }
    (kept, seconds)
}

/// One JSON object per line.
pub struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    /// Appends a line.
    pub fn write(&mut self, entry: &serde_json::Value) -> Result<()> {
        let line = format!("{entry}\n");
        self.file
            .write_all(line.as_bytes())
            .map_err(|source| Error::Write {
                path: self.path.clone(),
                source,
            })
    }

    /// Makes sure that the lines so far are on disk: a checkpoint must not be ahead of its log.
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_not_taken_over_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs/a");
        RunFolder::refuse_existing(&path, false).unwrap();
        let run = RunFolder::create(&path, &Settings::default()).unwrap();
        assert!(matches!(
            RunFolder::refuse_existing(&path, false),
            Err(Error::RunExists { .. })
        ));
        RunFolder::refuse_existing(&path, true).unwrap();
        assert!(RunFolder::has_run(&path) && run.checkpoint().unwrap().is_none());
        assert_eq!(run.settings().unwrap(), Settings::default());
        assert!(matches!(RunFolder::take(&path), Err(Error::Busy { .. })));
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(RunFolder::refuse_existing(&file, true).is_err());
    }

    #[test]
    fn the_log_is_cut_to_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path(), &Settings::default()).unwrap();
        let (mut log, seconds) = run.log(0).unwrap();
        assert_eq!(seconds, 0.0);
        for step in 1..=5 {
            log.write(&serde_json::json!({ "step": step, "seconds": 0.5 * f64::from(step) }))
                .unwrap();
        }
        log.sync().unwrap();
        let path = folder.path().join(LOG);
        let mut text = fs::read_to_string(&path).unwrap();
        text += "{\"step\": 2, \"sec";
        fs::write(&path, &text).unwrap();
        let (mut log, seconds) = run.log(3).unwrap();
        assert_eq!(seconds, 1.5);
        log.write(&serde_json::json!({ "step": 4 })).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.ends_with("{\"step\":4}\n"));
    }
}
