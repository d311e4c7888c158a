//! `diffclf reproduce`: finished cells stay, other settings are refused, results are whole.

use super::Place;

#[test]
fn a_reproduction_goes_on_where_it_stopped() {
    let place = Place::new();
    let list = place.run("reproduce --list");
    for name in ["blindness", "classifier", "mog40-dm", "mog2-dm", "mog-si"] {
        assert!(list.contains(name), "{list}");
    }
    place.run("reproduce classifier --quick --cells step-0 -o out --quiet");
    let cell = place.text("out/cells/step-0.json");
    // A second cell joins the first, which is not computed again.
    place.run("reproduce classifier --quick --cells step-30 -o out --quiet");
    assert_eq!(place.text("out/cells/step-0.json"), cell);
    let results = place.json("out/results.json");
    let excess = |step: &str| {
        results["groups"][step]["figures"]["excess"]["value"]
            .as_f64()
            .unwrap()
    };
    assert!(excess("step-30") < excess("step-0"), "{results}");
    assert!(place.text("out/table.md").contains("| step-30 |"));
    assert!(place.text("out/report.html").contains("step-30"));
    assert!(place.text("out/posterior-30.svg").starts_with("<svg"));
    place.refused(
        "reproduce classifier --cells step-0 -o out --quiet",
        2,
        &["other settings", "-o"],
    );
    place.refused("reproduce classifier --cells step-7", 2, &["step-30"]);
    place.refused(
        "reproduce classifier --share 0.5",
        2,
        &["--share", "two stages"],
    );
    place.refused("reproduce mog40-dm --share 2", 2, &["at most 1"]);
    place.refused("reproduce figure-9", 2, &["mog40-dm", "expected one of"]);
}

#[test]
fn scores_are_blind_and_classifiers_are_not() {
    let place = Place::new();
    let text = place.run("reproduce blindness --quick -o out --keep kept --quiet");
    assert!(text.contains("relative_rise"), "{text}");
    let results = place.json("out/results.json");
    let rise = |cell: &str| {
        results["groups"][cell]["figures"]["relative_rise"]["value"]
            .as_f64()
            .unwrap()
    };
    for cell in ["score", "time-score", "fokker-planck"] {
        assert!(100.0 * rise(cell) < rise("posterior"), "{results}");
    }
    assert!(place.text("out/time-score.svg").starts_with("<svg"));
    // Kept cells give the same tables again.
    let again = place.run("reproduce blindness --quick -o again --redraw kept --quiet");
    assert_eq!(again, text);
    assert_eq!(place.json("again/results.json"), results);
    assert_eq!(place.text("again/table.md"), place.text("out/table.md"));
    place.refused("reproduce blindness --redraw kept", 2, &["--keep"]);
}

/// The ratio to the corrected limit is 1, its error of first order; the printed constants are far off.
#[test]
fn close_times_have_the_corrected_limits() {
    let place = Place::new();
    let text = place.run("reproduce limits -o out --quiet");
    assert!(text.contains("alike") && !text.contains("off"), "{text}");
    let results = place.json("out/results.json");
    let groups = results["groups"].as_object().unwrap();
    assert_eq!(groups.len(), 5);
    for (cell, group) in groups {
        let figure = |name: &str| group["figures"][name]["value"].as_f64().unwrap();
        assert!((figure("order") - 1.0).abs() < 0.1, "{cell}: {group}");
        assert!(
            (figure("ratio_as_printed") - 1.0).abs() > 0.5,
            "{cell}: {group}"
        );
    }
    assert!(place.text("out/limits.svg").starts_with("<svg"));
}

#[test]
fn frames_are_taken_where_the_papers_are_not_public_alone() {
    let place = Place::new();
    place.refused(
        "reproduce blindness --data mine.npy -o out --quiet",
        2,
        &["data file", "blindness has its own"],
    );
    place.refused(
        "reproduce chignolin --quick --cells data --data mine.npy -o out --quiet",
        2,
        &["mine.npy"],
    );
}
