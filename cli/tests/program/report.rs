//! Reports: one page per run that stands alone, with pictures as files on request.

use super::{Place, SMALL, clouds, write_rows};

/// A page that shows all of these and needs nothing from outside.
fn assert_page(html: &str, parts: &[&str]) {
    for part in parts {
        assert!(html.contains(part), "{part} is missing");
    }
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    for part in ["http:", "https:", "<link", "@import", "src="] {
        assert!(!outside.contains(part), "{part} found");
    }
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
}

#[test]
fn training_leaves_a_page_unless_told_otherwise() {
    let place = Place::new();
    let small = SMALL.replace("--no-report ", "");
    write_rows(&place.path("rows.npy"), &clouds(700));
    place.run(&format!("train rows.npy --held-out 0.2 -o run {small}"));
    let html = place.text("run/report.html");
    assert_page(
        &html,
        &[
            "Density over time",
            "type=\"range\"",
            "140 rows that were not trained on",
            "mode weights",
            "generated samples",
            "dsm loss",
            "diffclf loss",
            "held out",
            "Overlap",
            "Effective sample size",
            "time grid",
            "training, stage 2",
            "config.toml",
            "@inproceedings{ouyang2026diffclf",
            "vincent2011connection",
            "diffclf report run --data rows.npy",
        ],
    );
    // Data have no exact density, and the run used no interpolant.
    assert!(!html.contains("exact density") && !html.contains("albergo2023stochastic"));
    assert!(html.matches("class=\"shot\"").count() > 15);
    place.run(&format!("train rows.npy -o silent {SMALL}"));
    assert!(!place.path("silent/report.html").exists());
    // A page is not replaced unasked, but can stand anywhere.
    place.refused("report run --data rows.npy", 2, &["--force"]);
    place.run("report run --data rows.npy -o other.html --points 200 --quiet");
    assert!(place.path("other.html").is_file());
}

#[test]
fn pictures_are_files_too_and_known_systems_show_their_truth() {
    let place = Place::new();
    place.run(&format!("train --system two-modes -o run {SMALL}"));
    place.run("report run --figures pictures --points 200 --quiet");
    assert_page(
        &place.text("run/report.html"),
        &[
            "exact free energy",
            "R² of log-densities",
            "fresh rows of two-modes",
        ],
    );
    for name in [
        "free-energy-learned-00.png",
        "free-energy-learned-00.svg",
        "free-energy-exact-10.svg",
        "data.svg",
        "generated-samples.svg",
        "loss-dsm.svg",
        "calibration.svg",
        "overlap.svg",
    ] {
        assert!(place.path(&format!("pictures/{name}")).is_file(), "{name}");
    }
    let picture = place.bytes("pictures/free-energy-learned-00.png");
    assert_eq!(picture[..4], *b"\x89PNG");
    place.refused(
        "report run -o other.html --figures pictures --points 200",
        2,
        &["pictures", "--force"],
    );
}

#[test]
fn every_dimension_and_process_has_a_page() {
    let place = Place::new();
    let line: Vec<Vec<f64>> = clouds(200).iter().map(|row| vec![row[0]]).collect();
    write_rows(&place.path("line.npy"), &line);
    place.run(&format!("train line.npy -o line {SMALL}"));
    place.run("report line --data line.npy --points 100 --quiet");
    assert_page(
        &place.text("line/report.html"),
        &["learned density", "data with this much noise"],
    );

    place.run(&format!("train --system mog2 --dim 4 -o space {SMALL}"));
    place.run("report space --points 100 --quiet");
    let html = place.text("space/report.html");
    assert_page(
        &html,
        &[
            "principal axis 1",
            "out of 4 dimensions",
            "generated samples",
        ],
    );
    place.run("report space --points 100 --pair 1,3 -o pair.html --quiet");
    assert_page(&place.text("pair.html"), &["column 1", "column 3"]);
    place.refused(
        "report space --pair 1,4 -o no.html",
        2,
        &["column 4", "0 to 3"],
    );
    place.refused("report space --pair 1 -o no.html", 2, &["--pair"]);

    place.run(&format!(
        "train --system two-modes --end-system mog2 -o bridge {SMALL}"
    ));
    place.run("report bridge --points 100 --quiet");
    let html = place.text("bridge/report.html");
    assert_page(
        &html,
        &[
            "albergo2023stochastic",
            "exact free energy",
            "No samples were generated",
        ],
    );

    // A model alone, without its run and its data, still has a page; what is missing is said.
    std::fs::create_dir(place.path("alone")).unwrap();
    std::fs::copy(
        place.path("line/model.safetensors"),
        place.path("alone/m.safetensors"),
    )
    .unwrap();
    place.run("report alone/m.safetensors --quiet");
    assert_page(
        &place.text("alone/report.html"),
        &["There is no diagnosis", "learned density"],
    );
    place.refused(
        "report alone/m.safetensors --data none.npy -o x.html",
        2,
        &["none.npy"],
    );
}
