//! The container against the reference implementation, and against every way of spoiling a small file.

use super::*;
use serde_json::json;

fn sample() -> ModelFile {
    let content = json!({ "architecture": { "width": 3, "name": "mlp" }, "rate": 1e-3, "note": "\"quoted\" \u{e9}" });
    let mut file = ModelFile::new("model", &content).unwrap();
    file.insert(
        "weights/0",
        Tensor::new(vec![2, 3], vec![1.0f32, -2.5, 3.0, f32::NAN, 5.0, 6.0]).unwrap(),
    )
    .unwrap();
    file.insert(
        "free_energy",
        Tensor::new(vec![2], vec![0.1f64, -1e300]).unwrap(),
    )
    .unwrap();
    file.insert("step", Tensor::new(vec![], vec![u64::MAX]).unwrap())
        .unwrap();
    file.insert(
        "nothing",
        Tensor::new(vec![0, 4], Vec::<f32>::new()).unwrap(),
    )
    .unwrap();
    file
}

/// A file from a header of the test's making, with a right seal, as an adversary would write it.
fn forge(header: &Value, data: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    let seal = Sha256::digest(&bytes);
    bytes.extend_from_slice(&seal);
    bytes
}

fn own(version: &str) -> Value {
    json!({ "program": "diffclf", "format_version": version, "kind": "model", "content": "{}" })
}

#[test]
fn comes_back_as_it_was() {
    let file = sample();
    let read = ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap();
    assert_eq!(read.kind(), "model");
    assert_eq!(read.content().unwrap(), file.content().unwrap());
    assert_eq!(
        read.tensors().keys().collect::<Vec<_>>(),
        file.tensors().keys().collect::<Vec<_>>()
    );
    let (before, after) = (
        file.f32("weights/0", &[2, 3]).unwrap(),
        read.f32("weights/0", &[2, 3]).unwrap(),
    );
    assert!(
        before
            .iter()
            .zip(after)
            .all(|(a, b)| a.to_bits() == b.to_bits())
    );
    assert_eq!(read.f64("free_energy", &[2]).unwrap(), [0.1, -1e300]);
    assert_eq!(read.u64("step", &[]).unwrap(), [u64::MAX]);
    assert_eq!(read.f32("nothing", &[0, 4]).unwrap(), [0f32; 0]);
}

#[test]
fn numbers_in_the_description_come_back_to_the_last_bit() {
    // Values whose shortest decimal form a fast but careless parser rounds wrongly now and then.
    let values: Vec<f64> = (1..2000)
        .map(|i| (f64::from(i) * 0.7310585786300049).exp().recip() * 1.7e-5)
        .collect();
    let file = ModelFile::new("model", &values).unwrap();
    let read: Vec<f64> = ModelFile::from_bytes(&file.to_bytes().unwrap())
        .unwrap()
        .content_as()
        .unwrap();
    assert_eq!(read, values);
}

#[test]
fn same_content_same_bytes_whatever_the_order() {
    let names = ["b", "a", "c"];
    let build = |order: [usize; 3]| {
        let mut file = ModelFile::new("checkpoint", &json!({ "x": 1, "a": [true, null] })).unwrap();
        for i in order {
            file.insert(names[i], Tensor::new(vec![1], vec![i as f64]).unwrap())
                .unwrap();
        }
        file.to_bytes().unwrap()
    };
    assert_eq!(build([0, 1, 2]), build([2, 0, 1]));
}

#[test]
fn the_reference_implementation_reads_it() {
    let bytes = sample().to_bytes().unwrap();
    let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let metadata = metadata.metadata().clone().unwrap();
    assert_eq!(metadata["kind"], "model");
    assert_eq!(metadata["format_version"], "1");
    let content: Value = serde_json::from_str(&metadata["content"]).unwrap();
    assert_eq!(content["architecture"]["width"], 3);
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let weights = tensors.tensor("weights/0").unwrap();
    assert_eq!(
        (weights.shape(), weights.dtype()),
        (&[2, 3][..], safetensors::Dtype::F32)
    );
    assert_eq!(weights.data()[4..8], (-2.5f32).to_le_bytes());
    let seal = tensors.tensor("sha256").unwrap();
    assert_eq!(seal.data(), &bytes[bytes.len() - 32..]);
    assert_eq!(
        seal.data(),
        Sha256::digest(&bytes[..bytes.len() - 32]).as_slice()
    );
    // Every tensor lies at a multiple of its own size.
    let start =
        |name| tensors.tensor(name).unwrap().data().as_ptr() as usize - bytes.as_ptr() as usize;
    assert_eq!(
        (
            start("free_energy") % 8,
            start("step") % 8,
            start("weights/0") % 4
        ),
        (0, 0, 0)
    );
}

