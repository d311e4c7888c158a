//! Rows of particles through every door: whatever the model knows of them, rows of the user's go in and rows of the user's come out.

use super::*;

/// Four particles in space, each row turned and moved by something else: a bent chain whose bonds vary.
fn chains(count: usize) -> Vec<Vec<f64>> {
    clouds(2 * count)
        .chunks_exact(2)
        .enumerate()
        .map(|(k, pair)| {
            let (a, b) = (&pair[0], &pair[1]);
            let (sin, cos) = (0.7 * k as f64).sin_cos();
            let flat = [
                [0.0, 0.0, 0.0],
                [1.0 + 0.1 * a[0], 0.0, 0.2 * b[1]],
                [1.4, 1.0 + 0.1 * b[0], 0.3],
                [2.0, 1.2, 1.0 + 0.1 * a[1]],
            ];
            flat.iter()
                .flat_map(|[x, y, z]| [cos * x - sin * y + 5.0, sin * x + cos * y - 3.0, z + a[1]])
                .collect()
        })
        .collect()
}

fn moved(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let by = [30.0, -8.0, 4.0];
    let row = |row: &Vec<f64>| row.iter().enumerate().map(|(c, x)| x + by[c % 3]).collect();
    rows.iter().map(row).collect()
}

fn turned(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (sin, cos) = 1.1_f64.sin_cos();
    let row = |row: &Vec<f64>| {
        row.chunks(3)
            .flat_map(|p| [p[0], cos * p[1] - sin * p[2], sin * p[1] + cos * p[2]])
            .collect()
    };
    rows.iter().map(row).collect()
}

fn close(a: &[f64], b: &[f64], allowed: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < allowed * (1.0 + a.abs()), "{a} {b}");
    }
}

/// Largest centre of rows of four particles.
fn centre(rows: &[f64]) -> f64 {
    let axis = |row: &[f64], c: usize| row.iter().skip(c).step_by(3).sum::<f64>().abs();
    rows.chunks(12)
        .flat_map(|row| (0..3).map(|c| axis(row, c)))
        .fold(0.0, f64::max)
}

#[test]
fn every_door_knows_rows_without_a_centre() {
    let place = Place::new();
    let rows = chains(120);
    write_rows(&place.path("rows.npy"), &rows);
    write_rows(&place.path("moved.npy"), &moved(&rows));
    write_rows(&place.path("turned.npy"), &turned(&rows));
    let numbers = |name: &str| read_npy(&place.bytes(name)).1;
    for (network, knows_turns) in [
        ("{kind=\"egnn\",types=[0,1,1,0]}", false),
        (
            "{kind=\"transformer\",types=[0,1,2,3],heads=2,head_width=4}",
            true,
        ),
        ("pairs", false),
    ] {
        place.run(&format!(
            "train rows.npy --particles 4 --centre free --network {network} -o run --force {SMALL}"
        ));
        let settings = place.text("run/config.toml");
        assert!(settings.contains("centre = \"free\""), "{settings}");
        assert_eq!(
            settings.contains("rotate = true"),
            knows_turns,
            "{settings}"
        );
        let density = |rows: &str, more: &str| {
            let out = "out.npy --force --quiet";
            place.run(&format!("density run {rows}.npy {more} -o {out}"));
            numbers("out.npy")
        };
        let plain = density("rows", "");
        assert_eq!(plain.len(), 120);
        close(&plain, &density("moved", ""), 1e-4);
        if !knows_turns {
            close(&plain, &density("turned", ""), 1e-4);
        }
        // Scores belong to rows, and move no centre.
        let score = density("rows", "--what score");
        assert_eq!(score.len(), 120 * 12);
        assert!(centre(&score) < 1e-3, "{}", centre(&score));
        let flow = density("rows", "--by flow");
        assert!(flow.iter().all(|x| x.is_finite()));
        place.run("sample run -n 20 -o x.npy --force --quiet");
        let drawn = numbers("x.npy");
        assert_eq!(drawn.len(), 20 * 12);
        assert!(centre(&drawn) < 1e-9);
        for method in ["smc --diffusion", "exchange --sweeps 5"] {
            place.run(&format!(
                "anneal run --method {method} -n 30 --levels 8 --least-overlap 0 -o y.npy --force --quiet"
            ));
            assert!(centre(&numbers("y.npy")) < 1e-9);
        }
        place.run("compose A^2 --model A=run/model.safetensors -n 30 --levels 8 --least-overlap 0 -o z.npy --force --quiet");
        let composed = numbers("z.npy");
        assert_eq!(composed.len(), 30 * 12);
        assert!(centre(&composed) < 1e-9);
        // Chains keep all the numbers of their rows, and forces move no centre but by its own noise.
        place.run("simulate run --start rows.npy --chains 3 --frames 2 --thin 3 --step 0.001 -o s.npy --force --quiet");
        let moved = numbers("s.npy");
        assert_eq!(moved.len(), 3 * 2 * 12);
        for (row, start) in moved.chunks(12).step_by(2).zip(&rows) {
            // Three steps of 0.001 at unit mass: a few thousandths.
            let way = row.iter().zip(start).map(|(a, b)| (a - b).abs());
            assert!(way.fold(0.0, f64::max) < 0.1, "{row:?} {start:?}");
        }
        // So short a training gives no good model; it is judged all the same.
        let verdict = place.output("diagnose run rows.npy --points 60 --generate 60 --quiet");
        let text = String::from_utf8_lossy(&verdict.stdout);
        assert!(text.contains("judged by rows.npy"), "{text}");
        assert!(matches!(verdict.status.code(), Some(0 | 1 | 4)), "{text}");
        let about = place.run("inspect run");
        assert!(about.contains("without their centre"), "{about}");
    }
}

