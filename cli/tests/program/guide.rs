//! Every command of the guide, as it stands there: its shell blocks are one script in one folder.
#![cfg(unix)]

use super::Place;
use std::process::Command;

#[test]
fn the_guide_tells_the_truth() {
    let guide =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide.md")).unwrap();
    let mut script = String::from("set -euo pipefail\n");
    let mut inside = false;
    for line in guide.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside => script += &format!("{line}\n"),
            _ => {}
        }
    }
    let commands = script
        .lines()
        .filter(|line| line.starts_with("diffclf "))
        .count();
    assert!(commands > 10, "only {commands} commands found");
    let place = Place::new();
    std::fs::create_dir(place.path("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_diffclf"), place.path("bin/diffclf")).unwrap();
    let path = format!(
        "{}:{}",
        place.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let output = Command::new("bash")
        .args(["-x", "-c", &script])
        .env("PATH", path)
        .current_dir(place.folder.path())
        .output()
        .unwrap();
    let (text, notes) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{text}\n{notes}");
    // What the text says of them.
    assert!(
        text.contains("FAIL    mode weights") && text.contains("exit code 1"),
        "{text}"
    );
    assert!(notes.contains("+ diffclf train --system two-modes --config small.toml"));
    for name in [
        "runs/first/report.html",
        "mine.html",
        "verdict.json",
        "quick.npy",
        "pictures/calibration.svg",
    ] {
        assert!(place.path(name).is_file(), "{name}");
    }
}
