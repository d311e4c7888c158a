//! Rows that count differently, whole numbers, and runs that go on.

use super::{Place, SMALL, read_npy, write_rows};

/// Two wells of 300 rows each at -2 and 2 (spreads 0.4 and 0.6), in turn, and weights 1 and 3 for them.
fn wells(place: &Place) {
    let rows: Vec<Vec<f64>> = (0..600)
        .map(|k| {
            // Quantiles of a uniform law through a tent: no draws, and no two rows alike.
            let u = (f64::from(k) * 0.618_033_988_75).fract() - 0.5;
            vec![if k % 2 == 0 {
                -2.0 + 1.4 * u
            } else {
                2.0 + 2.0 * u
            }]
        })
        .collect();
    write_rows(&place.path("rows.npy"), &rows);
    let weights: Vec<Vec<f64>> = (0..600)
        .map(|k| vec![if k % 2 == 0 { 1.0 } else { 3.0 }])
        .collect();
    write_rows(&place.path("w.npy"), &weights);
}

#[test]
fn rows_count_by_their_weights_in_every_command() {
    let place = Place::new();
    wells(&place);
    let loud = SMALL.replace(" --quiet", "");
    let notes = place.notes(&format!("train rows.npy --weights w.npy -o m {loud}"));
    // (1 + 3)^2 / (2 (1 + 9)) = 0.8 of 600 rows.
    assert!(notes.contains("600 weighted rows, worth 480"), "{notes}");
    // The rows of the training come with its weights: a quarter of the probability is below zero.
    place.run("weight m --where x0<0 --samples 0 --json w.json --quiet");
    let found = &place.json("w.json")["weights"][0];
    let share = |of: &str| found[of]["mean"].as_f64().unwrap();
    assert!((share("data") - 0.25).abs() < 1e-9, "{found}");
    assert!((share("density") - 0.25).abs() < 0.03, "{found}");
    place.run("surface m rows.npy --weights w.npy --along x0 --bins 4 --json s.json --quiet");
    let shares = place.json("s.json")["histogram"]["share"].clone();
    let low: f64 = (0..2).map(|k| shares[k].as_f64().unwrap()).sum();
    assert!((low - 0.25).abs() < 0.01, "{shares}");
    let output =
        place.output("diagnose m rows.npy --points 64 --generate 64 --json d.json --quiet");
    assert!([0, 1, 4].contains(&output.status.code().unwrap()));
    let judged = place.json("d.json")["judged_by"].to_string();
    assert!(judged.contains("kept by their weights"), "{judged}");
    // Far without the weights of the reference, near with them.
    place.run("sample m -n 400 --steps 30 -o new.npy --quiet");
    let distance = |flags: &str| {
        place.run(&format!(
            "compare new.npy rows.npy {flags} --json c.json --force"
        ));
        let found = place.json("c.json");
        found["distances"]["energy_distance"]["value"]["mean"]
            .as_f64()
            .unwrap()
    };
    let (near, far) = (distance("--reference-weights w.npy"), distance(""));
    assert!(near < far, "{near} {far}");
    place.refused(
        &format!("train rows.npy --weights rows.npy -o n {SMALL}"),
        2,
        &["rows.npy", "list of row weights", "in row 0"],
    );
    place.refused(
        &format!("train --system mog2 --dim 2 --weights w.npy -o n {SMALL}"),
        2,
        &["--weights belongs to rows that are given"],
    );
    place.refused("diagnose m --weights w.npy", 2, &["--weights belongs"]);
}