#[test]
fn interpolants_of_particles_go_both_ways() {
    let place = Place::new();
    let rows = chains(120);
    write_rows(&place.path("a.npy"), &rows);
    let wider: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| row.iter().map(|x| 1.3 * x).collect())
        .collect();
    write_rows(&place.path("b.npy"), &wider);
    for network in ["egnn", "{kind=\"transformer\",heads=2,head_width=4}"] {
        place.run(&format!(
            "train a.npy --end b.npy --particles 4 --network {network} --objective dsm+diffclf+velocity -o run --force {SMALL}"
        ));
        place.run("sample run --rows b.npy -o x.npy --force --quiet");
        let drawn = read_npy(&place.bytes("x.npy")).1;
        assert_eq!(drawn.len(), 120 * 12);
        assert!(centre(&drawn) < 1e-9);
        let small = SMALL.replace("--no-report", "");
        let text = place.run(&format!(
            "free-energy learn a.npy b.npy --particles 4 --network {network} -o learned --force --path-levels 5 --path-samples 60 {small}"
        ));
        assert!(text.contains("MBAR over the learned path"), "{text}");
    }
}

/// Rows of two ends that are paired: trained to the same bytes with any number of threads and when it goes on, asked for free energies and samples, and refused where pairs must be independent.
#[test]
fn rows_that_belong_together() {
    let place = Place::new();
    let rows = chains(120);
    write_rows(&place.path("a.npy"), &rows);
    let wider: Vec<Vec<f64>> = turned(&rows)
        .iter()
        .map(|row| row.iter().map(|x| 1.3 * x).collect())
        .collect();
    write_rows(&place.path("b.npy"), &wider);
    let coupling = "--coupling {kind=\"optimal-transport\",rows=40}";
    let asked = format!(
        "train a.npy --end b.npy --particles 4 --network egnn {coupling} --objective dsm+diffclf+velocity {}",
        SMALL.replace("--threads 2", "")
    );
    place.run(&format!("{asked} -o run --threads 1"));
    place.run(&format!("{asked} -o again --threads 2"));
    let model = |run: &str| place.bytes(&format!("{run}/model.safetensors"));
    assert!(model("run") == model("again"));
    place
        .run("free-energy learn a.npy b.npy --model run --path-levels 5 --path-samples 60 --quiet");
    place.run("sample run --rows b.npy -o x.npy --quiet");
    place.refused("diagnose run a.npy --end b.npy", 2, &["independent pairs"]);
    place.refused(
        &format!("train a.npy --particles 4 --network egnn {coupling} -o one {SMALL}"),
        2,
        &["--coupling", "two endpoints"],
    );
    // Plain columns have partners, too.
    place.run(&format!(
        "train --system pair-a --end-system pair-b --dim 2 --coupling optimal-transport -o plain {SMALL}"
    ));
    place.refused("evaluate plain", 2, &["independent pairs"]);
}

#[test]
fn aligned_rows_do_not_know_where_they_came_from() {
    let place = Place::new();
    let rows = chains(120);
    write_rows(&place.path("rows.npy"), &rows);
    write_rows(&place.path("turned.npy"), &moved(&turned(&rows)));
    let transformer = "{kind=\"transformer\",heads=2,head_width=4}";
    place.run(&format!(
        "train rows.npy --particles 4 --align --network {transformer} -o run {SMALL}"
    ));
    let density = |rows: &str| {
        place.run(&format!("density run {rows} -o out.npy --force --quiet"));
        read_npy(&place.bytes("out.npy")).1
    };
    close(&density("rows.npy"), &density("turned.npy"), 1e-4);
    // A run that goes on is the run that was not stopped.
    place.run(&format!(
        "train rows.npy --particles 4 --align --network {transformer} -o run --resume --quiet --no-report"
    ));
    for (more, words) in [
        ("--align --particles 4 --rotate", ["--align", "--rotate"]),
        ("--rotate", ["--rotate", "--particles"]),
        ("--centre free", ["--centre", "--particles"]),
        ("--particles 5", ["--particles", "divisor"]),
        (
            "--particles 4 --base mixture",
            ["--base mixture", "--particles"],
        ),
    ] {
        let network = if more.contains("particles") {
            "--network egnn"
        } else {
            ""
        };
        place.refused(
            &format!("train rows.npy {more} {network} -o other {SMALL}"),
            2,
            &words,
        );
    }
}
