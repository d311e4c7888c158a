//! The view against files that NumPy wrote (tests/npy, made by the script there), and against damaged ones.

use super::*;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/npy/",
            $name,
            ".npy"
        ))
    };
}

/// Expects 3 rows of 10 i + j + shift.
fn check(name: &str, bytes: &[u8], shift: f64) {
    let view = NpyView::parse(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(
        (view.rows(), view.dim(), view.shape()),
        (3, 4, &[3, 4][..]),
        "{name}"
    );
    let expected: Vec<f64> = (0..3)
        .flat_map(|i| (0..4).map(move |j| f64::from(10 * i + j) + shift))
        .collect();
    assert_eq!(view.to_vec_f64(), expected, "{name}");
    let single: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
    assert_eq!(view.to_vec_f32(), single, "{name}");
    let (mut row, mut row64) = ([0.0f32; 4], [0.0f64; 4]);
    view.copy_row(2, &mut row);
    view.copy_row_f64(2, &mut row64);
    assert_eq!(
        (&row[..], &row64[..]),
        (&single[8..], &expected[8..]),
        "{name}"
    );
    view.copy_part_f64(1, 2, &mut row64[..2]);
    assert_eq!(row64[..2], expected[6..8], "{name}");
}

#[test]
fn every_number_type_and_byte_order() {
    check("f2_le", fixture!("f2_le"), -3.0);
    check("f2_be", fixture!("f2_be"), -3.0);
    check("f4_le", fixture!("f4_le"), -3.0);
    check("f4_be", fixture!("f4_be"), -3.0);
    check("f8_le", fixture!("f8_le"), -3.0);
    check("f8_be", fixture!("f8_be"), -3.0);
    check("i1_le", fixture!("i1_le"), -3.0);
    check("i1_be", fixture!("i1_be"), -3.0);
    check("i2_le", fixture!("i2_le"), -3.0);
    check("i2_be", fixture!("i2_be"), -3.0);
    check("i4_le", fixture!("i4_le"), -3.0);
    check("i4_be", fixture!("i4_be"), -3.0);
    check("i8_le", fixture!("i8_le"), -3.0);
    check("i8_be", fixture!("i8_be"), -3.0);
    check("u1_be", fixture!("u1_be"), 0.0);
    check("u2_be", fixture!("u2_be"), 0.0);
    check("u4_be", fixture!("u4_be"), 0.0);
    check("u8_be", fixture!("u8_be"), 0.0);
    check("version2", fixture!("version2"), -3.0);
    check("version3", fixture!("version3"), -3.0);
    let truth = NpyView::parse(fixture!("bool")).unwrap();
    assert_eq!(truth.to_vec_f32()[..4], [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(
        (
            truth.type_name(),
            NpyView::parse(fixture!("f8_be")).unwrap().type_name()
        ),
        ("bool", "float64")
    );
}

#[test]
fn every_memory_order() {
    check("f4_fortran", fixture!("f4_fortran"), -3.0);
    check("f8_fortran_be", fixture!("f8_fortran_be"), -3.0);
    let expected: Vec<f32> = (0..24).map(|i| i as f32).collect();
    for bytes in [&fixture!("cube")[..], &fixture!("cube_fortran")[..]] {
        let view = NpyView::parse(bytes).unwrap();
        assert_eq!(
            (view.rows(), view.dim(), view.shape()),
            (2, 12, &[2, 3, 4][..])
        );
        assert_eq!(view.to_vec_f32(), expected);
    }
}

#[test]
fn one_axis_means_one_column() {
    let view = NpyView::parse(fixture!("line")).unwrap();
    assert_eq!((view.rows(), view.dim()), (5, 1));
    assert_eq!(view.to_vec_f64(), [-0.5, 0.5, 1.5, 2.5, 3.5]);
}

#[test]
fn half_precision_keeps_its_corners_and_the_first_bad_number_is_found() {
    let view = NpyView::parse(fixture!("special")).unwrap();
    let values = view.to_vec_f64();
    assert_eq!(values[..2], [1.0, 0.0]);
    assert!(values[1].is_sign_negative());
    // 6.1e-5 and 6e-8 are stored as 1023 and 1 units of 2^-24; 0.1 as 1638.4 rounded to 1638 units of 2^-14.
    assert_eq!(
        values[2..5],
        [1023.0 * 2f64.powi(-24), 65504.0, 2f64.powi(-24)]
    );
    assert_eq!(values[5], f64::NEG_INFINITY);
    assert!(values[6].is_nan());
    assert_eq!(values[7], 1638.0 * 2f64.powi(-14));
    assert_eq!(view.first_non_finite(), Some((2, 1)));
    assert_eq!(
        NpyView::parse(fixture!("f2_le"))
            .unwrap()
            .first_non_finite(),
        None
    );
}

#[test]
fn what_overflows_f32_counts_as_not_finite() {
    let mut bytes = Vec::new();
    write_npy(&[2, 2], &[1.0, 3.0, 1e38, 1e39], &mut bytes).unwrap();
    assert_eq!(
        NpyView::parse(&bytes).unwrap().first_non_finite(),
        Some((1, 1))
    );
}

#[test]
fn statistics_come_from_the_rows() {
    let statistics = NpyView::parse(fixture!("f4_fortran"))
        .unwrap()
        .column_statistics();
    assert_eq!(statistics.mean(), [7.0, 8.0, 9.0, 10.0]);
    assert_eq!(statistics.variance(), [200.0 / 3.0; 4]);
    assert_eq!(
        (statistics.minimum()[1], statistics.maximum()[1]),
        (-2.0, 18.0)
    );
}

#[test]
fn what_cannot_be_read_is_refused_with_advice() {
    let refused = |bytes: &[u8], words: &[&str]| {
        let message = NpyView::parse(bytes).unwrap_err().to_string();
        words
            .iter()
            .for_each(|word| assert!(message.contains(word), "'{message}' lacks '{word}'"));
    };
    refused(fixture!("objects"), &["Python objects", "dtype='float32'"]);
    refused(fixture!("complex"), &["complex", "array.real"]);
    refused(fixture!("text"), &["text", "numpy.save"]);
    refused(fixture!("bytes"), &["text", "numpy.save"]);
    refused(fixture!("dates"), &["dates", "int64"]);
    refused(
        fixture!("structured"),
        &["structured", "structured_to_unstructured"],
    );
    refused(fixture!("raw"), &["raw bytes", "float32"]);
    refused(fixture!("long_double"), &["extended", "float64"]);
    refused(fixture!("single"), &["single number", "atleast_2d"]);
    refused(fixture!("no_rows"), &["empty", "(0, 3)"]);
    refused(fixture!("no_columns"), &["empty", "(3, 0)"]);
    refused(
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/npy/archive.npz"
        )),
        &["zip", "numpy.load"],
    );
    refused(b"", &["empty file"]);
    refused(b"1.0, 2.0\n3.0, 4.0\n", &["plain text", "loadtxt"]);
    refused(b"\x80\x04\x95 pickled", &["pickle"]);
    refused(b"\x89PNG\r\n\x1a\n\0\0", &["other format"]);
}

/// A version 1.0 file with the given dictionary and data.
fn forge(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(dictionary.len()).unwrap().to_le_bytes();
    [
        b"\x93NUMPY\x01\x00",
        &length[..],
        dictionary.as_bytes(),
        data,
    ]
    .concat()
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let shape = |shape: &str, data: &[u8]| {
        let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        NpyView::parse(&forge(&dictionary, data)).map(|view| view.rows())
    };
    assert_eq!(shape("(2, 1)", &[0; 8]).unwrap(), 2);
    assert_eq!(shape("(2L, 1L,)", &[0; 8]).unwrap(), 2);
    for data in [&[0; 7][..], &[0; 9], &[]] {
        let error = shape("(2, 1)", data).unwrap_err();
        assert!(
            matches!(error, Error::NpySize { .. }) && error.to_string().contains("8 bytes"),
            "{error}"
        );
    }
    let error = shape("(9223372036854775807, 4)", &[0; 8]).unwrap_err();
    assert!(matches!(error, Error::NpySize { .. }), "{error}");
    let error = shape("(4611686018427387904,)", &[]).unwrap_err();
    assert!(matches!(error, Error::NpySize { .. }), "{error}");
    let error = shape("(99999999999999999999, 4)", &[0; 8]).unwrap_err();
    assert!(matches!(error, Error::NpyHeader { .. }), "{error}");
}

#[test]
fn damaged_headers_are_refused() {
    for dictionary in [
        "",
        "{}",
        "{",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} and more",
        "[1, 2]",
        "\u{e9}\u{e9}\u{e9}",
    ] {
        let error = NpyView::parse(&forge(dictionary, &[0; 4])).unwrap_err();
        assert!(
            matches!(error, Error::NpyHeader { .. }),
            "{dictionary}: {error}"
        );
    }
    let foreign = forge(
        "{'descr': '\u{e9}4', 'fortran_order': False, 'shape': (1,)}",
        &[0; 4],
    );
    assert!(matches!(
        NpyView::parse(&foreign),
        Err(Error::NpyType { .. })
    ));
    assert!(matches!(
        NpyView::parse(b"\x93NUMPY\x07\x00\x00\x00"),
        Err(Error::NpyHeader { .. })
    ));
    let huge = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}";
    assert!(matches!(NpyView::parse(huge), Err(Error::NpyHeader { .. })));
    let mut binary = forge(" ", b"");
    binary[10] = 0xff;
    assert!(matches!(
        NpyView::parse(&binary),
        Err(Error::NpyHeader { .. })
    ));
}