#[test]
fn every_truncation_is_refused() {
    let bytes = sample().to_bytes().unwrap();
    for length in 0..bytes.len() {
        let error = ModelFile::from_bytes(&bytes[..length]).unwrap_err();
        assert!(
            matches!(error, Error::ModelLength { .. }),
            "{length}: {error}"
        );
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(matches!(
        ModelFile::from_bytes(&longer),
        Err(Error::ModelLength { .. })
    ));
}

#[test]
fn every_altered_byte_is_refused() {
    let bytes = sample().to_bytes().unwrap();
    let mut spoiled = bytes.clone();
    for position in 0..bytes.len() {
        // Every single bit, all bits at once, and a blank or a digit (the likeliest to slip through a parser).
        let values = (0..8).map(|bit| bytes[position] ^ (1 << bit)).chain([
            !bytes[position],
            b' ',
            b'\t',
            b'0',
        ]);
        for value in values.filter(|value| *value != bytes[position]) {
            spoiled[position] = value;
            assert!(
                ModelFile::from_bytes(&spoiled).is_err(),
                "byte {position} set to {value}"
            );
        }
        spoiled[position] = bytes[position];
    }
    // In the data and the seal the message is exact.
    for position in [bytes.len() - 40, bytes.len() - 1] {
        spoiled[position] ^= 1;
        assert!(matches!(
            ModelFile::from_bytes(&spoiled),
            Err(Error::ModelAltered)
        ));
        spoiled[position] = bytes[position];
    }
}

#[test]
fn files_of_others_are_refused() {
    let refused =
        |bytes: &[u8]| matches!(ModelFile::from_bytes(bytes), Err(Error::NotModel { .. }));
    assert!(refused(b"PK\x03\x04 a zip archive from somewhere"));
    assert!(refused(b"\x93NUMPY\x01\x00 an array"));
    assert!(refused(b"\x04\0\0\0\0\0\0\0nope and more"));
    let foreign = safetensors::serialize([("w", &TestView(vec![0; 8]))], None).unwrap();
    assert!(refused(&foreign));
    let message = ModelFile::from_bytes(&foreign).unwrap_err().to_string();
    assert!(message.contains("another program"), "{message}");
}

struct TestView(Vec<u8>);

impl safetensors::View for &TestView {
    fn dtype(&self) -> safetensors::Dtype {
        safetensors::Dtype::F32
    }
    fn shape(&self) -> &[usize] {
        &[2]
    }
    fn data(&self) -> std::borrow::Cow<'_, [u8]> {
        (&self.0).into()
    }
    fn data_len(&self) -> usize {
        self.0.len()
    }
}

#[test]
fn later_versions_are_refused_whatever_else_they_hold() {
    let header = json!({ "__metadata__": own("2"), "packed": { "kind": "of a new sort" } });
    let error = ModelFile::from_bytes(&forge(&header, b"")).unwrap_err();
    assert!(matches!(error, Error::ModelNewer { supported: 1, .. }));
    assert!(
        error.to_string().contains("version 2") && error.to_string().contains("update"),
        "{error}"
    );
    let header = json!({ "__metadata__": own("0") });
    assert!(matches!(
        ModelFile::from_bytes(&forge(&header, b"")),
        Err(Error::ModelNewer { .. })
    ));
}

