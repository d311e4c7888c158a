//! Every flag that takes a number, with numbers at the ends of its type: exit code 2 and a sentence, or an honest result; never a panic,
//! an abort or a hang. `extremes.txt` has a line for each such flag; a test beside the help compares it with what clap knows.

use super::{Place, SMALL, clouds, write_npy_bytes, write_rows};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TABLE: &str = include_str!("extremes.txt");

/// Whole numbers and others at their ends. What clap refuses costs next to nothing.
const VALUES: [&str; 8] = [
    "18446744073709551615",
    "4294967296",
    "0",
    "-1",
    "nan",
    "inf",
    "1e-323",
    "1e308",
];

/// Memory that a process may take, so that the budget is the same on every machine.
const KILOBYTES: &str = "4000000";
/// Endless work is stopped after a moment, other work must have come to an end.
const MOMENT: Duration = Duration::from_millis(150);
const PATIENCE: Duration = Duration::from_secs(30);

/// One line of the table: flag, whether a huge number of it is endless work, the command without the flag.
struct Line<'a> {
    flag: &'a str,
    endless: bool,
    command: String,
}

fn lines() -> Vec<Line<'static>> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let [name, kind, rest] = parts[..] else {
                panic!("{line}: expected COMMAND --FLAG | ends or endless | ARGUMENTS");
            };
            let (command, flag) = name.rsplit_once(" --").unwrap();
            // A flag of the arguments is taken out where it is the one that is tried.
            let words: Vec<&str> = rest.split_whitespace().collect();
            let short = match flag {
                "number" => "-n",
                "particles" if command != "train" => "-n",
                _ => "",
            };
            let mut kept = Vec::new();
            let mut k = 0;
            while k < words.len() {
                if words[k].strip_prefix("--") == Some(flag) || words[k] == short {
                    k += 2;
                } else {
                    kept.push(words[k]);
                    k += 1;
                }
            }
            Line {
                flag,
                endless: kind == "endless",
                command: format!("{command} {}", kept.join(" ")),
            }
        })
        .collect()
}

/// Runs one case; returns what is wrong with its end.
fn problem(place: &Place, line: &Line, value: &str, number: usize) -> Option<String> {
    let arguments = line.command.replace("OUT", &format!("out{number}"));
    let arguments = format!("{arguments} --{}={value}", line.flag);
    let program = env!("CARGO_BIN_EXE_diffclf");
    let mut child = Command::new("sh")
        .args([
            "-c",
            &format!("ulimit -v {KILOBYTES}; exec {program} {arguments}"),
        ])
        .current_dir(place.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let huge = value.len() > 4;
    let patience = if line.endless && huge {
        MOMENT
    } else {
        PATIENCE
    };
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > patience {
            child.kill().unwrap();
            child.wait().unwrap();
            return (patience == PATIENCE).then(|| format!("{arguments}: does not end"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    // 1 and 4 are verdicts of a diagnosis.
    let fine = matches!(output.status.code(), Some(0..=4)) && !error.contains("panicked");
    (!fine).then(|| format!("{arguments}: {}\n{error}", output.status))
}

#[cfg(target_os = "linux")]
#[test]
fn every_number_is_taken_or_refused_in_words() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(100));
    let series = |name: &str, shape: &str, count: usize| {
        let numbers = clouds(count).into_iter().flatten().take(count);
        let data: Vec<u8> = numbers.flat_map(f64::to_le_bytes).collect();
        write_npy_bytes(&place.path(name), "'<f8'", "False", shape, &data);
    };
    series("w.npy", "(60,)", 60);
    series("u.npy", "(2, 40)", 80);
    series("w40.npy", "(40,)", 40);
    series("frames.npy", "(4, 2, 3)", 24);
    place.run(&format!(
        "train --system mog2 --dim 2 --samples 100 -o m {SMALL}"
    ));
    place.molecule();
    place.run(&format!(
        "train --system mog2 --end-system two-modes --dim 2 --objective dsm+diffclf+velocity -o bridge {SMALL}"
    ));
    let lines = lines();
    let cases: Vec<_> = lines
        .iter()
        .flat_map(|line| VALUES.map(|value| (line, value)))
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut problems = Vec::new();
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            let Some((line, value)) = cases.get(k) else {
                return problems;
            };
            problems.extend(problem(&place, line, value, k));
        }
    };
    let problems = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut problems = work();
        problems.extend(other.join().unwrap());
        problems
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
