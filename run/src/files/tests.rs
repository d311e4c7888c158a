//! Files without surprises: whole or not at all, locked, mapped.

use super::*;
use diffclf::format::npy::write_npy;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_write_is_whole_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.bin");
    write_atomic(&path, |writer| Ok(writer.write_all(b"first")?)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    let error = write_atomic(&path, |writer| {
        writer.write_all(&[0; 100_000])?;
        Err(std::io::Error::from(ErrorKind::StorageFull).into())
    });
    assert!(matches!(error, Err(Error::Write { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"first");
    write_atomic(&path, |writer| Ok(writer.write_all(b"second")?)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(names(folder.path()), ["out.bin"]);
}

#[test]
fn unwritable_places_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/out.npy");
    let message = write_atomic(&missing, |_| Ok(())).unwrap_err().to_string();
    assert!(
        message.contains("no/such/out.npy") && message.contains("create the folder"),
        "{message}"
    );
    let message = write_atomic(folder.path(), |_| Ok(()))
        .unwrap_err()
        .to_string();
    assert!(message.contains("folder"), "{message}");
}

#[cfg(unix)]
#[test]
fn devices_are_written_through_and_links_stay() {
    use std::os::unix::fs::FileTypeExt;
    let null = Path::new("/dev/null");
    write_atomic(null, |writer| Ok(writer.write_all(b"x")?)).unwrap();
    assert!(fs::metadata(null).unwrap().file_type().is_char_device());
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write_atomic(&link, |writer| Ok(writer.write_all(b"new")?)).unwrap();
    assert_eq!(fs::read(&real).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let message = MappedNpy::open(null).unwrap_err().to_string();
    assert!(message.contains("device"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_prepared_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("out"), folder.path().join("other"));
    fs::write(&other, "precious").unwrap();
    // The name that earlier releases used.
    let guessed = folder
        .path()
        .join(format!(".out.{}.tmp", std::process::id()));
    std::os::unix::fs::symlink(&other, &guessed).unwrap();
    write_atomic(&path, |writer| Ok(writer.write_all(b"new")?)).unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"precious");
    let [(_, a), (_, b)] = [&path, &path].map(|path| create_temporary(path).unwrap());
    assert_ne!(a, b);
}

#[test]
fn long_names_leave_room_for_the_temporary_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n".repeat(250));
    write_new(&path, |writer| Ok(writer.write_all(b"x")?)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"x");
}

#[test]
fn leftovers_of_killed_runs_go_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "a.bin",
        ".a.bin.123.tmp",
        ".a.bin.0123456789abcdef.tmp",
        ".a.bin.x.tmp",
        ".b.bin.123.tmp",
        "a.bin.tmp",
    ] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    remove_leftovers(&folder.path().join("a.bin")).unwrap();
    assert_eq!(
        names(folder.path()),
        [".a.bin.x.tmp", ".b.bin.123.tmp", "a.bin", "a.bin.tmp"]
    );
}

#[test]
fn a_folder_has_one_holder() {
    let folder = tempfile::tempdir().unwrap();
    let lock = FolderLock::take(folder.path()).unwrap();
    assert!(matches!(
        FolderLock::take(folder.path()),
        Err(Error::Busy { .. })
    ));
    lock.check().unwrap();
    // Who ends while another asks leaves the folder to the one who asks.
    let ends = thread::spawn(move || {
        thread::sleep(PATIENCE / 10);
        drop(lock);
    });
    FolderLock::take(folder.path()).unwrap();
    ends.join().unwrap();
}

#[cfg(unix)]
#[test]
fn a_folder_that_was_made_again_has_a_new_holder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    fs::create_dir(&folder).unwrap();
    let first = FolderLock::take(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(first.check(), Err(Error::Write { .. })));
    fs::create_dir(&folder).unwrap();
    let second = FolderLock::take(&folder).unwrap();
    assert!(matches!(first.check(), Err(Error::Busy { .. })));
    second.check().unwrap();
}

#[test]
fn arrays_are_mapped_and_bad_files_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.npy");
    write_atomic(&path, |writer| {
        write_npy(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], writer)
    })
    .unwrap();
    let mapped = MappedNpy::open(&path).unwrap();
    assert_eq!(
        (
            mapped.view().unwrap().rows(),
            mapped.path(),
            mapped.bytes().len()
        ),
        (2, &*path, 128 + 24)
    );
    let refused = |name: &str, content: Option<&[u8]>| {
        let path = folder.path().join(name);
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        MappedNpy::open(&path).unwrap_err().to_string()
    };
    assert!(refused("missing.npy", None).contains("missing.npy"));
    let message = refused("empty.npy", Some(b""));
    assert!(
        message.contains("empty.npy") && message.contains("an empty file"),
        "{message}"
    );
    let message = refused("cut.npy", Some(&mapped.bytes()[..140]));
    assert!(
        message.contains("cut.npy") && message.contains("24 bytes"),
        "{message}"
    );
    let message = refused("rows.parquet", Some(b"PAR1\x15\x04"));
    assert!(message.contains("to_csv"), "{message}");
    let message = MappedNpy::open(folder.path()).unwrap_err().to_string();
    assert!(message.contains("inside it"), "{message}");
}
