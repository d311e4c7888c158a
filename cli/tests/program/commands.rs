//! What the commands give: densities and samples in the user's coordinates, evaluations, pages, help.

use super::{Place, SMALL, clouds, read_npy, write_rows};

/// Data moved and stretched give the same model: log-densities lose d ln(scale), scores are divided by it.
#[test]
fn results_are_in_the_users_coordinates() {
    let place = Place::new();
    let (shift, scale) = ([100.0, -40.0], 3.0);
    let rows = clouds(400);
    let moved: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| row.iter().zip(shift).map(|(x, s)| s + scale * x).collect())
        .collect();
    write_rows(&place.path("plain.npy"), &rows);
    write_rows(&place.path("moved.npy"), &moved);
    let value = |name: &str, what: &str, time: &str| {
        let output = format!("{name}-{what}.npy");
        place.run(&format!(
            "density {name}/model.safetensors {name}-points.npy --what {what} --time {time} -o {output} --force --quiet"
        ));
        read_npy(&place.bytes(&output)).1
    };
    for name in ["plain", "moved"] {
        place.run(&format!("train {name}.npy -o {name} {SMALL}"));
    }
    write_rows(&place.path("plain-points.npy"), &rows);
    // Noise is added about the data's own mean, so a point moves as the data do, at every time.
    write_rows(&place.path("moved-points.npy"), &moved);
    // Twelve steps in single precision on data that differ by rounding.
    let close = |a: f64, b: f64| (a - b).abs() < 1e-3 * (1.0 + a.abs());
    let pairs = |what: &str| {
        let (plain, moved) = (value("plain", what, "0.4"), value("moved", what, "0.4"));
        assert_eq!(plain.len(), moved.len());
        plain.into_iter().zip(moved)
    };
    for (a, b) in pairs("log-density") {
        assert!(close(a - 2.0 * scale.ln(), b), "{a} {b}");
    }
    for (a, b) in pairs("energy") {
        assert!(close(a + 2.0 * scale.ln(), b), "{a} {b}");
    }
    for (a, b) in pairs("score") {
        assert!(close(a / scale, b), "{a} {b}");
    }
    // Samples return to where the data are.
    place.run("sample moved/model.safetensors -n 500 --steps 64 -o samples.npy --quiet");
    let (header, samples) = read_npy(&place.bytes("samples.npy"));
    assert!(
        header.contains("'<f8'") && header.contains("(500, 2)"),
        "{header}"
    );
    for column in 0..2 {
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let all: Vec<f64> = values.collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        let found = mean(&mut samples.iter().copied().skip(column).step_by(2));
        let expected = mean(&mut moved.iter().map(|row| row[column]));
        let square = |x: f64| x * x;
        let variance = mean(&mut moved.iter().map(|row| square(row[column] - expected)));
        // In units of the data's spread, four standard errors of 500 samples are 0.18; over four seeds the barely trained model was off
        // by 0.08.
        let off = (found - expected) / variance.sqrt();
        assert!(off.abs() < 0.3, "{found} {expected}");
    }
}

#[test]
fn a_model_in_the_datas_own_coordinates_gives_similar_densities() {
    let place = Place::new();
    let rows: Vec<Vec<f64>> = clouds(400)
        .into_iter()
        .map(|row| vec![row[0] + 3.0, row[1]])
        .collect();
    write_rows(&place.path("rows.npy"), &rows);
    place.run(&format!("train rows.npy -o run --no-standardise {SMALL}"));
    let document = place.run("inspect run/model.safetensors --json");
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let content = &document["content"];
    assert_eq!(content["standardisation"]["scale"], 1.0);
    assert!(
        (content["spec"]["mean"][0].as_f64().unwrap() - 3.0).abs() < 0.2,
        "{content}"
    );
    assert!(content["spec"]["variance"].as_f64().unwrap() > 0.5);
    // At a small time both noises are small beside the modes, and both densities near those of the data, which differ by 3 nats over
    // the rows. The mean difference was 0.046 nats when this was written.
    place.run(&format!("train rows.npy -o standard {SMALL}"));
    let [own, standard] = ["run", "standard"].map(|run| {
        place.run(&format!(
            "density {run} rows.npy --time 0.01 -o out.npy --force --quiet"
        ));
        read_npy(&place.bytes("out.npy")).1
    });
    let (mut least, mut most, mut apart) = (f64::MAX, f64::MIN, 0.0f64);
    for (a, b) in own.iter().zip(&standard) {
        (least, most) = (least.min(*a), most.max(*a));
        apart += (a - b).abs() / 400.0;
    }
    assert!(
        own.len() == 400 && most - least > 2.0 && apart < 0.1,
        "{least} {most} {apart}"
    );
}

