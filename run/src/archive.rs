//! Archives of arrays, `.npz`: a zip file with a .npy file for each array. `data.npz:key` names one; a file with one array needs no key.
//!
//! Read by the central directory (APPNOTE.TXT of PKWARE, 4.3.12): stored and deflated members, up to 4 GiB each and without encryption,
//! as numpy writes them.

use crate::error::{Error, Result};
use crate::memory;
use crate::words;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A member's bytes: where they stand, or unpacked.
pub enum Member {
    /// A part of the file.
    Stored(Range<usize>),
    /// In memory.
    Unpacked(Vec<u8>),
}

/// The file and the key that a name of an archive stands for; none for other names.
pub fn split(path: &Path) -> Option<(PathBuf, Option<String>)> {
    let text = path.to_str()?;
    let lower = text.to_ascii_lowercase();
    if lower.ends_with(".npz") {
        return Some((path.to_path_buf(), None));
    }
    let at = lower.find(".npz:")? + ".npz".len();
    Some((text[..at].into(), Some(text[at + 1..].into())))
}

/// One entry of the directory.
struct Entry<'a> {
    name: &'a str,
    method: u16,
    packed: usize,
    unpacked: usize,
    /// Where its local header stands.
    header: usize,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let part: [u8; N] = bytes.get(at..at.checked_add(N)?)?.try_into().ok()?;
    Some(
        part.iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
    )
}

/// The entries that are arrays; none if the bytes are no archive that can be read.
fn directory(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    // The end of the directory has 22 bytes and a comment of at most 65,535.
    let earliest = bytes.len().saturating_sub(22 + 65_535);
    let end = (earliest..bytes.len().checked_sub(21)?)
        .rev()
        .find(|at| bytes[*at..].starts_with(b"PK\x05\x06"))?;
    let (count, mut at) = (number::<2>(bytes, end + 10)?, number::<4>(bytes, end + 16)?);
    let mut entries = Vec::new();
    for _ in 0..count {
        bytes.get(at..)?.starts_with(b"PK\x01\x02").then_some(())?;
        let length = number::<2>(bytes, at + 28)?;
        let name = bytes.get(at + 46..at + 46 + length)?;
        let entry = Entry {
            name: std::str::from_utf8(name).ok()?,
            method: number::<2>(bytes, at + 10)? as u16,
            packed: number::<4>(bytes, at + 20)?,
            unpacked: number::<4>(bytes, at + 24)?,
            header: number::<4>(bytes, at + 42)?,
        };
        at += 46 + length + number::<2>(bytes, at + 30)? + number::<2>(bytes, at + 32)?;
        if entry.name.ends_with(".npy") {
            entries.push(entry);
        }
    }
    Some(entries)
}

