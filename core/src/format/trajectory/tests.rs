//! Readers against files that mdtraj wrote (`core/tests/mdtraj`), writers against two readers, and hostile bytes.

use super::*;
use crate::format::npy::NpyView;

const FILES: [(&str, Kind, &[u8], &[u8]); 8] = [
    (
        "few.xtc",
        Kind::Xtc,
        include_bytes!("../../../tests/mdtraj/few.xtc"),
        include_bytes!("../../../tests/mdtraj/few-xtc.npy"),
    ),
    (
        "near.xtc",
        Kind::Xtc,
        include_bytes!("../../../tests/mdtraj/near.xtc"),
        include_bytes!("../../../tests/mdtraj/near-xtc.npy"),
    ),
    (
        "far.xtc",
        Kind::Xtc,
        include_bytes!("../../../tests/mdtraj/far.xtc"),
        include_bytes!("../../../tests/mdtraj/far-xtc.npy"),
    ),
    (
        "few.dcd",
        Kind::Dcd,
        include_bytes!("../../../tests/mdtraj/few.dcd"),
        include_bytes!("../../../tests/mdtraj/few-dcd.npy"),
    ),
    (
        "near.dcd",
        Kind::Dcd,
        include_bytes!("../../../tests/mdtraj/near.dcd"),
        include_bytes!("../../../tests/mdtraj/near-dcd.npy"),
    ),
    (
        "far.dcd",
        Kind::Dcd,
        include_bytes!("../../../tests/mdtraj/far.dcd"),
        include_bytes!("../../../tests/mdtraj/far-dcd.npy"),
    ),
    (
        "few.pdb",
        Kind::Pdb,
        include_bytes!("../../../tests/mdtraj/few.pdb"),
        include_bytes!("../../../tests/mdtraj/few-pdb.npy"),
    ),
    (
        "near.pdb",
        Kind::Pdb,
        include_bytes!("../../../tests/mdtraj/near.pdb"),
        include_bytes!("../../../tests/mdtraj/near-pdb.npy"),
    ),
];

/// The numbers that mdtraj read, in nm, and the atoms of a frame.
fn expected(array: &[u8]) -> (Vec<f32>, usize) {
    let view = NpyView::parse(array).unwrap();
    (view.to_vec_f32(), view.shape()[1])
}

/// Largest difference, relative to the size of the numbers.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b);
    pairs.fold(0.0, |m, (a, b)| m.max((a - b).abs() / (1.0 + b.abs())))
}

#[test]
fn files_of_mdtraj_are_read_as_mdtraj_reads_them() {
    for (name, kind, bytes, array) in FILES {
        let found = Trajectory::read(kind, bytes).unwrap();
        let (numbers, atoms) = expected(array);
        assert_eq!((found.atoms, found.frames()), (atoms, 4), "{name}");
        // A factor of ten in single precision.
        assert!(apart(&found.positions, &numbers) < 3e-7, "{name}");
        if kind == Kind::Pdb {
            assert_eq!(
                (
                    found.names[1].name.as_str(),
                    found.names[1].element.as_str()
                ),
                ("N", "N")
            );
            assert_eq!(
                (found.names[2].residue.as_str(), found.names[2].number),
                ("ALA", 3)
            );
        }
    }
}

#[test]
fn frames_go_there_and_back() {
    for (name, kind, bytes, _) in FILES {
        let found = Trajectory::read(kind, bytes).unwrap();
        let mut written = Vec::new();
        found.write(kind, 2.0, &mut written).unwrap();
        let again = Trajectory::read(kind, &written).unwrap();
        // Rounded once, they are rounded for good.
        assert!(apart(&again.positions, &found.positions) < 3e-7, "{name}");
        assert_eq!(again.names, found.names, "{name}");
        // Through another format, up to its rounding.
        let other = if kind == Kind::Xtc {
            Kind::Dcd
        } else {
            Kind::Xtc
        };
        let mut written = Vec::new();
        found.write(other, 2.0, &mut written).unwrap();
        let other = Trajectory::read(other, &written).unwrap();
        let pairs = other.positions.iter().zip(&found.positions);
        assert!(
            pairs
                .into_iter()
                .all(|(a, b)| (a - b).abs() < 5.2e-4 + 2e-6 * b.abs()),
            "{name}"
        );
    }
}

