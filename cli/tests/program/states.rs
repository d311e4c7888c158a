//! Rows of symbols through the program: recognised, learned, asked and told about.

use super::{Place, read_npy, write_npy_bytes};

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

#[test]
fn symbols_are_recognised_and_their_probabilities_add_up() {
    let place = Place::new();
    spins(&place, "spins.npy", 1000);
    let notes = place.notes(&format!("train spins.npy -o run {TINY}"));
    assert!(notes.contains("4") && notes.contains("states"), "{notes}");
    let every: Vec<u8> = (0..16u8)
        .flat_map(|k| [k >> 3 & 1, k >> 2 & 1, k >> 1 & 1, k & 1])
        .collect();
    write_npy_bytes(&place.path("all.npy"), "'|i1'", "False", "(16, 4)", &every);
    place.run("density run all.npy -o p.npy --quiet");
    let p: Vec<f64> = read_npy(&place.bytes("p.npy")).1;
    let p: Vec<f64> = p.iter().map(|x| x.exp()).collect();
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
    for command in ["report run", "diagnose run spins.npy"] {
        place.refused(command, 2, &["model of states"]);
    }
    spins(&place, "weights.npy", 1);
    place.refused(
        "train spins.npy --weights weights.npy -o w",
        2,
        &["--weights"],
    );
    // Rows of numbers, if that is what is meant.
    let numbers = place.notes(&format!("train spins.npy --states 0 -o numbers {TINY}"));
    assert!(numbers.contains("whole numbers"), "{numbers}");
}
