//! Kinds of columns and the questions users ask, from a table with names to numbers in its own coordinates.

use super::{Place, SMALL, read_npy, write_rows};
use std::f64::consts::PI;
use std::fs;

/// An angle around its seam, a size, a share and a plain number; 700 rows, the same every time.
fn rows() -> Vec<Vec<f64>> {
    // Splitmix: plain normal numbers, the same every time.
    let uniform = |k: u64| {
        let mut z = k.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let normal = |k: u64| {
        let (u, v) = (uniform(2 * k + 1), uniform(2 * k + 2));
        (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * PI * v).cos()
    };
    (0..700)
        .map(|k| {
            let centre = if k % 4 == 0 { 0.4 } else { PI };
            let angle = centre + 0.7 * normal(4 * k);
            vec![
                angle - 2.0 * PI * ((angle + PI) / (2.0 * PI)).floor(),
                (0.9 * normal(4 * k + 1)).exp(),
                1.0 / (1.0 + (-1.2 * normal(4 * k + 2)).exp()),
                2.0 * normal(4 * k + 3) - 0.7,
            ]
        })
        .collect()
}

fn table(place: &Place) {
    let mut text = String::from("phi,size,share,x\n");
    for row in rows() {
        let cells: Vec<String> = row.iter().map(|x| format!("{x}")).collect();
        text += &(cells.join(",") + "\n");
    }
    fs::write(place.path("table.csv"), text).unwrap();
}

#[test]
fn columns_keep_their_kinds_through_everything() {
    let place = Place::new();
    table(&place);
    let loud = SMALL.replace(" --quiet", "");
    let notes = place.notes(&format!("train table.csv -o m --bounded share:0:1 {loud}"));
    for words in ["phi periodic", "size positive", "share between 0 and 1"] {
        assert!(notes.contains(words), "{words} is missing in\n{notes}");
    }
    let config = place.text("m/config.toml");
    assert!(
        config.contains("periodic = \"phi:6.283185307179586\""),
        "{config}"
    );
    assert!(config.contains("kind = \"ve\""), "{config}");
    // Samples stay where columns may be.
    place.run("sample m -n 400 --steps 30 -o new.npy --quiet");
    let (_, new) = read_npy(&place.bytes("new.npy"));
    for row in new.chunks(4) {
        assert!((-PI..PI).contains(&row[0]), "{row:?}");
        assert!(row[1] > 0.0 && row[2] > 0.0 && row[2] < 1.0, "{row:?}");
    }
    // No seam, and no density where there can be none.
    let at = |angle: f64, size: f64, share: f64| vec![angle, size, share, 0.3];
    let points = [
        at(PI - 1e-9, 1.2, 0.4),
        at(-PI + 1e-9, 1.2, 0.4),
        at(PI - 1e-9 - 4.0 * PI, 1.2, 0.4),
        at(0.3, -0.1, 0.4),
        at(0.3, 1.2, 1.0),
    ];
    write_rows(&place.path("points.npy"), &points);
    place.run("density m points.npy -o p.npy --quiet");
    let (_, p) = read_npy(&place.bytes("p.npy"));
    assert!(
        (p[0] - p[1]).abs() < 1e-4 && (p[0] - p[2]).abs() < 1e-4,
        "{p:?}"
    );
    assert_eq!(&p[3..], &[f64::NEG_INFINITY; 2]);
    place.run("density m points.npy --what score -o s.npy --quiet");
    let (_, s) = read_npy(&place.bytes("s.npy"));
    assert!(s.iter().all(|x| x.is_finite()), "{s:?}");
    // The same run, resumed: nothing left to do.
    place.run(&format!(
        "train table.csv -o m --bounded share:0:1 --resume {SMALL}"
    ));
    // Whatever the verdict on so short a training, there is one.
    let output =
        place.output("diagnose m table.csv --points 200 --generate 100 --quiet --json d.json");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !error.contains("panicked") && output.status.code() != Some(2),
        "{error}"
    );
    let diagnosis = place.json("d.json");
    assert!(diagnosis["diagnosis"]["held_out"]["nats"]["mean"].is_number());
}

