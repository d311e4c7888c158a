//! Files without surprises: results appear whole or not at all, nothing is replaced unasked, arrays are mapped and
//! not loaded.

use crate::archive;
use crate::company;
use crate::error::{Error, Result};
use crate::memory;
use crate::origin::Stamp;
use crate::run_folder::MODEL;
use crate::table;
use crate::trajectory;
use diffclf::format::model::{self, START};
use diffclf::format::npy::NpyView;
use diffclf::model::Model;
use memmap2::Mmap;
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::BuildHasher;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Writes a file so that `path` holds either its old content or the whole new one, whatever happens in between: to a
/// temporary name in the same folder, synced, renamed, and the folder synced. Devices and pipes are written directly.
/// For files that are this program's own; results of a command go through [`crate::outputs`].
pub fn write_atomic(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> diffclf::Result<()>,
) -> Result<()> {
    write_whole(path, true, fill)
}

/// The same for a name that must not exist. What appears there in the meantime stays, and the new content is kept under the
/// next free name, which the error tells.
pub fn write_new(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> diffclf::Result<()>,
) -> Result<()> {
    write_whole(path, false, fill)
}

fn write_whole(
    path: &Path,
    replace: bool,
    fill: impl FnOnce(&mut dyn Write) -> diffclf::Result<()>,
) -> Result<()> {
    company::once(|| (), || write_alone(path, replace, fill))
}

fn write_alone(
    path: &Path,
    replace: bool,
    fill: impl FnOnce(&mut dyn Write) -> diffclf::Result<()>,
) -> Result<()> {
    if is_device(path) {
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(writing(path))?;
        let mut writer = BufWriter::new(file);
        fill(&mut writer).map_err(|source| Error::about(path, source))?;
        return writer.flush().map_err(writing(path));
    }
    // Through a link, the file it points to is replaced and the link stays.
    let target = match replace {
        true => fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()),
        false => path.to_path_buf(),
    };
    if target.is_dir() {
        return Err(writing(path)(ErrorKind::IsADirectory.into()));
    }
    let (file, temporary) = create_temporary(&target).map_err(writing(path))?;
    let written = fill_and_sync(path, file, fill).and_then(|()| match replace {
        true => fs::rename(&temporary, &target).map_err(writing(path)),
        false => settle(&temporary, &target),
    });
    if written.is_err() {
        // The error itself is what the caller needs to hear of; a temporary file that stays is harmless.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_folder(&target).map_err(writing(path))
}

fn fill_and_sync(
    path: &Path,
    file: File,
    fill: impl FnOnce(&mut dyn Write) -> diffclf::Result<()>,
) -> Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    fill(&mut writer).map_err(|source| Error::about(path, source))?;
    let file = writer
        .into_inner()
        .map_err(|error| writing(path)(error.into_error()))?;
    file.sync_all().map_err(writing(path))
}

/// Gives a finished file its name, or the next free one if somebody else has taken it since.
fn settle(temporary: &Path, target: &Path) -> Result<()> {
    match rename_new(temporary, target) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => return other.map_err(writing(target)),
    }
    for k in 2..1000 {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{k}"));
        let kept = PathBuf::from(name);
        match rename_new(temporary, &kept) {
            Ok(()) => {
                return Err(Error::Appeared {
                    path: target.to_path_buf(),
                    kept,
                });
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(writing(&kept)(error)),
        }
    }
    Err(Error::Exists {
        path: target.to_path_buf(),
    })
}

/// A rename that never replaces: a second name for the file, which fails where there is one, and the first name goes.
fn rename_new(temporary: &Path, target: &Path) -> std::io::Result<()> {
    match fs::hard_link(temporary, target) {
        Ok(()) => fs::remove_file(temporary),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links: a file made exclusively holds the place.
        Err(_) => {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(target)?;
            fs::rename(temporary, target)
        }
    }
}

