//! Rows from everywhere they come from, the same rows.

use super::*;
use crate::files::write_atomic;
use diffclf::format::npy::write_npy;
use diffclf::train::Table;

fn saved(folder: &Path, rows: &[[f64; 2]]) -> std::path::PathBuf {
    let path = folder.join("data.npy");
    let values: Vec<f64> = rows.iter().flatten().copied().collect();
    write_atomic(&path, |writer| write_npy(&[rows.len(), 2], &values, writer)).unwrap();
    path
}

#[test]
fn rows_far_from_zero_keep_their_digits() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<[f64; 2]> = (0..50)
        .map(|i| [1e9 + 0.01 * f64::from(i), -3.0 + 0.02 * f64::from(i)])
        .collect();
    let data = DataSet::file(&saved(folder.path(), &rows)).unwrap();
    let moments = data.moments(&mut Vec::new()).unwrap();
    let Prepared::Fixed(table, map) = data.prepare(&moments.coordinates()).unwrap() else {
        panic!("a file is a table")
    };
    let (mut sum, mut square) = ([0.0; 2], 0.0);
    for row in 0..50 {
        let mut out = [0.0f32; 2];
        table.copy_row(row, &map, &mut out);
        for (sum, x) in sum.iter_mut().zip(out) {
            *sum += f64::from(x);
            square += f64::from(x) * f64::from(x);
        }
    }
    // Near 1e9 an f64 has 1e-7 of rounding, against a spread of 0.2.
    assert!(sum.iter().all(|s| s.abs() < 1e-4), "{sum:?}");
    assert!((square / 100.0 - 1.0).abs() < 1e-5, "{square}");
}

#[test]
fn data_without_a_density_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |rows: &[[f64; 2]]| {
        let data = DataSet::file(&saved(folder.path(), rows)).unwrap();
        data.moments(&mut Vec::new()).unwrap_err().to_string()
    };
    let message = refused(&[[1.0, 2.0], [f64::NAN, 2.0]]);
    assert!(
        message.contains("row 1, column 0") && message.contains("NaN"),
        "{message}"
    );
    let message = refused(&[[1.0, 1e200], [2.0, 2.0]]);
    assert!(
        message.contains("row 0, column 1") && message.contains("rescale"),
        "{message}"
    );
    let message = refused(&[[1.0, 2.0], [3.0, 2.0]]);
    assert!(message.contains("column 1"), "{message}");
}

#[test]
fn a_narrow_column_is_worth_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataSet::file(&saved(folder.path(), &[[1.0, 0.001], [2.0, 0.002]])).unwrap();
    let mut notices = Vec::new();
    data.moments(&mut notices).unwrap();
    assert_eq!(
        notices,
        [Notice::NarrowColumns {
            count: 1,
            first: 1,
            columns: 2
        }]
    );
    assert!(notices[0].to_string().contains("column 1"));
}

#[test]
fn an_array_in_memory_is_the_file_that_would_hold_it() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<[f64; 2]> = (0..9)
        .map(|i| [1e6 + 0.3 * f64::from(i), (0.7 * f64::from(i)).sin()])
        .collect();
    let file = DataSet::file(&saved(folder.path(), &rows)).unwrap();
    let values: Vec<f64> = rows.iter().flatten().copied().collect();
    let array = DataSet::from_array("data.npy", values.clone(), 9, 2).unwrap();
    assert_eq!(array.record(), file.record());
    let moments = file.moments(&mut Vec::new()).unwrap();
    assert_eq!(array.moments(&mut Vec::new()).unwrap(), moments);
    let map = moments.coordinates();
    let (Prepared::Fixed(a, _), Prepared::Fixed(b, _)) =
        (array.prepare(&map).unwrap(), file.prepare(&map).unwrap())
    else {
        panic!("both are tables")
    };
    for row in 0..9 {
        let mut out = [[0f32; 2]; 2];
        a.copy_row(row, &map, &mut out[0]);
        b.copy_row(row, &map, &mut out[1]);
        assert_eq!(out[0], out[1]);
    }
    // Single precision is another file.
    let single: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    let single = DataSet::from_array("data.npy", single, 9, 2).unwrap();
    assert_ne!(single.record().sha256, file.record().sha256);
    for (rows, dim) in [(8, 2), (0, 2), (9, 0), (usize::MAX, 3)] {
        let message = DataSet::from_array("x", values.clone(), rows, dim);
        let message = message.err().unwrap().to_string();
        assert!(message.contains("18 numbers"), "{message}");
    }
}

#[test]
fn systems_know_their_moments() {
    let mog = System::by_name("mog40", 3, 0).unwrap();
    assert_eq!(system_moments(&mog).coordinates(), Coordinates::identity(3));
    let boxes = system_moments(&System::by_name("boxes", 2, 0).unwrap());
    assert!(boxes.coordinates().scale.diagonal(0) > 1.0);
}
