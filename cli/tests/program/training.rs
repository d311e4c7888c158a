//! Training: the run folder, configurations, held-out rows, numbers that go wrong.

use super::{Place, SMALL, clouds, read_npy, write_rows};
use std::fs;

#[test]
fn a_run_folder_holds_all_that_was_promised() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(1000));
    fs::write(
        place.path("run.toml"),
        "rate = 0.002\nlog_every = 2\nprocess = { kind = \"edm\", sigma_max = 20.0 }",
    )
    .unwrap();
    place.run(&format!(
        "train rows.npy --config run.toml --rate 0.003 -o run {SMALL}"
    ));
    let config = place.text("run/config.toml");
    // The flag wins over the file, the file over the default, and defaults are written out.
    for line in [
        "rate = 0.003",
        "log_every = 2",
        "sigma_max = 20.0",
        "held_out = 0.1",
        "average = 0.999",
        "rows.npy",
    ] {
        assert!(config.contains(line), "{line} is missing in\n{config}");
    }
    let log = place.log("run");
    let steps: Vec<_> = log
        .iter()
        .map(|entry| entry["step"].as_u64().unwrap())
        .collect();
    assert_eq!(steps, [2, 4, 6, 8, 10, 12]);
    assert!(log[0]["loss"].get("diffclf").is_none() && log[0]["stage"] == 0);
    assert!(log[5]["loss"]["diffclf"].is_number() && log[5]["held_out"]["total"].is_number());
    for entry in &log {
        for key in ["gradient_norm", "rate", "seconds"] {
            assert!(entry[key].is_number(), "{entry}");
        }
    }
    // The written configuration repeats the run, to the byte.
    place.run("train --config run/config.toml -o again --quiet");
    assert!(place.bytes("again/model.safetensors") == place.bytes("run/model.safetensors"));
    let text = place.run("inspect again/model.safetensors");
    for part in [
        "edm, sigma_max 20",
        "1000 rows",
        "12 of 12",
        "6 steps on dsm+diffclf",
        "sha256",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn the_model_does_not_depend_on_threads() {
    let place = Place::new();
    for threads in [1, 2, 5] {
        place.run(
            &format!("train --system mog2 --dim 3 -o run{threads} {SMALL}")
                .replace("--threads 2", &format!("--threads {threads}")),
        );
        assert!(
            place.bytes(&format!("run{threads}/model.safetensors"))
                == place.bytes("run1/model.safetensors")
        );
    }
}

#[test]
fn nothing_is_overwritten_unasked() {
    let place = Place::new();
    place.run(&format!("train --system two-modes -o run {SMALL}"));
    let model = place.bytes("run/model.safetensors");
    place.refused(
        &format!("train --system mog2 --dim 2 -o run {SMALL}"),
        2,
        &["already holds a run", "--resume", "--force", "-o"],
    );
    assert!(place.bytes("run/model.safetensors") == model);
    place.refused(
        &format!("train --system mog2 --dim 2 --force --resume -o run {SMALL}"),
        2,
        &["--resume"],
    );
    // A wrong call with --force deletes nothing.
    place.refused("train nothing.npy --force -o run", 2, &["nothing.npy"]);
    place.refused(
        "train --system mog2 --dim 2 --batch 0 --force -o run",
        2,
        &["batch"],
    );
    assert!(place.bytes("run/model.safetensors") == model);
    place.run(&format!(
        "train --system mog2 --dim 2 --force -o run {SMALL}"
    ));
    assert!(place.bytes("run/model.safetensors") != model);
    fs::write(place.path("file"), "x").unwrap();
    place.refused(
        &format!("train --system two-modes --force -o file {SMALL}"),
        2,
        &["is a file"],
    );
}

#[test]
fn a_finished_run_stays_as_it_is_and_settings_are_kept() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(300));
    place.run(&format!("train rows.npy -o run {SMALL}"));
    let model = place.bytes("run/model.safetensors");
    let notes = place.notes("train -o run --resume");
    assert!(notes.contains("finished already"), "{notes}");
    assert!(place.bytes("run/model.safetensors") == model);
    place.refused(
        "train -o run --resume --rate 0.5",
        2,
        &["rate is 0.5", "0.001"],
    );
    place.refused("train -o run --resume --system mog2", 2, &["mog2"]);
    place.refused("train -o none --resume", 2, &["no run to resume"]);
    // Data may move, but not change.
    fs::rename(place.path("rows.npy"), place.path("moved.npy")).unwrap();
    place.refused("train -o run --resume", 2, &["rows.npy"]);
    place.run("train moved.npy -o run --resume");
    write_rows(&place.path("rows.npy"), &clouds(301));
    place.refused("train rows.npy -o run --resume", 2, &["content differs"]);
    let config = place
        .text("run/config.toml")
        .replace("depth = 2", "depth = 3");
    fs::write(place.path("run/config.toml"), config).unwrap();
    place.refused(
        "train moved.npy -o run --resume",
        2,
        &["config.toml", "checkpoint"],
    );
}

