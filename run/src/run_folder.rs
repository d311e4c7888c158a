//! The run folder: `config.toml`, `data.sha256`, `log.jsonl`, `checkpoint.safetensors`, `model.safetensors` and `report.html`, each whole
//! at any moment.

use crate::company;
use crate::error::{Error, Result};
use crate::files::{FolderLock, read_container, read_text, remove_leftovers, write_atomic};
use crate::settings::Settings;
use diffclf::model::{CheckpointOf, Describes, ModelOf};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the settings in a run folder.
pub const CONFIG: &str = "config.toml";
/// Name of the log in a run folder.
pub const LOG: &str = "log.jsonl";
/// Name of the digests of the data in a run folder, as `sha256sum --check` reads them.
const DATA: &str = "data.sha256";
const CHECKPOINT: &str = "checkpoint.safetensors";
/// Name of the page in a run folder.
pub const REPORT: &str = "report.html";
/// Name of the model in a run folder.
pub const MODEL: &str = "model.safetensors";

/// A folder held by this process.
pub struct RunFolder {
    path: PathBuf,
    lock: FolderLock,
}

/// All files of a run. The checkpoint goes first: without it nothing of an old run can be continued by mistake; the settings go last,
/// for without them there is no run.
const FILES: [&str; 6] = [CHECKPOINT, MODEL, LOG, REPORT, DATA, CONFIG];

impl RunFolder {
    /// Refuses a folder that holds a run already, before any work is done.
    pub fn refuse_existing(path: &Path, force: bool) -> Result<()> {
        company::once(|| (), || Self::refuse_existing_alone(path, force))
    }

    fn refuse_existing_alone(path: &Path, force: bool) -> Result<()> {
        if path.exists() && !path.is_dir() {
            return Err(Error::NotAFolder {
                path: path.to_path_buf(),
            });
        }
        let occupied = FILES
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
        company::agreed(path.join(CONFIG).is_file())
    }

