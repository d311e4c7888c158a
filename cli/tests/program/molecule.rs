//! Molecules from the command line: check energies, a run that is killed and resumed, refusals.

use super::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;

const RUN: &str = "molecule sample --topology aldp.prmtop --coordinates aldp.crd --lambda 0,1 --temperatures 300,345 --moves 10 --every 2 \
                   --warm-up 10 --quiet";

#[test]
fn energies_are_those_of_the_literature() {
    let place = Place::new();
    place.molecule();
    let text = place.run("molecule energy --topology aldp.prmtop --coordinates aldp.crd --lambda vacuum,0,1 --energies e.npy");
    for expected in ["-88.08858", "-71.56280", "-138.96968"] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(place.path("e.npy").exists());
}

/// The bytes of a run do not depend on threads, nor on a stop in between.
#[test]
fn a_run_gives_the_same_bytes_whatever_happens() {
    let place = Place::new();
    place.molecule();
    place.run(&format!("{RUN} --frames 60 -o whole --threads 1"));
    place.run(&format!("{RUN} --frames 60 -o again --threads 2"));
    let record: Value =
        serde_json::from_slice(&fs::read(place.path("whole/record.json")).unwrap()).unwrap();
    let differences = record["findings"]["differences"].as_array().unwrap();
    // Solvation by hand is near 29.4 kT; a run of a picosecond tells little more than its sign and size.
    let solvation = differences[0]["delta"]["mean"].as_f64().unwrap();
    assert!((20.0..40.0).contains(&solvation), "{record:#}");
    assert_eq!(differences.len(), 2);
    let files = [
        "frames-lambda-0.npy",
        "frames-lambda-1.npy",
        "energies.npy",
        "angles.npy",
    ];
    for name in files {
        let whole = fs::read(place.path("whole").join(name)).unwrap();
        assert_eq!(
            whole,
            fs::read(place.path("again").join(name)).unwrap(),
            "{name}"
        );
    }
    assert!(!place.path("whole/checkpoint.json").exists());
    // Killed while it writes checkpoints all the time, then continued.
    let mut child = place
        .command(&format!("{RUN} --frames 60 -o killed --checkpoint-every 0"))
        .spawn()
        .unwrap();
    while !place.path("killed/checkpoint.json").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    // It may have come to its end by itself.
    let _ = child.kill();
    child.wait().unwrap();
    if place.path("killed/checkpoint.json").exists() {
        place.refused(
            &format!("{RUN} --frames 60 -o killed --seed 1 --resume"),
            2,
            &["settings"],
        );
        place.run(&format!("{RUN} --frames 60 -o killed --resume"));
    }
    for name in files {
        let whole = fs::read(place.path("whole").join(name)).unwrap();
        assert_eq!(
            whole,
            fs::read(place.path("killed").join(name)).unwrap(),
            "{name}"
        );
    }
    place.refused(&format!("{RUN} --frames 60 -o whole"), 2, &["exists"]);
    place.refused(
        &format!("{RUN} --frames 60 -o nothing --resume"),
        2,
        &["nothing"],
    );
}

/// Frames, a path learned between them with the exact forces, its free energy and a Boltzmann generator: every command of `docs/molecules.md`.
#[test]
fn solvation_is_learned_from_frames_to_free_energies() {
    let place = Place::new();
    place.molecule();
    place.run(&format!("{RUN} --frames 40 -o frames --threads 1"));
    let molecule = r#"--molecule {topology="aldp.prmtop",solvents=["0","1"],temperature=300.0}"#;
    let ends = "frames/frames-lambda-0.npy frames/frames-lambda-1.npy";
    place.run(&format!(
        "train frames/frames-lambda-0.npy --end frames/frames-lambda-1.npy --particles 22 --align --network egnn --form inner-product \
         --process {{kind=\"linear\",a=0.03}} {molecule} --objective dsm+target-score+diffclf --levels 2 --width 4 --depth 1 --features 4 --batch 4 \
         --score-steps 1 --steps 2 --grid-levels 8 --held-out 0 -o path --no-report --quiet --threads 1"
    ));
    place.run(&format!(
        "free-energy learn {ends} --model path {molecule} --path-levels 3 --path-samples 8 --json found.json --threads 1"
    ));
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(place.path(name)).unwrap()).unwrap()
    };
    // Nothing is learned yet, but the energies of both ends are the molecule's: BAR between them is solvation, as above; and whose ends rest on a
    // few rows has no interval.
    let found = read("found.json");
    let solvation = found["bar"]["delta"]["mean"].as_f64().unwrap();
    assert!((20.0..40.0).contains(&solvation), "{found:#}");
    assert!(found["interval_95"].is_null(), "{found:#}");
    let anneal = format!(
        "anneal path --rows frames/frames-lambda-0.npy --towards end -n 8 --levels 3 --moves 1 --step 0.001 --least-overlap 0 --runs 2 --quiet --threads 1 {molecule}"
    );
    place.run(&format!("{anneal} -o like.npy --weights w.npy"));
    let record = read("like.json");
    assert!(record["result"]["log_z"]["value"].is_number(), "{record:#}");
    assert_eq!(record["molecule"]["solvents"][1], "1");
    let refused = |arguments: String, words: &[&str]| place.refused(&arguments, 2, words);
    refused(
        format!("{anneal} --velocity learned -o x.npy"),
        &["MCMC alone"],
    );
    refused(format!("{anneal} --target mog2 -o x.npy"), &["--molecule"]);
    refused(
        format!("free-energy learn {ends} --model path {molecule} --energy-a w.npy"),
        &["--molecule tells the energies"],
    );
}

