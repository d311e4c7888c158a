//! Rows of symbols through the program: recognised, learned, asked and told about.

use super::{Place, read_npy, write_npy_bytes, write_rows};

const TINY: &str = "--width 16 --depth 2 --features 8 --batch 128 --grid-levels 16 --levels 2 --score-steps 60 --steps 120 --threads 2 --no-report";

/// Rows of four spins of which the second follows the first, as bytes.
fn spins(place: &Place, name: &str, rows: usize) {
    let row = |k: usize| {
        let hash = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = |at: u32| (hash >> at & 1) as u8;
        // One row in four has a first spin of 0.
        let first = bit(60) | bit(47);
        [first, first, bit(33), bit(21)]
    };
    let bytes: Vec<u8> = (0..rows).flat_map(row).collect();
    let shape = format!("({rows}, 4)");
    write_npy_bytes(&place.path(name), "'|i1'", "False", &shape, &bytes);
}

/// What the model in `run` says of all rows of four spins, the first spin the highest digit; they are left in `all.npy`.
fn probabilities(place: &Place) -> Vec<f64> {
    let every: Vec<u8> = (0..16u8)
        .flat_map(|k| [k >> 3 & 1, k >> 2 & 1, k >> 1 & 1, k & 1])
        .collect();
    write_npy_bytes(&place.path("all.npy"), "'|i1'", "False", "(16, 4)", &every);
    place.run("density run all.npy -o p.npy --quiet");
    let logarithms = read_npy(&place.bytes("p.npy")).1;
    logarithms.iter().map(|x| x.exp()).collect()
}

#[test]
fn symbols_are_recognised_and_their_probabilities_add_up() {
    let place = Place::new();
    spins(&place, "spins.npy", 1000);
    let notes = place.notes(&format!("train spins.npy -o run {TINY}"));
    assert!(notes.contains("4") && notes.contains("states"), "{notes}");
    let p = probabilities(&place);
    // F is known at the last level and learned from there; so few steps leave some per cent.
    let total: f64 = p.iter().sum();
    assert!((total - 1.0).abs() < 0.2, "{total}");
    // The first two spins are equal: 0..4 and 12..16 are the rows there are. Independent sites would have 0.375 in the others.
    let unequal: f64 = p[4..12].iter().sum();
    assert!(unequal < 0.3 * total, "{unequal} of {total}");
    place.run("sample run -n 200 -o new.npy --quiet");
    let new = place.bytes("new.npy");
    let (header, new) = new.split_at(new.len() - 800);
    assert!(String::from_utf8_lossy(header).contains("(200, 4)"));
    assert!(new.contains(&0) && new.contains(&1) && new.iter().all(|x| *x < 2));
    let told = place.run("inspect run");
    for part in ["4 sites of 2 states", "score-entropy", "spins.npy"] {
        assert!(told.contains(part), "{part} is missing in\n{told}");
    }
    assert!(
        place
            .run("inspect run/checkpoint.safetensors")
            .contains("4 sites")
    );
    for command in ["rows run spins.npy", "weight run --where x0>0"] {
        place.refused(command, 2, &["model of states"]);
    }
    place.refused(
        "train --system ising --weights all.npy -o w",
        2,
        &["--weights", "given"],
    );
    place.refused("train spins.npy --network egnn -o w", 2, &["transformer"]);
    // Rows of numbers, if that is what is meant.
    let numbers = place.notes(&format!("train spins.npy --states 0 -o numbers {TINY}"));
    assert!(numbers.contains("whole numbers"), "{numbers}");
}

/// Attention between the sites learns what is beyond independent sites, and rows count by their weights: those whose first two spins are 0,
/// a quarter of all, weigh three times as much as the others.
#[test]
fn a_transformer_learns_weighted_rows() {
    let place = Place::new();
    spins(&place, "spins.npy", 1000);
    let bytes = place.bytes("spins.npy");
    let rows = &bytes[bytes.len() - 4000..];
    let weights: Vec<Vec<f64>> = rows
        .chunks(4)
        .map(|row| vec![if row[0] == 0 { 3.0 } else { 1.0 }])
        .collect();
    let total: f64 = weights.iter().map(|w| w[0]).sum();
    let expected = weights.iter().filter(|w| w[0] > 1.0).count() as f64 * 3.0 / total;
    write_rows(&place.path("w.npy"), &weights);
    let network = "{kind=\"transformer\",heads=2,head_width=8}";
    let notes = place.notes(&format!(
        "train spins.npy --weights w.npy -o run {TINY} --network {network}"
    ));
    assert!(notes.contains("weighted rows"), "{notes}");
    let p = probabilities(&place);
    let total: f64 = p.iter().sum();
    let zeros: f64 = p[..4].iter().sum();
    // Independent sites have the square of what is expected, unweighted rows half of it.
    assert!(
        (zeros / total - expected).abs() < 0.1,
        "{zeros} of {total}, expected {expected}"
    );
    let told = place.run("inspect run");
    assert!(told.contains("transformer"), "{told}");
    // The diagnosis finds the weights beside the rows of the training: so few steps may earn a warning, no failure.
    let output = place.output("diagnose run --points 512 --generate 0 --quiet");
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
}