/// The rename itself must reach the disk: on Unix that is the folder's content.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(unix) {
        File::open(folder_of(path))?.sync_all()
    } else {
        Ok(())
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// How temporary names for `target` begin: hidden, beside it (a rename works within one file system only). Long names are cut, so that
/// there is room for the rest.
fn temporary_prefix(target: &Path) -> Option<String> {
    let name = target.file_name()?.to_string_lossy();
    Some(format!(".{}.", name.chars().take(48).collect::<String>()))
}

/// A new file that no other process can have prepared: the name cannot be guessed, and nothing that exists is opened.
pub(crate) fn create_temporary(target: &Path) -> std::io::Result<(File, PathBuf)> {
    let prefix = temporary_prefix(target).ok_or(ErrorKind::InvalidFilename)?;
    loop {
        // The keys of a hasher are the standard library's random numbers.
        let random = RandomState::new().hash_one(std::process::id());
        let path = target.with_file_name(format!("{prefix}{random:016x}.tmp"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (file, path)),
        }
    }
}

/// Removes what a killed process left of unfinished writes to `path`. Only for a caller that holds the folder's lock.
pub fn remove_leftovers(path: &Path) -> Result<()> {
    company::once(|| (), || remove_leftovers_alone(path))
}

fn remove_leftovers_alone(path: &Path) -> Result<()> {
    let Some(start) = temporary_prefix(path) else {
        return Ok(());
    };
    for entry in fs::read_dir(folder_of(path)).map_err(reading(folder_of(path)))? {
        let entry = entry.map_err(reading(folder_of(path)))?;
        let found = entry.file_name().to_string_lossy().into_owned();
        let random = found
            .strip_prefix(&start)
            .and_then(|rest| rest.strip_suffix(".tmp"));
        // Digits of a random number, or of a process as earlier releases had it.
        if random.is_some_and(|text| u64::from_str_radix(text, 16).is_ok()) {
            fs::remove_file(entry.path()).map_err(writing(&entry.path()))?;
        }
    }
    Ok(())
}

/// How long a folder is asked for again: a process that was killed, or whose company was, needs a moment to be gone.
const PATIENCE: Duration = Duration::from_secs(3);

/// Holds a run folder for this process and its company; another process that asks is refused. The system frees it even after a kill.
#[derive(Debug)]
pub struct FolderLock {
    /// None where the first process of a company has it.
    file: Option<File>,
    path: PathBuf,
}

impl FolderLock {
    /// Takes the folder, which must exist.
    pub fn take(folder: &Path) -> Result<Self> {
        let path = folder.join(".lock");
        let elsewhere = Self {
            file: None,
            path: path.clone(),
        };
        company::once(|| elsewhere, || Self::take_alone(folder, path))
    }

    fn take_alone(folder: &Path, path: PathBuf) -> Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(writing(&path))?;
        let asked = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if asked.elapsed() < PATIENCE => {
                    thread::sleep(Duration::from_millis(50));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::Busy {
                        path: folder.to_path_buf(),
                    });
                }
                Err(TryLockError::Error(source)) => return Err(writing(&path)(source)),
            }
        }
        let file = Some(file);
        let lock = Self { file, path };
        lock.check()?;
        Ok(lock)
    }

    /// Refuses to go on in a folder that was deleted since, or deleted and made again by another process: the lock is the file's, not
    /// the name's.
    pub fn check(&self) -> Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let Some(file) = &self.file else {
                return Ok(());
            };
            let ours = file.metadata().map_err(writing(&self.path))?;
            let there = fs::metadata(&self.path).map_err(writing(&self.path))?;
            if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
                return Err(Error::Busy {
                    path: folder_of(&self.path).to_path_buf(),
                });
            }
        }
        Ok(())
    }
}

/// A memory-mapped file with an array: arrays larger than memory are read in place. Tables and packed members of archives are read into
/// memory, in the form of a .npy file.
#[derive(Debug)]
pub struct MappedNpy {
    map: Mmap,
    place: Place,
    names: Vec<String>,
    path: PathBuf,
    file: File,
    opened: Stamp,
}

/// Where the array is.
#[derive(Debug)]
enum Place {
    /// A part of the file.
    Part(std::ops::Range<usize>),
    /// In memory.
    Own(Vec<u8>),
}

impl MappedNpy {
    /// Maps the file and checks that it holds an array which can be read: a .npy file, a .csv or .tsv table, frames of atoms (.xtc, .dcd
    /// or .pdb, in nm), or an array of a .npz archive, named as in `data.npz:key` where there are several.
    pub fn open(path: &Path) -> Result<Self> {
        let archive = archive::split(path);
        let (path, key) = match &archive {
            Some((path, key)) => (path.as_path(), key.as_deref()),
            None => (path, None),
        };
        let file = open_regular(path)?;
        let opened = stamp_of(&file).map_err(reading(path))?;
        // SAFETY: the map is only read. Its content would change under us if another process wrote to the file at
        // the same time; we then compute with wrong numbers, or the system ends us if the file shrinks. That is the
        // price of data larger than memory, and the reason why our own writers never write in place.
        let map = unsafe { Mmap::map(&file) }.map_err(reading(path))?;
        if map.starts_with(b"PAR1") {
            return Err(Error::Usage(format!(
                "{}: a .parquet file, which is not read; write it as a table, in Python: pandas.read_parquet({:?}).to_csv('data.csv', index=False)",
                path.display(),
                path.display().to_string()
            )));
        }
        let (place, names) = if archive.is_some() {
            let place = match archive::member(path, &map, key)? {
                archive::Member::Stored(part) => Place::Part(part),
                archive::Member::Unpacked(array) => Place::Own(array),
            };
            (place, Vec::new())
        } else if table::is_table(path) {
            let table = table::read(path, &map)?;
            (Place::Own(table.array), table.names)
        } else if let Some(kind) = trajectory::kind_of(path) {
            let array = trajectory::as_array(path, kind, &map)?;
            (Place::Own(array), Vec::new())
        } else {
            (Place::Part(0..map.len()), Vec::new())
        };
        let mapped = Self {
            map,
            place,
            names,
            path: path.to_path_buf(),
            file,
            opened,
        };
        mapped.view()?;
        Ok(mapped)
    }

