//! Runs that are killed, interrupted and continued: the end is the same to the byte.
#![cfg(unix)]

use super::Place;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A run of a second or so, with a stage change in the middle, held-out rows and frequent checkpoints.
const RUN: &str = "train --system mog2 --dim 3 --samples 400 --held-out 0.1 --held-out-every 20 --width 32 --depth 2 \
                   --batch 128 --levels 3 --grid-levels 32 --score-steps 150 --steps 150 --log-every 7 --threads 2 \
                   --checkpoint-every 0.02 --no-report --quiet";

fn start(place: &Place, arguments: &str) -> Child {
    place
        .command(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the log says, without the clock.
fn figures(place: &Place, run: &str) -> Vec<String> {
    place
        .log(run)
        .into_iter()
        .map(|mut entry| {
            entry.as_object_mut().unwrap().remove("seconds");
            entry.to_string()
        })
        .collect()
}

#[test]
fn killed_at_any_moment_a_run_continues_to_the_same_bytes() {
    let place = Place::new();
    let begin = Instant::now();
    place.run(&format!("{RUN} -o whole"));
    let duration = begin.elapsed();
    // Fixed fractions of the run's time (a Weyl sequence, denser early, where files are made), each on top of the last. As many as
    // `DIFFCLF_KILLS` says; the run begins anew whenever it has ended.
    let wished = std::env::var("DIFFCLF_KILLS").ok();
    let moments: u32 = wished.and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut kills = 0;
    for k in 0..moments {
        let fraction = (f64::from(k) * 0.618_033_988_749_894_9).fract().powi(3);
        if place.path("killed/model.safetensors").exists() && k % 10 == 0 {
            let same = |name: &str| {
                place.bytes(&format!("killed/{name}")) == place.bytes(&format!("whole/{name}"))
            };
            place.run(&format!("{RUN} -o killed --resume"));
            assert!(
                same("model.safetensors") && same("checkpoint.safetensors"),
                "kill {k}"
            );
            std::fs::remove_dir_all(place.path("killed")).unwrap();
        }
        let mut child = start(&place, &format!("{RUN} -o killed --resume"));
        std::thread::sleep(duration.mul_f64(fraction));
        kills += u32::from(child.try_wait().unwrap().is_none());
        // SIGKILL; an error only says that it has ended already.
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert!(
        kills >= moments / 3,
        "only {kills} of {moments} kills hit a living process"
    );
    place.run(&format!("{RUN} -o killed --resume"));
    assert!(place.bytes("killed/model.safetensors") == place.bytes("whole/model.safetensors"));
    assert_eq!(figures(&place, "killed"), figures(&place, "whole"));
    let leftovers = std::fs::read_dir(place.path("killed")).unwrap().count();
    assert_eq!(leftovers, 5, "four files and the lock");
}

#[test]
fn a_signal_saves_and_says_how_to_go_on() {
    let place = Place::new();
    // It must not end by itself, however long others ask for its folder.
    let long = RUN
        .replace("--steps 150", "--steps 4000000")
        .replace("--held-out 0.1 --held-out-every 20", "--held-out 0")
        .replace("--quiet", "");
    let child = start(&place, &format!("{long} -o run"));
    let log = place.path("run/log.jsonl");
    let patience = Instant::now();
    while std::fs::metadata(&log).map_or(0, |m| m.len()) == 0 {
        assert!(
            patience.elapsed() < Duration::from_secs(30),
            "the run does not start"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    // A second process must keep out of the folder.
    place.refused("train -o run --resume", 2, &["in use by another"]);
    place.refused(&format!("{long} -o run --force"), 2, &["in use by another"]);
    let signal = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(signal.success());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(
        error.contains("interrupted") && error.contains("--resume"),
        "{error}"
    );
    let text = place.run("inspect run/model.safetensors");
    assert!(text.contains("of 4000150"), "{text}");
}