fn verdict(document: &serde_json::Value, name: &str) -> String {
    let mut checks = document["diagnosis"]["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["name"].as_str().unwrap().contains(name));
    check.unwrap()["verdict"].as_str().unwrap().into()
}

/// A magnet of nine spins: score entropy alone does not know how much weight each phase has, and the diagnosis tells.
#[test]
fn a_blind_model_fails_and_classification_passes() {
    let place = Place::new();
    let usual = "--system ising --dim 9 --width 48 --depth 2 --features 16 --grid-levels 32 --batch 256 --rate 0.004 --average 0.99 --threads 2 --no-report --quiet";
    place.run(&format!("train {usual} --steps 900 -o both"));
    place.run(&format!(
        "train {usual} --objective score-entropy --levels 4 --steps 900 -o blind"
    ));
    let judged = |name: &str| {
        let output = place.output(&format!(
            "diagnose {name} --points 2048 --generate 512 --json {name}.json --page {name}.html --quiet"
        ));
        let text = String::from_utf8(output.stdout).unwrap();
        let document = place.json(&format!("{name}.json"));
        (output.status.code().unwrap(), text, document)
    };
    let (code, text, document) = judged("both");
    // So short a training may leave some per cent: a warning, no failure.
    assert!([0, 4].contains(&code), "{text}");
    assert_eq!(verdict(&document, "held-out"), "pass", "{text}");
    assert_eq!(verdict(&document, "shares"), "pass", "{text}");
    assert!(
        text.contains("tree of pairs") && text.contains("512 rows"),
        "{text}"
    );
    let page = place.text("both.html");
    assert!(page.contains("Is both any good?") && page.contains("independent sites"));
    let (code, text, document) = judged("blind");
    assert_eq!(code, 1, "{text}");
    assert_eq!(verdict(&document, "normalisation"), "fail", "{text}");
    assert!(text.contains("score-entropy+diffclf"), "{text}");
    place.refused("diagnose both --end both.json", 2, &["interpolants"]);
    spins(&place, "narrow.npy", 100);
    place.refused("diagnose both narrow.npy", 2, &["4 columns", "9"]);
}

/// Samples beside data, models beside each other, a page, a budget and a second start.
#[test]
fn states_are_compared_composed_and_shown() {
    let place = Place::new();
    spins(&place, "spins.npy", 2000);
    place.run(&format!("train spins.npy -o run {TINY} --quiet"));
    place.run("sample run -n 500 -o new.npy --quiet");
    // Recognised, and said so; asked for as numbers, the table is that of numbers.
    let table = place.run("compare new.npy spins.npy --json far.json");
    for part in ["rows of states", "laws of pairs", "majorities"] {
        assert!(table.contains(part), "{part} is missing in\n{table}");
    }
    let p = place.json("far.json")["distances"]["sites"]["p_value"].as_f64();
    assert!(p.is_some_and(|p| (0.025..=1.0).contains(&p)));
    assert!(
        place
            .run("compare new.npy spins.npy --states 0")
            .contains("sliced W2")
    );
    assert!(
        place
            .run("compare spins.npy --system ising")
            .contains("ising")
    );
    place.refused(
        "compare spins.npy --system potts --states 2",
        2,
        &["3 for potts"],
    );
    // A model with itself: the product of equal densities has the mass sum p^2, and the mixture 1.
    let every: Vec<u8> = (0..16u8)
        .flat_map(|k| [k >> 3 & 1, k >> 2 & 1, k >> 1 & 1, k & 1])
        .collect();
    write_npy_bytes(&place.path("all.npy"), "'|i1'", "False", "(16, 4)", &every);
    place.run("density run all.npy -o p.npy --quiet");
    let p: Vec<f64> = read_npy(&place.bytes("p.npy")).1;
    let composed = |expression: &str, rest: &str| {
        let mut command = place.command("compose");
        let output = command
            .arg(expression)
            .args(rest.split_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (text, power, name) in [("A and B", 2.0, "and"), ("0.3*A or 0.7*B", 1.0, "or")] {
        let rest = format!(
            "--model A=run --model B=run -n 1600 --runs 8 --levels 12 -o {name}.npy --quiet"
        );
        let told = composed(text, &rest);
        assert!(told.contains("log Z of"), "{told}");
        let log_z = &place.json(&format!("{name}.json"))["log_z"];
        let (value, error) = (
            log_z["value"].as_f64().unwrap(),
            log_z["error"].as_f64().unwrap(),
        );
        let truth = p.iter().map(|p| (power * p).exp()).sum::<f64>().ln();
        // Eight runs: Student's law with seven degrees of freedom has 99.99 % within 7.1.
        assert!(
            (value - truth).abs() < 7.1 * error + 1e-3,
            "{text}: {value} ± {error}, {truth}"
        );
    }
    place.refused("compose C^2 --model A=run -o x.npy", 2, &["'A'"]);
    place.refused(
        "compose A --model A=run --regions quadrants -o x.npy",
        2,
        &["--regions"],
    );
    place.refused(
        "compose A --model A=run --moving hmc -o x.npy",
        2,
        &["gibbs"],
    );
    // A system in the composition, by its exact law.
    composed(
        "A and B",
        "--model A=run --system B=ising -n 64 --levels 8 -o both.npy --quiet",
    );
    place.run("report run --data spins.npy -o page.html --figures pictures --points 600 --quiet");
    let page = place.text("page.html");
    for part in [
        "4 sites of 2 states",
        "How many sites of a row show state 1",
        "Citation",
        "chow1968approximating",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(place.path("pictures/sites-1.svg").is_file());
    place.refused("report run --pair 0,1 -o other.html", 2, &["--pair"]);
    // As many steps as fit, from the parameters of a model; its width comes along.
    let notes = place.notes("train spins.npy -o more --from run --time 2s --threads 2 --no-report");
    assert!(notes.contains("fitted into the time"), "{notes}");
    place.refused(
        "train spins.npy -o less --from run --width 8 --no-report",
        2,
        &["run"],
    );
}
