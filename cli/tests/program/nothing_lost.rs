//! Results that must not be lost, and ends that must have words: names given twice, folders that are not there, data that change or
//! vanish, signals that are set aside.

use super::{Place, SMALL, clouds, read_npy, write_rows};
use std::fs;

#[test]
fn one_name_for_two_results_is_refused_before_any_work() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(60));
    place.run(&format!("train rows.npy -o run {SMALL}"));
    for command in [
        "sample run -n 5 --method flow -o y.npy --log-density y.npy",
        "sample run -n 5 --method flow -o y.npy --log-density ./y.npy",
        "sample run -n 5 -o y.npy --json y.npy --force",
        "anneal run -n 8 -o z.npy --weights z.npy",
        "anneal run -n 8 -o z.npy --weights z.json",
        "free-energy bar rows.npy rows.npy --json z --page run/../z",
    ] {
        place.refused(command, 2, &["two results would go to"]);
    }
    // Found before the data are read: the points are not there.
    place.refused(
        "density run none.npy -o no/such.npy",
        2,
        &["no/such.npy", "create the folder"],
    );
    place.refused("compare none.npy rows.npy --json no/such", 2, &["no/such"]);
    place.refused("report run --figures rows.npy", 2, &["rows.npy"]);
    for name in ["y.npy", "z.npy", "z.json", "z"] {
        assert!(!place.path(name).exists(), "{name}");
    }
}

#[test]
fn a_page_that_is_there_stays() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(60));
    fs::create_dir(place.path("mine")).unwrap();
    fs::write(place.path("mine/report.html"), "precious").unwrap();
    place.refused(&format!("train rows.npy -o mine {SMALL}"), 2, &["--force"]);
    place.refused(
        "reproduce blindness --quick -o mine",
        2,
        &["report.html", "--force"],
    );
    assert_eq!(place.text("mine/report.html"), "precious");
}

/// Data at 1e8 that vary by a thousandth: single precision has steps of 8 there.
#[test]
fn samples_keep_the_digits_of_the_data() {
    let place = Place::new();
    let rows: Vec<Vec<f64>> = clouds(200)
        .into_iter()
        .map(|row| row.into_iter().map(|x| 1e8 + 1e-3 * x).collect())
        .collect();
    write_rows(&place.path("far.npy"), &rows);
    place.run(&format!("train far.npy -o run {SMALL}"));
    place.run("sample run -n 100 -o new.npy --quiet");
    place.run("anneal run -n 32 --moves 2 --least-overlap 0 -o annealed.npy --quiet");
    for name in ["new.npy", "annealed.npy"] {
        let (header, values) = read_npy(&place.bytes(name));
        assert!(header.contains("'<f8'"), "{header}");
        let mut near: Vec<f64> = values.iter().map(|x| (x - 1e8) / 1e-3).collect();
        assert!(near.iter().all(|x| x.abs() < 1000.0), "{near:?}");
        near.sort_by(f64::total_cmp);
        near.dedup();
        // Annealed particles have ancestors in common.
        assert!(near.len() > values.len() / 8, "{} values", near.len());
    }
}

/// A name that commands the terminal is shown, not obeyed.
#[test]
fn names_do_not_reach_the_terminal_as_commands() {
    let place = Place::new();
    let name = "rows\u{1b}[31m.npy";
    write_rows(&place.path(name), &clouds(60));
    place.run(&format!("train {name} -o run {SMALL}"));
    let output = place.output("inspect run");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("\\u{1b}[31m.npy") && !text.contains('\u{1b}'),
        "{text}"
    );
}

#[cfg(unix)]
mod signals {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    const LONG: &str = "--width 16 --depth 2 --batch 64 --levels 3 --grid-levels 32 --score-steps 200000 --steps 1 --threads 1 \
                        --checkpoint-every 1000 --log-every 1 --held-out 0 --no-report --quiet";

    /// Until the run has taken a few steps.
    fn until_it_trains(place: &Place) {
        let (log, patience) = (place.path("run/log.jsonl"), Instant::now());
        while fs::metadata(&log).map_or(0, |m| m.len()) < 1000 {
            assert!(
                patience.elapsed() < Duration::from_secs(30),
                "the run does not start"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn ended(child: Child) -> (Option<i32>, String) {
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into(),
        )
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn data_that_shrink_end_in_words() {
        let place = Place::new();
        write_rows(&place.path("rows.npy"), &clouds(20_000));
        let mut command = place.command(&format!("train rows.npy -o run {LONG}"));
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        until_it_trains(&place);
        let file = fs::OpenOptions::new()
            .write(true)
            .open(place.path("rows.npy"))
            .unwrap();
        file.set_len(200).unwrap();
        let (code, error) = ended(child);
        assert_eq!(code, Some(2), "{error}");
        assert!(
            error.contains("became shorter") && error.contains("--resume"),
            "{error}"
        );
    }

    #[test]
    fn a_signal_that_is_set_aside_stays_so() {
        let place = Place::new();
        let program = env!("CARGO_BIN_EXE_diffclf");
        let train = format!("train --system two-modes --dim 2 -o run {LONG}");
        let mut child = Command::new("sh")
            .args(["-c", &format!("trap '' HUP; exec {program} {train}")])
            .current_dir(place.folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until_it_trains(&place);
        let kill = |signal: &str| {
            let status = Command::new("kill")
                .args([signal, &child.id().to_string()])
                .status();
            assert!(status.unwrap().success());
        };
        kill("-HUP");
        let before = place.log("run").len();
        std::thread::sleep(Duration::from_millis(300));
        kill("-TERM");
        assert!(child.try_wait().unwrap().is_none() || place.log("run").len() > before + 1);
        let (code, error) = ended(child);
        assert_eq!(code, Some(130), "{error}");
        assert!(place.log("run").len() > before + 1, "it went on");
    }
}