#[test]
fn a_stage_that_no_longer_improves_ends_early() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(60));
    let flags = "--width 64 --depth 2 --batch 64 --levels 2 --grid-levels 16 --rate 0.02 --decay constant --average 0 \
                 --held-out 0.3 --held-out-every 5 --patience 3 --score-steps 400 --steps 400 --threads 2";
    let notes = place.notes(&format!("train rows.npy -o run {flags}"));
    assert!(notes.contains("no longer fell"), "{notes}");
    let log = place.log("run");
    let last = log.last().unwrap();
    assert!(log.iter().any(|entry| entry["stopped_early"] == true));
    assert!(last["step"].as_u64().unwrap() < 800, "{last}");
}

#[test]
fn numbers_that_are_not_finite_stop_the_run_and_keep_the_last_good_model() {
    let place = Place::new();
    // The first stage is sound; the weight of the second overflows in single precision.
    let flags = "train --system two-modes --objective dsm+1e60*diffclf -o run";
    place.refused(
        &format!("{flags} {SMALL}"),
        3,
        &["not finite at step 6", "checkpoint of step 6 is kept"],
    );
    let text = place.run("inspect run/model.safetensors");
    assert!(text.contains("6 of 12"), "{text}");
    assert_eq!(place.log("run").last().unwrap()["step"], 6);
    // Resuming meets the same numbers again and loses nothing.
    place.refused("train -o run --resume", 3, &["step 6"]);
    place.run("sample run/model.safetensors -n 5 -o out.npy --quiet");
    // Before any checkpoint there is nothing to keep, and that is said.
    place.refused(
        &format!("{flags}-2 {SMALL}").replace("--score-steps 6", "--score-steps 0"),
        3,
        &["step 0", "before the first checkpoint"],
    );
}

/// Every objective by name and with settings, on the systems whose answers are known: a diffusion and an interpolant.
#[test]
fn every_objective_trains_by_name() {
    // That each learns what it is for is tested where they are (`train::tests::objectives`).
    let place = Place::new();
    let tiny = "--steps 3 --score-steps 2 --batch 16 --width 8 --depth 2 --features 4 --grid-levels 16 --quiet";
    let both = [
        "dsm",
        "diffclf",
        "binary-diffclf",
        "dsm+bregman(generator=js)",
        "dsm+bregman(generator=square)",
        "dsm+binary-bregman",
        "dsm+ctsm",
        "dsm+tsm",
        "dsm+dre-infinity",
        "dsm+target-score",
        "dsm+0.5*known-diffclf(ends=both)",
        // These contain density ratios: their times are close to each other unless others are asked for.
        "dsm+binary-bregman(generator=kl)",
        "dsm+binary-bregman(generator=log)",
        "dsm+binary-bregman(generator=square)",
        "dsm+bregman(generator=inverse)",
    ];
    let diffusion = [
        "dsm+known-diffclf",
        "dsm+ctsm(weight=one)",
        "dsm+fokker-planck",
        "dsm+fokker-planck(laplacian=exact)",
        "dsm+0.1*fokker-planck(laplacian=difference)",
        "dsm+bayes",
        "dsm+bayes(gap=2,stop-gradient=yes)",
    ];
    for (k, objective) in both.iter().chain(&diffusion).enumerate() {
        for system in ["mog2", "mog40"] {
            place.run(&format!(
                "train --system {system} --dim 3 --objective {objective} -o d{k}-{system} {tiny}"
            ));
        }
    }
    let interpolant = ["dsm+velocity", "dsm+diffclf+velocity"];
    for (k, objective) in both.iter().chain(&interpolant).enumerate() {
        place.run(&format!(
            "train --system mog40 --end-system mog2 --dim 3 --objective {objective} -o i{k} {tiny}"
        ));
    }
    let last = both.len() + diffusion.len() - 1;
    let text = place.run(&format!("inspect d{last}-mog2/model.safetensors"));
    assert!(text.contains("bayes(gap=2,stop-gradient=yes)"), "{text}");
    let close =
        std::fs::read_to_string(place.path(&format!("d{}-mog2/config.toml", both.len() - 1)));
    let close = close.unwrap();
    assert!(
        close.contains("close") && close.contains("share = 0.1"),
        "{close}"
    );
}