#[test]
fn no_truncation_and_no_altered_header_byte_causes_a_panic() {
    let bytes = fixture!("cube_fortran");
    for length in 0..bytes.len() {
        assert!(NpyView::parse(&bytes[..length]).is_err(), "cut at {length}");
    }
    let mut spoiled = bytes.to_vec();
    for position in 0..128 {
        for value in 0..=255 {
            spoiled[position] = value;
            // A changed type or order may still describe an array of this size; then reading it must work.
            if let Ok(view) = NpyView::parse(&spoiled) {
                assert_eq!(view.to_vec_f32().len(), view.rows() * view.dim());
            }
        }
        spoiled[position] = bytes[position];
    }
}

#[test]
fn written_arrays_come_back() {
    let data: Vec<f64> = (0..10_001).map(|i| f64::from(i) * 0.37 - 5.0).collect();
    let mut bytes = Vec::new();
    write_npy(&[73, 137], &data, &mut bytes).unwrap();
    let view = NpyView::parse(&bytes).unwrap();
    assert_eq!(
        (view.shape(), view.to_vec_f64()),
        (&[73, 137][..], data.clone())
    );
    let single: Vec<f32> = data.iter().map(|&x| x as f32).collect();
    let mut bytes = Vec::new();
    write_npy(&[10_001], &single, &mut bytes).unwrap();
    let view = NpyView::parse(&bytes).unwrap();
    assert_eq!((view.shape(), view.to_vec_f32()), (&[10_001][..], single));
}