#[test]
fn questions_are_answered_in_data_density_and_samples() {
    let place = Place::new();
    table(&place);
    place.run(&format!("train table.csv -o m --bounded share:0:1 {SMALL}"));
    let text = place.run(
        "weight m --where cos(phi)<0 --where size>1&share<0.5 --draws 20000 --samples 500 --quiet --json w.json",
    );
    assert!(text.contains("cos(phi)<0") && text.contains("±"), "{text}");
    let weights = place.json("w.json");
    let inside = rows().iter().filter(|row| row[0].cos() < 0.0).count();
    let found = &weights["weights"][0];
    let mean = |what: &str| found[what]["mean"].as_f64().unwrap();
    let error = |what: &str| found[what]["error"].as_f64().unwrap();
    assert!((mean("data") - inside as f64 / 700.0).abs() < 1e-9);
    // The density is close to its data's shares after a few steps on their mixture; the error of the integral is small.
    assert!((mean("density") - mean("data")).abs() < 0.06, "{found}");
    assert!(
        error("density") < 0.02 && error("samples") < 0.04,
        "{found}"
    );
    assert!((mean("samples") - mean("data")).abs() < 0.15, "{found}");
    let text = place.run(
        "surface m --along phi --along size --bins 12 --draws 20000 -o f.csv --quiet --json f.json",
    );
    assert!(text.contains("Free energy along phi and size"), "{text}");
    let lines: Vec<String> = place.text("f.csv").lines().map(String::from).collect();
    assert_eq!(lines.len(), 145);
    assert_eq!(
        lines[0],
        "\"phi\",\"size\",free_energy,error,data_free_energy,data_error"
    );
    let edges = place.json("f.json")["density"]["edges"][0].clone();
    assert!((edges[0].as_f64().unwrap() + PI).abs() < 1e-12);
    let text = place.run("rows m table.csv -n 3 --quiet");
    assert!(
        text.contains("Most unusual rows") && text.contains("size"),
        "{text}"
    );
    place.run(
        "anneal m --target-energy 2*(1-cos(phi))+size+(x+1)^2+4*(share-0.5)^2 -n 60 --levels 20 --moves 2 --least-overlap 0 -o b.npy --quiet",
    );
    let (_, b) = read_npy(&place.bytes("b.npy"));
    assert!(
        b.chunks(4)
            .all(|row| row[1] > 0.0 && (0.0..1.0).contains(&row[2]))
    );
    place.run("compose A^0.5 --model A=m -n 60 --levels 20 --least-overlap 0 -o c.npy --quiet");
    let (_, c) = read_npy(&place.bytes("c.npy"));
    assert!(
        c.chunks(4)
            .all(|row| (-PI..PI).contains(&row[0]) && row[1] > 0.0)
    );
    std::fs::write(place.path("t.csv"), "phi,energy\n0,1\n").unwrap();
    place.refused(
        "anneal m --target-energy t.csv -o d.npy --quiet",
        2,
        &["t.csv", "4 columns", "at most 3", "formula"],
    );
    place.refused("weight m --where chi>0", 2, &["chi", "phi, size, share, x"]);
    place.refused("weight m --where phi", 2, &["a condition"]);
    place.refused("surface m --along phi>0", 2, &["a number"]);
    place.refused(
        "surface m --along 0 --along 1 --along 2",
        2,
        &["--along", "one or two"],
    );
}

#[test]
fn kinds_that_do_not_fit_are_refused() {
    let place = Place::new();
    table(&place);
    for (flags, words) in [
        ("--positive x", &["--positive", "column x"][..]),
        ("--periodic chi", &["--periodic", "phi, size"]),
        ("--bounded share:0.4:0.6", &["--bounded", "column share"]),
        ("--process vp", &["--process", "ve"]),
        ("--base gaussian", &["--base", "periodic"]),
        ("--scale whiten", &["--scale"]),
    ] {
        place.refused(&format!("train table.csv -o r {flags} {SMALL}"), 2, words);
    }
    place.refused(
        &format!("train --system mog2 --dim 2 --periodic 0 -o r {SMALL}"),
        2,
        &["--periodic", "rows that are given"],
    );
    // Kept plain when asked for.
    place.run(&format!(
        "train table.csv -o plain --periodic none --positive none {SMALL}"
    ));
    assert!(place.text("plain/config.toml").contains("kind = \"vp\""));
}

/// A parabola on a grid is a parabola between its points.
#[test]
fn a_target_is_a_formula_or_a_table() {
    let place = Place::new();
    let rows: Vec<Vec<f64>> = (0..300)
        .map(|k| vec![1.5 + (f64::from(k) * 0.618_033_988_75).fract()])
        .collect();
    write_rows(&place.path("rows.npy"), &rows);
    place.run(&format!("train rows.npy -o m --t-min 0.05 {SMALL}"));
    let line = |k: i32| {
        let x = 0.5 * f64::from(k);
        format!("{},{x}\n", (x - 1.0).powi(2))
    };
    let lines: String = (-80..=80).map(line).collect();
    std::fs::write(place.path("own.csv"), format!("energy,x0\n{lines}")).unwrap();
    let samples = |target: &str| {
        place.run(&format!(
            "anneal m --target-energy {target} -n 100 --levels 20 --moves 2 --least-overlap 0 -o s.npy --force --quiet"
        ));
        read_npy(&place.bytes("s.npy")).1
    };
    let (formula, table) = (samples("(x0-1)^2"), samples("own.csv"));
    assert!(formula.iter().any(|x| (x - formula[0]).abs() > 0.1));
    for (a, b) in formula.iter().zip(&table) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    std::fs::write(place.path("own.csv"), "x,energy\n0,1\n").unwrap();
    place.refused(
        "anneal m --target-energy own.csv -o n.npy --quiet",
        2,
        &["own.csv", "its columns are x, energy"],
    );
}