/// A network that has learned nothing leaves the fitted mixture, which the energy gives exactly and the flow up to its steps.
#[test]
fn energy_and_flow_agree_and_points_outside_are_marked() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(400));
    let still = "--width 8 --depth 2 --batch 64 --grid-levels 512 --score-steps 0 --steps 1 --rate 1e-9 --threads 2 --no-report --quiet";
    place.run(&format!("train rows.npy -o run {still}"));
    let mut points = clouds(20);
    points.push(vec![40.0, 0.0]);
    points.push(vec![0.1, -50.0]);
    write_rows(&place.path("points.npy"), &points);
    let density = |flags: &str| {
        let arguments = format!("density run points.npy -o out.npy --force {flags}");
        let notes = place.notes(&arguments);
        (read_npy(&place.bytes("out.npy")).1, notes)
    };
    let (energy, notes) = density("--outside far.npy");
    assert!(
        notes.contains("2 of 22 points lie outside of the data (first: row 20"),
        "{notes}"
    );
    let marks = read_npy(&place.bytes("far.npy")).1;
    assert_eq!(marks, [vec![0.0; 20], vec![1.0; 2]].concat());
    let (flow, _) = density("--by flow");
    // Heun's steps: 0.077, 0.016 and 0.0012 nats on 128, 256 and 512 levels.
    let apart = energy[..20].iter().zip(&flow).map(|(a, b)| (a - b).abs());
    let apart = apart.fold(0.0, f64::max);
    let spread = energy[..20].iter().fold(f64::MIN, |m, x| m.max(*x))
        - energy[..20].iter().fold(f64::MAX, |m, x| m.min(*x));
    assert!(apart < 0.005 && spread > 0.5, "{apart} {spread}");
    place.refused(
        "density run points.npy --by flow --what score -o out.npy --force",
        2,
        &["--by flow"],
    );
    place.refused(
        "density run points.npy -o other.npy --outside far.npy",
        2,
        &["--force"],
    );
}

/// The same numbers in any kind of file give the same model, and names of columns are kept.
#[test]
fn tables_and_archives_are_read_as_arrays() {
    let place = Place::new();
    let rows = clouds(120);
    write_rows(&place.path("rows.npy"), &rows);
    let table: String = rows
        .iter()
        .map(|row| format!("{},{}\n", row[0], row[1]))
        .collect();
    std::fs::write(place.path("rows.csv"), format!("phi,psi\n{table}")).unwrap();
    std::fs::write(place.path("rows.tsv"), table.replace(',', "\t")).unwrap();
    let density = |data: &str, run: &str| {
        place.run(&format!("train {data} -o {run} {SMALL}"));
        place.run(&format!("density {run} {data} -o {run}.npy --quiet"));
        read_npy(&place.bytes(&format!("{run}.npy"))).1
    };
    let expected = density("rows.npy", "plain");
    assert_eq!(density("rows.csv", "table"), expected);
    assert_eq!(density("rows.tsv", "tabs"), expected);
    let document = place.run("inspect table --json");
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let columns = &document["content"]["record"]["data"][0]["columns"];
    assert_eq!(columns, &serde_json::json!(["phi", "psi"]));
    // A run on a table goes on, and finds its rows for a diagnosis.
    place.run(&format!("train -o table --resume {SMALL}"));
    place.output("diagnose table rows.csv --points 64 --generate 0 --json judged.json --quiet");
    assert!(place.json("judged.json")["diagnosis"]["checks"].is_array());
    std::fs::write(place.path("words.csv"), "a,b\n1,2\n3,x\n").unwrap();
    place.refused(
        &format!("train words.csv -o no {SMALL}"),
        2,
        &["line 3", "('b')", "'x' is no number"],
    );
}