#[test]
fn our_files_are_those_of_molly_too() {
    // Another reader of the same format.
    for (name, kind, bytes, _) in FILES.iter().filter(|file| file.1 == Kind::Xtc) {
        let found = Trajectory::read(*kind, bytes).unwrap();
        let mut written = Vec::new();
        found.write(*kind, 2.0, &mut written).unwrap();
        for bytes in [bytes.to_vec(), written] {
            let mut reader = molly::XTCReader::new(std::io::Cursor::new(bytes));
            let frames = reader.read_all_frames().unwrap();
            let numbers: Vec<f32> = frames.iter().flat_map(|f| f.positions.clone()).collect();
            assert!(apart(&numbers, &found.positions) < 3e-7, "{name}");
        }
    }
}

#[test]
fn cut_and_altered_files_are_refused_or_read_but_never_panic() {
    for (_, kind, bytes, _) in FILES {
        for length in 0..bytes.len() {
            let _ = Trajectory::read(kind, &bytes[..length]);
        }
        let mut altered = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in [0, 0x7f, 0xff, bytes[at] ^ 1] {
                altered[at] = value;
                if let Ok(found) = Trajectory::read(kind, &altered) {
                    assert!(found.positions.len() <= 64 * bytes.len());
                }
            }
            altered[at] = bytes[at];
        }
    }
    let refused = |kind, bytes: &[u8]| Trajectory::read(kind, bytes).unwrap_err().to_string();
    assert!(refused(Kind::Xtc, b"").contains("no frame"));
    assert!(refused(Kind::Xtc, b"\0\0\0\x07").contains("begins with 7"));
    assert!(refused(Kind::Dcd, b"nonsense").contains("does not begin"));
    assert!(refused(Kind::Pdb, b"REMARK\n").contains("no frame"));
    assert!(refused(Kind::Pdb, b"\xff\xfe").contains("no text"));
}

#[test]
fn atoms_are_selected_by_number_and_name() {
    let (_, kind, bytes, _) = FILES[7];
    let found = Trajectory::read(kind, bytes).unwrap();
    let chosen = Selection::parse("CA").unwrap();
    assert!(chosen.needs_names());
    let atoms = chosen.atoms(25, &found.names).unwrap();
    assert_eq!(atoms, (0..25).step_by(3).collect::<Vec<_>>());
    let part = found.select(&atoms);
    assert_eq!((part.atoms, part.frames(), part.names.len()), (9, 4, 9));
    assert_eq!(part.positions[3..6], found.positions[9..12]);
    for text in ["", "1,,2", "5-3", "a b", "-1", "1-"] {
        assert!(Selection::parse(text).is_err(), "{text}");
    }
    let refused = |text: &str| {
        let chosen = Selection::parse(text).unwrap();
        chosen.atoms(25, &found.names).unwrap_err().to_string()
    };
    assert!(refused("25").contains("below 25"));
    assert!(refused("CB").contains("CA, N, O"));
    assert!(refused("0,CA").contains("twice"));
    assert!(Selection::parse("CA").unwrap().atoms(25, &[]).is_err());
}

#[test]
fn what_cannot_be_written_is_refused() {
    let frames = |positions: Vec<f32>| Trajectory {
        atoms: 1,
        positions,
        ..Trajectory::default()
    };
    let mut out = Vec::new();
    assert!(
        frames(vec![0.0; 4])
            .write(Kind::Dcd, 1.0, &mut out)
            .is_err()
    );
    let lost = frames(vec![f32::NAN; 3]).write(Kind::Xtc, 1.0, &mut out);
    assert!(lost.unwrap_err().to_string().contains("lost chains"));
    // What runs out of its columns could not be read back.
    for wide in [-100.5, 1000.0, f32::NAN] {
        let wide = frames(vec![0.0, wide, 0.0]).write(Kind::Pdb, 1.0, &mut out);
        assert!(wide.unwrap_err().to_string().contains("its columns hold"));
    }
    frames(vec![f32::NAN; 3])
        .write(Kind::Dcd, 1.0, &mut out)
        .unwrap();
    assert_eq!(Kind::of_extension("XTC"), Some(Kind::Xtc));
    assert_eq!(Kind::of_extension("gro"), None);
}
