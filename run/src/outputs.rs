//! Everything a command will write, looked at as one before its work begins, and written so that nothing is lost: names are
//! distinct, their folders can be written to, and what is there stays unless replacing it was asked for.

use crate::company;
use crate::error::{Error, Result};
use crate::files::{create_temporary, folder_of, is_device, write_atomic, write_new};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Refuses, before any work, results that could not all be written after it.
pub fn plan<'a>(paths: impl IntoIterator<Item = &'a Path>, force: bool) -> Result<()> {
    company::once(|| (), || plan_alone(paths, force))
}

fn plan_alone<'a>(paths: impl IntoIterator<Item = &'a Path>, force: bool) -> Result<()> {
    let mut places = Vec::new();
    for path in paths {
        // A device or a pipe is written through, not replaced.
        if is_device(path) {
            continue;
        }
        refuse_archive(path)?;
        let place = place_of(path)?;
        if places.contains(&place) {
            return Err(Error::Twice {
                path: path.to_path_buf(),
            });
        }
        places.push(place);
        refuse_existing(path, force)?;
        try_to_write(path)?;
    }
    Ok(())
}

/// Archives are read and not written: an array under such a name could not be read again.
fn refuse_archive(path: &Path) -> Result<()> {
    match path.extension().is_some_and(|end| end == "npz") {
        false => Ok(()),
        true => Err(Error::Usage(format!(
            "{}: archives are read, not written; call the result {}",
            path.display(),
            path.with_extension("npy").display()
        ))),
    }
}

/// Makes a folder for results, if there is none, and refuses one that cannot be written to.
pub fn plan_folder(folder: &Path) -> Result<()> {
    let alone = || {
        fs::create_dir_all(folder).map_err(|source| Error::NoPlace {
            path: folder.to_path_buf(),
            source,
        })?;
        try_to_write(&folder.join("probe"))
    };
    company::once(|| (), alone)
}

/// Writes a result, whole or not at all. Without `force`, what has appeared under its name since it was planned stays, and the
/// result is kept under another name, which the error tells.
pub fn write(
    path: &Path,
    force: bool,
    fill: impl FnOnce(&mut dyn Write) -> diffclf::Result<()>,
) -> Result<()> {
    match force {
        true => write_atomic(path, fill),
        false => write_new(path, fill),
    }
}

/// Refuses a name that exists, unless it may be replaced.
pub fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    company::once(|| (), || refuse_existing_alone(path, force))
}

fn refuse_existing_alone(path: &Path, force: bool) -> Result<()> {
    let exists = fs::symlink_metadata(path).is_ok() && !is_device(path);
    if path.is_dir() || exists && !force {
        return Err(match path.is_dir() {
            true => Error::NoPlace {
                path: path.to_path_buf(),
                source: std::io::ErrorKind::IsADirectory.into(),
            },
            false => Error::Exists {
                path: path.to_path_buf(),
            },
        });
    }
    Ok(())
}

/// The file that a name stands for, whatever way it is written and whatever links lead there.
fn place_of(path: &Path) -> Result<PathBuf> {
    let no_place = |source| Error::NoPlace {
        path: path.to_path_buf(),
        source,
    };
    if let Ok(place) = fs::canonicalize(path) {
        return Ok(place);
    }
    let name = path
        .file_name()
        .ok_or_else(|| no_place(std::io::ErrorKind::InvalidFilename.into()))?;
    let folder = fs::canonicalize(folder_of(path)).map_err(no_place)?;
    Ok(folder.join(name))
}

/// A file is made beside the place and goes again: permissions alone do not tell.
fn try_to_write(path: &Path) -> Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let no_place = |source| Error::NoPlace {
        path: path.to_path_buf(),
        source,
    };
    let (file, temporary) = create_temporary(&target).map_err(no_place)?;
    drop(file);
    fs::remove_file(temporary).map_err(no_place)
}

#[cfg(test)]
mod tests {
    use super::*;
    fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn paths(place: &Path, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| place.join(name)).collect()
    }

    fn planned(place: &Path, names: &[&str], force: bool) -> Result<()> {
        plan(paths(place, names).iter().map(PathBuf::as_path), force)
    }

    #[test]
    fn an_array_is_not_called_an_archive() {
        let place = tempfile::tempdir().unwrap();
        let told = planned(place.path(), &["a.npz"], true).unwrap_err();
        assert!(told.to_string().contains("a.npy"), "{told}");
    }

    #[test]
    fn one_name_given_twice_is_refused_however_it_is_written() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("sub")).unwrap();
        planned(place.path(), &["y.npy", "z.npy", "sub/y.npy"], false).unwrap();
        for other in ["y.npy", "./y.npy", "sub/../y.npy"] {
            for force in [false, true] {
                let error = planned(place.path(), &["y.npy", other], force).unwrap_err();
                assert!(matches!(error, Error::Twice { .. }), "{other}: {error}");
            }
        }
        // Two results may go nowhere.
        #[cfg(unix)]
        plan([Path::new("/dev/null"), Path::new("/dev/null")], false).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_to_one_file_are_one_name() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("real"), "old").unwrap();
        std::os::unix::fs::symlink(place.path().join("real"), place.path().join("link")).unwrap();
        let error = planned(place.path(), &["real", "link"], true).unwrap_err();
        assert!(matches!(error, Error::Twice { .. }), "{error}");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_found_before_the_work() {
        let place = tempfile::tempdir().unwrap();
        for name in ["no/such/out.npy", ""] {
            let error = planned(place.path(), &[name], true).unwrap_err();
            assert!(matches!(error, Error::NoPlace { .. }), "{name}: {error}");
        }
        fs::write(place.path().join("file"), "x").unwrap();
        assert!(planned(place.path(), &["file/out.npy"], true).is_err());
        // Looking leaves nothing behind.
        planned(place.path(), &["out.npy"], false).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_replaced_unasked() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        planned(place.path(), &["out"], false).unwrap();
        // It appears while the program works.
        fs::write(&path, "precious").unwrap();
        assert!(matches!(
            planned(place.path(), &["out"], false),
            Err(Error::Exists { .. })
        ));
        let error = write(&path, false, |writer| Ok(writer.write_all(b"result")?)).unwrap_err();
        let Error::Appeared { kept, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(read_bytes(&path).unwrap(), b"precious");
        assert_eq!(read_bytes(kept).unwrap(), b"result");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
        planned(place.path(), &["out"], true).unwrap();
        write(&path, true, |writer| Ok(writer.write_all(b"result")?)).unwrap();
        assert_eq!(read_bytes(&path).unwrap(), b"result");
    }
}
