//! Verdicts: a right model passes, a blind one fails, and the exit code says so.

use super::{Place, SMALL, clouds, write_rows};
use serde_json::Value;

/// Enough training for two modes in the plane, in seconds.
const ENOUGH: &str = "--t-min 0.01 --grid-levels 64 --width 48 --depth 2 --batch 256 --rate 0.003 --average 0.99 --threads 2 --no-report --quiet";

fn verdict(document: &Value, name: &str) -> String {
    let checks = document["diagnosis"]["checks"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|check| check["name"].as_str().unwrap().contains(name))
        .unwrap();
    check["verdict"].as_str().unwrap().into()
}

/// The same mixture, score steps and network: only the classification loss tells how much weight each mode has.
#[test]
fn score_matching_alone_fails_and_classification_passes() {
    let place = Place::new();
    place.run(&format!(
        "train --system two-modes --score-steps 600 --steps 900 -o both {ENOUGH}"
    ));
    place.run(&format!(
        "train --system two-modes --objective dsm --levels 4 --steps 1500 -o dsm {ENOUGH}"
    ));
    let judged = |name: &str| {
        let output = place.output(&format!(
            "diagnose {name} --points 2048 --generate 1024 --json {name}.json --quiet"
        ));
        let text = String::from_utf8(output.stdout).unwrap();
        (
            output.status.code().unwrap(),
            text,
            place.json(&format!("{name}.json")),
        )
    };
    let (code, text, document) = judged("both");
    // So short a training leaves the integral some percent off: a warning, no failure.
    assert!([0, 4].contains(&code), "{text}");
    assert!(
        !text.contains("verdict: fail") && text.contains("basin"),
        "{text}"
    );
    assert_ne!(verdict(&document, "normalisation"), "fail");
    assert_eq!(verdict(&document, "tails"), "pass");
    assert_eq!(verdict(&document, "mode weights"), "pass");
    assert_eq!(verdict(&document, "calibration"), "pass");
    let (code, text, document) = judged("dsm");
    assert_eq!(code, 1, "{text}");
    assert_eq!(verdict(&document, "mode weights"), "fail");
    assert_eq!(verdict(&document, "calibration"), "fail");
    assert_ne!(verdict(&document, "MBAR"), "pass");
    // Its samples are fine: that is what makes the flaw hard to see.
    assert_eq!(verdict(&document, "generated samples"), "pass");
}

/// Rows like those of the training, and none of them.
fn shifted(rows: usize) -> Vec<Vec<f64>> {
    let mut rows = clouds(rows);
    rows.iter_mut().flatten().for_each(|x| *x += 1e-3);
    rows
}

#[test]
fn held_out_rows_of_the_training_file_are_found() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(500));
    write_rows(&place.path("others.npy"), &shifted(300));
    let mut constant = shifted(60);
    constant.iter_mut().for_each(|row| row[1] = 0.25);
    write_rows(&place.path("constant.npy"), &constant);
    place.run(&format!("train rows.npy --held-out 0.2 -o run {SMALL}"));
    place.run(&format!("train rows.npy --held-out 0 -o all {SMALL}"));
    for (run, data, words) in [
        (
            "run",
            "rows.npy",
            "rows.npy, 100 rows that were not trained on",
        ),
        // The rows of the training come from the file that config.toml names.
        (
            "run",
            "others.npy",
            "others.npy, 300 rows that were not trained on",
        ),
        ("run", "", "rows.npy, 100 rows that were not trained on"),
        (
            "run",
            "constant.npy",
            "constant.npy, 60 rows that were not trained on",
        ),
        ("all", "rows.npy", "rows.npy, 500 rows that were trained on"),
    ] {
        let flags = "--points 100 --generate 40 --json verdict.json --force --quiet";
        let output = place.output(&format!("diagnose {run}/model.safetensors {data} {flags}"));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(words), "{text}");
        // Twelve steps make no model: the code is that of a verdict, not of an error.
        assert!([1, 4].contains(&output.status.code().unwrap()), "{text}");
        let document = place.json("verdict.json");
        let gaps = document["diagnosis"]["over_fitting"]["gaps"].as_array();
        assert_eq!(gaps.unwrap().is_empty(), run == "all");
        assert_eq!(document["only_trained_rows"], run == "all");
    }
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(60));
    write_rows(&place.path("few.npy"), &clouds(9));
    write_rows(
        &place.path("wide.npy"),
        &[vec![0.0, 1.0, 2.0], vec![1.0, 0.0, 5.0]],
    );
    place.run(&format!("train rows.npy -o run {SMALL}"));
    place.run(&format!(
        "train rows.npy --end-system moons -o bridge {SMALL}"
    ));
    // Without its folder a model does not know where the file is.
    std::fs::copy(
        place.path("run/model.safetensors"),
        place.path("alone.safetensors"),
    )
    .unwrap();
    place.refused(
        "diagnose alone.safetensors",
        2,
        &["trained on a file", "DATA.npy"],
    );
    place.refused("diagnose run wide.npy", 2, &["3 columns", "2"]);
    place.refused("diagnose run few.npy", 2, &["at least 20"]);
    place.refused("diagnose run rows.npy --points 5", 2, &["at least 20"]);
    place.refused("diagnose run rows.npy --end rows.npy", 2, &["interpolants"]);
    place.refused("diagnose nowhere rows.npy", 2, &["nowhere"]);
    // The second endpoint was a system: it is drawn again.
    let output = place.output("diagnose bridge rows.npy --points 60 --quiet");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("moons") && text.contains("verdict: "),
        "{text}"
    );
}