#[test]
fn samples_of_states_count_by_their_weights() {
    let place = Place::new();
    wells(&place);
    let rows = |keep: &dyn Fn(usize) -> bool| -> Vec<Vec<f64>> {
        let all = read_npy(&std::fs::read(place.path("rows.npy")).unwrap()).1;
        (0..600)
            .filter(|k| keep(*k))
            .map(|k| vec![all[k]])
            .collect()
    };
    let energies = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
        rows.iter().map(|x| vec![0.5 * x[0] * x[0]]).collect()
    };
    // Weights 0 and 1 say no more than a file without the rows of weight 0.
    let (all, some) = (rows(&|_| true), rows(&|k| k % 3 != 0));
    let counts = (0..600)
        .map(|k| vec![f64::from(u8::from(k % 3 != 0))])
        .collect::<Vec<_>>();
    write_rows(&place.path("counts.npy"), &counts);
    write_rows(&place.path("some.npy"), &some);
    write_rows(&place.path("u-all.npy"), &energies(&all));
    write_rows(&place.path("u-some.npy"), &energies(&some));
    place.run(&format!("train rows.npy --end some.npy -o m {SMALL}"));
    let learn = |flags: &str| {
        place.run(&format!("free-energy learn {flags} --model m/model.safetensors --path-levels 5 --path-samples 100 --json l.json --force"));
        place.text("l.json")
    };
    let weighted =
        learn("rows.npy some.npy --energy-a u-all.npy --energy-b u-some.npy --weights counts.npy");
    let without = learn("some.npy some.npy --energy-a u-some.npy --energy-b u-some.npy");
    assert_eq!(weighted, without);
    let unweighted = learn("rows.npy some.npy --energy-a u-all.npy --energy-b u-some.npy");
    assert_ne!(weighted, unweighted);
    place.refused(
        "free-energy learn rows.npy some.npy --end-weights counts.npy --model m/model.safetensors",
        2,
        &["counts.npy", "600 numbers, expected 400"],
    );
}

#[test]
fn a_finished_run_goes_on() {
    let place = Place::new();
    wells(&place);
    place.run(&format!("train rows.npy -o m {SMALL}"));
    let notes = place.notes("train -o m --resume --steps 10 --no-report");
    assert!(notes.contains("a further stage of 4 steps"), "{notes}");
    assert!(place.text("m/config.toml").contains("more_steps = [4]"));
    let last = place.log("m").pop().unwrap();
    assert_eq!(
        (last["step"].as_u64(), last["stage"].as_u64()),
        (Some(16), Some(2))
    );
    let text = place.run("inspect m");
    assert!(text.contains("16 of 16"), "{text}");
    place.refused(
        "train -o m --resume --steps 2",
        2,
        &["steps is 2, but the run in m has 6"],
    );
}

#[test]
fn whole_numbers_are_learned_spread_and_sampled_whole() {
    let place = Place::new();
    let rows: Vec<Vec<f64>> = (0..800)
        .map(|k| {
            let x = (f64::from(k) * 0.754_877_666).fract();
            let y = (f64::from(k) * 0.569_840_291).fract();
            vec![(6.0 * x * y).floor() + 2.0, 3.0 * y - 1.0 + x]
        })
        .collect();
    write_rows(&place.path("rows.npy"), &rows);
    let loud = SMALL.replace(" --quiet", "");
    let notes = place.notes(&format!("train rows.npy -o m {loud}"));
    assert!(
        notes.contains("whole numbers: 0 (learned spread"),
        "{notes}"
    );
    place.run("sample m -n 200 --steps 30 -o new.npy --quiet");
    let (_, new) = read_npy(&place.bytes("new.npy"));
    assert!(
        new.chunks(2)
            .all(|row| row[0].fract() == 0.0 && row[1].fract() != 0.0)
    );
    // The configuration repeats the run, and it may be told otherwise.
    place.run("train --config m/config.toml -o again --no-report --quiet");
    assert!(place.bytes("again/model.safetensors") == place.bytes("m/model.safetensors"));
    let notes = place.notes(&format!(
        "train rows.npy --dequantise=false -o plain {loud}"
    ));
    assert!(
        !notes.contains("whole numbers") && notes.contains("1 columns are rounded"),
        "{notes}"
    );
}