#[test]
fn wrong_files_are_refused_in_words() {
    let place = Place::new();
    place.molecule();
    let refused = |arguments: &str, words: &str| place.refused(arguments, 2, &[words]);
    refused(
        "molecule energy --topology aldp.crd --coordinates aldp.crd",
        "no %FLAG lines",
    );
    refused(
        "molecule energy --topology aldp.prmtop --coordinates aldp.prmtop",
        "number of atoms",
    );
    fs::write(
        place.path("two.crd"),
        "two\n  2\n   1.0000000   2.0000000   3.0000000   4.0000000   5.0000000   6.0000000\n",
    )
    .unwrap();
    refused(
        "molecule energy --topology aldp.prmtop --coordinates two.crd",
        "expected 66 for the topology's 22 atoms",
    );
    refused(
        "molecule energy --topology aldp.prmtop --coordinates aldp.crd --lambda 2",
        "from 0 (no polar solvent) to 1",
    );
    refused(
        "molecule energy --topology aldp.prmtop --coordinates aldp.crd --model gbn",
        "obc1, obc2",
    );
}

#[test]
fn a_go_model_moves_with_the_masses_and_bonds_of_its_topology() {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/chignolin");
    for name in ["native.pdb", "go.toml"] {
        fs::copy(folder.join(name), place.path(name)).unwrap();
    }
    let rest =
        "--chains 3 --frames 4 --thin 5 --units nm --step 5 --temperature 340 --threads 1 --quiet";
    place.run(&format!(
        "simulate A --system A=go:go.toml --topology go.toml {rest} --energies u.npy --json a.json -o a.npy"
    ));
    let told = place.json("a.json");
    let masses = told["simulation"]["masses"].as_array().unwrap();
    assert_eq!((masses.len(), masses[7].as_f64()), (10, Some(12.0108)));
    assert_eq!(told["simulation"]["bonds"].as_array().unwrap().len(), 9);
    assert_eq!(told["summary"]["departures"], serde_json::json!([]));
    // Masses that are given win, and change the way.
    place.run(&format!(
        "simulate A --system A=go:native.pdb --topology go.toml --masses 50 {rest} -o b.npy"
    ));
    assert_ne!(place.bytes("a.npy"), place.bytes("b.npy"));
    place.refused(
        "simulate A --system A=go:none.pdb --step 5 -o c.npy",
        2,
        &["none.pdb"],
    );
    fs::write(place.path("two.toml"), "masses = [1.0, 2.0]").unwrap();
    place.refused(
        &format!("simulate A --system A=go:go.toml --topology two.toml {rest} -o c.npy"),
        2,
        &["2 beads", "30 numbers"],
    );
    place.refused(
        &format!("simulate A --system A=go:two.toml {rest} -o c.npy"),
        2,
        &["native structure"],
    );
}

/// Frames and a topology are all that a training needs; the run is that of the same settings by hand, and goes on with either.
#[test]
fn a_training_takes_particles_from_a_topology() {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/chignolin");
    for name in ["native.pdb", "go.toml"] {
        fs::copy(folder.join(name), place.path(name)).unwrap();
    }
    place.run(
        "simulate A --system A=go:go.toml --topology go.toml --frames 40 --thin 20 --units nm --step 5 --temperature 340 --quiet -o f.dcd",
    );
    let small = "--steps 2 --score-steps 2 --width 8 --depth 1 --batch 8 --grid-levels 16 --threads 1 --no-report";
    let told = place.notes(&format!("train f.dcd --topology go.toml {small} -o a"));
    for words in [
        "10 particles of 7 types, 9 bonds",
        "40 frames of 10 atoms, file in Angstrom, learned in nm",
    ] {
        assert!(told.contains(words), "{told}");
    }
    let network = r#"{kind="egnn",types=[0,0,1,2,3,4,5,4,6,0],bonds=[[0,1],[1,2],[2,3],[3,4],[4,5],[5,6],[6,7],[7,8],[8,9]],cross=true}"#;
    place.run(&format!(
        "train f.dcd --particles 10 --network {network} {small} --quiet -o b"
    ));
    assert_eq!(
        place.bytes("a/model.safetensors"),
        place.bytes("b/model.safetensors")
    );
    assert_eq!(place.bytes("a/config.toml"), place.bytes("b/config.toml"));
    place.run("train f.dcd --topology go.toml -o a --resume --no-report --quiet");
    fs::write(place.path("two.toml"), "masses = [1.0, 2.0]").unwrap();
    place.refused(
        &format!("train f.dcd --topology two.toml {small} -o c"),
        2,
        &["2 particles", "30 numbers"],
    );
    place.refused(
        &format!("train f.dcd --topology go.toml --particles 9 {small} -o c"),
        2,
        &["has 10 particles", "--particles"],
    );
    place.refused(
        "train --system ising --dim 9 --topology go.toml -o c",
        2,
        &["--topology", "states"],
    );
}