/// Whitened or not, a model of correlated columns speaks of the same data: density, score, samples, compositions.
#[test]
fn whitened_columns_give_the_same_answers() {
    let place = Place::new();
    let turned = |row: Vec<f64>| vec![50.0 + row[0], 7.0 + 3.0 * row[0] + 0.1 * row[1]];
    let rows: Vec<Vec<f64>> = clouds(600).into_iter().map(turned).collect();
    write_rows(&place.path("rows.npy"), &rows);
    write_rows(&place.path("points.npy"), &rows[..40]);
    let still = "--width 8 --depth 2 --batch 64 --score-steps 0 --steps 1 --rate 1e-9 --threads 2 --no-report --quiet";
    let value = |run: &str, flags: &str| {
        place.run(&format!(
            "density {run} points.npy -o out.npy --force --quiet {flags}"
        ));
        read_npy(&place.bytes("out.npy")).1
    };
    for scale in ["column", "whiten"] {
        place.run(&format!(
            "train rows.npy -o {scale} --scale {scale} {still}"
        ));
    }
    // Mixtures fitted in other coordinates differ in shape (0.2 nats from row to row) and not in mass: -0.035 nats on average when this
    // was written. Without the volume of the map it would be the logarithm of sqrt(1 - correlation^2), 5.7 nats.
    let (apart, whitened) = (value("column", ""), value("whiten", ""));
    let gap = apart.iter().zip(&whitened).map(|(a, b)| a - b).sum::<f64>() / 40.0;
    assert!(gap.abs() < 0.15, "{gap}");
    // The score is the slope of the log-density.
    let score = value("whiten", "--what score");
    let h = 1e-5;
    for column in 0..2 {
        let moved = |by: f64| {
            let mut moved = rows[..40].to_vec();
            moved.iter_mut().for_each(|row| row[column] += by);
            write_rows(&place.path("points.npy"), &moved);
            value("whiten", "")
        };
        let (up, down) = (moved(h), moved(-h));
        for row in 0..40 {
            let slope = (up[row] - down[row]) / (2.0 * h);
            let exact = score[2 * row + column];
            // Single precision of the correction over the step.
            assert!(
                (slope - exact).abs() < 1e-2 * (1.0 + exact.abs()),
                "{slope} {exact}"
            );
        }
    }
    // Samples hang together as the rows do.
    place.run("sample whiten -n 400 -o samples.npy --quiet");
    let (_, samples) = read_npy(&place.bytes("samples.npy"));
    let flat: Vec<f64> = rows.iter().flatten().copied().collect();
    let slope = |values: &[f64]| {
        let count = (values.len() / 2) as f64;
        let mean = |i: usize| values.iter().skip(i).step_by(2).sum::<f64>() / count;
        let (x, y) = (mean(0), mean(1));
        let sums = values.chunks_exact(2).fold((0.0, 0.0), |sums, row| {
            let (dx, dy) = (row[0] - x, row[1] - y);
            (sums.0 + dx * dy, sums.1 + dx * dx)
        });
        sums.0 / sums.1
    };
    let (found, expected) = (slope(&samples), slope(&flat));
    // Residuals of 0.08 over a spread of 1.4 in 400 rows: 0.003.
    assert!((found - expected).abs() < 0.012, "{found} {expected}");
    // So do those of a power, which begins at a correlated start: y = 3 x + 0.1 r with |cov(x, r)| below the variance of x.
    place.run("compose A^2 --model A=whiten -n 200 --levels 64 --moves 4 -o power.npy --quiet");
    let found = slope(&read_npy(&place.bytes("power.npy")).1);
    assert!((found - 3.0).abs() < 0.1, "{found}");
}