#[test]
fn the_writer_gives_the_bytes_of_numpy() {
    let data: Vec<f32> = (0..3)
        .flat_map(|i| (0..4).map(move |j| (10 * i + j) as f32 - 3.0))
        .collect();
    let mut bytes = Vec::new();
    write_npy(&[3, 4], &data, &mut bytes).unwrap();
    assert_eq!(bytes, fixture!("f4_le"));
}

#[test]
fn the_writer_refuses_what_does_not_fit() {
    let wrong = write_npy(&[2, 2], &[1.0f32], Vec::new());
    assert!(matches!(wrong, Err(Error::Shape { .. })));
    let deep = write_npy(&vec![1; 30_000], &[1.0f32], Vec::new());
    assert!(matches!(deep, Err(Error::Shape { .. })));
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let full = write_npy(&[1], &[1.0f32], Full).unwrap_err();
    assert!(matches!(full, Error::Write(_)) && full.to_string().contains("free space"));
}

#[test]
fn more_axes_than_numpy_has_are_refused() {
    let dictionary = |axes: usize| {
        let sides = "1, ".repeat(axes);
        format!("{{'descr': '<f4', 'fortran_order': True, 'shape': ({sides})}}")
    };
    let text = dictionary(100_000);
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend([0; 4]);
    let error = NpyView::parse(&bytes).unwrap_err();
    assert!(error.to_string().contains("64 axes"), "{error}");
    assert!(NpyView::parse(&forge(&dictionary(64), &[0; 4])).is_ok());
    assert!(NpyView::parse(&forge(&dictionary(65), &[0; 4])).is_err());
}
