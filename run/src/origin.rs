//! `Origin`: the file that rows come from, and whether it still is what it was when it was opened. Rows are read in place, so a file
//! that is written to during a training would make a model of neither the old numbers nor the new.

use crate::error::Result;
use crate::files::MappedNpy;
use diffclf::format::sha256_hex;
use std::sync::Arc;
use std::time::SystemTime;

/// Up to this size a file is read again at the end, whatever the system says of its changes.
const SMALL: u64 = 1 << 28;

/// What the system says of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    pub(crate) modified: Option<SystemTime>,
}

/// A file that is trained on.
#[derive(Debug)]
pub struct Origin {
    map: Arc<MappedNpy>,
    sha256: String,
    seen: Stamp,
}

impl Origin {
    pub(crate) fn new(map: Arc<MappedNpy>, sha256: String) -> Self {
        let seen = map.opened();
        Self { map, sha256, seen }
    }

    /// The file's name as it was given.
    pub fn name(&self) -> String {
        self.map.path().display().to_string()
    }

    /// Digest of the file when it was opened.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Whether the file is what it was. Its content is read again where its size or date tells of a change, and in the end.
    pub fn unchanged(&mut self, in_the_end: bool) -> Result<bool> {
        let now = self.map.stamp()?;
        if now.bytes < self.seen.bytes {
            // What the map shows beyond the new end can no longer be read.
            return Ok(false);
        }
        if now == self.seen && !(in_the_end && now.bytes <= SMALL) {
            return Ok(true);
        }
        let same = sha256_hex(self.map.bytes()) == self.sha256 && now.bytes == self.seen.bytes;
        self.seen = now;
        Ok(same)
    }
}

#[cfg(test)]
mod tests {
    use crate::data::DataSet;
    use crate::files::write_atomic;
    use diffclf::format::npy::write_npy;
    use std::fs::OpenOptions;
    use std::io::{Seek, SeekFrom, Write};

    #[test]
    fn a_change_in_place_is_seen_and_a_new_date_is_none() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("rows.npy");
        let write = |path: &std::path::Path| {
            write_atomic(path, |writer| {
                write_npy(&[3, 2], &[1.0f64, 2.0, 3.5, 4.0, 5.0, 7.0], writer)
            })
            .unwrap();
        };
        write(&path);
        let mut origin = DataSet::file(&path).unwrap().origin().unwrap();
        assert!(origin.unchanged(false).unwrap() && origin.unchanged(true).unwrap());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let hour = std::time::Duration::from_secs(3600);
        file.set_modified(std::time::SystemTime::now() - hour)
            .unwrap();
        assert!(origin.unchanged(false).unwrap());
        // Another file under the same name is not the one that is read.
        write(&path);
        assert!(origin.unchanged(true).unwrap());
        let mut origin = DataSet::file(&path).unwrap().origin().unwrap();
        let mut file = OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::End(-8)).unwrap();
        file.write_all(&8.0f64.to_le_bytes()).unwrap();
        assert!(!origin.unchanged(true).unwrap());
        write(&path);
        let mut origin = DataSet::file(&path).unwrap().origin().unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(100).unwrap();
        assert!(!origin.unchanged(false).unwrap());
    }
}