#[test]
fn objectives_are_refused_with_a_reason() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(100));
    for (arguments, words) in [
        (
            "train rows.npy --objective dsm+ctsn",
            ["ctsn", "fokker-planck"],
        ),
        (
            "train rows.npy --objective dsm+bayes(step=2)",
            ["step", "stop-gradient"],
        ),
        ("train rows.npy --objective dsm+tsm", ["tsm", "mog40"]),
        (
            "train --system two-modes --end-system moons --objective bayes",
            ["bayes", "vp, ve, edm"],
        ),
        (
            "train rows.npy --objective dsm+velocity",
            ["velocity", "linear"],
        ),
    ] {
        place.refused(&format!("{arguments} -o run"), 2, &words);
    }
}

/// Three particles in the plane around other places each, far from zero: the energy of the user's rows does not tell them apart.
#[test]
fn particles_are_not_told_apart() {
    let place = Place::new();
    let around = [40.0, -7.0, 43.0, -5.0, 38.0, -9.0];
    let rows: Vec<Vec<f64>> = clouds(150)
        .chunks_exact(3)
        .map(|three| {
            let numbers = three.iter().flatten();
            numbers.zip(around).map(|(x, at)| x + at).collect()
        })
        .collect();
    write_rows(&place.path("rows.npy"), &rows);
    let exchanged: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| [&row[4..], &row[..4]].concat())
        .collect();
    write_rows(&place.path("exchanged.npy"), &exchanged);
    let density = |rows: &str| {
        place.run(&format!("density run {rows} -o out.npy --force --quiet"));
        read_npy(&fs::read(place.path("out.npy")).unwrap()).1
    };
    for network in [
        "pairs",
        "egnn",
        "{kind=\"egnn\",types=[0,0,0],cutoff=9}",
        "{kind=\"transformer\",heads=2,head_width=4}",
    ] {
        place.run(&format!(
            "train rows.npy --particles 3 --network {network} -o run --force {SMALL}"
        ));
        let (first, second) = (density("rows.npy"), density("exchanged.npy"));
        for (a, b) in first.iter().zip(&second) {
            // Energies are computed in single precision.
            assert!((a - b).abs() < 1e-4 * (1.0 + a.abs()), "{a} {b}");
        }
    }
    // With a bond, the two that have it may change places, the third may not.
    place.run(&format!(
        "train rows.npy --particles 3 --network {{kind=\"egnn\",bonds=[[0,1]]}} --rate 0.05 -o run --force {SMALL}"
    ));
    let (first, second) = (density("rows.npy"), density("exchanged.npy"));
    let apart = first.iter().zip(&second).map(|(a, b)| (a - b).abs());
    assert!(apart.fold(0.0, f64::max) > 1e-3);
    place.refused(
        &format!("train rows.npy --network egnn -o other {SMALL}"),
        2,
        &["--network egnn", "--particles"],
    );
}

/// F(t) solved for in the end tells the levels apart at least as well as the one that was learned, and touches nothing but F.
#[test]
fn levels_are_told_apart_better_when_f_is_solved_for() {
    let place = Place::new();
    let train = "train --system mog2 --dim 6 --base gaussian --objective dsm+diffclf --width 16 --depth 2 --features 8 --batch 512 --grid-levels 16 --levels 2 --score-steps 150 --steps 150 --threads 2 --no-report --quiet --samples 4000";
    let excess = |flag: &str, name: &str| {
        place.run(&format!("{train} {flag} -o {name}"));
        place.run(&format!(
            "evaluate {name} --samples 512 --classified 512 --levels 16 --json {name}.json --quiet"
        ));
        let found = place.json(&format!("{name}.json"));
        found["evaluation"]["average"]["excess"]["mean"]
            .as_f64()
            .unwrap()
    };
    let (learned, solved) = (excess("--levelling=false", "learned"), excess("", "solved"));
    // The same samples are classified by both.
    assert!(solved < learned, "{solved} {learned}");
    assert!(
        place
            .text("solved/config.toml")
            .contains("levelling = true")
    );
    // Samplers follow scores, which know nothing of F.
    let [one, other] = ["learned", "solved"].map(|name| {
        place.run(&format!(
            "sample {name} -n 64 --steps 8 --seed 3 -o {name}.npy --quiet"
        ));
        place.bytes(&format!("{name}.npy"))
    });
    assert_eq!(one, other);
}