    /// The array as rows.
    pub fn view(&self) -> Result<NpyView<'_>> {
        NpyView::parse(self.array()).map_err(|source| Error::about(&self.path, source))
    }

    /// The array as the bytes of a .npy file.
    pub(crate) fn array(&self) -> &[u8] {
        match &self.place {
            Place::Part(part) => &self.map[part.clone()],
            Place::Own(array) => array,
        }
    }

    /// Names of the columns, where the file has any.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Tells the system that rows will be read out of order: without reading ahead, which on a file larger than memory costs thousands of
    /// rows for each one that is wanted.
    pub fn read_out_of_order(&self) -> Result<()> {
        #[cfg(unix)]
        self.map
            .advise(memmap2::Advice::Random)
            .map_err(reading(&self.path))?;
        Ok(())
    }

    /// The whole file, as for a digest of the data.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// What the system said of the file when it was opened.
    pub(crate) fn opened(&self) -> Stamp {
        self.opened
    }

    /// What it says now.
    pub(crate) fn stamp(&self) -> Result<Stamp> {
        stamp_of(&self.file).map_err(reading(&self.path))
    }

    /// Where it came from.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Bytes of the longest settings, logs and tables that are read.
const LONGEST_TEXT: u64 = 1 << 28;

/// A file of text: settings, a log, a table. Devices and pipes, which may never end, are refused, and so is what is no text by its
/// size.
pub fn read_text(path: &Path) -> Result<String> {
    let text = String::from_utf8(read_bytes(path)?);
    text.map_err(|_| reading(path)(ErrorKind::InvalidData.into()))
}

/// A small file of any kind, under the same conditions.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = open_regular(path)?.take(LONGEST_TEXT + 1);
    file.read_to_end(&mut bytes).map_err(reading(path))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        return Err(reading(path)(ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}

/// The model file a person means: itself, or the one in a run folder.
pub fn model_path(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join(MODEL)
    } else {
        path.to_path_buf()
    }
}

/// Reads a model, given its file or its run folder.
pub fn read_model(path: &Path) -> Result<Model> {
    let path = model_path(path);
    let model = Model::from_bytes(&read_container(&path)?);
    let model = model.map_err(|source| match &source {
        diffclf::Error::ModelContent { problem } if problem.starts_with("it is a model of states") => Error::Usage(format!(
            "{} is a model of states, and this is a question about rows of numbers; density, sample, diagnose, evaluate, anneal, compose and report know both",
            path.display()
        )),
        _ => Error::about(&path, source),
    })?;
    memory::refuse_model(&model.content.spec)?;
    Ok(model)
}

/// The bytes of a model or a checkpoint. A file that does not begin like one is refused before it is read, and so is one that does
/// not fit in memory.
pub fn read_container(path: &Path) -> Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let bytes = file.metadata().map_err(reading(path))?.len();
    let mut start = Vec::with_capacity(START);
    let mut beginning = Read::by_ref(&mut file).take(START as u64);
    beginning.read_to_end(&mut start).map_err(reading(path))?;
    let header = model::peek(&start).map_err(|source| Error::about(path, source))?;
    // The file, its tensors, and the description as text and as values.
    let needed = 3 * u128::from(bytes) + 8 * (header as u128).min(bytes.into());
    memory::refuse(path.display().to_string(), needed)?;
    let mut all = start;
    file.read_to_end(&mut all).map_err(reading(path))?;
    Ok(all)
}

fn stamp_of(file: &File) -> std::io::Result<Stamp> {
    let metadata = file.metadata()?;
    Ok(Stamp {
        bytes: metadata.len(),
        modified: metadata.modified().ok(),
    })
}

fn open_regular(path: &Path) -> Result<File> {
    // Asked before it is opened: to open a pipe waits for somebody to write.
    let metadata = fs::metadata(path).map_err(reading(path))?;
    if metadata.is_dir() {
        return Err(reading(path)(ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        return Err(reading(path)(std::io::Error::other(
            "it is a device or a pipe, expected a file on disk",
        )));
    }
    File::open(path).map_err(reading(path))
}

pub(crate) fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

fn reading(path: &Path) -> impl Fn(std::io::Error) -> Error {
    |source| Error::Read {
        path: path.to_path_buf(),
        source,
    }
}

fn writing(path: &Path) -> impl Fn(std::io::Error) -> Error {
    |source| Error::Write {
        path: path.to_path_buf(),
        source,
    }
}

#[cfg(test)]
mod tests;