#[test]
fn forged_sizes_are_refused_before_anything_is_allocated() {
    let seal = |end: u64| json!({ "dtype": "U8", "shape": [32], "data_offsets": [end, end + 32] });
    let forged = |entries: Value| {
        let mut header = json!({ "__metadata__": own("1") });
        for (name, entry) in entries.as_object().unwrap() {
            header[name] = entry.clone();
        }
        ModelFile::from_bytes(&forge(&header, &[0; 16])).unwrap_err()
    };
    let huge = u64::MAX - 31;
    let f32_at = |shape: Value, start: u64, end: u64| json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, end] });
    let error = forged(
        json!({ "w": f32_at(json!([1u64 << 61]), 0, huge - 32), "sha256": seal(huge - 32) }),
    );
    assert!(matches!(error, Error::ModelLength { .. }), "{error}");
    let error =
        forged(json!({ "w": f32_at(json!([1u64 << 40, 1u64 << 40]), 0, 16), "sha256": seal(16) }));
    assert!(matches!(error, Error::Shape { .. }), "{error}");
    let error = forged(json!({ "w": f32_at(json!([5]), 0, 16), "sha256": seal(16) }));
    assert!(matches!(error, Error::Shape { .. }), "{error}");
    let error = forged(
        json!({ "w": f32_at(json!([3]), 0, 15), "v": f32_at(json!([0]), 15, 16), "sha256": seal(16) }),
    );
    assert!(matches!(error, Error::ModelContent { .. }), "{error}");
    // The same data announced twice, a gap, an end before its start, half numbers.
    let error = forged(
        json!({ "v": f32_at(json!([4]), 0, 16), "w": f32_at(json!([4]), 0, 16), "sha256": seal(16) }),
    );
    assert!(matches!(error, Error::NotModel { .. }), "{error}");
    let error = forged(json!({ "w": f32_at(json!([3]), 4, 16), "sha256": seal(16) }));
    assert!(matches!(error, Error::NotModel { .. }), "{error}");
    let error = forged(json!({ "w": f32_at(json!([3]), 16, 4), "sha256": seal(16) }));
    assert!(matches!(error, Error::NotModel { .. }), "{error}");
    let error = forged(json!({ "w": f32_at(json!([1.5]), 0, 16), "sha256": seal(16) }));
    assert!(matches!(error, Error::NotModel { .. }), "{error}");
    let error = forged(
        json!({ "w": { "dtype": "I8", "shape": [16], "data_offsets": [0, 16] }, "sha256": seal(16) }),
    );
    assert!(matches!(error, Error::ModelContent { .. }), "{error}");
}

#[test]
fn wrong_use_is_named() {
    let file = sample();
    assert!(file.expect_kind("model").is_ok());
    let message = |error: Error| error.to_string();
    assert!(message(file.expect_kind("checkpoint").unwrap_err()).contains("expected a checkpoint"));
    assert!(message(file.f32("missing", &[1]).unwrap_err()).contains("no tensor 'missing'"));
    assert!(
        message(file.f32("weights/0", &[3, 2]).unwrap_err()).contains("[2, 3], expected [3, 2]")
    );
    assert!(message(file.f64("weights/0", &[2, 3]).unwrap_err()).contains("F32, expected F64"));
    assert!(message(file.content_as::<Vec<u8>>().unwrap_err()).contains("does not fit"));
    assert!(matches!(
        Tensor::new(vec![2, 2], vec![1.0f32]),
        Err(Error::Shape { .. })
    ));
    let mut file = file;
    let one = Tensor::new(vec![1], vec![1u64]).unwrap();
    assert!(message(file.insert("step", one.clone()).unwrap_err()).contains("twice"));
    assert!(message(file.insert("sha256", one).unwrap_err()).contains("reserved"));
}

/// A header of many small things ends where the first of them stands; as values they would take a hundred times their room.
#[test]
fn a_header_of_other_things_is_refused_at_the_first() {
    let own = json!({ "__metadata__": own("1") }).to_string();
    let own = own.strip_suffix('}').unwrap();
    let file = |header: String| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes
    };
    let things: String = (0..1000).map(|k| format!(", \"{k}\": {{}}")).collect();
    let error = ModelFile::from_bytes(&file(format!("{own}{things}}}"))).unwrap_err();
    assert!(matches!(error, Error::NotModel { .. }), "{error}");
    // What does not begin like a model need not be read.
    assert!(peek(&[0; START]).is_err());
    assert!(peek(b"\x93NUMPY\x01\x00{").is_err());
    assert!(peek(b"\x10\0\0\0\0\0\0\0[").is_err());
    assert!(peek(b"\x10\0").is_err());
    let sealed = sample().to_bytes().unwrap();
    assert_eq!(peek(&sealed[..START]).unwrap() % 8, 0);
}