    /// Takes the folder for a new run on the data with these digests and names. What an earlier run left there is deleted if that is
    /// asked for; otherwise a run that came in the meantime is refused.
    pub fn create(
        path: &Path,
        settings: &Settings,
        data: &[(String, String)],
        force: bool,
    ) -> Result<Self> {
        let make = || {
            fs::create_dir_all(path).map_err(|source| Error::NoPlace {
                path: path.to_path_buf(),
                source,
            })
        };
        company::once(|| (), make)?;
        let folder = Self::take(path)?;
        // Nobody else can write there from now on.
        Self::refuse_existing(path, force)?;
        let clear = || {
            for name in FILES {
                let file = path.join(name);
                match fs::remove_file(&file) {
                    Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::Write { path: file, source });
                    }
                    _ => {}
                }
            }
            Ok(())
        };
        company::once(|| (), clear)?;
        if !data.is_empty() {
            let lines: String = data
                .iter()
                .map(|(sha256, name)| format!("{sha256}  {name}\n"))
                .collect();
            write_atomic(&path.join(DATA), |writer| {
                Ok(writer.write_all(lines.as_bytes())?)
            })?;
        }
        folder.write_settings(settings)?;
        Ok(folder)
    }

    /// Writes the settings of the run.
    pub fn write_settings(&self, settings: &Settings) -> Result<()> {
        let text = format!(
            "# The settings of this run, defaults included. Repeat it elsewhere with\n#   diffclf train --config {CONFIG} -o \
             OTHER-FOLDER\n{}",
            settings.to_toml()?
        );
        write_atomic(&self.path.join(CONFIG), |writer| {
            Ok(writer.write_all(text.as_bytes())?)
        })
    }

    /// Takes the folder of a run to be continued.
    pub fn take(path: &Path) -> Result<Self> {
        let lock = FolderLock::take(path)?;
        for name in FILES {
            remove_leftovers(&path.join(name))?;
        }
        Ok(Self {
            path: path.to_path_buf(),
            lock,
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

    /// Digests of the data that the run was begun with; none where the rows are a system's.
    pub fn data(&self) -> Result<Vec<String>> {
        let path = self.path.join(DATA);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let sums = |line: &str| Some(line.split_once("  ")?.0.to_string());
        Ok(read_text(&path)?.lines().filter_map(sums).collect())
    }

    /// The last checkpoint, if one was written.
    pub fn checkpoint<C: Describes>(&self) -> Result<Option<CheckpointOf<C>>> {
        let path = self.path.join(CHECKPOINT);
        if !path.exists() {
            return Ok(None);
        }
        CheckpointOf::from_bytes(&read_container(&path)?)
            .map(Some)
            .map_err(|source| Error::about(&path, source))
    }

    /// Writes the checkpoint.
    pub fn write_checkpoint<C: Describes>(&self, checkpoint: &CheckpointOf<C>) -> Result<()> {
        self.lock.check()?;
        let bytes = checkpoint.to_bytes()?;
        write_atomic(&self.path.join(CHECKPOINT), |writer| {
            Ok(writer.write_all(&bytes)?)
        })
    }

    /// Writes the model.
    pub fn write_model<C: Describes>(&self, model: &ModelOf<C>) -> Result<()> {
        self.lock.check()?;
        let bytes = model.to_bytes()?;
        write_atomic(&self.model_path(), |writer| Ok(writer.write_all(&bytes)?))
    }

    /// Opens the log, without what lies beyond `steps`: those steps are done again. Also returns the seconds of training
    /// that the kept lines tell of.
    pub fn log(&self, steps: u64) -> Result<(Log, f64)> {
        let path = self.path.join(LOG);
        let (kept, seconds) = match fs::read(&path) {
            Ok(bytes) => kept_lines(&bytes, steps),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => (String::new(), 0.0),
            Err(source) => return Err(Error::Read { path, source }),
        };
        write_atomic(&path, |writer| Ok(writer.write_all(kept.as_bytes())?))?;
        let open = || OpenOptions::new().append(true).open(&path).map(Some);
        let writing = |source| Error::Write {
            path: path.clone(),
            source,
        };
        let file = company::once(|| None, || open().map_err(writing))?;
        Ok((Log { file, path }, seconds))
    }
}

/// The lines of steps up to `steps`, and the seconds on the last of them. A line cut short by a kill is not kept, nor one that a bad
/// disk has spoiled: a figure of the log is not worth a run.
fn kept_lines(bytes: &[u8], steps: u64) -> (String, f64) {
    let (mut kept, mut seconds) = (String::new(), 0.0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        if !line.ends_with('\n') {
            continue;
        }
        if entry["step"].as_u64().is_some_and(|step| step <= steps) {
            kept += line;
            seconds = entry["seconds"].as_f64().unwrap_or(seconds).max(0.0);
        }
    }
    (kept, seconds)
}

/// One JSON object per line.
pub struct Log {
    /// None where the first process of a company has it.
    file: Option<File>,
    path: PathBuf,
}

impl Log {
    /// Appends a line.
    pub fn write(&mut self, entry: &serde_json::Value) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let line = format!("{entry}\n");
        file.write_all(line.as_bytes())
            .map_err(|source| Error::Write {
                path: self.path.clone(),
                source,
            })
    }

    /// Makes sure that the lines so far are on disk: a checkpoint must not be ahead of its log.
    pub fn sync(&mut self) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        file.sync_data().map_err(|source| Error::Write {
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
        let run = RunFolder::create(&path, &Settings::default(), &[], false).unwrap();
        assert!(matches!(
            RunFolder::refuse_existing(&path, false),
            Err(Error::RunExists { .. })
        ));
        RunFolder::refuse_existing(&path, true).unwrap();
        let none = run
            .checkpoint::<diffclf::model::Content>()
            .unwrap()
            .is_none();
        assert!(RunFolder::has_run(&path) && none);
        assert_eq!(run.settings().unwrap(), Settings::default());
        assert!(matches!(RunFolder::take(&path), Err(Error::Busy { .. })));
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(RunFolder::refuse_existing(&file, true).is_err());
    }

    /// Two trainings that both found the folder empty: the second one to come finds it taken, or a finished run in it.
    #[test]
    fn a_run_that_came_in_the_meantime_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let create = |force| RunFolder::create(&path, &Settings::default(), &[], force);
        RunFolder::refuse_existing(&path, false).unwrap();
        drop(create(false).unwrap());
        fs::write(path.join(MODEL), "precious").unwrap();
        assert!(matches!(create(false), Err(Error::RunExists { .. })));
        assert_eq!(fs::read(path.join(MODEL)).unwrap(), b"precious");
        create(true).unwrap();
        assert!(!path.join(MODEL).exists());
    }

    #[test]
    fn a_page_of_somebody_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join(REPORT);
        fs::write(&page, "precious").unwrap();
        for refused in [
            RunFolder::refuse_existing(folder.path(), false),
            RunFolder::create(folder.path(), &Settings::default(), &[], false).map(|_| ()),
        ] {
            assert!(matches!(refused, Err(Error::RunExists { .. })));
        }
        assert_eq!(fs::read(&page).unwrap(), b"precious");
    }

    #[test]
    fn the_log_is_cut_to_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let data = [("12ab".into(), "/data/a  b.npy".into())];
        let run = RunFolder::create(folder.path(), &Settings::default(), &data, false).unwrap();
        assert_eq!(run.data().unwrap(), ["12ab"]);
        let (mut log, seconds) = run.log(0).unwrap();
        assert_eq!(seconds, 0.0);
        for step in 1..=5 {
            log.write(&serde_json::json!({ "step": step, "seconds": 0.5 * f64::from(step) }))
                .unwrap();
        }
        log.sync().unwrap();
        let path = folder.path().join(LOG);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend(b"{\"step\": 2, \"note\": \"\xff\"}\n{\"step\": 2, \"sec");
        fs::write(&path, &bytes).unwrap();
        let (mut log, seconds) = run.log(3).unwrap();
        assert_eq!(seconds, 1.5);
        log.write(&serde_json::json!({ "step": 4 })).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.ends_with("{\"step\":4}\n"));
    }
}