/// The array of that key, or the only one.
pub fn member(path: &Path, bytes: &[u8], key: Option<&str>) -> Result<Member> {
    let wrong = |words: String| Error::Refused(words!(path.display(), ": ", words));
    let damaged =
        || wrong("no archive of arrays that can be read; write it again with numpy.savez".into());
    let entries = directory(bytes).ok_or_else(damaged)?;
    let names: Vec<&str> = entries
        .iter()
        .filter_map(|e| e.name.strip_suffix(".npy"))
        .collect();
    let chosen = match (key, entries.as_slice()) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(key), _) => names
            .iter()
            .position(|name| *name == key)
            .map(|at| &entries[at]),
    };
    let Some(entry) = chosen else {
        return Err(wrong(format!(
            "it holds the arrays {}; name one as in {}:{}",
            names.join(", "),
            path.display(),
            names.first().unwrap_or(&"key")
        )));
    };
    let start = || {
        let after =
            30 + number::<2>(bytes, entry.header + 26)? + number::<2>(bytes, entry.header + 28)?;
        let first = entry.header + after;
        bytes.get(first..first.checked_add(entry.packed)?)?;
        Some(first)
    };
    let first = start().ok_or_else(damaged)?;
    let packed = first..first + entry.packed;
    match entry.method {
        0 => Ok(Member::Stored(packed)),
        8 => {
            memory::refuse(path.display().to_string(), entry.unpacked as u128)?;
            let mut unpacked = Vec::new();
            let most = entry.unpacked as u64;
            let mut reader = flate2::read::DeflateDecoder::new(&bytes[packed]).take(most + 1);
            let read = reader.read_to_end(&mut unpacked);
            match read {
                Ok(length) if length == entry.unpacked => Ok(Member::Unpacked(unpacked)),
                _ => Err(damaged()),
            }
        }
        other => Err(wrong(format!(
            "the array {} is packed by method {other}; write it with numpy.savez or numpy.savez_compressed",
            entry.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A zip file as numpy writes it.
    fn archive(members: &[(&str, &[u8], bool)]) -> Vec<u8> {
        let (mut bytes, mut directory) = (Vec::new(), Vec::new());
        for (name, content, deflate) in members {
            let packed = if *deflate {
                let mut encoder =
                    flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            } else {
                content.to_vec()
            };
            let method: u16 = if *deflate { 8 } else { 0 };
            let shared = |out: &mut Vec<u8>| {
                out.extend(method.to_le_bytes());
                out.extend([0; 8]);
                out.extend((packed.len() as u32).to_le_bytes());
                out.extend((content.len() as u32).to_le_bytes());
                out.extend((name.len() as u16).to_le_bytes());
            };
            let header = bytes.len() as u32;
            bytes.extend(b"PK\x03\x04\x14\0\0\0");
            shared(&mut bytes);
            bytes.extend([3, 0]);
            bytes.extend(name.as_bytes());
            bytes.extend([9; 3]);
            bytes.extend(&packed);
            directory.extend(b"PK\x01\x02\x14\0\x14\0\0\0");
            shared(&mut directory);
            directory.extend([0; 12]);
            directory.extend(header.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let at = bytes.len() as u32;
        let count = (members.len() as u16).to_le_bytes();
        bytes.extend(&directory);
        bytes.extend(b"PK\x05\x06\0\0\0\0");
        bytes.extend([count, count].concat());
        bytes.extend((directory.len() as u32).to_le_bytes());
        bytes.extend(at.to_le_bytes());
        bytes.extend([0, 0]);
        bytes
    }

    #[test]
    fn members_are_found_by_their_keys() {
        let long = vec![7u8; 3000];
        let bytes = archive(&[
            ("a.npy", b"first", false),
            ("b.npy", &long, true),
            ("note.txt", b"x", false),
        ]);
        let path = Path::new("d.npz");
        let content = |key: Option<&str>| match member(path, &bytes, key)? {
            Member::Stored(range) => Ok::<_, Error>(bytes[range].to_vec()),
            Member::Unpacked(content) => Ok(content),
        };
        assert_eq!(content(Some("a")).unwrap(), b"first");
        assert_eq!(content(Some("b")).unwrap(), long);
        for key in [None, Some("c")] {
            let words = content(key).unwrap_err().to_string();
            assert!(
                words.contains("arrays a, b") && words.contains("d.npz:a"),
                "{words}"
            );
        }
        let one = archive(&[("only.npy", b"x", false)]);
        assert!(member(path, &one, None).is_ok());
        assert_eq!(
            split(Path::new("x/d.npz:b")),
            Some(("x/d.npz".into(), Some("b".into())))
        );
        assert_eq!(split(Path::new("d.NPZ")), Some(("d.NPZ".into(), None)));
        assert_eq!(split(Path::new("d.npy")), None);
    }

    /// Files that numpy wrote, stored and packed.
    #[test]
    fn what_numpy_writes_is_read() {
        use diffclf::format::npy::NpyView;
        for name in ["stored.npz", "packed.npz"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/npz")
                .join(name);
            let bytes = std::fs::read(&path).unwrap();
            let array = |key: &str| match member(&path, &bytes, Some(key)).unwrap() {
                Member::Stored(range) => bytes[range].to_vec(),
                Member::Unpacked(content) => content,
            };
            let (rows, other) = (array("rows"), array("other"));
            let view = NpyView::parse(&rows).unwrap();
            assert_eq!(view.shape(), [3, 2]);
            assert_eq!(view.to_vec_f64(), [1.5, -2.0, 0.25, 1e3, 7.0, 8.0]);
            let view = NpyView::parse(&other).unwrap();
            assert_eq!(view.to_vec_f64(), [0.0, 1.0, 2.0, 3.0, 4.0]);
        }
    }

    /// Every cut and every changed byte gives an answer or words, never a panic.
    #[test]
    fn damaged_archives_are_refused() {
        let bytes = archive(&[
            ("a.npy", b"first and second", true),
            ("b.npy", b"third", false),
        ]);
        for cut in 0..bytes.len() {
            let _ = member(Path::new("d.npz"), &bytes[..cut], Some("a"));
            for change in [0u8, 1, 127, 255] {
                let mut other = bytes.clone();
                other[cut] = change;
                let _ = member(Path::new("d.npz"), &other, Some("a"));
            }
        }
        assert!(member(Path::new("d.npz"), b"", None).is_err());
        assert!(member(Path::new("d.npz"), &bytes[..60], None).is_err());
    }
}