#[test]
fn samples_depend_on_their_number_and_the_seed_alone() {
    let place = Place::new();
    place.run(&format!("train --system two-modes -o run {SMALL}"));
    let sample = |flags: &str| {
        place.run(&format!(
            "sample run/model.safetensors --steps 20 -o out.npy --force --quiet {flags}"
        ));
        read_npy(&place.bytes("out.npy")).1
    };
    for method in ["ddim", "reverse-sde", "ddim --eta 0.7"] {
        let many = sample(&format!("-n 50 --method {method}"));
        assert_eq!(
            many[..20],
            sample(&format!("-n 10 --method {method} --threads 1")),
            "{method}"
        );
        assert_ne!(
            many,
            sample(&format!("-n 50 --seed 1 --method {method}")),
            "{method}"
        );
        assert!(many.iter().all(|x| x.is_finite()));
    }
}

#[test]
fn an_evaluation_stands_beside_the_optimum() {
    let place = Place::new();
    place.run(&format!("train --system mog2 --dim 2 -o run {SMALL}"));
    let text = place
        .run("evaluate run/model.safetensors --samples 64 --classified 16 --json all.json --quiet");
    for part in [
        "Fisher divergence",
        "effective sample size",
        "classification loss",
        "its optimum",
        "Mode weights",
        "0.6667",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let document = place.json("all.json");
    assert_eq!(
        document["evaluation"]["levels"].as_array().unwrap().len(),
        32
    );
    // Nats of fresh samples: no model is likelier than the truth by more than chance.
    let lead = &document["likelihood"]["lead"];
    let (mean, error) = (
        lead["mean"].as_f64().unwrap(),
        lead["error"].as_f64().unwrap(),
    );
    assert!(mean < 4.0 * error && error > 0.0, "{lead}");
    assert!(text.contains("nats per row, exact"), "{text}");
    let average = &document["evaluation"]["average"];
    assert!(
        average["excess"]["mean"].as_f64().unwrap() > 0.0,
        "{average}"
    );
    place.refused(
        "evaluate run/model.safetensors --json all.json",
        2,
        &["--force"],
    );
    let text = place
        .run("evaluate run/model.safetensors --system mog2 --levels 9 --samples 32 --all --quiet");
    let levels = text.split("Levels\n").nth(1).unwrap().lines().count();
    assert_eq!(levels, 2 + 9, "{text}");
    // A bridge between two mixtures, in coordinates of its own.
    place.run(&format!(
        "train --system two-modes --end-system mog2 -o bridge {SMALL}"
    ));
    let text = place
        .run("evaluate bridge/model.safetensors --samples 32 --classified 8 --levels 8 --quiet");
    assert!(
        text.contains("two-modes and mog2") && text.contains("linear"),
        "{text}"
    );
}

#[test]
fn the_demonstration_writes_one_page_and_never_over_another() {
    let place = Place::new();
    let text = place.run("demo --quick --quiet --threads 2");
    for part in [
        "weight of mode 1",
        "0.667",
        "DSM + DiffCLF",
        "classification loss",
        "training time",
        "diffclf-demo.html",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let page = place.text("diffclf-demo.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.matches("<svg").count() == 4);
    let text = place.run("demo --quick --quiet");
    assert!(text.contains("diffclf-demo-2.html"), "{text}");
    assert!(place.text("diffclf-demo.html") == page);
    place.refused("demo --quick -o diffclf-demo.html", 2, &["--force"]);
}

#[test]
fn the_program_checks_itself() {
    let text = Place::new().run("selftest");
    assert!(
        text.contains("checks passed") && !text.contains("FAILED"),
        "{text}"
    );
}

#[test]
fn help_has_examples_and_a_pipe_may_close() {
    let place = Place::new();
    let text = place.run("--help");
    for command in [
        "demo",
        "train",
        "evaluate",
        "diagnose",
        "report",
        "free-energy",
        "density",
        "sample",
        "inspect",
        "selftest",
    ] {
        assert!(text.contains(command), "{text}");
        let help = place.run(&format!("{command} --help"));
        assert!(help.contains("Usage: diffclf"), "{help}");
    }
    assert!(place.run("train --help").contains("Examples:"));
    assert_eq!(place.output("frobnicate").status.code(), Some(2));
    assert!(place.run("--version").starts_with("diffclf "));
}
